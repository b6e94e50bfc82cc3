#include <limits>
#include <string>

#include <cub/block/block_scan.cuh>
#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/common/scale.cuh>

namespace rmsp::kernels {
namespace {

constexpr int threads = 256;
constexpr int items = 8;                   ///< entries of a thread
constexpr int capacity = threads * items;  ///< entries of a tile

std::int64_t tiles_of(const char* kernel, std::int64_t nnz)
{
    const std::int64_t tiles = (nnz + capacity - 1) / capacity;
    if (tiles >= std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage,
                    std::string(kernel) + ": " + std::to_string(nnz) + " nonzeros are more than one launch takes");
    }
    return tiles;
}

template <class T>
__global__ void __launch_bounds__(threads)
    coo_atomic_kernel(std::int64_t nnz, std::int64_t first_row, const std::int32_t* __restrict__ row_idx,
                      const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, T alpha,
                      const T* __restrict__ x, T* __restrict__ y)
{
    const std::int64_t first = std::int64_t{blockIdx.x} * capacity + threadIdx.x;
    std::int32_t row[items];
    std::int32_t column[items];
    T value[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
        const std::int64_t i = first + k * threads;
        row[k] = i < nnz ? __ldcs(row_idx + i) : 0;
        column[k] = i < nnz ? __ldcs(col_idx + i) : 0;
        value[k] = i < nnz ? __ldcs(values + i) : T{0};
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
        if (first + k * threads < nnz) {
            atomicAdd(y + (row[k] - first_row), alpha * (value[k] * __ldg(x + column[k])));
        }
    }
}

/// Sum of the entries since the last row that began among them; all of them if none did.
template <class T>
struct Open {
    T sum;
    bool row_began;
};
struct Join {
    template <class T>
    __device__ Open<T> operator()(const Open<T>& a, const Open<T>& b) const
    {
        return {b.row_began ? b.sum : a.sum + b.sum, a.row_began || b.row_began};
    }
};

/// Where entry i of a tile is in shared memory: a thread reads `items` consecutive ones, without bank conflicts.
__device__ __forceinline__ int place(int i) { return i + i / items; }

/// A tile of consecutive entries a block; segmented sums by a scan (Blelloch, Heroux and Zagha, "Segmented operations for
/// sparse matrix computation on vector multiprocessors", 1993). Rows inside the tile are added to y; of a row that goes on
/// in the next tile the sum goes to tails[tile], of one that began in an earlier tile to heads[tile].
template <class T>
__global__ void __launch_bounds__(threads)
    coo_segmented_kernel(std::int64_t nnz, std::int64_t first_row, const std::int32_t* __restrict__ row_idx,
                         const std::int32_t* __restrict__ col_idx, const T* __restrict__ values, T alpha,
                         const T* __restrict__ x, T* __restrict__ y, T* __restrict__ heads, T* __restrict__ tails)
{
    using Scan = cub::BlockScan<Open<T>, threads>;
    __shared__ typename Scan::TempStorage scan;
    __shared__ T products[capacity + threads];
    __shared__ std::int32_t rows[capacity + threads];

    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t begin = std::int64_t{blockIdx.x} * capacity;
    const int count = static_cast<int>(nnz - begin < capacity ? nnz - begin : capacity);
    std::int32_t row[items];
    std::int32_t column[items];
    T value[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
        const int i = k * threads + thread;
        row[k] = i < count ? __ldcs(row_idx + begin + i) : 0;
        column[k] = i < count ? __ldcs(col_idx + begin + i) : 0;
        value[k] = i < count ? __ldcs(values + begin + i) : T{0};
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
        const int i = k * threads + thread;
        if (i < count) {
            rows[place(i)] = row[k];
            products[place(i)] = value[k] * __ldg(x + column[k]);
        }
    }
    __syncthreads();

    const int first = thread * items;
    const int stop = first + items < count ? first + items : count;
    Open<T> own{T{0}, false};
    for (int i = first; i < stop; ++i) {
        if (i > 0 && rows[place(i)] != rows[place(i - 1)]) {
            own = {T{0}, true};
        }
        own.sum += products[place(i)];
    }
    Open<T> before;
    Scan(scan).ExclusiveScan(own, before, Open<T>{T{0}, false}, Join{});

    T sum = before.sum;
    for (int i = first; i < stop; ++i) {
        const std::int32_t here = rows[place(i)];
        if (i > 0 && here != rows[place(i - 1)]) {
            sum = T{0};
        }
        sum += products[place(i)];
        const bool last = i + 1 == count;
        if (!last && rows[place(i + 1)] == here) {
            continue;
        }
        if (here == rows[place(0)] && begin > 0 && __ldg(row_idx + begin - 1) == here) {
            heads[blockIdx.x] = sum;
        } else if (last && begin + count < nnz && __ldg(row_idx + begin + count) == here) {
            tails[blockIdx.x] = sum;
        } else {
            y[here - first_row] += alpha * sum;
        }
    }
}

/// One warp a tile: completes the row that begins in the tile and goes on in the next ones, in an order that depends on
/// the matrix alone.
template <class T>
__global__ void __launch_bounds__(threads)
    coo_join_kernel(std::int64_t tiles, std::int64_t first_row, const std::int32_t* __restrict__ row_idx, T alpha,
                    const T* __restrict__ heads, const T* __restrict__ tails, T* __restrict__ y)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
    if (tile + 1 >= tiles) {
        return;
    }
    const std::int64_t begin = tile * capacity;
    const std::int32_t row = __ldg(row_idx + begin + capacity - 1);
    const bool goes_on = __ldg(row_idx + begin + capacity) == row;
    const bool began_before = begin > 0 && __ldg(row_idx + begin - 1) == row;
    if (!goes_on || began_before) {
        return;
    }
    T sum = 0;
    for (std::int64_t next = tile + 1 + threadIdx.x % 32; next < tiles && __ldg(row_idx + next * capacity) == row;
         next += 32) {
        sum += heads[next];
    }
    sum = cuda::group_sum(sum, 32);
    if (threadIdx.x % 32 == 0) {
        y[row - first_row] += alpha * (tails[tile] + sum);
    }
}

