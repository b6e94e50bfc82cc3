#include <algorithm>
#include <limits>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/analysis.cuh>
#include <kernels/spgemm/spgemm.hpp>

namespace rmsp::kernels {
namespace spgemm {
namespace {

/// Counts of RowBounds end here.
constexpr std::int32_t most_counted = std::numeric_limits<std::int32_t>::max();

/// Rows that are worked on together from this one on; 0: it goes with one before.
__device__ __forceinline__ int group_of(const std::uint8_t* twins, std::int64_t row, std::int64_t rows)
{
    const std::int64_t tile = row / twin_tile * twin_tile;
    const std::int64_t end = min(static_cast<long long>(tile + twin_tile), static_cast<long long>(rows));
    std::int64_t run = row;
    while (run > tile && twins[run] != 0) {
        --run;
    }
    if ((row - run) % most_twins != 0) {
        return 0;
    }
    int group = 1;
    while (group < most_twins && row + group < end && twins[row + group] != 0) {
        ++group;
    }
    return group;
}

/// What analyze_a() adds up of the rows of B that a row of A touches.
struct RowSums {
    std::int32_t first;
    std::int32_t last;
    long long words;
    long long products;
    std::int32_t longest;

    static __device__ __forceinline__ RowSums none() { return {beyond_columns, -1, 0, 0, 0}; }
    __device__ __forceinline__ void add(int4 b) { add(RowSums{b.x, b.y, b.z, b.w, b.w}); }
    __device__ __forceinline__ void add(const RowSums& other)
    {
        first = min(first, other.first);
        last = max(last, other.last);
        words += other.words;
        products += other.products;
        longest = max(longest, other.longest);
    }
    /// Those of each group of `Lanes` threads of a warp, to all of its threads. The whole warp takes part.
    template <int Lanes>
    __device__ __forceinline__ void add_lanes()
    {
#pragma unroll
        for (int d = Lanes / 2; d > 0; d /= 2) {
            add(RowSums{__shfl_xor_sync(whole_warp, first, d), __shfl_xor_sync(whole_warp, last, d),
                        __shfl_xor_sync(whole_warp, words, d), __shfl_xor_sync(whole_warp, products, d),
                        __shfl_xor_sync(whole_warp, longest, d)});
        }
    }
};

__device__ __forceinline__ int4 row_of_b(const RowOfB* b_rows, std::int32_t row)
{
    return __ldg(reinterpret_cast<const int4*>(b_rows + row));
}

/// Entries first, first + Step, ... of A up to `end`, by one thread. Loads that do not depend on each other come
/// together.
template <int Step>
__device__ __forceinline__ RowSums sum_row(const std::int32_t* columns, const RowOfB* b_rows, std::int64_t first,
                                           std::int64_t end)
{
    constexpr int in_flight = 4;
    RowSums sums = RowSums::none();
    for (std::int64_t i = first; i < end; i += in_flight * Step) {
        std::int32_t k[in_flight];
        int4 row[in_flight];
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            k[u] = i + u * Step < end ? __ldg(columns + i + u * Step) : -1;
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            row[u] = k[u] >= 0 ? row_of_b(b_rows, k[u]) : int4{beyond_columns, -1, 0, 0};
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            sums.add(row[u]);
        }
    }
    return sums;
}

/// A row of each thread of a warp, whose lengths differ: by eight threads, one after the other.
__device__ __forceinline__ RowSums sum_uneven_rows(const std::int32_t* columns, const RowOfB* b_rows,
                                                   std::int64_t begin, std::int64_t end)
{
    constexpr int lanes = lanes_of_uneven_rows;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    RowSums own = RowSums::none();
    for (int turn = 0; turn < lanes; ++turn) {
        const std::int64_t its_end = __shfl_sync(whole_warp, end, turn, lanes);
        RowSums its = RowSums::none();
        for (std::int64_t i = __shfl_sync(whole_warp, begin, turn, lanes) + lane; i < its_end; i += lanes) {
            its.add(row_of_b(b_rows, __ldg(columns + i)));
        }
        __syncwarp();
        its.add_lanes<lanes>();
        if (turn == lane) {
            own = its;
        }
    }
    return own;
}

/// Groups of `Lanes` threads a row, of `warps` of the block; the whole block takes long rows one after the other, at
/// last.
template <int Lanes>
__global__ void __launch_bounds__(analysis_threads)
    analyze_a_kernel(Pattern a, int warps, const RowOfB* __restrict__ b_rows, const std::uint8_t* __restrict__ twins,
                     std::int64_t shared_limit, int few, RowBounds* __restrict__ bounds,
                     std::uint8_t* __restrict__ groups, std::int32_t* __restrict__ row_nnz, Counters* counters)
{
    __shared__ unsigned histogram[classes];
    __shared__ int widest[classes];
    __shared__ long long sums[analysis_threads / 32];
    constexpr std::int64_t longest_row = 64 * (Lanes == 1 ? lanes_of_uneven_rows : Lanes);
    constexpr int most_long = 64;
    __shared__ std::int64_t long_rows[most_long];
    __shared__ int long_count;
    __shared__ RowSums of_warps[analysis_threads / 32];
    if (threadIdx.x == 0) {
        long_count = 0;
    }
    if (threadIdx.x < classes) {
        histogram[threadIdx.x] = 0;
        widest[threadIdx.x] = 0;
    }
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool grouping = worth_grouping(counters->twins, a.rows);
    few = few_products(counters->twins, a.rows, few);
    long long all_products = 0;
    long long all_bounds = 0;
    long long all_longest = 0;
    int most_in_group = 0;
    int most_products = 0;
    const auto finish = [&](std::int64_t row, const RowSums& of_row) {
        const RowBounds found{of_row.first, of_row.last,
                              static_cast<std::int32_t>(min(of_row.words, static_cast<long long>(most_counted))),
                              static_cast<std::int32_t>(min(of_row.products, static_cast<long long>(most_counted)))};
        bounds[row] = found;
        row_nnz[row] = 0;
        const int group = grouping ? group_of(twins, row, a.rows) : 1;
        groups[row] = static_cast<std::uint8_t>(group);
        most_in_group = max(most_in_group, group);
        most_products = max(most_products, found.products);
        all_products += of_row.products;
        all_longest += of_row.longest;
        if (group > 0) {
            const StructureClass as = structure_class(found, shared_limit, few);
            const int c = static_cast<int>(as);
            atomicAdd(histogram + c, 1u);
            if (const int words_of_span = static_cast<int>(found.span_words()); words_of_span > widest[c]) {
                atomicMax(widest + c, words_of_span);
            }
            all_bounds += is_few(as) ? 0 : min(of_row.words, static_cast<long long>(found.span_words()));
        }
    };
    // Rows side by side are a warp's, those of a block's warps far apart: where long ones come together they are
    // several blocks'.
    constexpr int rows_a_warp = 32 / Lanes;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    std::int64_t tile = warp < warps ? blockIdx.x + std::int64_t{warp} * gridDim.x : a.rows;
    for (; tile * rows_a_warp < a.rows; tile += std::int64_t{warps} * gridDim.x) {
        const std::int64_t row = tile * rows_a_warp + threadIdx.x % 32 / Lanes;
        bool active = row < a.rows;
        const std::int64_t begin = active ? a.row_ptr[row] : 0;
        std::int64_t end = active ? a.row_ptr[row + 1] : 0;
        if (__any_sync(whole_warp, end - begin > longest_row)) {
            int place = most_long;
            if (end - begin > longest_row && lane == 0) {
                place = atomicAdd(&long_count, 1);
                if (place < most_long) {
                    long_rows[place] = row;
                }
            }
            // What the list has no room for is worked on here.
            if (__shfl_sync(whole_warp, place, 0, Lanes) < most_long) {
                active = false;
                end = begin;
            }
        }
        RowSums of_row = RowSums::none();
        if (Lanes > 1 || !__any_sync(whole_warp, end - begin > most_entries_of_a_thread)) {
            of_row = sum_row<Lanes>(a.col_idx, b_rows, begin + lane, end);
            __syncwarp();
            of_row.add_lanes<Lanes>();
        } else {
            of_row = sum_uneven_rows(a.col_idx, b_rows, begin, end);
        }
        if (active && lane == 0) {
            finish(row, of_row);
        }
    }
    __syncthreads();
    for (int i = 0; i < min(long_count, most_long); ++i) {
        const std::int64_t row = long_rows[i];
        RowSums of_row = sum_row<analysis_threads>(a.col_idx, b_rows, a.row_ptr[row] + threadIdx.x, a.row_ptr[row + 1]);
        __syncwarp();
        of_row.add_lanes<32>();
        if (threadIdx.x % 32 == 0) {
            of_warps[threadIdx.x / 32] = of_row;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int warp = 1; warp < analysis_threads / 32; ++warp) {
                of_row.add(of_warps[warp]);
            }
            finish(row, of_row);
        }
        __syncthreads();
    }
    all_products = cuda::block_sum<analysis_threads>(all_products, sums);
    __syncthreads();
    all_bounds = cuda::block_sum<analysis_threads>(all_bounds, sums);
    __syncthreads();
    all_longest = cuda::block_sum<analysis_threads>(all_longest, sums);
    if (threadIdx.x == 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&counters->least),
                  static_cast<unsigned long long>(all_longest));
        atomicAdd(reinterpret_cast<unsigned long long*>(&counters->products),
                  static_cast<unsigned long long>(all_products));
        atomicAdd(reinterpret_cast<unsigned long long*>(&counters->bound), static_cast<unsigned long long>(all_bounds));
    }
    most_products = __reduce_max_sync(whole_warp, most_products);
    if (threadIdx.x % 32 == 0 && most_products > counters->most_products) {
        atomicMax(&counters->most_products, most_products);
    }
    most_in_group = __reduce_max_sync(whole_warp, most_in_group);
    if (threadIdx.x % 32 == 0 && most_in_group > 1) {
        atomicMax(&counters->most_in_group, most_in_group);
    }
    if (threadIdx.x < classes && histogram[threadIdx.x] > 0) {
        atomicAdd(counters->structure + threadIdx.x, histogram[threadIdx.x]);
        atomicMax(counters->widest + threadIdx.x, widest[threadIdx.x]);
    }
}

