#include <algorithm>
#include <limits>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/device.cuh>
#include <kernels/spgemm/spgemm.hpp>

namespace rmsp::kernels {
namespace spgemm {
namespace {

constexpr int analysis_threads = 256;
constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();

/// Lanes of this thread's group of a warp.
template <int Lanes>
__device__ __forceinline__ unsigned group_mask()
{
    return Lanes == 32 ? whole_warp : ((1u << Lanes % 32) - 1u) << (threadIdx.x % 32 / Lanes * Lanes);
}

template <int Lanes>
__device__ __forceinline__ bool all_of_group(bool x)
{
    const unsigned mask = group_mask<Lanes>();
    return (__ballot_sync(whole_warp, x) & mask) == mask;
}

/// All threads of the block take part.
__device__ __forceinline__ void count_twins(bool twin, Counters* counters)
{
    const int found = __syncthreads_count(twin);
    if (threadIdx.x == 0 && found > 0) {
        atomicAdd(&counters->twins, static_cast<unsigned>(found));
    }
}

template <int Lanes>
__global__ void __launch_bounds__(analysis_threads)
    find_twins_kernel(Pattern a, std::uint8_t* __restrict__ twins, Counters* counters)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * (analysis_threads / Lanes) + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool active = row < a.rows;
    const std::int64_t begin = active ? a.row_ptr[row] : 0;
    const std::int64_t entries = active ? a.row_ptr[row + 1] - begin : 0;
    // Empty rows cost nothing, alone or together.
    bool twin = entries > 0 && row > 0 && begin - a.row_ptr[row - 1] == entries;
    for (std::int64_t at = lane; twin && at < entries; at += Lanes) {
        twin = __ldg(a.col_idx + begin + at) == __ldg(a.col_idx + begin - entries + at);
    }
    twin = all_of_group<Lanes>(twin);
    if (active && lane == 0) {
        twins[row] = twin;
    }
    count_twins(lane == 0 && twin, counters);
}

/// What analyze_b() finds.
struct OfB {
    Word* words;
    Extent* row_words;
    Extent* row_entries;
    RowOfB* rows;
    std::uint8_t* twins;
    Counters* counters;
};

/// A row for each group of `Lanes` threads of a warp, row < 0: none; all of the warp take part. Says whether the row is
/// a twin. `Ahead` columns of a lane are loaded before the first is used.
template <int Lanes, int Ahead = 1>
__device__ __forceinline__ bool analyze_row_of_b(const Pattern& b, const OfB& to, std::int64_t row, int lane)
{
    const bool active = row >= 0;
    const std::int64_t begin = active ? b.row_ptr[row] : 0;
    const std::int64_t entries = active ? b.row_ptr[row + 1] - begin : 0;
    bool twin = entries > 0 && row > 0 && begin - b.row_ptr[row - 1] == entries;
    std::int32_t first = most;
    std::int32_t last = -1;
    std::int32_t count = 0;
    std::int32_t before = -1;  // the column before this group's
    bool rising = true;
    for (std::int64_t chunk = 0; __any_sync(whole_warp, chunk < entries); chunk += Lanes * Ahead) {
        std::int32_t columns[Ahead];
        std::int32_t twins_column[Ahead];
#pragma unroll
        for (int u = 0; u < Ahead; ++u) {
            const std::int64_t at = chunk + u * Lanes + lane;
            columns[u] = at < entries ? __ldg(b.col_idx + begin + at) : most;
            twins_column[u] = twin && at < entries ? __ldg(b.col_idx + begin - entries + at) : most;
        }
#pragma unroll
        for (int u = 0; u < Ahead; ++u) {
            const std::int64_t at = chunk + u * Lanes;
            const bool in = at + lane < entries;
            const std::int32_t column = columns[u];
            const std::int32_t left = __shfl_up_sync(whole_warp, column, 1, Lanes);
            twin = twin && column == twins_column[u];
            rising = rising && (!in || column > (lane == 0 ? before : left));
            before = __shfl_sync(whole_warp, column, Lanes - 1, Lanes);
            first = min(first, column);
            last = in ? max(last, column) : last;
            const std::int32_t word = column >> 5;
            std::uint32_t mask = in ? 1u << (column & 31) : 0u;
            const bool head = in && (lane == 0 || left >> 5 != word);
            const unsigned heads = __ballot_sync(whole_warp, head);
            // The first of neighbours with the same word collects the bits of all, as far as any run of them in the
            // warp goes. In rows out of order it may take a bit twice, which does no harm.
            unsigned runs = __ballot_sync(whole_warp, in && !head);
#pragma unroll
            for (int d = 1; d < Lanes; d *= 2) {
                if (runs == 0) {
                    break;
                }
                const std::int32_t other_word = __shfl_down_sync(whole_warp, word, d, Lanes);
                const std::uint32_t other = __shfl_down_sync(whole_warp, mask, d, Lanes);
                mask |= lane + d < Lanes && other_word == word ? other : 0u;
                runs &= runs >> d;
            }
            const unsigned own_heads = heads & group_mask<Lanes>();
            if (head) {
                const unsigned below = (1u << (threadIdx.x % 32)) - 1u;
                to.words[begin + count + __popc(own_heads & below)] = {word, mask};
            }
            count += __popc(own_heads);
        }
    }
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) {
        first = min(first, __shfl_xor_sync(whole_warp, first, d));
        last = max(last, __shfl_xor_sync(whole_warp, last, d));
    }
    if (!rising) {
        to.counters->unsorted = 1;
    }
    twin = all_of_group<Lanes>(twin);
    if (active && lane == 0) {
        to.row_words[row] = {begin, count};
        to.row_entries[row] = {begin, static_cast<std::int32_t>(entries)};
        to.rows[row] = {first, last, count, static_cast<std::int32_t>(entries)};
        to.twins[row] = twin;
    }
    return twin;
}

/// Groups of `Lanes` threads a row; long rows have the whole warp, one after the other.
template <int Lanes>
__global__ void __launch_bounds__(analysis_threads) analyze_b_kernel(Pattern b, RowRange touched, RowRange of_a, OfB to)
{
    constexpr std::int64_t longest = 16 * Lanes;
    const std::int64_t row =
        touched.first + std::int64_t{blockIdx.x} * (analysis_threads / Lanes) + threadIdx.x / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const bool active = row < touched.end;
    const bool is_long = Lanes < 32 && active && b.row_ptr[row + 1] - b.row_ptr[row] > longest;
    bool twin = analyze_row_of_b<Lanes>(b, to, active && !is_long ? row : -1, lane);
    if constexpr (Lanes < 32) {
        for (unsigned rest = __ballot_sync(whole_warp, is_long && lane == 0); rest != 0; rest &= rest - 1) {
            const int source = __ffs(static_cast<int>(rest)) - 1;
            const std::int64_t its = __shfl_sync(whole_warp, row, source);
            const bool found = analyze_row_of_b<32, 4>(b, to, its, static_cast<int>(threadIdx.x) % 32);
            twin = its == row ? found : twin;
        }
    }
    if (of_a.first < of_a.end) {
        count_twins(lane == 0 && twin && row >= of_a.first && row < of_a.end, to.counters);
    }
}

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

