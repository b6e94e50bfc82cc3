#include <cstdint>
#include <limits>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/spmv/csr_row_vector/policy.hpp>
#include <kernels/spmv/csr_row_vector/staged_rows.hpp>

namespace rmsp::kernels {
namespace {

constexpr unsigned whole_warp = 0xffffffffu;
constexpr int tile_rows = 32;
/// What is copied begins and ends at multiples: sectors of the L2, 32 bytes of columns. In shared memory they begin at
/// such bytes too: a copy that moves what it brings within a sector makes the L2 deliver a tenth more.
constexpr int vector_entries = 8;
constexpr int longest_short_row = 8;

/// Of a thread block: lanes a row, and the entries of x that a lane asks for at once. Registers that spill cost far
/// more than they save, since what is spilled goes through the L2, which is as busy as the memory.
template <int Lanes, int Unroll, int Threads, int Blocks>
struct Shape {
    static constexpr int lanes = Lanes;
    static constexpr int unroll = Unroll;
    static constexpr int threads = Threads;
    static constexpr int rows = Threads / Lanes;
    static constexpr int blocks_per_multiprocessor = Blocks;
    static_assert(rows % tile_rows == 0);
};
using ShortRows = Shape<1, 7, 128, 16>;
template <class T>
using LongRows = std::conditional_t<sizeof(T) == sizeof(float), Shape<2, 14, 128, 15>, Shape<4, 7, 256, 8>>;

/// The caller's arrays, and beside them what row pointers say, in fewer bytes.
template <class T>
struct Matrix {
    const std::int32_t* col_idx;
    const T* values;
    std::int64_t nnz;
    std::int64_t rows;
    const std::uint32_t* first;   ///< nonzero of each tile of rows, up to whole blocks and behind them
    const std::uint8_t* lengths;  ///< of rows, up to whole blocks
    int capacity;                 ///< nonzeros of a block
    int ahead;                    ///< about as many blocks as run at a time
};

__device__ __forceinline__ unsigned shared_address(const void* p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void make_barrier(std::uint64_t* barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/// Asks for `bytes` bytes, a multiple of 16 between addresses that are such, in shared memory, as the barrier's.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes, std::uint64_t* barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
#endif
}

/// Asks for the nonzeros from the vector that has `first` on, up to `end`. One thread.
template <class T>
__device__ __forceinline__ void request(const Matrix<T>& a, std::uint32_t first, std::uint32_t end, T* values,
                                        std::int32_t* columns, std::uint64_t* barrier)
{
#if __CUDA_ARCH__ >= 900
    const std::uint32_t begin = first / vector_entries * vector_entries;
    std::int64_t stop = (std::int64_t{end} + vector_entries - 1) / vector_entries * vector_entries;
    if (stop > a.nnz) {  // the arrays end within a vector
        stop = max(end / vector_entries * vector_entries, begin);
        for (auto i = static_cast<std::uint32_t>(stop); i < end; ++i) {
            values[i - begin] = a.values[i];
            columns[i - begin] = a.col_idx[i];
        }
    }
    const int n = static_cast<int>(stop - begin);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(n * static_cast<int>(sizeof(T) + sizeof(std::int32_t)))
                 : "memory");
    if (n > 0) {
        copy_bulk(columns, a.col_idx + begin, n * static_cast<int>(sizeof(std::int32_t)), barrier);
        copy_bulk(values, a.values + begin, n * static_cast<int>(sizeof(T)), barrier);
    }
#endif
}

__device__ __forceinline__ void wait(std::uint64_t* barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0; @!done bra again; }" ::"r"(
            shared_address(barrier))
        : "memory");
#endif
}

