#include <bit>
#include <utility>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/making_tiles.cuh>
#include <kernels/spgemm/numeric.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Bytes of shared memory of a block that lists.
constexpr std::int64_t bytes_of_list(std::int64_t most, std::int64_t slots)
{
    return (most + 1) * 14 + slots * std::int64_t{sizeof(std::uint32_t)};
}

/// Slots of the hash table of so many entries.
constexpr std::int64_t slots_of(std::int64_t most)
{
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(most + most / 4)));
}

constexpr std::uint32_t no_slot = 0xffffffffu;

/// Slot of a key that another thread may put in as well.
__device__ __forceinline__ int slot_of(std::uint32_t* table, int slots, std::uint32_t key)
{
    auto slot = static_cast<int>((key * 2654435761u >> 8) & static_cast<unsigned>(slots - 1));
    for (;; slot = (slot + 1) & (slots - 1)) {
        const std::uint32_t there = atomicCAS(table + slot, no_slot, key);
        if (there == no_slot || there == key) {
            return slot;
        }
    }
}

/// A block for each tile, of rows or a part of one: measures its list or, the second time, writes it.
template <bool Writes, bool Parts, class T>
__global__ void __launch_bounds__(tile_threads) list_tiles_kernel(const ProductSource job, const ListJob to)
{
    constexpr int lanes = 8;  // for an entry of A
    constexpr int buckets = most_of_a_lane + 2;
    extern __shared__ __align__(16) unsigned char tile_memory[];
    __shared__ int sums[tile_threads / 32];
    __shared__ int total;
    __shared__ int places[buckets];
    const int room = to.most + 1;
    auto* const table = reinterpret_cast<std::uint32_t*>(tile_memory);     // of the entries of C of a part
    unsigned* const counts = table + (Parts ? to.slots : 0);               // products of each entry of C
    auto* const firsts = reinterpret_cast<std::uint16_t*>(counts + room);  // product of each entry of A
    std::uint16_t* const entry_of = firsts + room;                         // of C, of each product
    std::uint16_t* const number_of = entry_of + room;                      // of each entry of C in the slices
    std::uint16_t* const in_order = number_of + room;                      // products of each entry in the slices
    std::uint16_t* const begins = in_order + room;                         // of the slices
    const int thread = static_cast<int>(threadIdx.x);
    std::int64_t row_begin = 0;
    std::int64_t row_end = 0;
    std::int64_t a_begin = 0;
    int a_entries = 0;
    if constexpr (Parts) {
        const RowPart part = to.parts[blockIdx.x];
        row_begin = part.row;
        row_end = row_begin + 1;
        a_begin = part.a;
        a_entries = to.parts[blockIdx.x + 1].first - part.first;
    } else {
        row_begin = to.first_rows[blockIdx.x];
        row_end = to.first_rows[blockIdx.x + 1];
        if (row_end > row_begin && to.before != nullptr &&
            to.before[row_end] - to.before[row_end - 1] == weight_of_heavy) {
            --row_end;
        }
        if (row_end == row_begin) {
            return;  // a row before weighs more than a tile
        }
        a_begin = job.a.row_ptr[row_begin];
        a_entries = static_cast<int>(job.a.row_ptr[row_end] - a_begin);
    }
    const std::int64_t c_begin = job.row_ptr[row_begin];
    int c_entries = Parts ? 0 : static_cast<int>(job.row_ptr[row_end] - c_begin);
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
    for (int i = thread; i < (Parts ? products : c_entries); i += tile_threads) {
        counts[i] = 0;
    }
    for (int i = thread; Parts && i < to.slots; i += tile_threads) {
        table[i] = no_slot;
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
            const int low = place_of(columns, row_entries, column);
            if constexpr (Parts) {
                entry_of[p] = static_cast<std::uint16_t>(slot_of(table, to.slots, static_cast<std::uint32_t>(low)));
            } else {
                const int own = static_cast<int>(row_of_c - c_begin) + low;
                entry_of[p] = static_cast<std::uint16_t>(own);
                atomicAdd(counts + own, 1u);
            }
        }
    }
    __syncthreads();
    if constexpr (Parts) {
        // The entries that there are get numbers; in which order does not matter: each is a sum of its own.
        for (int chunk = 0; chunk < to.slots; chunk += tile_threads) {
            const int slot = chunk + thread;
            const std::uint32_t key = slot < to.slots ? table[slot] : no_slot;
            const int number = c_entries + scan(key != no_slot ? 1 : 0);
            if (key != no_slot) {
                table[slot] = static_cast<std::uint32_t>(number);
                if constexpr (Writes) {
                    to.entries[to.first_sums[blockIdx.x] + static_cast<std::uint32_t>(number)] =
                        static_cast<std::uint32_t>(c_begin + key);
                }
            }
            c_entries += total;
        }
        __syncthreads();
        for (int p = thread; p < products; p += tile_threads) {
            const std::uint32_t own = table[entry_of[p]];
            entry_of[p] = static_cast<std::uint16_t>(own);
            atomicAdd(counts + own, 1u);
        }
        __syncthreads();
    }
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
            if constexpr (Parts) {
                to.first_sums[blockIdx.x] = static_cast<std::uint32_t>(c_entries);
            }
        }
        return;
    }
    if (thread == 0) {
        begins[slices] = static_cast<std::uint16_t>(rows);
        to.tiles[atomicAdd(&to.found->used, 1)] = {a_begin,
                                                   Parts ? std::int64_t{to.first_sums[blockIdx.x]} : c_begin,
                                                   to.list[blockIdx.x],
                                                   rows_before + rows,
                                                   a_entries,
                                                   c_entries,
                                                   products,
                                                   long_entries};
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
        const int end = Parts ? a_entries : static_cast<int>(job.a.row_ptr[row + 1] - a_begin);
        for (int entry = Parts ? 0 : static_cast<int>(job.a.row_ptr[row] - a_begin); entry < end; ++entry) {
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

template <class T, bool Parts>
bool list_tiles(Making& making, std::int64_t count, std::int64_t most, ListJob to, ProductTiles& found)
{
    const std::int64_t slots = Parts ? slots_of(most) : 0;
    const cudaStream_t stream = making.stream();
    auto list = try_array<std::uint32_t>(making.context, count + 1);
    auto first_sums = try_array<std::uint32_t>(making.context, Parts ? count + 1 : 0);
    const auto list_bytes = static_cast<unsigned>(bytes_of_list(most, slots));
    if (list_bytes + static_shared_bytes > making.shared_limit || list.size() == 0 ||
        (Parts && first_sums.size() == 0)) {
        return false;
    }
    to.most = static_cast<int>(most);
    to.slots = static_cast<int>(slots);
    to.list = list.data();
    to.first_sums = first_sums.data();
    to.found = making.device_known;
    const auto run = [&](auto kernel) {
        launch_overlapping(kernel, count, tile_threads, list_bytes, Overlap{}, stream, making.job, to);
    };
    const auto zero = [&](auto& array) {
        RMSP_CUDA_CHECK(cudaMemsetAsync(array.data(), 0, array.size() * sizeof *array.data(), stream));
    };
    RMSP_CUDA_CHECK(cudaMemsetAsync(making.device_known, 0, sizeof(Found), stream));
    zero(list);
    if constexpr (Parts) {
        zero(first_sums);
    }
    run(list_tiles_kernel<false, Parts, T>);
    cuda::exclusive_sum(list.data(), count + 1, making.context);
    const std::uint32_t list_rows = cuda::read(list.data() + count, stream);
    std::uint32_t sums = 0;
    if constexpr (Parts) {
        cuda::exclusive_sum(first_sums.data(), count + 1, making.context);
        sums = cuda::read(first_sums.data() + count, stream);
    }
    const Found known = making.read();
    const std::int64_t bytes = std::int64_t{list_rows} * 64 +
                               std::int64_t{known.tiles} * static_cast<std::int64_t>(sizeof(ProductTile)) +
                               bytes_of_order(sums, sizeof(T));
    if (static_cast<std::int64_t>(known.bytes) + static_shared_bytes > making.shared_limit || !making.take(bytes)) {
        return false;
    }
    TileList& tiles = Parts ? found.parts : found.rows;
    tiles.numbers = try_array<std::uint16_t>(making.context, std::int64_t{list_rows} * 32);
    auto made = try_array<ProductTile>(making.context, known.tiles);
    auto entries = try_array<std::uint32_t>(making.context, sums);
    if ((list_rows > 0 && tiles.numbers.size() == 0) || (known.tiles > 0 && made.size() == 0) ||
        (sums > 0 && entries.size() == 0)) {
        return false;
    }
    to.tiles = made.data();
    to.numbers = tiles.numbers.data();
    to.entries = entries.data();
    run(list_tiles_kernel<true, Parts, T>);
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));  // arrays of this function are read until then
    if constexpr (Parts) {
        if (sums == 0) {
            return true;  // rows of A that touch only empty rows of B
        }
        found.sums = order_sums(std::move(entries), making.job.c_entries, sizeof(T), making.context);
        if (found.sums.places.size() == 0) {
            return false;
        }
    }
    tiles.shared_bytes = static_cast<std::int64_t>(known.bytes);
    tiles.threads = most <= 2560 ? 128 : most <= 5120 ? 256 : 512;
    tiles.tiles = std::move(made);
    return true;
}

#define RMSP_INSTANTIATE(T)                                                                          \
    template bool list_tiles<T, false>(Making&, std::int64_t, std::int64_t, ListJob, ProductTiles&); \
    template bool list_tiles<T, true>(Making&, std::int64_t, std::int64_t, ListJob, ProductTiles&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
