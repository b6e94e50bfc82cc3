#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/spgemm/spgemm.hpp"

/// Factors that are on the devices, and products as matrices to multiply vectors with.
namespace rmsp {
namespace detail {
namespace {

/// \throws Error(usage) unless the devices have all of the matrix in CSR, with 32-bit columns and the values that were given
template <class T>
void check_factor(const MatrixState<T>& matrix, const char* name)
{
    const auto refuse = [&](const char* what) {
        throw Error(ErrorCode::usage, fmt::format("{} is a distributed matrix ({} x {}, {} nonzeros) {}", name,
                                                  matrix.plan.rows, matrix.plan.cols, matrix.plan.nnz, what));
    };
    if (matrix.mode != Mode::resident || matrix.plan.format != Format::csr) {
        refuse("that is streamed, or no CSR: factors of products are resident and in CSR");
    }
    if (matrix.options.values == StoredValues::floats) {
        refuse("whose values were rounded to floats");
    }
    if (matrix.plan.cols > std::numeric_limits<std::int32_t>::max()) {
        refuse("whose columns do not fit 32 bits");
    }
}

}  // namespace

template <class T>
std::unique_ptr<ResidentFactor<T>> ResidentFactor<T>::make(const RuntimeState& runtime, const SpgemmOperand<T>& operand,
                                                           const char* name)
{
    if (!operand.matrix_ && !operand.product_) {
        return nullptr;
    }
    const auto& owner = operand.matrix_ ? operand.matrix_->runtime : operand.product_->runtime;
    if (owner.get() != &runtime) {
        throw Error(ErrorCode::usage, fmt::format("{} is on the devices of another runtime", name));
    }
    std::unique_ptr<ResidentFactor> factor(new ResidentFactor(operand, name));
    factor->taken = factor->round();
    if (operand.matrix_) {
        factor->take(*operand.matrix_);
    } else {
        factor->take(*operand.product_);
    }
    return factor;
}

template <class T>
ResidentFactor<T>::ResidentFactor(const SpgemmOperand<T>& operand, const char* name) : operand_(operand), name_(name)
{
    if (operand_.product_) {
        ++operand_.product_->borrowers;
    }
}

template <class T>
ResidentFactor<T>::~ResidentFactor()
{
    if (operand_.product_) {
        --operand_.product_->borrowers;
    }
}

template <class T>
void ResidentFactor<T>::take(MatrixState<T>& matrix)
{
    check_factor(matrix, name_);
    rows_ = matrix.plan.rows;
    cols_ = matrix.plan.cols;
    matrix_rows_ = FactorRows<T>::of(matrix);
    first_rows = matrix_rows_->first_rows;
    slices = matrix_rows_->slices;
    parts = matrix_rows_->parts;
}

template <class T>
void ResidentFactor<T>::take(const ProductState<T>& product)
{
    rows_ = product.plan.rows;
    cols_ = product.plan.cols;
    if (product.plan.chunked()) {
        return;
    }
    std::int64_t entries = 0;
    for (const auto& part : product.parts) {
        first_rows.push_back(part->first_row);
        slices.push_back(entries);
        parts.push_back({IndexView(part->product->row_ptr()), part->col_idx.data(), part->values.data()});
        entries += part->product->nnz();
    }
    first_rows.push_back(rows_);
    slices.push_back(entries);
}

template <class T>
std::int64_t ResidentFactor<T>::round() const
{
    if (operand_.matrix_) {
        return operand_.matrix_->round;
    }
    if (!operand_.product_->computed) {
        throw Error(ErrorCode::usage, fmt::format("{} is a product that has no values now: compute it first", name_));
    }
    return operand_.product_->round;
}

template <class T>
void ResidentFactor<T>::refresh(engine::Worker& worker, engine::Rendezvous& meeting)
{
    if (matrix_rows_) {
        matrix_rows_->refresh(worker, meeting);
    }
}

template <class T>
CsrView<T> ResidentFactor<T>::view() const
{
    CsrView<T> view{rows_, cols_, 0, IndexView(host_.row_ptr.data()), {}, nullptr};
    view.nnz = host_.row_ptr.empty() ? 0 : host_.row_ptr.back();
    if (host_.col_idx.size() > 0) {
        view.col_idx = host_.view().col_idx;
    }
    if (!host_.values.empty()) {
        view.values = host_.values.data();
    }
    return view;
}

template <class T>
void ResidentFactor<T>::bring_structure(RuntimeState& runtime, bool columns)
{
    if (!in_place()) {
        bring_all(runtime);
    } else {
        bring(runtime, columns, false);
    }
}

template <class T>
void ResidentFactor<T>::bring_all(RuntimeState& runtime)
{
    if (!in_place()) {
        host_ = download_c(*operand_.product_);
    } else {
        bring(runtime, true, true);
    }
}

template <class T>
void ResidentFactor<T>::bring(RuntimeState& runtime, bool columns, bool values)
{
    const auto nnz = static_cast<std::size_t>(slices.back());
    host_.rows = rows_;
    host_.cols = cols_;
    host_.row_ptr.resize(static_cast<std::size_t>(rows_) + 1);
    host_.row_ptr[0] = 0;
    HostVector<std::int32_t> col_idx(columns ? nnz : 0);
    host_.values.resize(values ? nnz : 0);
    runtime
        .submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                if (values) {
                    refresh(worker, meeting);
                }
                const auto rank = static_cast<std::size_t>(worker.rank());
                const FactorPart<T>& part = parts[rank];
                const std::int64_t first_row = first_rows[rank];
                const std::int64_t rows = first_rows[rank + 1] - first_row;
                const std::int64_t first = slices[rank];
                const auto entries = static_cast<std::size_t>(slices[rank + 1] - first);
                engine::Device& device = worker.device();
                if (columns && entries > 0) {
                    device.download(worker.stream(), col_idx.data() + first, part.col_idx,
                                    entries * sizeof(std::int32_t));
                }
                if (values && entries > 0) {
                    device.download(worker.stream(), host_.values.data() + first, part.values, entries * sizeof(T));
                }
                if (rows > 0) {
                    part.row_ptr.visit([&](const auto* p) {
                        HostVector<std::remove_cvref_t<decltype(*p)>> local(static_cast<std::size_t>(rows) + 1);
                        device.download(worker.stream(), local.data(), p, local.size() * sizeof(*p));
                        worker.stream().synchronize();
                        for (std::int64_t i = 1; i <= rows; ++i) {
                            host_.row_ptr[static_cast<std::size_t>(first_row + i)] =
                                first + local[static_cast<std::size_t>(i)];
                        }
                    });
                }
                worker.stream().synchronize();
            },
            {}, true)
        .get();
    host_.col_idx = std::move(col_idx);
}

