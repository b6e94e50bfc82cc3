#include <algorithm>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/numeric.cuh>
#include <kernels/spgemm/spread.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int spread_threads = 512;
/// As many as are there at the same time, at 40 registers a thread.
constexpr int blocks_a_unit = 3;
constexpr int rank_threads = 1024;
constexpr int tile = 256;  // entries of A that a block takes at a time

/// The row of this block, of `rows` of them, and its share of the row's work.
struct Share {
    std::int64_t row;
    int part;
    int parts;
    uint2* ranks;
};
__device__ __forceinline__ Share share_of(const std::int32_t* list, int rows, uint2* ranks, std::int64_t words)
{
    const int index = static_cast<int>(blockIdx.x) % rows;
    return {list[index], static_cast<int>(blockIdx.x) / rows, static_cast<int>(gridDim.x) / rows,
            ranks + index * words};
}

/// Calls f(entry of A, place) for each place of the extents of rows of B that this block's tiles of entries of A touch:
/// a virtual warp for each row of B, all threads for a long one. All threads take part.
template <class F>
__device__ __forceinline__ void for_each_place(const Pattern& a, const Share& share, const Extent* extents,
                                               std::int64_t work, const F& f)
{
    constexpr std::int32_t longest = 2 * spread_threads;
    __shared__ Extent of_tile[tile];
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t begin = a.row_ptr[share.row];
    const std::int64_t end = a.row_ptr[share.row + 1];
    const int lanes = virtual_warp(work, end - begin);
    const int lane = thread % lanes;
    for (std::int64_t first = begin + std::int64_t{share.part} * tile; first < end;
         first += std::int64_t{share.parts} * tile) {
        const int entries = static_cast<int>(min(static_cast<long long>(end - first), static_cast<long long>(tile)));
        bool is_long = false;
        for (int i = thread; i < entries; i += spread_threads) {
            const Extent its = load(extents + __ldg(a.col_idx + first + i));
            of_tile[i] = its;
            is_long = is_long || its.count() > longest;
        }
        if (__syncthreads_or(is_long) != 0) {
            for (int i = 0; i < entries; ++i) {
                const Extent its = of_tile[i];
                for (std::int32_t j = thread; its.count() > longest && j < its.count(); j += spread_threads) {
                    f(first + i, its.place() + j);
                }
            }
        }
        for (int i = thread / lanes; i < entries; i += spread_threads / lanes) {
            const Extent its = of_tile[i];
            for (std::int32_t j = lane; its.count() <= longest && j < its.count(); j += lanes) {
                f(first + i, its.place() + j);
            }
        }
        __syncthreads();
    }
}

__global__ void __launch_bounds__(spread_threads)
    find_kernel(const RowBounds* __restrict__ bounds, std::int64_t rows, std::int32_t above, Counters* counters,
                std::int32_t* __restrict__ list, unsigned room)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * spread_threads + threadIdx.x;
    if (row < rows && is_spread(bounds[row], above)) {
        const unsigned place = atomicAdd(&counters->spread, 1u);
        atomicMax(&counters->spread_words, static_cast<int>(bounds[row].span_words()));
        if (place < room) {
            list[place] = static_cast<std::int32_t>(row);
        }
    }
}

/// The bits of all words of a row.
__global__ void __launch_bounds__(spread_threads)
    bits_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, int rows,
                uint2* __restrict__ ranks, std::int64_t words)
{
    const Share share = share_of(list, rows, ranks, words);
    const RowBounds bounds = job.bounds[share.row];
    const std::int32_t first = bounds.first >> 5;
    for_each_place(job.a, share, job.b_words, bounds.words, [&](std::int64_t, std::int64_t place) {
        const Word word = load(job.words + place);
        // Where many rows of B have the same few columns, most bits are there already. One that is read as it was
        // before is set twice.
        std::uint32_t* const bits = &share.ranks[word.index - first].x;
        if ((*bits & word.mask) != word.mask) {
            atomicOr(bits, word.mask);
        }
    });
}

