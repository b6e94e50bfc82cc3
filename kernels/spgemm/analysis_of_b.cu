#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/analysis.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// All threads of the block take part.
__device__ __forceinline__ void count_twins(bool twin, Counters* counters)
{
    const int found = __syncthreads_count(twin);
    if (threadIdx.x == 0 && found > 0) {
        atomicAdd(&counters->twins, static_cast<unsigned>(found));
    }
}

/// The threads of a warp that take a row with this one, `Lanes` of them.
template <int Lanes>
__device__ __forceinline__ unsigned group_mask()
{
    return Lanes == 32 ? whole_warp : ((1u << Lanes % 32) - 1u) << (threadIdx.x % 32 / Lanes * Lanes);
}
/// The whole warp takes part.
template <int Lanes>
__device__ __forceinline__ bool all_of_group(bool x)
{
    return (__ballot_sync(whole_warp, !x) & group_mask<Lanes>()) == 0;
}

/// `Lanes` threads a row.
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
    std::int32_t first = beyond_columns;
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
            columns[u] = at < entries ? __ldg(b.col_idx + begin + at) : beyond_columns;
            twins_column[u] = twin && at < entries ? __ldg(b.col_idx + begin - entries + at) : beyond_columns;
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

/// Rows of more entries than this on average get a warp each, eight threads each.
constexpr double mean_for_a_warp_of_b = 16;
constexpr double mean_for_8_threads_of_b = 4;

}  // namespace

void analyze_b(const Pattern& b, RowRange touched, RowRange of_a, double mean, Word* words, Extent* row_words,
               Extent* row_entries, RowOfB* rows, std::uint8_t* twins, Counters* counters, cudaStream_t stream)
{
    const std::int64_t count = touched.end - touched.first;
    if (count == 0) {
        return;
    }
    // Words are few only if a row's columns are looked at side by side.
    const int lanes = mean > mean_for_a_warp_of_b ? 32 : mean > mean_for_8_threads_of_b ? 8 : 4;
    const auto kernel = lanes == 32 ? analyze_b_kernel<32> : lanes == 8 ? analyze_b_kernel<8> : analyze_b_kernel<4>;
    kernel<<<blocks_for(count, analysis_threads / lanes), analysis_threads, 0, stream>>>(
        b, touched, of_a, {words, row_words, row_entries, rows, twins, counters});
    RMSP_CUDA_CHECK_LAUNCH("analyze_b_kernel");
}

void find_twins(const Pattern& a, double mean, std::uint8_t* twins, Counters* counters, cudaStream_t stream)
{
    const int lanes = mean > mean_for_a_warp ? 32 : mean > mean_for_a_thread ? 8 : 1;
    const auto kernel = lanes == 32 ? find_twins_kernel<32> : lanes == 8 ? find_twins_kernel<8> : find_twins_kernel<1>;
    kernel<<<blocks_for(a.rows, analysis_threads / lanes), analysis_threads, 0, stream>>>(a, twins, counters);
    RMSP_CUDA_CHECK_LAUNCH("find_twins_kernel");
}

}  // namespace rmsp::kernels::spgemm
