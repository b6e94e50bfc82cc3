#include <algorithm>
#include <limits>
#include <utility>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/launch_policy.hpp>
#include <kernels/spgemm/placed_rows.cuh>
#include <kernels/spgemm/sort.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int place_threads = 256;
constexpr int least_room = 16;
constexpr int rooms = 9;  ///< each twice the one before
constexpr int most_room = least_room << (rooms - 1);
constexpr unsigned most_products = 0xffff;  ///< of a row that is not heavy

/// What is found on the way. Zero at first.
struct FoundRows {
    unsigned long long placed;         ///< products of rows that are not heavy
    unsigned long long heavy_entries;  ///< of A
    unsigned heavy;                    ///< rows
    unsigned rows[rooms];              ///< of each room, that are not heavy
    unsigned listed[rooms];            ///< so far
    unsigned products;                 ///< of a row that is not heavy, at most
    unsigned entries;                  ///< of C in such a row, at most
    unsigned longest;                  ///< row of B that is multiplied: its entries
    unsigned unsorted;                 ///< whether columns of such a row do not rise
};

/// Smallest room for so many entries, at most most_room of them.
__device__ __forceinline__ int room_of(unsigned entries)
{
    return entries <= least_room ? 0 : 32 - __clz(static_cast<int>((entries - 1) / least_room));
}

/// `Lanes` threads for each row of A: its entries, and its products to begins[row]; the rows of each room. A row with
/// more than `most_light` products is heavy, and one with many entries of C: these have none here.
template <int Lanes>
__global__ void __launch_bounds__(place_threads)
    count_placed_kernel(const ProductSource job, unsigned most_light, PlacedEntry* __restrict__ entries,
                        std::uint32_t* __restrict__ begins, FoundRows* __restrict__ found)
{
    __shared__ FoundRows own;
    const LaneGroup<Lanes> of_row(job.a.rows);
    if (threadIdx.x < sizeof own / sizeof(unsigned)) {
        reinterpret_cast<unsigned*>(&own)[threadIdx.x] = 0;  // all of it
    }
    __syncthreads();
    const std::int64_t begin = of_row.active ? job.a.row_ptr[of_row.row] : 0;
    const std::int64_t count = of_row.active ? job.a.row_ptr[of_row.row + 1] - begin : 0;
    // A row with more entries of A has as many products, or rows of B that are empty.
    const int in_row = static_cast<int>(min(static_cast<long long>(count), 2ll * most_products));
    const int most = Lanes == 32 ? in_row : __reduce_max_sync(whole_warp, in_row);
    std::uint64_t products = 0;
    int longest = 0;
    for (int i = of_row.lane; i - of_row.lane < most; i += Lanes) {
        const Extent of_b = i < in_row ? row_of_b(job, begin + i) : Extent(0);
        // Sums that do not fit are of rows that are left.
        const int has = min(of_b.count(), static_cast<int>(most_products) + 1);
        longest = max(longest, has);
        const int through = sum_through<Lanes>(has, of_row.lane);
        const std::uint64_t first = products + static_cast<unsigned>(through - has);
        if (i < in_row) {
            entries[begin + i] = {static_cast<std::int32_t>(of_b.place()),
                                  static_cast<std::uint32_t>(first & 0xffff) | static_cast<std::uint32_t>(has) << 16};
        }
        products += static_cast<unsigned>(__shfl_sync(whole_warp, through, Lanes - 1, Lanes));
    }
    longest = __reduce_max_sync(whole_warp, longest);
    if (threadIdx.x % 32 == 0) {
        atomicMax(&own.longest, static_cast<unsigned>(longest));
    }
    if (of_row.active && of_row.lane == 0) {
        const std::int64_t of_c = job.row_ptr[of_row.row + 1] - job.row_ptr[of_row.row];
        const bool heavy = count > in_row || products > most_light || of_c > most_room;
        const auto placed = heavy ? 0u : static_cast<unsigned>(products);
        begins[of_row.row] = placed;
        if (heavy) {
            atomicAdd(&own.heavy, 1u);
            atomicAdd(&own.heavy_entries, static_cast<unsigned long long>(count));
        } else if (placed > 0) {
            atomicAdd(own.rows + room_of(static_cast<unsigned>(of_c)), 1u);
            atomicAdd(&own.placed, static_cast<unsigned long long>(placed));
            atomicMax(&own.products, placed);
            atomicMax(&own.entries, static_cast<unsigned>(of_c));
        }
    }
    __syncthreads();
    if (threadIdx.x < rooms && own.rows[threadIdx.x] > 0) {
        atomicAdd(found->rows + threadIdx.x, own.rows[threadIdx.x]);
    }
    if (threadIdx.x == 0) {
        atomicMax(&found->products, own.products);
        atomicMax(&found->entries, own.entries);
        atomicMax(&found->longest, own.longest);
        atomicAdd(&found->placed, own.placed);
        if (own.heavy > 0) {
            atomicAdd(&found->heavy, own.heavy);
            atomicAdd(&found->heavy_entries, own.heavy_entries);
        }
    }
}

