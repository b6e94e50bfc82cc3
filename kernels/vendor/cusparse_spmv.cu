#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <kernels/vendor/cusparse_operator.cuh>

namespace rmsp::kernels {
namespace {

using namespace cusparse;

/// A matrix in one of cuSPARSE's formats, by cusparseSpMV(). A derived class makes `matrix_` in its constructor and
/// then calls finish().
template <class T>
class CuSparse : public cusparse::Operator<T> {
protected:
    CuSparse(const CsrShard<T>& shard, cusparseSpMVAlg_t algorithm, const Context& context)
        : cusparse::Operator<T>(shard, context), algorithm_(algorithm)
    {
    }

    void multiply(T alpha, T beta) override
    {
        RMSP_CUSPARSE_CHECK(cusparseSpMV(this->handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                                         this->matrix_.get(), this->x_.get(), &beta, this->y_.get(), data_type<T>,
                                         algorithm_, this->buffer_.data()));
    }

    /// Work space and preprocessing of the matrix made before.
    void finish(const Context& context)
    {
        const T one = 1;
        const T zero = 0;
        std::size_t bytes = 0;
        RMSP_CUSPARSE_CHECK(cusparseSpMV_bufferSize(this->handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                                    this->matrix_.get(), this->x_.get(), &zero, this->y_.get(),
                                                    data_type<T>, algorithm_, &bytes));
        this->buffer_ = DeviceArray<std::byte>(*context.memory, bytes);
        if (this->shard_.entries_later) {
            return;  // it may look at more than the row pointers
        }
        const cusparseStatus_t preprocessed = functions().cusparseSpMV_preprocess(
            this->handle_.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, this->matrix_.get(), this->x_.get(), &zero,
            this->y_.get(), data_type<T>, algorithm_, this->buffer_.data());
        if (preprocessed != CUSPARSE_STATUS_NOT_SUPPORTED) {  // some formats have nothing to prepare
            check(preprocessed, "cusparseSpMV_preprocess");
        }
    }

private:
    cusparseSpMVAlg_t algorithm_;
};

template <class T>
class CuSparseCsr final : public CuSparse<T> {
public:
    CuSparseCsr(const CsrShard<T>& shard, cusparseSpMVAlg_t algorithm, const Context& context)
        : CuSparse<T>(shard, algorithm, context)
    {
        if (this->empty()) {
            return;
        }
        this->make_csr();
        this->finish(context);
    }
};

template <class T>
class CuSparseCoo final : public CuSparse<T> {
public:
    CuSparseCoo(const CsrShard<T>& shard, cusparseSpMVAlg_t algorithm, const Context& context)
        : CuSparse<T>(shard, algorithm, context)
    {
        if (this->empty()) {
            return;
        }
        row_idx_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.nnz));
        RMSP_CUSPARSE_CHECK(cusparseXcsr2coo(this->handle_.get(), this->row_ptr(), static_cast<int>(shard.nnz),
                                             static_cast<int>(shard.rows), row_idx_.data(), CUSPARSE_INDEX_BASE_ZERO));
        RMSP_CUSPARSE_CHECK(cusparseCreateCoo(this->matrix_.renew(), shard.rows, shard.cols, shard.nnz, row_idx_.data(),
                                              const_cast<std::int32_t*>(shard.col_idx), const_cast<T*>(shard.values),
                                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, data_type<T>));
        this->finish(context);
    }

    std::int64_t format_bytes() const override
    {
        return this->shard_.nnz * static_cast<std::int64_t>(2 * sizeof(std::int32_t) + sizeof(T));
    }
    std::int64_t workspace_bytes() const override
    {
        return CuSparse<T>::workspace_bytes() + static_cast<std::int64_t>(row_idx_.size() * sizeof(std::int32_t));
    }

private:
    DeviceArray<std::int32_t> row_idx_;
};

/// offsets[i] = what the sizes before i add up to, times `scale`; returns the last one, the total.
/// \throws Error(usage) if that does not fit 32 bits
std::int64_t offsets_from(const DeviceArray<std::int32_t>& sizes, std::int64_t scale, const char* format,
                          std::int32_t* offsets, cudaStream_t stream)
{
    std::vector<std::int32_t> host(sizes.size() + 1);
    RMSP_CUDA_CHECK(cudaMemcpyAsync(host.data() + 1, sizes.data(), sizes.size() * sizeof(std::int32_t),
                                    cudaMemcpyDeviceToHost, stream));
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    std::int64_t total = 0;
    for (std::size_t i = 1; i < host.size(); ++i) {
        total += host[i] * scale;
        if (total > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage, std::string(format) + " would store more than 2^31 - 1 entries");
        }
        host[i] = static_cast<std::int32_t>(total);
    }
    RMSP_CUDA_CHECK(
        cudaMemcpyAsync(offsets, host.data(), host.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice, stream));
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));  // before `host` goes
    return total;
}

