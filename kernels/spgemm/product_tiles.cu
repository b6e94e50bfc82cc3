#include <limits>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/numeric.cuh>
#include <kernels/spgemm/product_tiles.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int tile_threads = 256;

/// Where the row of B of entry `at` of A begins, and its entries.
__device__ __forceinline__ Extent row_of_b(const TilesJob& job, std::int64_t at)
{
    const std::int64_t k = __ldg(job.a.col_idx + at);
    const std::int64_t begin = job.b.row_ptr[k];
    return {begin, static_cast<std::int32_t>(job.b.row_ptr[k + 1] - begin)};
}

/// weights[row], 0 behind the last, and the greatest of them. Several threads a row.
__global__ void __launch_bounds__(tile_threads) weigh_rows_kernel(const TilesJob job, std::int64_t* weights, int* most)
{
    constexpr int lanes = 4;
    const std::int64_t row = std::int64_t{blockIdx.x} * (tile_threads / lanes) + threadIdx.x / lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const std::int64_t begin = row < job.a.rows ? job.a.row_ptr[row] : 0;
    const std::int64_t end = row < job.a.rows ? job.a.row_ptr[row + 1] : 0;
    long long products = 0;
    // Of a row with so many entries the rest does not matter.
    for (std::int64_t i = begin + lane; i < end && end - begin <= most_weight; i += lanes) {
        products += row_of_b(job, i).count();
    }
    __syncwarp();
#pragma unroll
    for (int d = 1; d < lanes; d *= 2) {
        products += __shfl_xor_sync(whole_warp, products, d);
    }
    const long long weight = max(products, static_cast<long long>(end - begin));
    if (row <= job.a.rows && lane == 0) {
        weights[row] = weight;
    }
    const auto own = static_cast<int>(min(weight, static_cast<long long>(most_weight) + 1));
    const int of_warp = __reduce_max_sync(whole_warp, own);
    if (threadIdx.x % 32 == 0 && of_warp > 0) {
        atomicMax(most, of_warp);
    }
}

/// first_rows[tile]: the first row whose weights before it reach the tile; first_rows[tiles]: all rows.
__global__ void __launch_bounds__(tile_threads)
    cut_tiles_kernel(const std::int64_t* __restrict__ before, std::int64_t rows, std::int64_t tiles,
                     std::int32_t* __restrict__ first_rows)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * tile_threads + threadIdx.x;
    if (row > rows) {
        return;
    }
    const std::int64_t from = row == 0 ? 0 : before[row - 1] / tile_weight + 1;
    const std::int64_t to = row == rows ? tiles : before[row] / tile_weight;
    for (std::int64_t tile = from; tile <= to; ++tile) {
        first_rows[tile] = static_cast<std::int32_t>(row);
    }
}

/// What is found on the way. Zero at first.
struct Found {
    unsigned long long bytes;  ///< of shared memory that a tile takes, at most
    int weight;                ///< of a row, at most; counted up to most_weight + 1
    int tiles;                 ///< that are not empty
    int used;                  ///< of them, so far
};

struct ListJob {
    const std::int32_t* first_rows;
    int most;             ///< entries of A, of C, and products of a tile, at most
    std::uint32_t* list;  ///< rows of 32 numbers of each tile, 0 at first, then where they begin
    Found* found;
    ProductTile* tiles;
    std::uint16_t* numbers;
    std::uint16_t* products;
    std::int32_t* of_b;
};

/// Bytes of shared memory of a block that lists.
constexpr std::int64_t bytes_of_list(std::int64_t most) { return (most + 1) * 14; }