template <class T>
class CooAtomic final : public SpmvOperator<T> {
public:
    explicit CooAtomic(const CooShard<T>& shard) : shard_(shard), tiles_(tiles_of("coo-atomic", shard.nnz)) {}

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        cuda::scale(shard_.rows, beta, y, context.compute_units, stream);
        if (tiles_ == 0) {
            return;
        }
        coo_atomic_kernel<<<static_cast<unsigned>(tiles_), threads, 0, stream>>>(
            shard_.nnz, shard_.first_row, shard_.row_idx, shard_.col_idx, shard_.values, alpha, x, y);
        RMSP_CUDA_CHECK_LAUNCH("coo-atomic");
    }

private:
    CooShard<T> shard_;
    std::int64_t tiles_;
};

template <class T>
class CooSegmented final : public SpmvOperator<T> {
public:
    CooSegmented(const CooShard<T>& shard, const Context& context)
        : shard_(shard), tiles_(tiles_of("coo-segmented", shard.nnz))
    {
        if (tiles_ > 1) {
            heads_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(tiles_));
            tails_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(tiles_));
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        cuda::scale(shard_.rows, beta, y, context.compute_units, stream);
        if (tiles_ == 0) {
            return;
        }
        coo_segmented_kernel<<<static_cast<unsigned>(tiles_), threads, 0, stream>>>(
            shard_.nnz, shard_.first_row, shard_.row_idx, shard_.col_idx, shard_.values, alpha, x, y, heads_.data(),
            tails_.data());
        RMSP_CUDA_CHECK_LAUNCH("coo-segmented");
        if (tiles_ > 1) {
            constexpr int warps = threads / 32;
            coo_join_kernel<<<static_cast<unsigned>((tiles_ + warps - 1) / warps), threads, 0, stream>>>(
                tiles_, shard_.first_row, shard_.row_idx, alpha, heads_.data(), tails_.data(), y);
            RMSP_CUDA_CHECK_LAUNCH("coo_join_kernel");
        }
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>((heads_.size() + tails_.size()) * sizeof(T));
    }

private:
    CooShard<T> shard_;
    std::int64_t tiles_;
    DeviceArray<T> heads_;  ///< one for each tile
    DeviceArray<T> tails_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>& shard, const Context& /*context*/)
{
    return std::make_unique<CooAtomic<T>>(shard);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_segmented(const CooShard<T>& shard, const Context& context)
{
    return std::make_unique<CooSegmented<T>>(shard, context);
}

template std::unique_ptr<SpmvOperator<float>> prepare_coo_atomic(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_atomic(const CooShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_segmented(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_segmented(const CooShard<double>&, const Context&);

}  // namespace rmsp::kernels