constexpr int slice_rows = 32;

/// A warp a slice.
__global__ void slice_width_kernel(const std::int32_t* row_ptr, std::int64_t rows, std::int32_t* width)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * slice_rows + threadIdx.x;
    const unsigned length = row < rows ? static_cast<unsigned>(row_ptr[row + 1] - row_ptr[row]) : 0;
    const unsigned longest = __reduce_max_sync(0xffffffffU, length);
    if (threadIdx.x == 0) {
        width[blockIdx.x] = static_cast<std::int32_t>(longest);
    }
}

/// A warp a slice, a lane a row; entries of a slice by columns.
template <class T>
__global__ void slice_fill_kernel(const std::int32_t* row_ptr, const std::int32_t* col_idx, const T* values,
                                  std::int64_t rows, const std::int32_t* offsets, std::int32_t* sliced_columns,
                                  T* sliced_values)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * slice_rows + threadIdx.x;
    const std::int32_t begin = row < rows ? row_ptr[row] : 0;
    const std::int32_t length = row < rows ? row_ptr[row + 1] - begin : 0;
    const std::int32_t width = (offsets[blockIdx.x + 1] - offsets[blockIdx.x]) / slice_rows;
    std::int64_t to = offsets[blockIdx.x] + static_cast<std::int64_t>(threadIdx.x);
    for (std::int32_t i = 0; i < width; ++i, to += slice_rows) {
        sliced_columns[to] = i < length ? col_idx[begin + i] : -1;
        sliced_values[to] = i < length ? values[begin + i] : T{0};
    }
}

template <class T>
class CuSparseSell final : public CuSparse<T> {
public:
    CuSparseSell(const CsrShard<T>& shard, const Context& context)
        : CuSparse<T>(shard, CUSPARSE_SPMV_SELL_ALG1, context)
    {
        if (this->empty()) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const auto slices = static_cast<std::size_t>((shard.rows + slice_rows - 1) / slice_rows);
        offsets_ = DeviceArray<std::int32_t>(*context.memory, slices + 1);
        {
            const DeviceArray<std::int32_t> width(*context.memory, slices);
            slice_width_kernel<<<static_cast<unsigned>(slices), slice_rows, 0, stream>>>(this->row_ptr(), shard.rows,
                                                                                         width.data());
            RMSP_CUDA_CHECK_LAUNCH("slice_width_kernel");
            const std::int64_t entries = offsets_from(width, slice_rows, "cuSPARSE SELL", offsets_.data(), stream);
            columns_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(entries));
            values_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(entries));
        }
        update_values(context);
        RMSP_CUSPARSE_CHECK(cusparseCreateSlicedEll(
            this->matrix_.renew(), shard.rows, shard.cols, shard.nnz, static_cast<std::int64_t>(values_.size()),
            slice_rows, offsets_.data(), columns_.data(), values_.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
            CUSPARSE_INDEX_BASE_ZERO, data_type<T>));
        this->finish(context);
    }

    void update_values(const Context& context) override
    {
        if (this->empty()) {
            return;
        }
        slice_fill_kernel<<<static_cast<unsigned>(offsets_.size() - 1), slice_rows, 0,
                            static_cast<cudaStream_t>(context.stream)>>>(
            this->row_ptr(), this->shard_.col_idx, this->shard_.values, this->shard_.rows, offsets_.data(),
            columns_.data(), values_.data());
        RMSP_CUDA_CHECK_LAUNCH("slice_fill_kernel");
    }

    std::int64_t format_bytes() const override
    {
        return static_cast<std::int64_t>((offsets_.size() + columns_.size()) * sizeof(std::int32_t) +
                                         values_.size() * sizeof(T));
    }
    std::int64_t workspace_bytes() const override { return CuSparse<T>::workspace_bytes() + format_bytes(); }

private:
    DeviceArray<std::int32_t> offsets_;
    DeviceArray<std::int32_t> columns_;
    DeviceArray<T> values_;
};

constexpr int largest_block = 4;