namespace {

/// Values of a product, from its devices to those of a matrix that was made of it.
template <class T>
class ValuesOfProduct final : public ResidentValues<T> {
public:
    ValuesOfProduct(RuntimeState& runtime, const ResidentFactor<T>& product) : runtime_(runtime), product_(product) {}
    ~ValuesOfProduct() override { close(); }
    ValuesOfProduct(const ValuesOfProduct&) = delete;
    ValuesOfProduct& operator=(const ValuesOfProduct&) = delete;

    void split(const Partition& partition) override
    {
        close();
        exchange_ = std::make_shared<EntryExchange>();
        exchange_->slices = product_.slices;
        exchange_->values.copies.resize(partition.parts.size());
        for (std::size_t rank = 0; rank < partition.parts.size(); ++rank) {
            const PartialCsr& part = partition.parts[rank];
            exchange_->needed.push_back({part.start_idx, part.end_idx});
            exchange_->values.held.push_back(entry_zero(product_.parts[rank].values, product_.slices[rank]));
        }
        connect(runtime_, exchange_transport(runtime_, {}), sizeof(T), *exchange_);
    }
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) override
    {
        const auto rank = static_cast<std::size_t>(worker.rank());
        exchange_->values.copies[rank] = entry_zero(to, exchange_->needed[rank].first);
        meeting.arrive_and_wait();
        gather_held<T>(worker, meeting, *exchange_, exchange_->values);
    }

private:
    void close() noexcept
    {
        for (int rank = 0; exchange_ && exchange_->channel && rank < runtime_.devices(); ++rank) {
            runtime_.release(rank, [exchange = exchange_, rank] { exchange->channel->close(rank); });
        }
        exchange_.reset();
    }