/// weights[row]: weight_of_heavy, or 0 where a row is not heavy.
__global__ void __launch_bounds__(place_threads)
    weigh_heavy_kernel(const ProductSource job, const std::uint32_t* __restrict__ begins,
                       std::int64_t* __restrict__ weights)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * place_threads + threadIdx.x;
    if (row <= job.a.rows) {
        const bool heavy =
            row < job.a.rows && begins[row + 1] == begins[row] && job.row_ptr[row + 1] > job.row_ptr[row];
        weights[row] = heavy ? weight_of_heavy : 0;
    }
}

/// Rows by their room, those of a block side by side.
__global__ void __launch_bounds__(place_threads)
    list_placed_kernel(const ProductSource job, const std::uint32_t* __restrict__ begins, FoundRows* __restrict__ found,
                       std::int32_t* __restrict__ list)
{
    __shared__ unsigned counts[rooms];
    __shared__ unsigned places[rooms];
    if (threadIdx.x < rooms) {
        counts[threadIdx.x] = 0;
    }
    __syncthreads();
    const std::int64_t row = std::int64_t{blockIdx.x} * place_threads + threadIdx.x;
    const bool in = row < job.a.rows && begins[row + 1] > begins[row];
    const int room = in ? room_of(static_cast<unsigned>(job.row_ptr[row + 1] - job.row_ptr[row])) : 0;
    const unsigned own = in ? atomicAdd(counts + room, 1u) : 0;
    __syncthreads();
    if (threadIdx.x < rooms) {
        unsigned before = 0;
        for (int r = 0; r < static_cast<int>(threadIdx.x); ++r) {
            before += found->rows[r];
        }
        places[threadIdx.x] = before + atomicAdd(found->listed + threadIdx.x, counts[threadIdx.x]);
    }
    __syncthreads();
    if (in) {
        list[places[room] + own] = static_cast<std::int32_t>(row);
    }
}

/// `Lanes` threads for each row: the places of its products.
template <int Lanes>
__global__ void __launch_bounds__(place_threads)
    find_places_kernel(const ProductSource job, const PlacedEntry* __restrict__ entries,
                       const std::uint32_t* __restrict__ begins, std::uint16_t* __restrict__ places,
                       FoundRows* __restrict__ found)
{
    const LaneGroup<Lanes> of_row(job.a.rows);
    if (!of_row.active || begins[of_row.row + 1] == begins[of_row.row]) {
        return;
    }
    const std::int64_t begin = job.a.row_ptr[of_row.row];
    const auto count = static_cast<int>(job.a.row_ptr[of_row.row + 1] - begin);
    const std::int64_t c_begin = job.row_ptr[of_row.row];
    const auto of_c = static_cast<int>(job.row_ptr[of_row.row + 1] - c_begin);
    const std::int32_t* const columns = job.col_idx + c_begin;
    std::uint16_t* const to = places + begins[of_row.row];
    for (int i = 0; i < count; ++i) {
        const PlacedEntry entry = entries[begin + i];
        const int first = entry.first();
        const int end = first + entry.count();
        for (int p = first + of_row.lane; p < end; p += Lanes) {
            const std::int32_t* const at = job.b.col_idx + entry.begin + (p - first);
            const std::int32_t column = __ldg(at);
            if (p > first && __ldg(at - 1) >= column) {
                found->unsorted = 1;
            }
            to[p] = static_cast<std::uint16_t>(place_of(columns, of_c, column));
        }
    }
}