/// A block for each tile: measures its list or, the second time, writes it.
template <bool Writes, class T>
__global__ void __launch_bounds__(tile_threads) list_tiles_kernel(const TilesJob job, const ListJob to)
{
    constexpr int lanes = 8;  // for an entry of A
    constexpr int buckets = most_of_a_lane + 2;
    extern __shared__ __align__(16) unsigned char tile_memory[];
    __shared__ int sums[tile_threads / 32];
    __shared__ int total;
    __shared__ int places[buckets];
    const int room = to.most + 1;
    auto* const counts = reinterpret_cast<unsigned*>(tile_memory);         // products of each entry of C
    auto* const firsts = reinterpret_cast<std::uint16_t*>(counts + room);  // product of each entry of A
    std::uint16_t* const entry_of = firsts + room;                         // of C, of each product
    std::uint16_t* const number_of = entry_of + room;                      // of each entry of C in the slices
    std::uint16_t* const in_order = number_of + room;                      // products of each entry in the slices
    std::uint16_t* const begins = in_order + room;                         // of the slices
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t row_begin = to.first_rows[blockIdx.x];
    const std::int64_t row_end = to.first_rows[blockIdx.x + 1];
    if (row_end == row_begin) {
        return;  // a row before weighs more than a tile
    }
    const std::int64_t a_begin = job.a.row_ptr[row_begin];
    const std::int64_t c_begin = job.row_ptr[row_begin];
    const int a_entries = static_cast<int>(job.a.row_ptr[row_end] - a_begin);
    const int c_entries = static_cast<int>(job.row_ptr[row_end] - c_begin);
    // Sums before each thread's number; `total` of all.
    const auto scan = [&](int own) {
        const int through = block_sum_before<tile_threads>(own, sums) + sum_through<32>(own, thread % 32);
        if (thread == tile_threads - 1) {
            total = through;
        }
        __syncthreads();
        return through - own;
    };
    int products = 0;
    for (int chunk = 0; chunk < a_entries; chunk += tile_threads) {
        const int entry = chunk + thread;
        const Extent of_b = entry < a_entries ? row_of_b(job, a_begin + entry) : Extent(0);
        const int first = products + scan(of_b.count());
        if (entry < a_entries) {
            firsts[entry] = static_cast<std::uint16_t>(first);
            if constexpr (Writes) {
                to.products[a_begin + entry] = static_cast<std::uint16_t>(first);
                to.of_b[a_begin + entry] = static_cast<std::int32_t>(of_b.place() - first);
            }
        }
        products += total;
    }
    for (int i = thread; i < c_entries; i += tile_threads) {
        counts[i] = 0;
    }
    if (thread < buckets) {
        places[thread] = 0;
    }
    if (thread == 0) {
        firsts[a_entries] = static_cast<std::uint16_t>(products);
    }
    __syncthreads();
    for (int entry = thread / lanes; entry < a_entries; entry += tile_threads / lanes) {
        std::int64_t row = row_begin;
        for (std::int64_t end = row_end; row + 1 < end;) {
            const std::int64_t middle = row + (end - row) / 2;
            (job.a.row_ptr[middle] <= a_begin + entry ? row : end) = middle;
        }
        const std::int64_t row_of_c = job.row_ptr[row];
        const auto row_entries = static_cast<int>(job.row_ptr[row + 1] - row_of_c);
        const std::int32_t* const columns = job.col_idx + row_of_c;
        const std::int64_t of_b = row_of_b(job, a_begin + entry).place() - firsts[entry];
        for (int p = firsts[entry] + thread % lanes; p < firsts[entry + 1]; p += lanes) {
            const std::int32_t column = __ldg(job.b.col_idx + of_b + p);
            int low = 0;
            for (int high = row_entries - 1; low < high;) {
                const int middle = low + (high - low) / 2;
                if (__ldg(columns + middle) < column) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            const int own = static_cast<int>(row_of_c - c_begin) + low;
            entry_of[p] = static_cast<std::uint16_t>(own);
            atomicAdd(counts + own, 1u);
        }
    }
    __syncthreads();
    // Those with most products first; all that are long are one bucket. Which of those with as many is first does not
    // matter: each is a sum of its own.
    const auto bucket_of = [&](unsigned count) {
        return most_of_a_lane + 1 - static_cast<int>(min(count, static_cast<unsigned>(most_of_a_lane) + 1u));
    };
    for (int i = thread; i < c_entries; i += tile_threads) {
        atomicAdd(places + bucket_of(counts[i]), 1);
    }
    __syncthreads();
    const int long_entries = places[0];
    __syncthreads();
    if (thread == 0) {
        int before = 0;
        for (int& place : places) {
            const int own = place;
            place = before;
            before += own;
        }
    }
    __syncthreads();
    for (int i = thread; i < c_entries; i += tile_threads) {
        const int number = atomicAdd(places + bucket_of(counts[i]), 1);
        number_of[i] = static_cast<std::uint16_t>(number);
        in_order[number] = static_cast<std::uint16_t>(counts[i]);
    }
    __syncthreads();
    const int slices = slices_of_tile(c_entries, long_entries);
    int rows = 0;
    for (int chunk = 0; chunk < slices; chunk += tile_threads) {
        const int s = chunk + thread;
        const int own = s >= slices        ? 0
                        : s < long_entries ? rows_of_32(in_order[s])
                                           : in_order[long_entries + (s - long_entries) * 32];
        const int before = rows + scan(own);
        if (s < slices) {
            begins[s] = static_cast<std::uint16_t>(before);
        }
        rows += total;
    }
    const int rows_of_begins = rows_of_32(slices + 1);
    const int rows_before = rows_of_begins + rows_of_32(c_entries);
    if constexpr (!Writes) {
        if (thread == 0) {
            to.list[blockIdx.x] = static_cast<std::uint32_t>(rows_before + rows);
            atomicMax(&to.found->bytes,
                      static_cast<unsigned long long>(bytes_of_tile<T>(rows_before + rows, products, c_entries)));
            atomicAdd(&to.found->tiles, 1);
        }
        return;
    }
    if (thread == 0) {
        begins[slices] = static_cast<std::uint16_t>(rows);
        to.tiles[atomicAdd(&to.found->used, 1)] = {
            a_begin, c_begin, to.list[blockIdx.x], rows_before + rows, a_entries, c_entries, products, long_entries};
    }
    __syncthreads();
    std::uint16_t* const numbers = to.numbers + std::int64_t{to.list[blockIdx.x]} * 32;
    std::uint16_t* const at = numbers + rows_before * 32;
    for (int s = thread; s < rows_of_begins * 32; s += tile_threads) {
        numbers[s] = s <= slices ? begins[s] : 0;
    }
    for (int i = thread; i < c_entries; i += tile_threads) {
        numbers[rows_of_begins * 32 + number_of[i]] = static_cast<std::uint16_t>(i);
        counts[i] = 0;
    }
    for (int i = thread; i < rows * 32; i += tile_threads) {
        at[i] = static_cast<std::uint16_t>(products);
    }
    __syncthreads();
    // A warp takes a row's entries of A one after the other, so that sums are always in that order.
    const int lane = thread % 32;
    for (std::int64_t row = row_begin + thread / 32; row < row_end; row += tile_threads / 32) {
        const auto end = static_cast<int>(job.a.row_ptr[row + 1] - a_begin);
        for (auto entry = static_cast<int>(job.a.row_ptr[row] - a_begin); entry < end; ++entry) {
            for (int chunk = firsts[entry]; chunk < firsts[entry + 1]; chunk += 32) {
                const int p = chunk + lane;
                const bool in = p < firsts[entry + 1];
                const int own = in ? entry_of[p] : -1 - lane;
                // A row of B may have a column twice.
                const unsigned same = __match_any_sync(whole_warp, own);
                const int step = in ? static_cast<int>(counts[own]) + __popc(same & ((1u << lane) - 1u)) : 0;
                __syncwarp();
                if (in && same >> lane == 1u) {
                    counts[own] = static_cast<unsigned>(step) + 1u;
                }
                __syncwarp();
                if (in) {
                    const int number = number_of[own];
                    const int others = number - long_entries;
                    const int row_of_step =
                        others < 0 ? begins[number] + step / 32 : begins[long_entries + others / 32] + step;
                    at[row_of_step * 32 + (others < 0 ? step : others) % 32] = static_cast<std::uint16_t>(p);
                }
            }
        }
    }
}

}  // namespace

