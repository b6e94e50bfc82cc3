#include "runtime/spgemm/matrix_factor.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/steps/support/support.hpp>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::spgemm {

/// The rows of a distributed matrix as products take them: whole, in columns of the matrix's own numbers. A device
/// whose shard is different keeps a copy: of its columns if they were numbered anew, of all its entries if its last row
/// goes on on other devices. Products share it. Its owner keeps the matrix.
template <class T>
class FactorRows {
public:
    /// The matrix's; made if there are none. Blocks.
    static std::shared_ptr<FactorRows> of(MatrixState<T>& matrix);
    ~FactorRows();
    FactorRows(const FactorRows&) = delete;
    FactorRows& operator=(const FactorRows&) = delete;

    /// Queues what gives copied values those that the matrix has now. Every worker of the job calls it.
    void refresh(engine::Worker& worker, engine::Rendezvous& meeting);

    std::vector<std::int64_t> first_rows;  ///< of each device, and the rows at the end
    std::vector<std::int64_t> slices;      ///< entries before those of each device, and all at the end
    std::vector<FactorPart<T>> parts;      ///< of each device
    /// The matrix's when these rows were made: they may have been made for another product, before newer values.
    std::int64_t round;

private:
    struct Copy {
        kernels::DeviceArray<std::int64_t> row_ptr;
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<std::int32_t> carry_col_idx;  ///< of the row that began on a device before, for that
        kernels::DeviceArray<T> values;
    };

    explicit FactorRows(MatrixState<T>& matrix);
    void make(engine::Worker& worker, engine::Rendezvous& meeting);

    MatrixState<T>& matrix_;
    std::vector<std::unique_ptr<Copy>> copies_;  ///< of each device
    engine::Tasks room_;                         ///< to free them
    std::shared_ptr<EntryExchange> exchange_;    ///< of what rows lack; null: they are whole
};

template <class T>
std::shared_ptr<FactorRows<T>> FactorRows<T>::of(MatrixState<T>& matrix)
{
    std::lock_guard lock(matrix.on_demand.making);
    auto rows = matrix.on_demand.factor_rows.lock();
    if (!rows) {
        rows.reset(new FactorRows(matrix));
        if (rows->exchange_) {
            RuntimeState& runtime = *matrix.runtime;
            rows->exchange_->channel = entry_channel(runtime, exchange_transport(runtime, {}));
        }
        matrix.runtime
            ->submit([&](engine::Worker& worker, engine::Rendezvous& meeting) { rows->make(worker, meeting); })
            .get();
        matrix.on_demand.factor_rows = rows;
    }
    return rows;
}

template <class T>
FactorRows<T>::FactorRows(MatrixState<T>& matrix)
    : slices(matrix.shards.size() + 1),
      parts(matrix.shards.size()),
      round(matrix.round),
      matrix_(matrix),
      copies_(matrix.shards.size()),
      room_(matrix.shards.size())
{
    const std::size_t devices = matrix.shards.size();
    for (const auto& shard : matrix.shards) {
        first_rows.push_back(shard->part.first_owned_row());
    }
    first_rows.push_back(matrix.plan.rows);
    slices[devices] = matrix.plan.nnz;
    for (std::size_t i = devices; i-- > 0;) {
        const distributed::Shard<T>& shard = *matrix.shards[i];
        slices[i] = shard.part.owned_rows() > 0 ? shard.part.start_idx + shard.carry_nnz : slices[i + 1];
    }
    if (!plan::shares_rows(matrix.plan.partition)) {
        return;
    }
    exchange_ = std::make_shared<EntryExchange>();
    for (std::size_t i = 0; i < devices; ++i) {
        const PartialCsr& part = matrix.shards[i]->part;
        exchange_->slices.push_back(part.start_idx);
        exchange_->needed.push_back(part.owned_rows() > 0 ? transport::Range{part.end_idx, slices[i + 1]}
                                                          : transport::Range{});
    }
    exchange_->slices.push_back(matrix.plan.nnz);
    for (EntryExchange::Places* places : {&exchange_->col_idx, &exchange_->values}) {
        places->copies.resize(devices);
        places->held.resize(devices);
    }
}

template <class T>
FactorRows<T>::~FactorRows()
{
    for (std::size_t rank = 0; rank < copies_.size(); ++rank) {
        matrix_.runtime->release(static_cast<int>(rank), room_, [copy = copies_[rank].release()] { delete copy; });
    }
}

