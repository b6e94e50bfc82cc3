#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/steps/ghosts/ghosts.hpp>

namespace rmsp::kernels {
namespace cuda::ghosts {
namespace {

constexpr int threads = 256;
constexpr int word_bits = 32;

unsigned grid_for(std::int64_t n, const Context& context)
{
    constexpr int blocks_per_multiprocessor = 8;
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    return static_cast<unsigned>(std::clamp<std::int64_t>((n + threads - 1) / threads, 1, full));
}

__device__ __forceinline__ std::int64_t first_index() { return std::int64_t{blockIdx.x} * threads + threadIdx.x; }
__device__ __forceinline__ std::int64_t index_stride() { return std::int64_t{gridDim.x} * threads; }

__global__ void __launch_bounds__(threads) add_kernel(std::uint32_t* bits, const std::int32_t* columns, std::int64_t n,
                                                      std::int64_t own_first, std::int64_t own_end)
{
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        const std::int32_t column = __ldcs(columns + i);
        if (column < own_first || column >= own_end) {
            const std::uint32_t bit = 1u << (column % word_bits);
            std::uint32_t* const word = bits + column / word_bits;
            // Popular columns are set already: a load is cheaper than an atomic on the same word.
            if ((*static_cast<volatile std::uint32_t*>(word) & bit) == 0) {
                atomicOr(word, bit);
            }
        }
    }
}

/// The last entry, behind the words, is 0 for the scan to replace by the sum.
__global__ void __launch_bounds__(threads)
    count_kernel(const std::uint32_t* bits, std::int64_t words, std::int32_t* counts)
{
    for (std::int64_t i = first_index(); i <= words; i += index_stride()) {
        counts[i] = i < words ? __popc(bits[i]) : 0;
    }
}

__global__ void __launch_bounds__(threads) uses_kernel(std::uint32_t* uses, const std::int32_t* columns, std::int64_t n,
                                                       std::int64_t own_first, std::int64_t own_end)
{
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        const std::int32_t column = __ldcs(columns + i);
        if (column < own_first || column >= own_end) {
            atomicAdd(uses + column, 1u);
        }
    }
}

/// `buckets`: columns and uses of each.
__global__ void __launch_bounds__(threads)
    buckets_kernel(const std::uint32_t* uses, std::int64_t cols, unsigned long long* buckets)
{
    __shared__ unsigned long long counted[2 * use_buckets];
    for (int i = static_cast<int>(threadIdx.x); i < 2 * use_buckets; i += threads) {
        counted[i] = 0;
    }
    __syncthreads();
    for (std::int64_t i = first_index(); i < cols; i += index_stride()) {
        if (const std::uint32_t n = uses[i]; n > 0) {
            atomicAdd(counted + 2 * use_bucket(n), 1ull);
            atomicAdd(counted + 2 * use_bucket(n) + 1, static_cast<unsigned long long>(n));
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < 2 * use_buckets; i += threads) {
        if (counted[i] > 0) {
            atomicAdd(buckets + i, counted[i]);
        }
    }
}

__global__ void __launch_bounds__(threads)
    take_kernel(const std::uint32_t* uses, std::int64_t cols, int first_bucket, std::uint32_t* from, std::uint32_t* to)
{
    for (std::int64_t word = first_index(); word * word_bits < cols; word += index_stride()) {
        std::uint32_t taken = 0;
        for (int bit = 0; bit < word_bits && word * word_bits + bit < cols; ++bit) {
            taken |= use_bucket(uses[word * word_bits + bit]) >= first_bucket ? 1u << bit : 0;
        }
        from[word] &= ~taken;
        to[word] = taken;
    }
}

/// A column set as kernels see it.
struct Set {
    explicit Set(const ColumnSet& set)
        : bits(set.bits.data()), before(set.before.data()), words(static_cast<std::int64_t>(set.bits.size()))
    {
    }
    const std::uint32_t* bits;
    const std::int32_t* before;
    std::int64_t words;

    __device__ bool has(std::int32_t column) const
    {
        return words > 0 && (bits[column / word_bits] >> (column % word_bits) & 1u) != 0;
    }
    __device__ std::int32_t columns_before(std::int32_t column) const
    {
        return before[column / word_bits] + __popc(bits[column / word_bits] & ((1u << (column % word_bits)) - 1));
    }
    __device__ std::int32_t columns() const { return words > 0 ? before[words] : 0; }
};

__global__ void __launch_bounds__(threads) renumber_kernel(const Set first, const Set others, std::int32_t* columns,
                                                           std::int64_t n, std::int64_t own_first, std::int64_t own_end)
{
    const std::int32_t firsts = first.columns();
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        const std::int32_t column = columns[i];
        if (column >= own_first && column < own_end) {
            columns[i] = static_cast<std::int32_t>(column - own_first);
        } else {
            columns[i] = static_cast<std::int32_t>(own_end - own_first) +
                         (first.has(column) ? first.columns_before(column) : firsts + others.columns_before(column));
        }
    }
}

__global__ void __launch_bounds__(threads)
    restore_kernel(const std::int32_t* columns, std::int64_t n, std::int64_t own_first, std::int64_t own,
                   const std::int32_t* ghosts, std::int64_t base, std::int32_t* out)
{
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        const std::int32_t column = columns[i];
        out[i] = static_cast<std::int32_t>(column < own ? own_first + column : base + ghosts[column - own]);
    }
}