    RuntimeState& runtime_;
    const ResidentFactor<T>& product_;
    std::shared_ptr<EntryExchange> exchange_;
};

/// C of a product that is on the devices and has values.
template <class T>
std::unique_ptr<ResidentFactor<T>> c_on_devices(const std::shared_ptr<ProductState<T>>& state,
                                                const SparseProduct<T>& product)
{
    auto c = ResidentFactor<T>::make(*checked(state).runtime, product, "C");
    if (!c->in_place()) {
        throw Error(ErrorCode::usage,
                    "C was computed in runs of rows, which are on the host: distribute what download() returns");
    }
    return c;
}

}  // namespace

template class ResidentFactor<float>;
template class ResidentFactor<double>;

}  // namespace detail

template <class T>
SpgemmOperand<T>::SpgemmOperand(const DistributedMatrix<T>& matrix)
    : matrix_(detail::checked(detail::MatrixAccess::state(matrix)))
{
}

template <class T>
SpgemmOperand<T>::SpgemmOperand(const SparseProduct<T>& product) : product_(product.state_)
{
    detail::checked(product_);
}

template <class T>
std::int64_t SpgemmOperand<T>::rows() const
{
    return matrix_ ? matrix_->plan.rows : product_ ? product_->plan.rows : view_.rows;
}

template <class T>
std::int64_t SpgemmOperand<T>::cols() const
{
    return matrix_ ? matrix_->plan.cols : product_ ? product_->plan.cols : view_.cols;
}

template <class T>
DistributedMatrix<T> SparseProduct<T>::distribute(const DistributeOptions& options) const
{
    detail::RuntimeState& runtime = *detail::checked(state_).runtime;
    runtime.require_live();
    if (options.mode == Mode::streamed || options.borrow || options.values == StoredValues::floats ||
        options.alignment == RowAlignment::exact) {
        throw Error(ErrorCode::usage,
                    "a product becomes a matrix in the devices' memory, of exact values and whole rows: not streamed, "
                    "borrowed, rounded or cut within rows");
    }
    const auto c = detail::c_on_devices(state_, *this);
    c->bring_structure(runtime, true);
    detail::ValuesOfProduct<T> values(runtime, *c);
    DistributeOptions whole_rows = options;
    whole_rows.alignment = RowAlignment::row;
    detail::Stored<T> stored = detail::stored(c->view());
    stored.resident = &values;
    return detail::MatrixAccess::handle(detail::distribute(state_->runtime, stored, whole_rows));
}

template <class T>
void SparseProduct<T>::renew(DistributedMatrix<T>& matrix) const
{
    const auto& to = detail::MatrixAccess::state(matrix);
    const auto c = detail::c_on_devices(state_, *this);
    const SpgemmPlan& from = state_->plan;
    if (!to || to->runtime != state_->runtime || to->mode != Mode::resident || to->plan.format != Format::csr ||
        to->plan.rows != from.rows || to->plan.cols != from.cols || to->plan.nnz != from.c_nnz || to->any_carry ||
        to->options.borrow || to->options.values == StoredValues::floats) {
        throw Error(ErrorCode::usage,
                    fmt::format("only a matrix that distribute() made of this product takes its values ({} x {}, {} "
                                "nonzeros)",
                                from.rows, from.cols, from.c_nnz));
    }
    detail::ValuesOfProduct<T> values(*state_->runtime, *c);
    values.split(to->plan.partition);
    detail::update_values<T>(to, nullptr, &values);
}

#define RMSP_INSTANTIATE(T)                                                                     \
    template class SpgemmOperand<T>;                                                            \
    template DistributedMatrix<T> SparseProduct<T>::distribute(const DistributeOptions&) const; \
    template void SparseProduct<T>::renew(DistributedMatrix<T>&) const;
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