template <class T>
void FactorRows<T>::make(engine::Worker& worker, engine::Rendezvous& meeting)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const distributed::Shard<T>& shard = *matrix_.shards[rank];
    engine::Device& device = worker.device();
    kernels::Memory& memory = *worker.context().memory;
    const std::int64_t rows = shard.owned.rows;
    const std::int64_t has = shard.owned.nnz;
    const std::int64_t entries = slices[rank + 1] - slices[rank];
    const distributed::RowProduct<T>& held_rows = *distributed::row_product(matrix_);
    const bool renumbered = held_rows.by_entries() || matrix_.plan.shards[rank].index_base != 0;
    copies_[rank] = std::make_unique<Copy>();
    Copy& copy = *copies_[rank];
    FactorPart<T>& part = parts[rank];
    part = {shard.owned.row_ptr, shard.owned.col_idx, shard.owned.values};
    if (renumbered || has < entries) {
        copy.col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(entries));
        part.col_idx = copy.col_idx.data();
    }
    if (renumbered) {
        held_rows.restore_columns(worker, shard.owned.col_idx, has, copy.col_idx.data());
    } else if (has < entries) {
        worker.stream().copy(copy.col_idx.data(), shard.owned.col_idx,
                             static_cast<std::size_t>(has) * sizeof(std::int32_t));
    }
    if (has < entries) {
        copy.row_ptr = kernels::DeviceArray<std::int64_t>(memory, static_cast<std::size_t>(rows) + 1);
        kernels::localize_row_ptr(shard.owned.row_ptr, rows, 0, has, copy.row_ptr.data(), worker.context());
        device.upload(worker.stream(), copy.row_ptr.data() + rows, &entries, sizeof entries);
        part.row_ptr = IndexView(copy.row_ptr.data());
        copy.values = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(entries));
        part.values = copy.values.data();
    }
    if (exchange_) {
        const std::int32_t* carry = shard.carry.col_idx;
        if (renumbered && shard.carry_nnz > 0) {
            copy.carry_col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(shard.carry_nnz));
            held_rows.restore_columns(worker, carry, shard.carry_nnz, copy.carry_col_idx.data());
            carry = copy.carry_col_idx.data();
        }
        const std::int64_t first = shard.part.start_idx;
        exchange_->col_idx.held[rank] = entry_zero(carry, first);
        exchange_->values.held[rank] = entry_zero(shard.carry.values, first);
        exchange_->col_idx.copies[rank] = entry_zero(copy.col_idx.data(), slices[rank]);
        exchange_->values.copies[rank] = entry_zero(copy.values.data(), slices[rank]);
        meeting.arrive_and_wait();
        gather_held<std::int32_t>(worker, meeting, *exchange_, exchange_->col_idx);
        refresh(worker, meeting);
    }
    worker.stream().synchronize();
}

template <class T>
void FactorRows<T>::refresh(engine::Worker& worker, engine::Rendezvous& meeting)
{
    if (!exchange_) {
        return;
    }
    const auto rank = static_cast<std::size_t>(worker.rank());
    const kernels::CsrShard<T>& owned = matrix_.shards[rank]->owned;
    if (copies_[rank]->values.size() > 0) {
        worker.stream().copy(copies_[rank]->values.data(), owned.values,
                             static_cast<std::size_t>(owned.nnz) * sizeof(T));
    }
    gather_held<T>(worker, meeting, *exchange_, exchange_->values);
}

namespace {

/// \throws Error(usage) unless the devices have all of the matrix in CSR, with 32-bit columns and the values that were
/// given
template <class T>
void check_factor(const MatrixState<T>& matrix, const char* name)
{
    const auto refuse = [&](const char* what) {
        throw Error(ErrorCode::usage, fmt::format("{} is a distributed matrix ({} x {}, {} nonzeros) {}", name,
                                                  matrix.plan.rows, matrix.plan.cols, matrix.plan.nnz, what));
    };
    if (matrix.options.mode != Mode::resident || matrix.plan.format != Format::csr) {
        refuse("that is streamed, or no CSR: factors of products are resident and in CSR");
    }
    if (matrix.options.values == StoredValues::floats) {
        refuse("whose values were rounded to floats");
    }
    if (matrix.plan.cols > std::numeric_limits<std::int32_t>::max()) {
        refuse("whose columns do not fit 32 bits");
    }
}

template <class T>
class MatrixFactor final : public ResidentFactor<T> {
public:
    explicit MatrixFactor(const std::shared_ptr<MatrixState<T>>& matrix)
        : ResidentFactor<T>(matrix->plan.rows, matrix->plan.cols), matrix_(matrix)
    {
        rows_ = FactorRows<T>::of(*matrix);
        this->taken = rows_->round;
        this->first_rows = rows_->first_rows;
        this->slices = rows_->slices;
        this->parts = rows_->parts;
    }
    std::int64_t round() const override { return matrix_->round; }
    /// Borrowed values may be written without a word.
    bool unchanged() const override { return !matrix_->options.borrow && ResidentFactor<T>::unchanged(); }
    std::vector<transport::Range> touched_columns() const override
    {
        std::vector<transport::Range> touched;
        if (!plan::shares_rows(matrix_->plan.partition)) {
            for (const ShardPlan& shard : matrix_->plan.shards) {
                touched.push_back({shard.first_column, shard.end_column});
            }
        }
        return touched;
    }
    void refresh(engine::Worker& worker, engine::Rendezvous& meeting) override { rows_->refresh(worker, meeting); }

private:
    std::shared_ptr<MatrixState<T>> matrix_;
    std::shared_ptr<FactorRows<T>> rows_;
};

}  // namespace

template <class T>
std::unique_ptr<ResidentFactor<T>> matrix_factor(const RuntimeState& runtime,
                                                 const std::shared_ptr<MatrixState<T>>& matrix, const char* name)
{
    check_runtime(*matrix->runtime, runtime, name);
    check_factor(*matrix, name);
    return std::make_unique<MatrixFactor<T>>(matrix);
}

#define RMSP_INSTANTIATE(T)                                                        \
    template std::unique_ptr<ResidentFactor<T>> matrix_factor(const RuntimeState&, \
                                                              const std::shared_ptr<MatrixState<T>>&, const char*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
