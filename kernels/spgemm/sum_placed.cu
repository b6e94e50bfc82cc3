#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/placed_rows.cuh>
#include <kernels/spgemm/sort.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int placed_threads = most_threads_of_warps;

/// Where a sum of a block of short rows is in shared memory, so that those of neighbouring rows are in other banks.
template <class T>
__host__ __device__ constexpr int banked(int i)
{
    return i + i / static_cast<int>(128 / sizeof(T));
}

/// A thread for each row of C, all of which are short. Those of a block lie side by side in C.
template <class T>
__global__ void __launch_bounds__(placed_threads)
    sum_short_placed_kernel(const ProductSource job, const PlacedEntry* __restrict__ entries,
                            const std::uint64_t* __restrict__ words, T alpha, const T* __restrict__ a_values,
                            const T* __restrict__ b_values, T* __restrict__ values)
{
    constexpr int entries_at_once = 4;  // of A
    constexpr int of_each = 4;          // products
    extern __shared__ __align__(16) unsigned char placed_memory[];
    T* const sums = reinterpret_cast<T*>(placed_memory);
    const std::int64_t first_row = std::int64_t{blockIdx.x} * placed_threads;
    const std::int64_t row = min(first_row + threadIdx.x, job.a.rows);
    const std::int64_t next = min(row + 1, job.a.rows);
    const std::int64_t block_begin = job.row_ptr[first_row];
    const std::int64_t block_end = job.row_ptr[min(first_row + placed_threads, job.a.rows)];
    const auto own = static_cast<int>(job.row_ptr[row] - block_begin);
    const auto own_end = static_cast<int>(job.row_ptr[next] - block_begin);
    const std::int64_t a_end = job.a.row_ptr[next];
    std::uint64_t word = row < next ? __ldg(words + row) : 0;
    for (int i = own; i < own_end; ++i) {
        sums[banked<T>(i)] = T{0};
    }
    const auto add = [&](T product) {
        sums[banked<T>(own + static_cast<int>(word & (most_of_a_thread - 1)))] += product;
        word >>= bits_of_a_place;
    };
    for (std::int64_t i = job.a.row_ptr[row]; i < a_end; i += entries_at_once) {
        int2 entry[entries_at_once];
        T factor[entries_at_once];
        T value[entries_at_once][of_each];
#pragma unroll
        for (int u = 0; u < entries_at_once; ++u) {
            const bool in = i + u < a_end;
            entry[u] = in ? __ldg(reinterpret_cast<const int2*>(entries) + i + u) : int2{0, 0};
            factor[u] = in ? __ldg(a_values + i + u) : T{0};
        }
#pragma unroll
        for (int u = 0; u < entries_at_once; ++u) {
            entry[u].y = static_cast<int>(static_cast<unsigned>(entry[u].y) >> 16);
#pragma unroll
            for (int j = 0; j < of_each; ++j) {
                value[u][j] = j < entry[u].y ? __ldg(b_values + entry[u].x + j) : T{0};
            }
        }
#pragma unroll
        for (int u = 0; u < entries_at_once; ++u) {
#pragma unroll
            for (int j = 0; j < of_each; ++j) {
                if (j < entry[u].y) {
                    add(factor[u] * value[u][j]);
                }
            }
            for (int j = of_each; j < entry[u].y; ++j) {
                add(factor[u] * __ldg(b_values + entry[u].x + j));
            }
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(block_end - block_begin); i += placed_threads) {
        __stcs(values + block_begin + i, alpha * sums[banked<T>(i)]);
    }
}

template <class T>
struct alignas(16) PlacedFactor {
    T value;
    PlacedEntry entry;
};

/// From shared memory, at once.
template <class T>
__device__ __forceinline__ PlacedFactor<T> load(const PlacedFactor<T>* factor)
{
    union {
        uint4 raw;
        PlacedFactor<T> factor;
    } both;
    static_assert(sizeof both == sizeof both.raw && sizeof both == placed_factor_bytes);
    both.raw = *reinterpret_cast<const uint4*>(factor);
    return both.factor;
}

/// `Lanes` threads for each row of C, with room for its sums. They take a row of B at a time, `Chunks` products each
/// before others, whose places differ, so that sums need no atomics; several rows of B are loaded at a time.
template <int Lanes, int Chunks, class T>
__global__ void __launch_bounds__(placed_threads)
    sum_placed_kernel(const ProductSource job, const PlacedEntry* __restrict__ entries,
                      const std::uint32_t* __restrict__ begins, const std::uint16_t* __restrict__ places,
                      const std::int32_t* __restrict__ list, std::int64_t count, int stride, T alpha,
                      const T* __restrict__ a_values, const T* __restrict__ b_values, T* __restrict__ values)
{
    constexpr int rows_at_once = 4 / Chunks;  // of B
    static_assert(rows_at_once <= Lanes);
    extern __shared__ __align__(16) unsigned char placed_memory[];
    let_next_begin();
    const LaneGroup<Lanes> of_row(list, count);
    const int lane = of_row.lane;
    auto* const all_factors = reinterpret_cast<PlacedFactor<T>*>(placed_memory);
    PlacedFactor<T>* const factors = all_factors + of_row.own * placed_factors(Lanes);
    T* const sums =
        reinterpret_cast<T*>(all_factors + blockDim.x / Lanes * placed_factors(Lanes)) + of_row.own * stride;
    const std::int64_t c_begin = job.row_ptr[of_row.row];
    const int of_c = of_row.active ? static_cast<int>(job.row_ptr[of_row.row + 1] - c_begin) : 0;
    const std::int64_t a_begin = job.a.row_ptr[of_row.row];
    const int of_a = of_row.active ? static_cast<int>(job.a.row_ptr[of_row.row + 1] - a_begin) : 0;
    const std::uint16_t* const own_places = places + begins[of_row.row] + lane;
    const T* const own_values = b_values + lane;
    for (int i = lane; i < of_c; i += Lanes) {
        sums[i] = T{0};
    }
    const int most = Lanes == 32 ? of_a : __reduce_max_sync(whole_warp, of_a);
    for (int at = 0; at < most; at += Lanes) {
        PlacedFactor<T> own{T{0}, {0, 0}};
        if (at + lane < of_a) {
            const int2 entry = __ldg(reinterpret_cast<const int2*>(entries + a_begin + at + lane));
            own = {__ldg(a_values + a_begin + at + lane), {entry.x, static_cast<std::uint32_t>(entry.y)}};
        }
        const bool more = __any_sync(whole_warp, own.entry.count() > Chunks * Lanes);
        __syncwarp();
        factors[lane] = own;
        __syncwarp();
        const int batch = min(most - at, Lanes);
        for (int t = 0; t < batch; t += rows_at_once) {
            constexpr int none = -1;
            int place[rows_at_once][Chunks];
            T product[rows_at_once][Chunks];
            T factor[rows_at_once];
#pragma unroll
            for (int u = 0; u < rows_at_once; ++u) {
                const PlacedFactor<T> f = load(factors + t + u);
                factor[u] = f.value;
#pragma unroll
                for (int c = 0; c < Chunks; ++c) {
                    const bool there = c * Lanes + lane < f.entry.count();
                    place[u][c] = there ? __ldcs(own_places + f.entry.first() + c * Lanes) : none;
                    product[u][c] = there ? __ldg(own_values + f.entry.begin + c * Lanes) : T{0};
                }
            }
#pragma unroll
            for (int u = 0; u < rows_at_once; ++u) {
#pragma unroll
                for (int c = 0; c < Chunks; ++c) {
                    if (place[u][c] != none) {
                        product[u][c] = sums[place[u][c]] + factor[u] * product[u][c];
                    }
                }
#pragma unroll
                for (int c = 0; c < Chunks; ++c) {
                    if (place[u][c] != none) {
                        sums[place[u][c]] = product[u][c];
                    }
                }
                if (more) {
                    const PlacedFactor<T> f = load(factors + t + u);
#pragma unroll 1
                    for (int j = Chunks * Lanes; j + lane < f.entry.count(); j += Lanes) {
                        sums[__ldcs(own_places + f.entry.first() + j)] +=
                            f.value * __ldg(own_values + f.entry.begin + j);
                    }
                }
                __syncwarp();
            }
        }
    }
    __syncwarp();
    for (int i = lane; i < of_c; i += Lanes) {
        __stcs(values + c_begin + i, alpha * sums[i]);
    }
    wait_for_previous();
}

template <class T>
using PlacedKernel = void (*)(ProductSource, const PlacedEntry*, const std::uint32_t*, const std::uint16_t*,
                              const std::int32_t*, std::int64_t, int, T, const T*, const T*, T*);

template <class T>
PlacedKernel<T> placed_kernel_of(int lanes, int chunks)
{
    switch (lanes) {
        case 4:
            return sum_placed_kernel<4, 1, T>;
        case 8:
            return sum_placed_kernel<8, 1, T>;
        case 16:
            return sum_placed_kernel<16, 1, T>;
        default:
            return chunks <= 1   ? sum_placed_kernel<32, 1, T>
                   : chunks <= 2 ? sum_placed_kernel<32, 2, T>
                                 : sum_placed_kernel<32, 4, T>;
    }
}

}  // namespace

