#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include <cub/device/device_radix_sort.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/search.hpp>

namespace rmsp::kernels {
namespace {

constexpr int threads = 256;

unsigned blocks_for(std::int64_t n)
{
    const std::int64_t blocks = (n + threads - 1) / threads;
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage,
                    "conversion to CSR: " + std::to_string(n) + " items are more than one launch takes");
    }
    return static_cast<unsigned>(blocks);
}

__device__ __forceinline__ std::int64_t global_thread() { return std::int64_t{blockIdx.x} * threads + threadIdx.x; }

template <class Offset>
__global__ void iota_kernel(std::int64_t n, Offset* __restrict__ out)
{
    const std::int64_t i = global_thread();
    if (i < n) {
        out[i] = static_cast<Offset>(i);
    }
}

/// A search for each row, so that a desert of empty rows costs no thread more than another.
template <class Offset>
__global__ void row_ptr_kernel(std::int64_t rows, std::int64_t first_row, std::int64_t nnz,
                               const std::int32_t* __restrict__ row_idx, Offset* __restrict__ row_ptr)
{
    const std::int64_t row = global_thread();
    if (row <= rows) {
        row_ptr[row] = static_cast<Offset>(first_not_below(row_idx, nnz, first_row + row));
    }
}

template <class T, class Offset>
__global__ void gather_kernel(std::int64_t n, const Offset* __restrict__ from, const T* __restrict__ in,
                              T* __restrict__ out)
{
    const std::int64_t i = global_thread();
    if (i < n) {
        out[i] = in[from[i]];
    }
}

template <class Pointer, class Offset>
__global__ void columns_kernel(std::int64_t nnz, const Offset* __restrict__ from, std::int64_t cols,
                               const Pointer* __restrict__ col_ptr, std::int32_t* __restrict__ out)
{
    const std::int64_t i = global_thread();
    if (i < nnz) {
        out[i] = static_cast<std::int32_t>(find_column(col_ptr, 0, cols - 1, from[i]));
    }
}