/// A thread for each row, all of which are short.
__global__ void __launch_bounds__(place_threads)
    find_short_places_kernel(const ProductSource job, const PlacedEntry* __restrict__ entries,
                             std::uint64_t* __restrict__ words, FoundRows* __restrict__ found)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * place_threads + threadIdx.x;
    if (row >= job.a.rows) {
        return;
    }
    const std::int64_t c_begin = job.row_ptr[row];
    const auto of_c = static_cast<int>(job.row_ptr[row + 1] - c_begin);
    std::uint64_t word = 0;
    int bit = 0;
    for (std::int64_t i = job.a.row_ptr[row]; i < job.a.row_ptr[row + 1]; ++i) {
        const PlacedEntry entry = entries[i];
        std::int32_t before = -1;
        for (int j = 0; j < entry.count(); ++j, bit += bits_of_a_place) {
            const std::int32_t column = __ldg(job.b.col_idx + entry.begin + j);
            if (column <= before) {
                found->unsorted = 1;
            }
            before = column;
            word |= static_cast<std::uint64_t>(place_of(job.col_idx + c_begin, of_c, column)) << bit;
        }
    }
    words[row] = word;
}

/// Launches of all rooms; those with few rows join the next.
std::vector<PlacedLaunch> plan(const FoundRows& found)
{
    std::vector<PlacedLaunch> launches;
    std::int64_t first = 0;
    std::int64_t rows = 0;
    int room = least_room;
    for (int r = 0; r < rooms; ++r) {
        if (found.rows[r] > 0) {
            rows += found.rows[r];
            room = least_room << r;
        }
        if (rows > 0 && (rows >= rows_for_a_launch || r == rooms - 1)) {
            launches.push_back({first, rows, static_cast<int>(std::min<unsigned>(room, found.entries))});
            first += rows;
            rows = 0;
        }
    }
    return launches;
}

template <class T>
ProductTiles parts_of_heavy(const ProductSource& job, const std::uint32_t* begins, const FoundRows& found,
                            std::int64_t most_bytes, const Context& context)
{
    const std::int64_t rows = job.a.rows;
    const std::int64_t work_bytes = (rows + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)) +
                                    static_cast<std::int64_t>(cuda::exclusive_sum_bytes<std::int64_t>(rows + 1));
    auto weights = try_array<std::int64_t>(context, rows + 1);
    if (weights.size() == 0 || work_bytes > most_bytes) {
        return {};
    }
    weigh_heavy_kernel<<<blocks_for(rows + 1, place_threads), place_threads, 0,
                         static_cast<cudaStream_t>(context.stream)>>>(job, begins, weights.data());
    RMSP_CUDA_CHECK_LAUNCH("weigh_heavy_kernel");
    cuda::exclusive_sum(weights.data(), rows + 1, context);
    return make_parts<T>(job, weights.data(), {found.heavy, static_cast<std::int64_t>(found.heavy_entries)},
                         most_bytes - work_bytes, context);
}

template <class F>
void by_lanes(int lanes, const F& f)
{
    if (lanes <= 8) {
        f.template operator()<8>();
    } else {
        f.template operator()<32>();
    }
}

}  // namespace