/// How many entries come before each word of a row; a block each.
__global__ void __launch_bounds__(rank_threads)
    rank_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list,
                uint2* __restrict__ ranks, std::int64_t words)
{
    __shared__ int warp_sums[rank_threads / 32];
    const std::int64_t row = list[blockIdx.x];
    uint2* const rank = ranks + blockIdx.x * words;
    const std::int64_t span = job.bounds[row].span_words();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    int before = 0;
    int used = 0;
    for (std::int64_t tile_begin = 0; tile_begin < span; tile_begin += rank_threads) {
        const std::int64_t i = tile_begin + threadIdx.x;
        const int own = i < span ? __popc(rank[i].x) : 0;
        const int through = sum_through<32>(own, lane);
        if (lane == 31) {
            warp_sums[warp] = through;
        }
        used += __syncthreads_count(own > 0);
        int of_tile = 0;
        int of_warps = 0;
        for (int w = 0; w < rank_threads / 32; ++w) {
            of_warps += w < warp ? warp_sums[w] : 0;
            of_tile += warp_sums[w];
        }
        if (i < span) {
            rank[i].y = static_cast<unsigned>(before + of_warps + through - own);
        }
        before += of_tile;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        job.row_nnz[row] = before;
        job.stored[row] = {-1, used};
    }
}

/// Columns, if they are wanted, and what the sums begin with.
template <Work Of, class T>
__global__ void __launch_bounds__(spread_threads)
    begin_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, int rows,
                 uint2* __restrict__ ranks, std::int64_t words)
{
    const Share share = share_of(list, rows, ranks, words);
    const std::int64_t c_begin = job.row_ptr[share.row];
    const std::int64_t entries = job.row_ptr[share.row + 1] - c_begin;
    const std::int64_t thread = std::int64_t{share.part} * spread_threads + threadIdx.x;
    const std::int64_t step = std::int64_t{share.parts} * spread_threads;
    if (job.fills) {
        const RowBounds bounds = job.bounds[share.row];
        for (std::int64_t i = thread; i < bounds.span_words(); i += step) {
            const uint2 rank = share.ranks[i];
            write_columns({(bounds.first >> 5) + static_cast<std::int32_t>(i), rank.x}, job.col_idx + c_begin + rank.y);
        }
    }
    for (std::int64_t i = thread; i < entries; i += step) {
        job.values[c_begin + i] =
            Of == Work::list ? static_cast<T>(job.offsets[c_begin + i] - job.offsets[c_begin]) : T{0};
    }
}

/// Where a block adds up what it has of a short row of C, whose few sums all blocks would meet at: in shared memory, a
/// copy for each warp as far as there is room, since warps that add to the same sum wait for each other there as well.
constexpr int most_shared_sums = 1024;
template <class T>
class SharedSums {
public:
    /// All threads take part.
    __device__ __forceinline__ SharedSums(T* room, std::int64_t entries)
        : room_(room),
          entries_(static_cast<int>(min(static_cast<long long>(entries), most_shared_sums + 1LL))),
          copies_(min(spread_threads / 32, most_shared_sums / max(entries_, 1)))
    {
        for (int i = static_cast<int>(threadIdx.x); i < copies_ * entries_; i += spread_threads) {
            room_[i] = T{0};
        }
        __syncthreads();
    }
    /// Whether they have room; if not, nothing else may be called.
    __device__ __forceinline__ bool fit() const { return copies_ > 0; }
    __device__ __forceinline__ T* own() const
    {
        return room_ + static_cast<int>(threadIdx.x) / 32 % copies_ * entries_;
    }
    /// All threads take part, and have added what they have.
    __device__ __forceinline__ void add_to(T* sums) const
    {
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < entries_; i += spread_threads) {
            T sum{0};
            for (int copy = 0; copy < copies_; ++copy) {
                sum += room_[copy * entries_ + i];
            }
            atomicAdd(sums + i, sum);
        }
    }

private:
    T* room_;
    int entries_;
    int copies_;
};

