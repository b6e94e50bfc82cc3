#include <algorithm>
#include <cstdint>
#include <limits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/steps/support/copy_part.cuh>
#include <kernels/steps/support/support.hpp>
#include <rmsp/error.hpp>

namespace rmsp::kernels {
namespace cuda::support {
namespace {

constexpr int threads = 256;
constexpr int blocks_per_multiprocessor = 8;  // fills a multiprocessor's 2048 threads
constexpr std::int64_t sink_entries = 4096;
constexpr int read_unroll = 8;

unsigned grid_for(std::int64_t n, const Context& context)
{
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    return static_cast<unsigned>(std::clamp<std::int64_t>((n + threads - 1) / threads, 1, full));
}

__device__ __forceinline__ std::int64_t first_index() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ __forceinline__ std::int64_t index_stride() { return std::int64_t{gridDim.x} * blockDim.x; }

template <class In, class Out>
__global__ void __launch_bounds__(threads)
    localize_kernel(const In* in, std::int64_t n, std::int64_t start, std::int64_t nnz, Out* out)
{
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        const std::int64_t local = std::int64_t{in[i]} - start;
        out[i] = static_cast<Out>(local < 0 ? 0 : local > nnz ? nnz : local);
    }
}

template <class In, class Out>
__global__ void __launch_bounds__(threads)
    spread_kernel(const In* in, std::int64_t first, std::int64_t rows, std::int64_t all, std::int64_t start,
                  std::int64_t nnz, Out* out)
{
    for (std::int64_t i = first_index(); i <= all; i += index_stride()) {
        const std::int64_t local = i < first ? 0 : i >= first + rows ? nnz : std::int64_t{in[i - first]} - start;
        out[i] = static_cast<Out>(local < 0 ? 0 : local > nnz ? nnz : local);
    }
}

__global__ void __launch_bounds__(threads) narrow_kernel(const std::int64_t* in, std::int64_t n, std::int32_t* out)
{
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        out[i] = static_cast<std::int32_t>(in[i]);
    }
}

__global__ void __launch_bounds__(threads)
    shift_kernel(const std::int32_t* in, std::int64_t n, std::int32_t by, std::int32_t* out)
{
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        out[i] = in[i] + by;
    }
}

__global__ void begin_extent_kernel(std::int32_t* extent)
{
    extent[0] = std::numeric_limits<std::int32_t>::max();
    extent[1] = std::numeric_limits<std::int32_t>::min();
}

__global__ void __launch_bounds__(threads)
    extent_kernel(const std::int32_t* __restrict__ indices, std::int64_t n, std::int32_t* extent)
{
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    std::int32_t largest = std::numeric_limits<std::int32_t>::min();
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        least = min(least, indices[i]);
        largest = max(largest, indices[i]);
    }
    for (int step = 16; step > 0; step /= 2) {
        least = min(least, __shfl_xor_sync(~0U, least, step));
        largest = max(largest, __shfl_xor_sync(~0U, largest, step));
    }
    if (threadIdx.x % 32 == 0) {
        atomicMin(extent, least);
        atomicMax(extent + 1, largest);
    }
}

template <class T>
__global__ void __launch_bounds__(threads) fill_kernel(T* y, std::int64_t n, T value)
{
    wait_for_kernel_before();
    for (std::int64_t i = first_index(); i < n; i += index_stride()) {
        y[i] = value;
    }
}

template <class T>
__global__ void add_carries_kernel(T* y, const T* carries, int count)
{
    T sum = y[0];
    for (int i = 0; i < count; ++i) {
        sum += carries[i];
    }
    y[0] = sum;
}

/// What one launch adds, by value.
template <class T>
struct Partials {
    PartialSums<T> part[most_partials];
};

/// A tile of consecutive entries a block, so that parts that have nothing of it cost one comparison. Enough tiles are
/// under way to hide that each part of a tile is a trip to a peer.
template <class T>
__global__ void __launch_bounds__(threads) add_partials_kernel(T* y, std::int64_t first, std::int64_t end, T beta,
                                                               const __grid_constant__ Partials<T> parts, int count)
{
    constexpr int unroll = 4;
    constexpr std::int64_t tile = threads * unroll;
    // From a whole line on.
    for (std::int64_t begin = first / 32 * 32 + blockIdx.x * tile; begin < end; begin += gridDim.x * tile) {
        // Sums that are in y already need no visit where nobody adds to them.
        bool adds = beta != T{1};
        for (int p = 0; p < count && !adds; ++p) {
            adds = parts.part[p].first < begin + tile && parts.part[p].end > begin;
        }
        if (!adds) {
            continue;
        }
        T sum[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = begin + k * threads + threadIdx.x;
            sum[k] = beta != T{0} && i >= first && i < end ? beta * y[i] : T{0};
        }
        for (int p = 0; p < count; ++p) {
            const PartialSums<T>& part = parts.part[p];
            if (part.first >= begin + tile || part.end <= begin) {
                continue;
            }
            T v[unroll];
#pragma unroll
            for (int k = 0; k < unroll; ++k) {
                const std::int64_t i = begin + k * threads + threadIdx.x;
                v[k] = i >= part.first && i < part.end ? part.sums[i] : T{0};
            }
#pragma unroll
            for (int k = 0; k < unroll; ++k) {
                sum[k] += v[k];
            }
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = begin + k * threads + threadIdx.x;
            if (i >= first && i < end) {
                y[i] = sum[k];
            }
        }
    }
}