    static __device__ __forceinline__ RowSums none() { return {most, -1, 0, 0, 0}; }
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

/// Entries begin + thread, + threads, ... of A up to `end`, by all threads of a block. Loads that do not depend on each
/// other come together.
__device__ __forceinline__ RowSums sum_long_row(const std::int32_t* columns, const RowOfB* b_rows, std::int64_t begin,
                                                std::int64_t end)
{
    constexpr int in_flight = 4;
    RowSums sums = RowSums::none();
    for (std::int64_t i = begin + threadIdx.x; i < end; i += in_flight * analysis_threads) {
        std::int32_t k[in_flight];
        int4 row[in_flight];
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            k[u] = i + u * analysis_threads < end ? __ldg(columns + i + u * analysis_threads) : -1;
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            row[u] = k[u] >= 0 ? row_of_b(b_rows, k[u]) : int4{most, -1, 0, 0};
        }
#pragma unroll
        for (int u = 0; u < in_flight; ++u) {
            sums.add(row[u]);
        }
    }
    return sums;
}

/// Groups of `Lanes` threads a row, `at_a_time` rows; the whole block takes long rows one after the other, at last.
template <int Lanes>
__global__ void __launch_bounds__(analysis_threads)
    analyze_a_kernel(Pattern a, int at_a_time, const RowOfB* __restrict__ b_rows,
                     const std::uint8_t* __restrict__ twins, std::int64_t shared_limit, int few,
                     RowBounds* __restrict__ bounds, std::uint8_t* __restrict__ groups,
                     std::int32_t* __restrict__ row_nnz, Counters* counters)
{
    __shared__ unsigned histogram[classes];
    __shared__ int widest[classes];
    __shared__ long long sums[analysis_threads / 32];
    constexpr std::int64_t longest_row = 64 * Lanes;
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
                              static_cast<std::int32_t>(min(of_row.words, static_cast<long long>(most))),
                              static_cast<std::int32_t>(min(of_row.products, static_cast<long long>(most)))};
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
    // The same number of steps for all threads of a warp.
    const int group = static_cast<int>(threadIdx.x) / Lanes;
    const std::int64_t step = std::int64_t{gridDim.x} * at_a_time;
    for (std::int64_t tile = std::int64_t{blockIdx.x} * at_a_time; tile < a.rows; tile += step) {
        const std::int64_t row = tile + group;
        bool active = group < at_a_time && row < a.rows;
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
        for (std::int64_t i = begin + lane; i < end; i += Lanes) {
            of_row.add(row_of_b(b_rows, __ldg(a.col_idx + i)));
        }
        __syncwarp();
        of_row.add_lanes<Lanes>();
        if (active && lane == 0) {
            finish(row, of_row);
        }
    }
    __syncthreads();
    for (int i = 0; i < min(long_count, most_long); ++i) {
        const std::int64_t row = long_rows[i];
        RowSums of_row = sum_long_row(a.col_idx, b_rows, a.row_ptr[row], a.row_ptr[row + 1]);
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

/// Rows of more entries than this on average get a block each, a warp each, others 8 threads, very short ones 4. Words
/// are few only if a row's columns are looked at side by side.
constexpr double mean_for_a_block = 2048;
constexpr double mean_for_a_warp = 64;
constexpr double mean_for_a_warp_of_b = 16;
constexpr double mean_for_4_threads = 4;

/// f(std::integral_constant<int, threads a row>).
template <class F>
void by_lanes(double mean, double for_a_warp, const F& f)
{
    if (mean > for_a_warp) {
        f(std::integral_constant<int, 32>());
    } else if (mean > mean_for_4_threads) {
        f(std::integral_constant<int, 8>());
    } else {
        f(std::integral_constant<int, 4>());
    }
}

}  // namespace