template <Work Of, class T>
__global__ void __launch_bounds__(spread_threads)
    sum_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, int rows,
               uint2* __restrict__ ranks, std::int64_t words)
{
    const Share share = share_of(list, rows, ranks, words);
    const RowBounds bounds = job.bounds[share.row];
    const std::int32_t first = bounds.first >> 5;
    const std::int64_t c_begin = job.row_ptr[share.row];
    T* const sums = job.values + c_begin;
    const auto for_each_product = [&](const auto& f) {
        for_each_place(job.a, share, job.b_entries, bounds.products, [&](std::int64_t of_a, std::int64_t of_b) {
            const std::int32_t column = __ldg(job.b.col_idx + of_b);
            const uint2 rank = __ldg(share.ranks + ((column >> 5) - first));
            f(of_a, of_b, rank.y + __popc(rank.x & bits_below(column)));
        });
    };
    const auto add_to = [&](T* to) {
        for_each_product([&](std::int64_t of_a, std::int64_t of_b, unsigned entry) {
            atomicAdd(to + entry, job.alpha * __ldg(job.a_values + of_a) * __ldg(job.b_values + of_b));
        });
    };
    if constexpr (Of == Work::list) {
        for_each_product([&](std::int64_t of_a, std::int64_t of_b, unsigned entry) {
            job.products[job.offsets[c_begin] + next_place(sums + entry, true)] = {static_cast<std::int32_t>(of_a),
                                                                                   static_cast<std::int32_t>(of_b)};
        });
    } else {
        __shared__ T room[most_shared_sums];
        const SharedSums<T> shared(room, job.row_ptr[share.row + 1] - c_begin);
        if (shared.fit()) {
            add_to(shared.own());
            shared.add_to(sums);
        } else {
            add_to(sums);
        }
    }
}

}  // namespace

bool SpreadRows::make_room(const Counters& found, std::int64_t most_bytes, int units, const Context& context)
{
    const std::int64_t all = std::int64_t{found.spread} * found.spread_words;
    if (all == 0 || found.spread > list.size() || all > most_bytes / static_cast<std::int64_t>(sizeof(uint2))) {
        return false;
    }
    ranks = try_array<uint2>(context, all);
    count = static_cast<int>(found.spread);
    blocks = std::max(1, blocks_a_unit * units / count);
    words = found.spread_words;
    return ranks.size() > 0;
}

void find_spread(const RowBounds* bounds, std::int64_t rows, std::int32_t above, Counters* counters,
                 const DeviceArray<std::int32_t>& list, cudaStream_t stream)
{
    RMSP_CUDA_CHECK(cudaMemsetAsync(&counters->spread, 0, sizeof counters->spread, stream));
    RMSP_CUDA_CHECK(cudaMemsetAsync(&counters->spread_words, 0, sizeof counters->spread_words, stream));
    find_kernel<<<blocks_for(rows, spread_threads), spread_threads, 0, stream>>>(
        bounds, rows, above, counters, list.data(), static_cast<unsigned>(list.size()));
    RMSP_CUDA_CHECK_LAUNCH("find_kernel");
}

void count_spread(const StructureJob& job, const SpreadRows& rows, cudaStream_t stream)
{
    RMSP_CUDA_CHECK(cudaMemsetAsync(rows.ranks.data(), 0, rows.ranks.size() * sizeof(uint2), stream));
    bits_kernel<<<rows.count * rows.blocks, spread_threads, 0, stream>>>(job, rows.list.data(), rows.count,
                                                                         rows.ranks.data(), rows.words);
    RMSP_CUDA_CHECK_LAUNCH("bits_kernel");
    rank_kernel<<<rows.count, rank_threads, 0, stream>>>(job, rows.list.data(), rows.ranks.data(), rows.words);
    RMSP_CUDA_CHECK_LAUNCH("rank_kernel");
}

template <class T>
void run_numeric_spread(const NumericJob<T>& job, Work work, const SpreadRows& rows, cudaStream_t stream)
{
    const auto begin = work == Work::list ? begin_kernel<Work::list, T> : begin_kernel<Work::sum, T>;
    const auto sum = work == Work::list ? sum_kernel<Work::list, T> : sum_kernel<Work::sum, T>;
    for (const auto kernel : {begin, sum}) {
        kernel<<<rows.count * rows.blocks, spread_threads, 0, stream>>>(job, rows.list.data(), rows.count,
                                                                        rows.ranks.data(), rows.words);
        RMSP_CUDA_CHECK_LAUNCH("rows spread over blocks");
    }
}

#define RMSP_INSTANTIATE(T) \
    template void run_numeric_spread(const NumericJob<T>&, Work, const SpreadRows&, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