template <int Lanes>
__global__ void __launch_bounds__(analysis_threads)
    count_products_kernel(Pattern a, RowPtr b_ptr, std::int64_t* __restrict__ out)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * (analysis_threads / Lanes) + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool active = row < a.rows;
    const std::int64_t begin = active ? a.row_ptr[row] : 0;
    const std::int64_t end = active ? a.row_ptr[row + 1] : 0;
    const auto count = [&](std::int64_t first, std::int64_t last, int step) {
        long long products = 0;
        for (std::int64_t i = first; i < last; i += step) {
            const std::int64_t k = __ldg(a.col_idx + i);
            products += b_ptr[k + 1] - b_ptr[k];
        }
        __syncwarp();
        return products;
    };
    const bool is_long = end - begin > 16 * Lanes;
    long long sum = cuda::group_sum(count(begin + lane, is_long ? begin : end, Lanes), Lanes);
    // Long rows have the whole warp, one after the other.
    for (unsigned rest = __ballot_sync(whole_warp, is_long && lane == 0); rest != 0; rest &= rest - 1) {
        const int source = __ffs(static_cast<int>(rest)) - 1;
        const std::int64_t from = __shfl_sync(whole_warp, begin, source);
        const std::int64_t to = __shfl_sync(whole_warp, end, source);
        const long long its = __shfl_sync(whole_warp, cuda::group_sum(count(from + threadIdx.x % 32, to, 32), 32), 0);
        sum = static_cast<int>(threadIdx.x) % 32 == source ? its : sum;
    }
    if (active && lane == 0) {
        out[row] = sum;
    }
}