template <class T>
PlacedRows place_rows(const ProductSource& job, std::int64_t most_bytes, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const std::int64_t rows = job.a.rows;
    const auto number_bytes = static_cast<std::int64_t>(sizeof(std::uint32_t));
    std::int64_t left =
        most_bytes - job.a_entries * static_cast<std::int64_t>(sizeof(PlacedEntry)) - (rows + 1) * 2 * number_bytes -
        static_cast<std::int64_t>(cuda::exclusive_sum_bytes<std::uint32_t>(rows + 1) + sizeof(FoundRows));
    if (left < 0 || job.b_entries > std::numeric_limits<std::int32_t>::max() ||
        job.products > std::numeric_limits<std::uint32_t>::max()) {
        return {};
    }
    PlacedRows placed;
    placed.entries = try_array<PlacedEntry>(context, job.a_entries);
    placed.begins = try_array<std::uint32_t>(context, rows + 1);
    placed.list = try_array<std::int32_t>(context, rows);
    auto device_found = try_array<FoundRows>(context, 1);
    if (placed.entries.size() == 0 || placed.begins.size() == 0 || placed.list.size() == 0 ||
        device_found.size() == 0) {
        return {};
    }
    RMSP_CUDA_CHECK(cudaMemsetAsync(device_found.data(), 0, sizeof(FoundRows), stream));
    RMSP_CUDA_CHECK(cudaMemsetAsync(placed.begins.data() + rows, 0, sizeof(std::uint32_t), stream));
    const auto most_light =
        static_cast<unsigned>(std::min<std::int64_t>(most_products_of_lanes(job.products), most_products));
    by_lanes(virtual_warp(job.a_entries, rows), [&]<int Lanes>() {
        count_placed_kernel<Lanes><<<blocks_for(rows * Lanes, place_threads), place_threads, 0, stream>>>(
            job, most_light, placed.entries.data(), placed.begins.data(), device_found.data());
        RMSP_CUDA_CHECK_LAUNCH("count_placed_kernel");
    });
    cuda::exclusive_sum(placed.begins.data(), rows + 1, context);
    const FoundRows found = cuda::read(device_found.data(), stream);
    const auto of_places = static_cast<std::int64_t>(found.placed);
    left -= of_places * static_cast<std::int64_t>(sizeof(std::uint16_t));
    if (of_places == 0 || left < 0) {
        return {};
    }
    const DeviceLimits device = device_limits();
    placed.lanes = virtual_warp(job.products, job.a_entries, found.longest <= 4 ? 4 : 8);
    // A block has a warp's rows at least.
    const auto fits = [&](int lanes) {
        const int row_bytes = placed_row_bytes(static_cast<int>(found.entries), lanes, sizeof(T));
        return 32 / lanes * row_bytes <= device.shared_bytes;
    };
    while (placed.lanes < 32 && !fits(placed.lanes)) {
        placed.lanes *= 2;
    }
    if (!fits(placed.lanes)) {
        return {};
    }
    const auto rising = [&] { return cuda::read(device_found.data(), stream).unsorted == 0; };
    if (found.heavy == 0 && found.products <= most_of_a_thread) {
        placed.begins.reset();
        placed.list.reset();
        placed.words = try_array<std::uint64_t>(context, rows);
        placed.room = static_cast<int>(found.entries);
        if (placed.words.size() == 0) {
            return {};
        }
        find_short_places_kernel<<<blocks_for(rows, place_threads), place_threads, 0, stream>>>(
            job, placed.entries.data(), placed.words.data(), device_found.data());
        RMSP_CUDA_CHECK_LAUNCH("find_short_places_kernel");
        return rising() ? std::move(placed) : PlacedRows{};
    }
    placed.places = try_array<std::uint16_t>(context, of_places);
    if (placed.places.size() == 0) {
        return {};
    }
    list_placed_kernel<<<blocks_for(rows, place_threads), place_threads, 0, stream>>>(
        job, placed.begins.data(), device_found.data(), placed.list.data());
    RMSP_CUDA_CHECK_LAUNCH("list_placed_kernel");
    by_lanes(placed.lanes, [&]<int Lanes>() {
        find_places_kernel<Lanes><<<blocks_for(rows * Lanes, place_threads), place_threads, 0, stream>>>(
            job, placed.entries.data(), placed.begins.data(), placed.places.data(), device_found.data());
        RMSP_CUDA_CHECK_LAUNCH("find_places_kernel");
    });
    if (!rising()) {
        return {};
    }
    if (found.heavy > 0) {
        placed.heavy = parts_of_heavy<T>(job, placed.begins.data(), found, left, context);
        if (placed.heavy.empty()) {
            return {};
        }
    }
    placed.launches = plan(found);
    placed.overlaps = device.overlaps;
    return placed;
}

#define RMSP_INSTANTIATE(T) template PlacedRows place_rows<T>(const ProductSource&, std::int64_t, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
