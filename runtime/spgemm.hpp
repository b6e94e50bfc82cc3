#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/spgemm.hpp>

#include "runtime/state.hpp"

/// Behind SparseProduct.
namespace rmsp::detail {

/// What a row of C costs besides its products, in products.
inline constexpr std::int64_t spgemm_row_work = 8;

/// work[i]: products of the rows of A before row i, plus spgemm_row_work for each of them. rows + 1 entries; cutting them evenly
/// balances the devices.
/// \throws Error(usage) if the products do not fit 64 bits
template <class T>
HostVector<std::int64_t> count_work(const CsrView<T>& a, const CsrView<T>& b);

inline std::int64_t products_of(const HostVector<std::int64_t>& work, std::int64_t first_row, std::int64_t end_row)
{
    return work[static_cast<std::size_t>(end_row)] - work[static_cast<std::size_t>(first_row)] -
           spgemm_row_work * (end_row - first_row);
}

/// Consecutive rows of a matrix that were selected.
struct RowRun {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::int64_t nnz_before = 0;  ///< entries of the runs before
    bool operator==(const RowRun&) const = default;
};

/// Some rows of a matrix, in order. The device that gets them keeps the matrix's row numbers: the others are empty there.
struct RowSelection {
    std::vector<RowRun> runs;
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
};

/// The rows of B that the rows [first_row, end_row) of A touch; all rows between the first and the last of them where hardly more
/// entries are sent that way.
template <class T>
RowSelection select_rows(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row, const CsrView<T>& b,
                         int threads);

/// Where the entries of rows [first_row, end_row) of A are among the selected ones of B, or -1: A and B are one matrix, and all
/// these rows were selected.
template <class T>
std::int64_t position_in_b(const CsrView<T>& a, const CsrView<T>& b, std::int64_t first_row, std::int64_t end_row,
                           const RowSelection& b_rows);

/// Device memory under a limit, with the most that was held at once.
class MemoryBudget final : public kernels::Memory {
public:
    MemoryBudget(std::unique_ptr<kernels::Memory> memory, std::int64_t limit)
        : memory_(std::move(memory)), limit_(limit)
    {
    }
    /// \throws Error(out_of_memory) beyond the limit, or as the device says
    void* allocate(std::size_t bytes) override;
    void deallocate(void* p, std::size_t bytes) noexcept override;

    std::int64_t limit() const noexcept { return limit_; }
    std::int64_t peak() const noexcept { return peak_; }
    /// What is left, at least 1; 0 without a limit.
    std::int64_t left() const noexcept { return limit_ == 0 ? 0 : std::max<std::int64_t>(limit_ - used_, 1); }

private:
    std::unique_ptr<kernels::Memory> memory_;
    std::int64_t limit_;
    std::int64_t used_ = 0;
    std::int64_t peak_ = 0;
};

/// Rows of a matrix in the memory of a device.
template <class T>
struct DeviceRows {
    kernels::DeviceArray<std::byte> row_ptr;
    kernels::DeviceArray<std::int32_t> col_idx;
    kernels::DeviceArray<T> values;
    kernels::CsrShard<T> shard;  ///< of the arrays above, or of another matrix's columns and values
};

/// Rows of C that went to the host.
template <class T>
struct HostRows {
    std::int64_t first_row = 0;
    HostVector<std::int64_t> row_ptr;  ///< from 0
    HostVector<std::int32_t> col_idx;
    HostVector<T> values;
};

/// One device's part of a product. Made, used and freed on the device's worker.
template <class T>
struct ProductPart {
    ProductPart(std::unique_ptr<kernels::Memory> memory, std::int64_t limit) : budget(std::move(memory), limit) {}

    MemoryBudget budget;
    std::int64_t first_row = 0;
    std::int64_t end_row = 0;
    RowSelection b_rows;
    DeviceRows<T> a;
    DeviceRows<T> b;
    std::unique_ptr<kernels::SpgemmOperator<T>> product;
    kernels::DeviceArray<std::int32_t> col_idx;  ///< of C
    kernels::DeviceArray<T> values;
    bool columns_known = false;       ///< col_idx is filled
    std::vector<HostRows<T>> chunks;  ///< instead, where the part is computed in runs
};

template <class T>
struct ProductState {
    ~ProductState();

    std::shared_ptr<RuntimeState> runtime;
    CsrView<T> a;  ///< the caller's; read after construction by chunked parts only
    CsrView<T> b;
    SpgemmOptions options;
    SpgemmPlan plan;
    HostVector<std::int64_t> work;
    std::vector<std::unique_ptr<ProductPart<T>>> parts;
    std::vector<PhaseTimes> phases;
    bool computed = false;
};

/// Counts, cuts and estimates; touches no device. `limits` are of each device's memory, 0 where there is none; `selections`, if not
/// null, gets the rows of B for each device.
template <class T>
SpgemmPlan make_spgemm_plan(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                            const SpgemmOptions& options, const std::vector<std::int64_t>& limits,
                            HostVector<std::int64_t>& work, std::vector<RowSelection>* selections);

/// options.memory_limit for a device with so many bytes free (0: unknown).
std::int64_t spgemm_limit(const SpgemmOptions& options, std::int64_t free_bytes);

}  // namespace rmsp::detail