/// Rows of more entries than this on average get a block each.
constexpr double mean_for_a_block = 2048;

}  // namespace

void analyze_a(const Pattern& a, double mean, const RowOfB* b_rows, const std::uint8_t* twins,
               std::int64_t shared_limit, int few, RowBounds* bounds, std::uint8_t* groups, std::int32_t* row_nnz,
               Counters* counters, int units, cudaStream_t stream)
{
    // What a block counts is added to the counters once.
    const std::int64_t most_blocks = std::int64_t{8} * std::max(units, 1);
    const auto launch = [&](auto lanes) {
        const int warps = mean > mean_for_a_block ? 1 : analysis_threads / 32;
        const auto blocks = std::min<std::int64_t>(blocks_for(a.rows, warps * (32 / lanes)), most_blocks);
        analyze_a_kernel<lanes><<<static_cast<unsigned>(blocks), analysis_threads, 0, stream>>>(
            a, warps, b_rows, twins, shared_limit, few, bounds, groups, row_nnz, counters);
    };
    if (mean > mean_for_a_warp) {
        launch(std::integral_constant<int, 32>());
    } else if (mean > mean_for_a_thread) {
        launch(std::integral_constant<int, 8>());
    } else {
        launch(std::integral_constant<int, 1>());
    }
    RMSP_CUDA_CHECK_LAUNCH("analyze_a_kernel");
}

}  // namespace spgemm

namespace {

template <class T>
void count(const CsrShard<T>& a, const CsrShard<T>& b, std::int64_t* out, const Context& context)
{
    if (a.rows == 0) {
        return;
    }
    const spgemm::Pattern pattern{a.rows, a.cols, spgemm::RowPtr(a.row_ptr), a.col_idx};
    const spgemm::RowPtr b_ptr(b.row_ptr);
    const auto stream = static_cast<cudaStream_t>(context.stream);
    spgemm::count_products_kernel<8>
        <<<spgemm::blocks_for(a.rows, spgemm::analysis_threads / 8), spgemm::analysis_threads, 0, stream>>>(pattern,
                                                                                                            b_ptr, out);
    RMSP_CUDA_CHECK_LAUNCH("count_products_kernel");
}

}  // namespace

RMSP_VALUE_ROW(ProductSteps, cuda, .count_products = count<T>)

}  // namespace rmsp::kernels