/// The shard as CSR, made once: a stable radix sort by row, so entries of a row keep their order, and csr-nnz-split on the
/// result. Entries that are sorted by row need only row pointers. Offset holds nnz.
template <class T, class Offset>
class ToCsr final : public SpmvOperator<T> {
public:
    ToCsr(const CscShard<T>& shard, const Context& context)
    {
        CsrShard<T> csr =
            sort(shard.rows, shard.cols, shard.nnz, shard.first_row, shard.row_idx, shard.values, context);
        if (shard.nnz > 0) {
            shard.col_ptr.visit([&](const auto* col_ptr) {
                columns_kernel<<<blocks_for(shard.nnz), threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
                    shard.nnz, from_.data(), shard.cols, col_ptr, col_idx_.data());
            });
            RMSP_CUDA_CHECK_LAUNCH("columns_kernel");
        }
        finish(csr, context);
    }

    ToCsr(const CooShard<T>& shard, const Context& context)
    {
        if (shard.order == CooOrder::by_row) {
            CsrShard<T> csr{shard.rows, shard.cols, shard.nnz, {}, shard.col_idx, shard.values};
            point_at_rows(csr, shard.first_row, shard.row_idx, context);
            finish(csr, context);
            return;
        }
        CsrShard<T> csr =
            sort(shard.rows, shard.cols, shard.nnz, shard.first_row, shard.row_idx, shard.values, context);
        gather(shard.col_idx, col_idx_.data(), context);
        finish(csr, context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        csr_operator_->apply(alpha, x, beta, y, context);
    }

    void update_values(const Context& context) override
    {
        gather(source_, values_.data(), context);
        csr_operator_->update_values(context);
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(row_ptr_.size() * sizeof(Offset) + from_.size() * sizeof(Offset) +
                                         col_idx_.size() * sizeof(std::int32_t) + values_.size() * sizeof(T)) +
               csr_operator_->workspace_bytes();
    }

private:
    /// Fills from_, values_ and row_ptr_, and allocates col_idx_.
    CsrShard<T> sort(std::int64_t rows, std::int64_t cols, std::int64_t nnz, std::int64_t first_row,
                     const std::int32_t* row_idx, const T* values, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const auto n = static_cast<std::size_t>(nnz);
        from_ = DeviceArray<Offset>(*context.memory, n);
        col_idx_ = DeviceArray<std::int32_t>(*context.memory, n);
        values_ = DeviceArray<T>(*context.memory, n);
        source_ = values;
        const DeviceArray<std::int32_t> sorted_rows(*context.memory, n);
        if (nnz > 0) {
            const DeviceArray<Offset> positions(*context.memory, n);
            iota_kernel<<<blocks_for(nnz), threads, 0, stream>>>(nnz, positions.data());
            RMSP_CUDA_CHECK_LAUNCH("iota_kernel");
            const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(first_row + rows - 1) | 1));
            std::size_t bytes = 0;
            RMSP_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, row_idx, sorted_rows.data(),
                                                            positions.data(), from_.data(), nnz, 0, bits, stream));
            const DeviceArray<std::byte> workspace(*context.memory, bytes);
            RMSP_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(workspace.data(), bytes, row_idx, sorted_rows.data(),
                                                            positions.data(), from_.data(), nnz, 0, bits, stream));
        }
        CsrShard<T> csr{rows, cols, nnz, {}, col_idx_.data(), values_.data()};
        point_at_rows(csr, first_row, sorted_rows.data(), context);
        gather(source_, values_.data(), context);
        return csr;
    }

    void point_at_rows(CsrShard<T>& csr, std::int64_t first_row, const std::int32_t* sorted_rows,
                       const Context& context)
    {
        row_ptr_ = DeviceArray<Offset>(*context.memory, static_cast<std::size_t>(csr.rows) + 1);
        row_ptr_kernel<<<blocks_for(csr.rows + 1), threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
            csr.rows, first_row, csr.nnz, sorted_rows, row_ptr_.data());
        RMSP_CUDA_CHECK_LAUNCH("row_ptr_kernel");
        csr.row_ptr = IndexView(row_ptr_.data());
    }

    template <class Item>
    void gather(const Item* in, Item* out, const Context& context) const
    {
        if (from_.size() > 0) {
            const auto n = static_cast<std::int64_t>(from_.size());
            gather_kernel<<<blocks_for(n), threads, 0, static_cast<cudaStream_t>(context.stream)>>>(n, from_.data(), in,
                                                                                                    out);
            RMSP_CUDA_CHECK_LAUNCH("gather_kernel");
        }
    }

    void finish(const CsrShard<T>& csr, const Context& context)
    {
        RowStatistics rows;
        rows.rows = csr.rows;
        rows.nnz = csr.nnz;
        rows.longest_row = csr.nnz;  // an upper bound is all that csr-nnz-split asks for
        rows.mean = csr.rows > 0 ? static_cast<double>(csr.nnz) / static_cast<double>(csr.rows) : 0;
        csr_operator_ = prepare_nnz_split(csr, rows, context);
    }

    DeviceArray<Offset> row_ptr_;
    DeviceArray<Offset> from_;  ///< position in the shard of each nonzero of the copy; empty if there is no copy
    DeviceArray<std::int32_t> col_idx_;
    DeviceArray<T> values_;
    const T* source_ = nullptr;
    std::unique_ptr<SpmvOperator<T>> csr_operator_;
};

template <class T, class Shard>
std::unique_ptr<SpmvOperator<T>> prepare(const Shard& shard, const Context& context)
{
    if (shard.nnz <= std::numeric_limits<std::int32_t>::max()) {
        return std::make_unique<ToCsr<T, std::int32_t>>(shard, context);
    }
    return std::make_unique<ToCsr<T, std::int64_t>>(shard, context);
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>& shard, const Context& context)
{
    return prepare<T>(shard, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>& shard, const Context& context)
{
    return prepare<T>(shard, context);
}

template std::unique_ptr<SpmvOperator<float>> prepare_csc_to_csr(const CscShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_csc_to_csr(const CscShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_to_csr(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_to_csr(const CooShard<double>&, const Context&);

}  // namespace rmsp::kernels