/// Rows of a BSR matrix: a thread merges the sorted rows of one block row and calls visit(block column, row in the
/// block, entry) for each entry, by blocks. Returns the number of blocks.
template <class Visit>
__device__ std::int32_t merge_block_row(const std::int32_t* row_ptr, const std::int32_t* col_idx,
                                        std::int64_t block_row, int block, const Visit& visit)
{
    std::int32_t at[largest_block];
    std::int32_t end[largest_block];
    for (int i = 0; i < largest_block; ++i) {
        at[i] = i < block ? row_ptr[block_row * block + i] : 0;
        end[i] = i < block ? row_ptr[block_row * block + i + 1] : 0;
    }
    constexpr std::int32_t none = 0x7fffffff;
    for (std::int32_t blocks = 0;; ++blocks) {
        std::int32_t next = none;
        for (int i = 0; i < largest_block; ++i) {
            next = at[i] < end[i] ? min(next, col_idx[at[i]] / block) : next;
        }
        if (next == none) {
            return blocks;
        }
        for (int i = 0; i < largest_block; ++i) {
            while (at[i] < end[i] && col_idx[at[i]] / block == next) {
                visit(blocks, next, i, at[i]);
                ++at[i];
            }
        }
    }
}

__global__ void unsorted_kernel(const std::int32_t* row_ptr, const std::int32_t* col_idx, std::int64_t rows,
                                int* unsorted)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row < rows) {
        for (std::int32_t i = row_ptr[row] + 1; i < row_ptr[row + 1]; ++i) {
            if (col_idx[i] < col_idx[i - 1]) {
                *unsorted = 1;
                return;
            }
        }
    }
}

__global__ void count_blocks_kernel(const std::int32_t* row_ptr, const std::int32_t* col_idx, std::int64_t block_rows,
                                    int block, std::int32_t* count, unsigned long long* total)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row < block_rows) {
        const std::int32_t blocks =
            merge_block_row(row_ptr, col_idx, row, block, [](std::int32_t, std::int32_t, int, std::int32_t) {});
        count[row] = blocks;
        atomicAdd(total, static_cast<unsigned long long>(blocks));
    }
}

/// Entries at the same place are added; `block_values` was set to zero.
template <class T>
__global__ void fill_blocks_kernel(const std::int32_t* row_ptr, const std::int32_t* col_idx, const T* values,
                                   std::int64_t block_rows, int block, const std::int32_t* offsets,
                                   std::int32_t* block_columns, T* block_values)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row < block_rows) {
        const std::int64_t first = offsets[row];
        merge_block_row(row_ptr, col_idx, row, block,
                        [&](std::int32_t number, std::int32_t column, int i, std::int32_t entry) {
                            block_columns[first + number] = column;
                            const int j = col_idx[entry] - column * block;
                            block_values[((first + number) * block + i) * block + j] += values[entry];
                        });
    }
}

/// Square blocks of 2, 3 or 4, whichever take the fewest bytes.
template <class T>
class CuSparseBsr final : public CuSparse<T> {
public:
    /// \throws Error(usage) if a row is not sorted, or if no such blocks are full enough for the format to make sense
    CuSparseBsr(const CsrShard<T>& shard, const Context& context) : CuSparse<T>(shard, CUSPARSE_SPMV_BSR_ALG1, context)
    {
        if (this->empty()) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const std::int64_t blocks = choose_block(context);
        block_rows_ = shard.rows / block_;
        offsets_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(block_rows_) + 1);
        {
            const DeviceArray<std::int32_t> count(*context.memory, static_cast<std::size_t>(block_rows_));
            count_blocks(count.data(), block_, context);
            offsets_from(count, 1, "cuSPARSE BSR", offsets_.data(), stream);
        }
        columns_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(blocks));
        values_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(blocks * block_ * block_));
        update_values(context);
        RMSP_CUSPARSE_CHECK(cusparseCreateBsr(this->matrix_.renew(), block_rows_, shard.cols / block_, blocks, block_,
                                              block_, offsets_.data(), columns_.data(), values_.data(),
                                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                              data_type<T>, CUSPARSE_ORDER_ROW));
        this->finish(context);
    }

    void update_values(const Context& context) override
    {
        if (this->empty()) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        RMSP_CUDA_CHECK(cudaMemsetAsync(values_.data(), 0, values_.size() * sizeof(T), stream));
        fill_blocks_kernel<<<grid(block_rows_), threads, 0, stream>>>(this->row_ptr(), this->shard_.col_idx,
                                                                      this->shard_.values, block_rows_, block_,
                                                                      offsets_.data(), columns_.data(), values_.data());
        RMSP_CUDA_CHECK_LAUNCH("fill_blocks_kernel");
    }

    std::int64_t format_bytes() const override
    {
        return static_cast<std::int64_t>((offsets_.size() + columns_.size()) * sizeof(std::int32_t) +
                                         values_.size() * sizeof(T));
    }
    std::int64_t workspace_bytes() const override { return CuSparse<T>::workspace_bytes() + format_bytes(); }