/// What one launch copies, by value.
struct CopyParts {
    CopyPart part[most_copy_parts];
};

/// blockIdx.y is the part.
__global__ void __launch_bounds__(threads) copy_kernel(const __grid_constant__ CopyParts parts)
{
    copy_part<threads>(parts.part[blockIdx.y], blockIdx.x, gridDim.x);
}

__global__ void begin_interior_kernel(std::int64_t rows, unsigned long long* run)
{
    run[0] = 0;
    run[1] = static_cast<unsigned long long>(rows);
}

/// A warp a row.
template <class Offset>
__global__ void __launch_bounds__(threads)
    interior_kernel(const Offset* row_ptr, std::int64_t rows, const std::int32_t* col_idx, std::int64_t first_column,
                    std::int64_t end_column, unsigned long long* run)
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (std::int64_t row = first_index() / 32; row < rows; row += index_stride() / 32) {
        bool outside = false;
        for (Offset i = row_ptr[row] + lane; i < row_ptr[row + 1]; i += 32) {
            outside = outside || col_idx[i] < first_column || col_idx[i] >= end_column;
        }
        if (__any_sync(0xffffffffu, outside) && lane == 0) {
            if (row < rows / 2) {
                atomicMax(run, static_cast<unsigned long long>(row + 1));
            } else {
                atomicMin(run + 1, static_cast<unsigned long long>(row));
            }
        }
    }
}

