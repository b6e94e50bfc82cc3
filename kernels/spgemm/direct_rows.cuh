#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/before_tile.cuh>
#include <kernels/spgemm/device.cuh>
#include <kernels/spgemm/repeated_values.cuh>
#include <kernels/spgemm/small_policy.hpp>

/// Products whose rows are counted and added up straight from A and B: rows need no bounds, classes or lists, which
/// would take longer than the products themselves.
namespace rmsp::kernels::spgemm {

/// What is found of all rows. Zero at first.
struct DirectFound {
    unsigned long long products;
    long long nnz;
    int most;  ///< products of a row, or entries of A if those are more; counted up to one more than a row may have
};

/// Arrays of a count of rows.
class DirectCount {
public:
    /// None, and bytes() is 0, if they would take more than the limit, or if the device has no room.
    DirectCount(std::int64_t rows, std::int64_t tiles, std::int64_t limit, const Context& context)
    {
        Layout layout;
        layout.add<DirectFound>(1);
        const std::size_t at_tiles = layout.add<TileEntries>(tiles);
        const std::size_t at_rows = layout.add<std::int64_t>(rows + 1);
        if (limit > 0 && layout.bytes() > static_cast<std::size_t>(limit)) {
            return;
        }
        room_ = try_array<std::byte>(context, static_cast<std::int64_t>(layout.bytes()));
        cleared_ = at_rows;
        if (room_.size() > 0) {
            found = reinterpret_cast<DirectFound*>(room_.data());
            tile_entries = reinterpret_cast<TileEntries*>(room_.data() + at_tiles);
            row_ptr = reinterpret_cast<std::int64_t*>(room_.data() + at_rows);
        }
    }
    void clear(cudaStream_t stream) { RMSP_CUDA_CHECK(cudaMemsetAsync(room_.data(), 0, cleared_, stream)); }
    /// Waits for the stream.
    DirectFound read(cudaStream_t stream) const { return cuda::read(found, stream); }
    std::size_t bytes() const { return room_.size(); }

    DirectFound* found = nullptr;
    TileEntries* tile_entries = nullptr;
    std::int64_t* row_ptr = nullptr;

private:
    DeviceArray<std::byte> room_;
    std::size_t cleared_ = 0;
};

/// The operator. How rows are added up is the derived class's.
template <class T>
class DirectRows : public SpgemmOperator<T> {
public:
    DirectRows(const CsrShard<T>& a, const CsrShard<T>& b, const DirectFound& found, DirectCount count,
               std::int64_t workspace_limit)
        : a_{a.rows, a.cols, RowPtr(a.row_ptr), a.col_idx},
          b_{b.rows, b.cols, RowPtr(b.row_ptr), b.col_idx},
          a_nnz_(a.nnz),
          b_nnz_(b.nnz),
          found_(found),
          workspace_limit_(workspace_limit),
          count_(std::move(count))
    {
    }
    std::int64_t nnz() const final { return found_.nnz; }
    std::int64_t products() const final { return static_cast<std::int64_t>(found_.products); }
    const std::int64_t* row_ptr() const final { return count_.row_ptr; }
    std::int64_t workspace_bytes() const final { return static_cast<std::int64_t>(count_.bytes() + repeated_.bytes()); }
    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& context) final
    {
        if (nnz() > 0) {
            NumericJob<T> job = job_of(alpha, a_values, b_values, values);
            job.col_idx = col_idx;
            run(job, Work::sum, static_cast<cudaStream_t>(context.stream));
        }
    }
    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& context) final
    {
        if (nnz() == 0) {
            return;
        }
        const std::int64_t left =
            workspace_limit_ > 0 ? workspace_limit_ - workspace_bytes() : std::numeric_limits<std::int64_t>::max();
        repeated_.sum(
            job_of(alpha, a_values, b_values, values),
            {a_, b_, count_.row_ptr, col_idx, a_nnz_, b_nnz_, nnz(), products()},
            {.tiles = true,
             .places = true,
             .entries = lists() && worth_listing(products(), nnz(), found_.most, 1, Accumulator::automatic),
             .plain = entries_are_short(products(), found_.most)},
            left, context.compute_units,
            [&](const NumericJob<T>& job, Work work) { run(job, work, static_cast<cudaStream_t>(context.stream)); },
            context);
    }
    void finish(const Context& /*context*/) final { repeated_ = {}; }

protected:
    /// Values of C to job.values, and its columns to job.col_idx unless that is null; or the list of its products, if
    /// lists().
    virtual void run(const NumericJob<T>& job, Work work, cudaStream_t stream) const = 0;
    virtual bool lists() const = 0;

    Pattern a_;
    Pattern b_;

private:
    NumericJob<T> job_of(T alpha, const T* a_values, const T* b_values, T* values) const
    {
        return {.a = a_,
                .b = b_,
                .a_values = a_values,
                .b_values = b_values,
                .alpha = alpha,
                .row_ptr = count_.row_ptr,
                .values = values};
    }

    std::int64_t a_nnz_;
    std::int64_t b_nnz_;
    DirectFound found_;
    std::int64_t workspace_limit_;
    RepeatedValues<T> repeated_;
    DirectCount count_;
};

/// As the caller knows, or else the mean row of A times that of B.
template <class T>
ExpectedRows expected_rows(const CsrShard<T>& a, const CsrShard<T>& b, const SpgemmOptions& options)
{
    const std::int64_t rows_of_b = options.touched.end < 0 ? b.rows : options.touched_rows;
    const double products = options.known.all >= 0 ? static_cast<double>(options.known.all)
                                                   : static_cast<double>(a.nnz) * static_cast<double>(b.nnz) /
                                                         static_cast<double>(std::max<std::int64_t>(rows_of_b, 1));
    return {a.rows, b.cols, products, options.known.most};
}

}  // namespace rmsp::kernels::spgemm