__global__ void __launch_bounds__(threads)
    list_kernel(const std::uint32_t* bits, const std::int32_t* before, std::int64_t words, std::int32_t* out)
{
    for (std::int64_t word = first_index(); word < words; word += index_stride()) {
        std::int32_t* next = out + before[word];
        for (std::uint32_t rest = bits[word]; rest != 0; rest &= rest - 1) {
            *next++ = static_cast<std::int32_t>(word * word_bits + __ffs(static_cast<int>(rest)) - 1);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(threads) pack_kernel(const T* x, const std::int32_t* list, std::int64_t n, T* out)
{
    constexpr int unroll = 4;
    for (std::int64_t i = first_index(); i < n; i += unroll * index_stride()) {
        T value[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t j = i + k * index_stride();
            value[k] = j < n ? x[__ldcs(list + j)] : T{0};
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t j = i + k * index_stride();
            if (j < n) {
                out[j] = value[k];
            }
        }
    }
}

template <class T>
__global__ void __launch_bounds__(threads) add_at_kernel(const T* in, const std::int32_t* list, std::int64_t n, T* x)
{
    wait_for_kernel_before();
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        x[list[i]] += in[i];
    }
}

template <class T>
__global__ void __launch_bounds__(threads)
    add_at_with_kernel(const T* in, const std::int32_t* list, std::int64_t n, T* x, const T* w, double* sums)
{
    __shared__ double of_warps[threads / 32];
    wait_for_kernel_before();
    double sum = 0;
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        const std::int32_t at = list[i];
        const T value = x[at] + in[i];
        sum += static_cast<double>(w[at]) * (static_cast<double>(value) - static_cast<double>(x[at]));
        x[at] = value;
    }
    sum = block_sum<threads>(sum, of_warps);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

void clear_words(std::uint32_t* words, std::size_t n, const Context& context)
{
    if (n > 0) {
        RMSP_CUDA_CHECK(cudaMemsetAsync(words, 0, n * sizeof(std::uint32_t), stream_of(context)));
    }
}

void add_outside(ColumnSet& set, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                 std::int64_t own_end, const Context& context)
{
    if (n > 0) {
        add_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(set.bits.data(), columns, n, own_first,
                                                                             own_end);
        RMSP_CUDA_CHECK_LAUNCH("add_outside");
    }
}

std::int64_t count_columns(ColumnSet& set, const Context& context)
{
    const auto words = static_cast<std::int64_t>(set.bits.size());
    const cudaStream_t stream = stream_of(context);
    count_kernel<<<grid_for(words + 1, context), threads, 0, stream>>>(set.bits.data(), words, set.before.data());
    RMSP_CUDA_CHECK_LAUNCH("count_columns");
    exclusive_sum(set.before.data(), words + 1, context);
    return read(set.before.data() + words, stream);
}

void add_uses(ColumnUses& uses, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
              std::int64_t own_end, const Context& context)
{
    if (n > 0) {
        uses_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(uses.uses.data(), columns, n, own_first,
                                                                              own_end);
        RMSP_CUDA_CHECK_LAUNCH("add_uses");
    }
}

void count_buckets(const ColumnUses& uses, std::span<UseBucket> buckets, const Context& context)
{
    static_assert(sizeof(UseBucket) == 2 * sizeof(unsigned long long) && std::is_standard_layout_v<UseBucket>);
    const auto cols = static_cast<std::int64_t>(uses.uses.size());
    const cudaStream_t stream = stream_of(context);
    const DeviceArray<UseBucket> counted(*context.memory, buckets.size());
    RMSP_CUDA_CHECK(
        cudaMemcpyAsync(counted.data(), buckets.data(), buckets.size_bytes(), cudaMemcpyHostToDevice, stream));
    if (cols > 0) {
        buckets_kernel<<<grid_for(cols, context), threads, 0, stream>>>(
            uses.uses.data(), cols, reinterpret_cast<unsigned long long*>(counted.data()));
        RMSP_CUDA_CHECK_LAUNCH("count_buckets");
    }
    read(buckets.data(), counted.data(), buckets.size_bytes(), stream);
}

void take_columns(ColumnSet& from, ColumnSet& to, const ColumnUses& uses, int first_bucket, const Context& context)
{
    const auto cols = static_cast<std::int64_t>(uses.uses.size());
    if (cols > 0) {
        take_kernel<<<grid_for((cols + word_bits - 1) / word_bits, context), threads, 0, stream_of(context)>>>(
            uses.uses.data(), cols, first_bucket, from.bits.data(), to.bits.data());
        RMSP_CUDA_CHECK_LAUNCH("take_columns");
    }
}

void renumber_columns(const ColumnSet& first, const ColumnSet& others, std::int32_t* columns, std::int64_t n,
                      std::int64_t own_first, std::int64_t own_end, const Context& context)
{
    if (n > 0) {
        renumber_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(Set(first), Set(others), columns, n,
                                                                                  own_first, own_end);
        RMSP_CUDA_CHECK_LAUNCH("renumber_columns");
    }
}

void restore_columns(const std::int32_t* columns, std::int64_t n, std::int64_t own_first, std::int64_t own,
                     const std::int32_t* ghosts, std::int64_t base, std::int32_t* out, const Context& context)
{
    if (n > 0) {
        restore_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(columns, n, own_first, own, ghosts,
                                                                                 base, out);
        RMSP_CUDA_CHECK_LAUNCH("restore_columns");
    }
}

void list_columns(const ColumnSet& set, std::int32_t* out, const Context& context)
{
    const auto words = static_cast<std::int64_t>(set.bits.size());
    if (words > 0) {
        list_kernel<<<grid_for(words, context), threads, 0, stream_of(context)>>>(set.bits.data(), set.before.data(),
                                                                                  words, out);
        RMSP_CUDA_CHECK_LAUNCH("list_columns");
    }
}

template <class T>
void pack(const T* x, const std::int32_t* list, std::int64_t n, T* out, const Context& context)
{
    if (n > 0) {
        pack_kernel<<<grid_for((n + 3) / 4, context), threads, 0, stream_of(context)>>>(x, list, n, out);
        RMSP_CUDA_CHECK_LAUNCH("pack");
    }
}

template <class T>
void add_at(const T* in, const std::int32_t* list, std::int64_t n, T* x, const Context& context)
{
    if (n > 0) {
        launch_early("add_at", add_at_kernel<T>, dim3(grid_for(n, context)), threads, stream_of(context), in, list, n,
                     x);
    }
}

template <class T>
void add_at_with(const T* in, const std::int32_t* list, std::int64_t n, T* x, const T* w, double* sums,
                 const Context& context)
{
    launch_early("add_at_with", add_at_with_kernel<T>, dim3(add_at_sums), threads, stream_of(context), in, list, n, x,
                 w, sums);
}

}  // namespace
}  // namespace cuda::ghosts

RMSP_ROW(Ghosts, cuda, .clear_words = cuda::ghosts::clear_words, .add_outside = cuda::ghosts::add_outside,
         .count_columns = cuda::ghosts::count_columns, .add_uses = cuda::ghosts::add_uses,
         .count_buckets = cuda::ghosts::count_buckets, .take_columns = cuda::ghosts::take_columns,
         .renumber_columns = cuda::ghosts::renumber_columns, .restore_columns = cuda::ghosts::restore_columns,
         .list_columns = cuda::ghosts::list_columns)

RMSP_VALUE_ROW(GhostValues, cuda, .pack = cuda::ghosts::pack<T>, .add_at = cuda::ghosts::add_at<T>,
               .add_at_with = cuda::ghosts::add_at_with<T>)

}  // namespace rmsp::kernels