template <class T>
void sum_placed(PlacedRows& placed, const ProductSource& job, T alpha, const T* a_values, const T* b_values, T* values,
                cudaStream_t stream)
{
    if (placed.words.size() > 0) {
        const auto shared_bytes = banked<T>(placed.room * placed_threads) * sizeof(T);
        sum_short_placed_kernel<<<blocks_for(job.a.rows, placed_threads), placed_threads, shared_bytes, stream>>>(
            job, placed.entries.data(), placed.words.data(), alpha, a_values, b_values, values);
        RMSP_CUDA_CHECK_LAUNCH("sum_short_placed_kernel");
        return;
    }
    const auto mean = static_cast<int>((job.products + job.a_entries - 1) / job.a_entries);
    const PlacedKernel<T> kernel = placed_kernel_of<T>(placed.lanes, (mean + 31) / 32);
    Overlap overlap{placed.overlaps, true};
    sum_parts(placed.heavy, alpha, a_values, b_values, overlap, stream);
    // Long rows first: short ones fill what they leave.
    for (auto launch = placed.launches.rbegin(); launch != placed.launches.rend(); ++launch) {
        const int lanes = placed.lanes;
        const int sums_bytes = placed_sums_bytes(launch->room, lanes, sizeof(T));
        const int row_bytes = placed_row_bytes(launch->room, lanes, sizeof(T));
        const int threads = threads_of_warps(row_bytes, lanes);
        const int rows = threads / lanes;
        launch_overlapping(kernel, (launch->rows + rows - 1) / rows, threads, static_cast<unsigned>(rows * row_bytes),
                           overlap, stream, job, placed.entries.data(), placed.begins.data(), placed.places.data(),
                           placed.list.data() + launch->first, launch->rows, sums_bytes / static_cast<int>(sizeof(T)),
                           alpha, a_values, b_values, values);
        overlap.first = false;
    }
    add_parts(placed.heavy, alpha, values, overlap, stream);
}

#define RMSP_INSTANTIATE(T) \
    template void sum_placed(PlacedRows&, const ProductSource&, T, const T*, const T*, T*, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