template <class T>
ProductTiles make_tiles(const TilesJob& job, std::int64_t most_bytes, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    int device = 0;
    int shared_limit = 0;
    RMSP_CUDA_CHECK(cudaGetDevice(&device));
    RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    const std::int64_t rows = job.a.rows;
    ProductTiles found;
    if (std::max(job.a_entries, job.b_entries) > std::numeric_limits<std::int32_t>::max()) {
        return found;
    }
    const auto sum_bytes = [](std::size_t bytes) { return static_cast<std::int64_t>(bytes + sizeof(Found)); };
    if ((rows + 1) * std::int64_t{sizeof(std::int64_t)} + sum_bytes(cuda::exclusive_sum_bytes<std::int64_t>(rows + 1)) >
        most_bytes) {
        return found;
    }
    auto weights = try_array<std::int64_t>(context, rows + 1);
    auto device_known = try_array<Found>(context, 1);
    if (weights.size() == 0 || device_known.size() == 0) {
        return found;
    }
    const auto read = [&](auto* to, const auto* from) {
        RMSP_CUDA_CHECK(cudaMemcpyAsync(to, from, sizeof *to, cudaMemcpyDeviceToHost, stream));
    };
    Found known{};
    std::int64_t weight = 0;
    RMSP_CUDA_CHECK(cudaMemsetAsync(device_known.data(), 0, sizeof known, stream));
    weigh_rows_kernel<<<blocks_for((rows + 1) * 4, tile_threads), tile_threads, 0, stream>>>(
        job, weights.data(), &device_known.data()->weight);
    RMSP_CUDA_CHECK_LAUNCH("weigh_rows_kernel");
    cuda::exclusive_sum(weights.data(), rows + 1, context);
    read(&weight, weights.data() + rows);
    read(&known, device_known.data());
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    if (known.weight > most_weight) {
        return found;
    }
    const std::int64_t cuts = weight / tile_weight + 1;
    const std::int64_t most = known.weight + tile_weight;
    constexpr std::int64_t static_bytes = 1024;
    const std::int64_t work_bytes = (cuts + 1) * std::int64_t{sizeof(std::int32_t) + sizeof(std::uint32_t)} +
                                    sum_bytes(cuda::exclusive_sum_bytes<std::uint32_t>(cuts + 1));
    if (work_bytes > most_bytes) {
        return found;
    }
    auto first_rows = try_array<std::int32_t>(context, cuts + 1);
    auto list = try_array<std::uint32_t>(context, cuts + 1);
    if (bytes_of_list(most) + static_bytes > shared_limit || first_rows.size() == 0 || list.size() == 0) {
        return found;
    }
    cut_tiles_kernel<<<blocks_for(rows + 1, tile_threads), tile_threads, 0, stream>>>(weights.data(), rows, cuts,
                                                                                      first_rows.data());
    RMSP_CUDA_CHECK_LAUNCH("cut_tiles_kernel");
    weights.reset();
    ListJob to{.first_rows = first_rows.data(),
               .most = static_cast<int>(most),
               .list = list.data(),
               .found = device_known.data(),
               .tiles = nullptr,
               .numbers = nullptr,
               .products = nullptr,
               .of_b = nullptr};
    const auto run = [&](auto kernel) {
        launch_overlapping(kernel, cuts, tile_threads, static_cast<unsigned>(bytes_of_list(most)), Overlap{}, stream,
                           job, to);
    };
    RMSP_CUDA_CHECK(
        cudaMemsetAsync(list.data(), 0, static_cast<std::size_t>(cuts + 1) * sizeof(std::uint32_t), stream));
    run(list_tiles_kernel<false, T>);
    cuda::exclusive_sum(list.data(), cuts + 1, context);
    std::uint32_t list_rows = 0;
    read(&list_rows, list.data() + cuts);
    read(&known, device_known.data());
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    const std::int64_t bytes = std::int64_t{list_rows} * 64 + job.a_entries * 6 +
                               std::int64_t{known.tiles} * static_cast<std::int64_t>(sizeof(ProductTile));
    if (static_cast<std::int64_t>(known.bytes) + static_bytes > shared_limit || work_bytes + bytes > most_bytes) {
        return found;
    }
    found.numbers = try_array<std::uint16_t>(context, std::int64_t{list_rows} * 32);
    found.products = try_array<std::uint16_t>(context, job.a_entries);
    found.of_b = try_array<std::int32_t>(context, job.a_entries);
    auto tiles = try_array<ProductTile>(context, known.tiles);
    if (found.numbers.size() == 0 || found.products.size() == 0 || found.of_b.size() == 0 || tiles.size() == 0) {
        return {};
    }
    to.tiles = tiles.data();
    to.numbers = found.numbers.data();
    to.products = found.products.data();
    to.of_b = found.of_b.data();
    run(list_tiles_kernel<true, T>);
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));  // arrays of this function are read until then
    found.shared_bytes = static_cast<std::int64_t>(known.bytes);
    found.threads = most <= 2560 ? 128 : most <= 5120 ? 256 : 512;
    found.lanes = virtual_warp(job.products, job.a_entries);
    found.tiles = std::move(tiles);
    return found;
}

#define RMSP_INSTANTIATE(T) template ProductTiles make_tiles<T>(const TilesJob&, std::int64_t, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