__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    read_kernel(const double2* pairs, std::int64_t n, const double* rest, int rest_n, double* sink)
{
    __shared__ double warp_sums[threads / 32];
    double sum = 0;
    const std::int64_t step = index_stride() * read_unroll;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x * read_unroll + threadIdx.x; i < n; i += step) {
        double2 v[read_unroll];
#pragma unroll
        for (int k = 0; k < read_unroll; ++k) {
            v[k] = i + k * threads < n ? __ldcs(pairs + i + k * threads) : double2{0, 0};
        }
#pragma unroll
        for (int k = 0; k < read_unroll; ++k) {
            sum += v[k].x + v[k].y;
        }
    }
    if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < rest_n) {
        sum += rest[threadIdx.x];
    }
    sum = block_sum<threads>(sum, warp_sums);
    if (threadIdx.x == 0) {
        sink[blockIdx.x] = sum;
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

template <class Out>
void localize_row_ptr(IndexView row_ptr, std::int64_t rows, std::int64_t start, std::int64_t nnz, Out* out,
                      const Context& context)
{
    row_ptr.visit([&](const auto* in) {
        localize_kernel<<<grid_for(rows + 1, context), threads, 0, stream_of(context)>>>(in, rows + 1, start, nnz, out);
    });
    RMSP_CUDA_CHECK_LAUNCH("localize_row_ptr");
}

template <class Out>
void spread_row_ptr(IndexView row_ptr, std::int64_t first, std::int64_t rows, std::int64_t all, std::int64_t start,
                    std::int64_t nnz, Out* out, const Context& context)
{
    row_ptr.visit([&](const auto* in) {
        spread_kernel<<<grid_for(all + 1, context), threads, 0, stream_of(context)>>>(in, first, rows, all, start, nnz,
                                                                                      out);
    });
    RMSP_CUDA_CHECK_LAUNCH("spread_row_ptr");
}

void narrow_indices(const std::int64_t* in, std::int64_t n, std::int32_t* out, const Context& context)
{
    if (n > 0) {
        narrow_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(in, n, out);
        RMSP_CUDA_CHECK_LAUNCH("narrow_indices");
    }
}

void shift_indices(const std::int32_t* in, std::int64_t n, std::int32_t by, std::int32_t* out, const Context& context)
{
    if (n > 0) {
        shift_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(in, n, by, out);
        RMSP_CUDA_CHECK_LAUNCH("shift_indices");
    }
}

template <class T>
void fill(T* y, std::int64_t n, T value, const Context& context)
{
    if (n > 0) {
        launch_early("fill", fill_kernel<T>, dim3(grid_for(n, context)), threads, context, y, n, value);
    }
}

template <class T>
void add_carries(T* y, const T* carries, int count, const Context& context)
{
    if (count > 0) {
        add_carries_kernel<<<1, 1, 0, stream_of(context)>>>(y, carries, count);
        RMSP_CUDA_CHECK_LAUNCH("add_carries");
    }
}

template <class T>
void add_partials(T* y, std::int64_t first, std::int64_t end, T beta, const PartialSums<T>* parts, int count,
                  const Context& context)
{
    if (count > most_partials) {
        throw Error(ErrorCode::internal, "add_partials: too many parts");
    }
    if (end <= first) {
        return;
    }
    Partials<T> all{};
    std::copy_n(parts, count, all.part);
    add_partials_kernel<<<grid_for((end - first + 3) / 4 + 8, context), threads, 0, stream_of(context)>>>(
        y, first, end, beta, all, count);
    RMSP_CUDA_CHECK_LAUNCH("add_partials");
}

void copy_parts(const CopyPart* parts, int count, const Context& context)
{
    CopyParts all{};
    int used = 0;
    std::int64_t longest = 0;
    for (int i = 0; i < count; ++i) {
        if (parts[i].bytes == 0) {
            continue;
        }
        if (used == most_copy_parts || !aligned_alike(parts[i])) {
            throw Error(ErrorCode::internal, "copy_parts: too many parts, or one whose ends are not aligned alike");
        }
        all.part[used++] = parts[i];
        longest = std::max(longest, parts[i].bytes);
    }
    if (used == 0) {
        return;
    }
    const dim3 grid(std::max(1u, grid_for(longest / 16, context) / static_cast<unsigned>(used)),
                    static_cast<unsigned>(used));
    copy_kernel<<<grid, threads, 0, stream_of(context)>>>(all);
    RMSP_CUDA_CHECK_LAUNCH("copy_parts");
}

void interior_rows(IndexView row_ptr, std::int64_t rows, const std::int32_t* col_idx, std::int64_t first_column,
                   std::int64_t end_column, std::int64_t* run, const Context& context)
{
    static_assert(sizeof(unsigned long long) == sizeof(std::int64_t));
    auto* const words = reinterpret_cast<unsigned long long*>(run);
    begin_interior_kernel<<<1, 1, 0, stream_of(context)>>>(rows, words);
    RMSP_CUDA_CHECK_LAUNCH("interior_rows");
    if (rows == 0) {
        return;
    }
    row_ptr.visit([&](const auto* p) {
        interior_kernel<<<grid_for(rows * 32, context), threads, 0, stream_of(context)>>>(
            p, rows, col_idx, first_column, end_column, words);
    });
    RMSP_CUDA_CHECK_LAUNCH("interior_rows");
}

void index_extent(const std::int32_t* indices, std::int64_t n, std::int32_t* extent, const Context& context)
{
    begin_extent_kernel<<<1, 1, 0, stream_of(context)>>>(extent);
    RMSP_CUDA_CHECK_LAUNCH("index_extent");
    extent_kernel<<<grid_for(n, context), threads, 0, stream_of(context)>>>(indices, n, extent);
    RMSP_CUDA_CHECK_LAUNCH("index_extent");
}

void read_all(const double* data, std::int64_t n, double* sink, const Context& context)
{
    if (reinterpret_cast<std::uintptr_t>(data) % sizeof(double2) != 0) {
        throw Error(ErrorCode::usage, "read_all: the data must start at a multiple of 16 bytes");
    }
    const std::int64_t pairs = n / 2;
    const unsigned blocks = static_cast<unsigned>(std::min<std::int64_t>(grid_for(pairs, context), sink_entries));
    read_kernel<<<blocks, threads, 0, stream_of(context)>>>(reinterpret_cast<const double2*>(data), pairs,
                                                            data + 2 * pairs, static_cast<int>(n - 2 * pairs), sink);
    RMSP_CUDA_CHECK_LAUNCH("read_all");
}

}  // namespace
}  // namespace cuda::support

RMSP_ROW(Support, cuda, .narrow_indices = cuda::support::narrow_indices, .shift_indices = cuda::support::shift_indices,
         .copy_parts = cuda::support::copy_parts, .interior_rows = cuda::support::interior_rows,
         .index_extent = cuda::support::index_extent, .read_all = cuda::support::read_all)

RMSP_INDEX_ROW(IndexSupport, cuda, .localize_row_ptr = cuda::support::localize_row_ptr<T>,
               .spread_row_ptr = cuda::support::spread_row_ptr<T>)

RMSP_VALUE_ROW(ValueSupport, cuda, .fill = cuda::support::fill<T>, .add_carries = cuda::support::add_carries<T>,
               .add_partials = cuda::support::add_partials<T>)

}  // namespace rmsp::kernels