void analyze_b(const Pattern& b, RowRange touched, RowRange of_a, double mean, Word* words, Extent* row_words,
               Extent* row_entries, RowOfB* rows, std::uint8_t* twins, Counters* counters, cudaStream_t stream)
{
    const std::int64_t count = touched.end - touched.first;
    if (count == 0) {
        return;
    }
    by_lanes(mean, mean_for_a_warp_of_b, [&](auto lanes) {
        analyze_b_kernel<lanes><<<blocks_for(count, analysis_threads / lanes), analysis_threads, 0, stream>>>(
            b, touched, of_a, {words, row_words, row_entries, rows, twins, counters});
    });
    RMSP_CUDA_CHECK_LAUNCH("analyze_b_kernel");
}

void find_twins(const Pattern& a, double mean, std::uint8_t* twins, Counters* counters, cudaStream_t stream)
{
    by_lanes(mean, mean_for_a_warp, [&](auto lanes) {
        find_twins_kernel<lanes>
            <<<blocks_for(a.rows, analysis_threads / lanes), analysis_threads, 0, stream>>>(a, twins, counters);
    });
    RMSP_CUDA_CHECK_LAUNCH("find_twins_kernel");
}

void analyze_a(const Pattern& a, double mean, const RowOfB* b_rows, const std::uint8_t* twins,
               std::int64_t shared_limit, int few, RowBounds* bounds, std::uint8_t* groups, std::int32_t* row_nnz,
               Counters* counters, int units, cudaStream_t stream)
{
    // What a block counts is added to the counters once.
    const std::int64_t most_blocks = std::int64_t{8} * std::max(units, 1);
    by_lanes(mean, mean_for_a_warp, [&](auto lanes) {
        const int at_a_time = mean > mean_for_a_block ? 1 : analysis_threads / lanes;
        const auto blocks = std::min<std::int64_t>(blocks_for(a.rows, at_a_time), most_blocks);
        analyze_a_kernel<lanes><<<static_cast<unsigned>(blocks), analysis_threads, 0, stream>>>(
            a, at_a_time, b_rows, twins, shared_limit, few, bounds, groups, row_nnz, counters);
    });
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