/// In the L2, for a block that runs later.
__device__ __forceinline__ void ask_for_line(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/// A block's nonzeros are contiguous, so bulk copies bring them to shared memory in long requests, without registers;
/// several rows of a stencil at once gather from few lines, where a row's whole would from many.
template <class S, class T>
__global__ void __launch_bounds__(S::threads, S::blocks_per_multiprocessor)
    staged_rows_kernel(const Matrix<T> a, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    constexpr int lanes = S::lanes;
    extern __shared__ __align__(128) char space[];
    __shared__ std::uint64_t barrier;
    T* const values = reinterpret_cast<T*>(space);
    std::int32_t* const columns = reinterpret_cast<std::int32_t*>(values + a.capacity);
    const int block_row = static_cast<int>(threadIdx.x) / lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const int warp_lane = static_cast<int>(threadIdx.x) % 32;
    if (threadIdx.x == 0) {
        make_barrier(&barrier);
    }
    cuda::wait_for_kernel_before();
    const std::uint32_t* const tiles = a.first + std::int64_t{blockIdx.x} * (S::rows / tile_rows);
    const std::uint8_t* const lengths = a.lengths + std::int64_t{blockIdx.x} * S::rows;
    const std::uint32_t first = __ldg(tiles);
    if (threadIdx.x == 0) {
        request(a, first, __ldg(tiles + S::rows / tile_rows), values, columns, &barrier);
    }
    if (threadIdx.x == S::threads - 1 && (std::int64_t{blockIdx.x} + a.ahead) * S::rows < a.rows) {
        ask_for_line(tiles + std::int64_t{a.ahead} * (S::rows / tile_rows));
        ask_for_line(lengths + std::int64_t{a.ahead} * S::rows);
    }
    // While the nonzeros are on their way, where the row lies among them.
    const int length = __ldg(lengths + block_row / tile_rows * tile_rows + warp_lane);
    int end = length;
#pragma unroll
    for (int offset = 1; offset < tile_rows; offset *= 2) {
        const int before = __shfl_up_sync(whole_warp, end, offset);
        end += warp_lane >= offset ? before : 0;
    }
    int begin = end - length;
    if constexpr (lanes > 1) {
        begin = __shfl_sync(whole_warp, begin, block_row % tile_rows);
        end = __shfl_sync(whole_warp, end, block_row % tile_rows);
    }
    const int shift = static_cast<int>(__ldg(tiles + block_row / tile_rows) - first / vector_entries * vector_entries);
    begin += shift;
    end += shift;
    __syncthreads();
    wait(&barrier);
    T sum = 0;
    for (int i = begin + lane; i < end; i += lanes * S::unroll) {
        T gathered[S::unroll];
#pragma unroll
        for (int k = 0; k < S::unroll; ++k) {
            gathered[k] = i + k * lanes < end ? __ldg(x + columns[i + k * lanes]) : T{0};
        }
#pragma unroll
        for (int k = 0; k < S::unroll; ++k) {
            if (i + k * lanes < end) {
                sum += values[i + k * lanes] * gathered[k];
            }
        }
    }
    sum = cuda::group_sum(sum, lanes);
    const std::int64_t row = std::int64_t{blockIdx.x} * S::rows + block_row;
    if (row < a.rows && lane == 0) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

constexpr int prepare_threads = 256;

/// \param padded_rows  whole blocks
template <class Offset>
__global__ void heads_kernel(std::int64_t rows, std::int64_t padded_rows, const Offset* __restrict__ row_ptr,
                             std::uint32_t* __restrict__ first, std::uint8_t* __restrict__ lengths)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * prepare_threads + threadIdx.x;
    if (row > padded_rows) {
        return;
    }
    const Offset begin = row_ptr[min(row, rows)];
    if (row % tile_rows == 0) {
        first[row / tile_rows] = static_cast<std::uint32_t>(begin);
    }
    if (row < padded_rows) {
        lengths[row] = static_cast<std::uint8_t>(row_ptr[min(row + 1, rows)] - begin);
    }
}

template <class S, class T>
class Staged final : public SpmvOperator<T> {
public:
    Staged(const CsrShard<T>& shard, const RowStatistics& rows, const Context& context) : shard_(shard)
    {
        capacity_ =
            static_cast<int>((S::rows * rows.longest_row + 2 * (vector_entries - 1)) / vector_entries * vector_entries);
        const std::int64_t padded = blocks_for(shard.rows) * S::rows;
        first_ = DeviceArray<std::uint32_t>(*context.memory, static_cast<std::size_t>(padded / tile_rows) + 1);
        lengths_ = DeviceArray<std::uint8_t>(*context.memory, static_cast<std::size_t>(padded));
        shard.row_ptr.visit([&](const auto* row_ptr) {
            heads_kernel<<<static_cast<unsigned>(padded / prepare_threads + 1), prepare_threads, 0,
                           static_cast<cudaStream_t>(context.stream)>>>(shard.rows, padded, row_ptr, first_.data(),
                                                                        lengths_.data());
        });
        RMSP_CUDA_CHECK_LAUNCH("heads_kernel");
        RMSP_CUDA_CHECK(cudaFuncSetAttribute(staged_rows_kernel<S, T>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                             cudaSharedmemCarveoutMaxShared));
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        apply_rows(0, shard_.rows, alpha, x, beta, y, context);
    }

    bool only_launches() const override { return true; }
    std::int64_t row_granule() const override { return S::rows; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        if (first >= end) {
            return;
        }
        const Matrix<T> matrix{shard_.col_idx,
                               shard_.values,
                               shard_.nnz,
                               end - first,
                               first_.data() + first / tile_rows,
                               lengths_.data() + first,
                               capacity_,
                               context.compute_units * S::blocks_per_multiprocessor};
        cuda::launch_early("launch of csr-row-vector, staged", staged_rows_kernel<S, T>,
                           dim3(static_cast<unsigned>(blocks_for(end - first))), S::threads,
                           static_cast<std::size_t>(capacity_) * (sizeof(T) + sizeof(std::int32_t)), context, matrix,
                           alpha, x, beta, y + first);
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(first_.size() * sizeof(std::uint32_t) + lengths_.size());
    }

private:
    static std::int64_t blocks_for(std::int64_t rows) { return (rows + S::rows - 1) / S::rows; }

    CsrShard<T> shard_;
    int capacity_ = 0;
    DeviceArray<std::uint32_t> first_;
    DeviceArray<std::uint8_t> lengths_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_staged_rows(const CsrShard<T>& shard, const RowStatistics& rows,
                                                     const Context& context)
{
    constexpr std::uintptr_t vector_bytes = 16;
    if (reinterpret_cast<std::uintptr_t>(shard.col_idx) % vector_bytes != 0 ||
        reinterpret_cast<std::uintptr_t>(shard.values) % vector_bytes != 0 ||
        shard.nnz > std::numeric_limits<std::uint32_t>::max() || !cuda::device_launches_early()) {
        return nullptr;
    }
    if (rows.longest_row <= longest_short_row) {
        return std::make_unique<Staged<ShortRows, T>>(shard, rows, context);
    }
    return std::make_unique<Staged<LongRows<T>, T>>(shard, rows, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_staged_rows)

}  // namespace rmsp::kernels