private:
    static constexpr int threads = 128;
    static unsigned grid(std::int64_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

    /// Returns the number of blocks.
    std::int64_t count_blocks(std::int32_t* count, int block, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const DeviceArray<unsigned long long> total(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(total.data(), 0, sizeof(unsigned long long), stream));
        const std::int64_t block_rows = this->shard_.rows / block;
        count_blocks_kernel<<<grid(block_rows), threads, 0, stream>>>(this->row_ptr(), this->shard_.col_idx, block_rows,
                                                                      block, count, total.data());
        RMSP_CUDA_CHECK_LAUNCH("count_blocks_kernel");
        return static_cast<std::int64_t>(fetch(total.data(), stream));
    }

    template <class Number>
    static Number fetch(const Number* from, cudaStream_t stream)
    {
        Number value{};
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&value, from, sizeof value, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        return value;
    }

    std::int64_t choose_block(const Context& context)
    {
        const CsrShard<T>& shard = this->shard_;
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const DeviceArray<int> unsorted(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(unsorted.data(), 0, sizeof(int), stream));
        unsorted_kernel<<<grid(shard.rows), threads, 0, stream>>>(this->row_ptr(), shard.col_idx, shard.rows,
                                                                  unsorted.data());
        RMSP_CUDA_CHECK_LAUNCH("unsorted_kernel");
        if (fetch(unsorted.data(), stream) != 0) {
            throw Error(ErrorCode::usage, "cuSPARSE BSR is made of rows whose columns are sorted; these are not");
        }
        const DeviceArray<std::int32_t> count(*context.memory, static_cast<std::size_t>(shard.rows / 2 + 1));
        constexpr double most_fill = 2;
        std::int64_t best_blocks = 0;
        std::int64_t best_bytes = 0;
        for (int block = 2; block <= largest_block; ++block) {
            if (shard.rows % block != 0 || shard.cols % block != 0) {
                continue;
            }
            const std::int64_t blocks = count_blocks(count.data(), block, context);
            const std::int64_t entries = blocks * block * block;
            const std::int64_t bytes = entries * static_cast<std::int64_t>(sizeof(T)) +
                                       blocks * static_cast<std::int64_t>(sizeof(std::int32_t));
            if (static_cast<double>(entries) <= most_fill * static_cast<double>(shard.nnz) &&
                (block_ == 0 || bytes < best_bytes)) {
                block_ = block;
                best_blocks = blocks;
                best_bytes = bytes;
            }
        }
        if (block_ == 0) {
            throw Error(ErrorCode::usage, "cuSPARSE BSR with square blocks of 2 to 4 that divide " +
                                              std::to_string(shard.rows) + " x " + std::to_string(shard.cols) +
                                              " would store more than twice the " + std::to_string(shard.nnz) +
                                              " nonzeros");
        }
        return best_blocks;
    }

    int block_ = 0;
    std::int64_t block_rows_ = 0;
    DeviceArray<std::int32_t> offsets_;
    DeviceArray<std::int32_t> columns_;
    DeviceArray<T> values_;
};

}  // namespace

#define RMSP_PREPARE(name, Format, ...)                                                                      \
    template <class T>                                                                                       \
    std::unique_ptr<SpmvOperator<T>> prepare_cusparse_##name(const CsrShard<T>& shard, const RowStatistics&, \
                                                             const Context& context)                         \
    {                                                                                                        \
        return std::make_unique<Format<T>>(shard, __VA_ARGS__);                                              \
    }                                                                                                        \
    RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_cusparse_##name)

RMSP_PREPARE(csr_alg1, CuSparseCsr, CUSPARSE_SPMV_CSR_ALG1, context)
RMSP_PREPARE(csr_alg2, CuSparseCsr, CUSPARSE_SPMV_CSR_ALG2, context)
RMSP_PREPARE(coo_alg1, CuSparseCoo, CUSPARSE_SPMV_COO_ALG1, context)
RMSP_PREPARE(coo_alg2, CuSparseCoo, CUSPARSE_SPMV_COO_ALG2, context)
RMSP_PREPARE(sell, CuSparseSell, context)
RMSP_PREPARE(bsr, CuSparseBsr, context)
#undef RMSP_PREPARE

}  // namespace rmsp::kernels
