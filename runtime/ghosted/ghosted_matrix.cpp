#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/error.hpp>

#include "core/caller_array.hpp"
#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/matrix/distribute_like.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/sequence/sequence_state.hpp"

namespace rmsp {
namespace {

using detail::checked;
using detail::GhostedAccess;
using detail::GhostedState;
using detail::MatrixAccess;
using detail::VectorAccess;
using distributed::Source;
using distributed::Target;

/// Own columns and those of ghosts, each with rows as they were.
template <class T>
struct Split {
    CsrMatrix<T> own;
    CsrMatrix<T> rest;
    std::vector<std::int64_t> in_rest;
    // Where rows with ghosts are whole, in `rest`:
    CsrMatrix<T> interior;
    std::vector<std::int64_t> copied;  ///< own columns of rows with ghosts
    std::vector<std::int64_t> outside_own;
};

/// The entries that are not in a list of them, which rises, or those that are, with columns numbered anew.
template <class T, class F>
CsrMatrix<T> some_entries(const CsrView<T>& a, const std::vector<std::int64_t>& list, bool listed, std::int64_t cols,
                          const F& number)
{
    const auto nnz = listed ? list.size() : static_cast<std::size_t>(a.nnz) - list.size();
    CsrMatrix<T> out{a.rows, cols, HostVector<std::int64_t>(static_cast<std::size_t>(a.rows) + 1),
                     IndexArray(index_type_for(cols), nnz), HostVector<T>(nnz)};
    a.col_idx.visit([&](const auto* columns) {
        out.col_idx.visit([&](auto& to) {
            using Index = typename std::decay_t<decltype(to)>::value_type;
            std::size_t next = 0;
            std::size_t at = 0;
            for (std::int64_t row = 0; row < a.rows; ++row) {
                out.row_ptr[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(at);
                for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                    const bool is_listed = next < list.size() && list[next] == i;
                    next += is_listed ? 1 : 0;
                    if (is_listed == listed) {
                        out.values[at] = a.values[i];
                        to[at++] = static_cast<Index>(number(columns[i]));
                    }
                }
            }
            out.row_ptr.back() = static_cast<std::int64_t>(at);
        });
    });
    return out;
}

/// \param whole_rows  rows with ghosts are not split: own columns that they touch have numbers behind the ghosts
template <class T>
Split<T> split_columns(const CsrView<T>& a, std::int64_t own_cols, bool whole_rows)
{
    const std::int64_t ghosts = a.cols - own_cols;
    Split<T> split;
    a.col_idx.visit([&](const auto* columns) {
        for (std::int64_t row = 0; row < a.rows; ++row) {
            const std::int64_t begin = a.row_ptr[row];
            const std::int64_t end = a.row_ptr[row + 1];
            const bool has_ghosts = whole_rows && std::any_of(columns + begin, columns + end,
                                                              [&](auto column) { return column >= own_cols; });
            for (std::int64_t i = begin; i < end; ++i) {
                if (columns[i] >= own_cols || has_ghosts) {
                    split.in_rest.push_back(i);
                }
                if (columns[i] >= own_cols && whole_rows) {
                    split.outside_own.push_back(i);
                }
                if (columns[i] < own_cols && has_ghosts) {
                    split.copied.push_back(columns[i]);
                }
            }
        }
    });
    std::sort(split.copied.begin(), split.copied.end());
    split.copied.erase(std::unique(split.copied.begin(), split.copied.end()), split.copied.end());
    const auto same = [](std::int64_t column) { return column; };
    split.own = some_entries(a, whole_rows ? split.outside_own : split.in_rest, false, own_cols, same);
    split.rest = some_entries(
        a, split.in_rest, true, ghosts + static_cast<std::int64_t>(split.copied.size()), [&](std::int64_t column) {
            return column >= own_cols ? column - own_cols
                                      : ghosts + (std::lower_bound(split.copied.begin(), split.copied.end(), column) -
                                                  split.copied.begin());
        });
    if (whole_rows) {
        split.interior = some_entries(a, split.in_rest, false, own_cols, same);
    }
    return split;
}

template <class T>
void check_rows(const GhostedRows<T>& rows, const DistributeOptions& options)
{
    validate(rows.rows);
    if (rows.own_cols < 0 || rows.own_cols > rows.rows.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} own columns of {}, own and ghosts", rows.own_cols, rows.rows.cols));
    }
    for (const std::int64_t column : rows.sent) {
        if (column < 0 || column >= rows.own_cols) {
            throw Error(ErrorCode::usage,
                        fmt::format("entry {} is to be sent; there are {} own columns", column, rows.own_cols));
        }
    }
    if (rows.first_row < 0) {
        throw Error(ErrorCode::usage, fmt::format("the first row has number {}", rows.first_row));
    }
    if (!rows.exchange || !rows.processes) {
        throw Error(ErrorCode::usage, "ghosted rows without an exchange, or without processes");
    }
    if (options.mode != Mode::resident || options.borrow || options.values != StoredValues::exact ||
        options.balance == Balance::time) {
        throw Error(ErrorCode::usage,
                    "rows with ghosts are resident, exact, copied and split by nonzeros: leave mode, borrow, values "
                    "and balance as they are");
    }
}

/// As distribute_cut(), by the kernel that the own columns were given, since each sums a row in its own way.
template <class T>
DistributedMatrix<T> distribute_by_same_kernel(const detail::MatrixState<T>& own, const CsrView<T>& m,
                                               const std::vector<std::int64_t>& row_slices,
                                               const std::vector<std::int64_t>& column_slices)
{
    plan::Stored<T> stored = plan::stored(m);
    stored.first_rows = row_slices;
    stored.column_slices = column_slices;
    DistributeOptions options = own.options;
    options.devices = own.plan.devices;
    return MatrixAccess::handle(distributed::distribute(own.runtime, stored, options));
}

/// Host memory for what is exchanged.
template <class T>
void make_room(GhostedState<T>& state, const std::shared_ptr<detail::RuntimeState>& runtime, std::size_t sent,
               std::size_t ghosts)
{
    state.parts.emplace(runtime);
    engine::PinnedBuffer& numbers = state.parts->parts.front().numbers;
    runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            if (worker.rank() == 0) {
                numbers = engine::PinnedBuffer(worker.device(), (sent + ghosts) * sizeof(T));
            }
        })
        .get();
    auto* const all = static_cast<T*>(numbers.data());
    std::fill_n(all, sent + ghosts, T{0});
    state.sent = {all, sent};
    state.ghosts = {all + sent, ghosts};
}

/// All but the own columns, cut where these are.
template <class T>
void distribute_rest(GhostedState<T>& state, const GhostedRows<T>& rows, Split<T>&& split)
{
    const auto& own = *MatrixAccess::state(state.own);
    const auto& row_slices = distributed::x_side(own, true).slices;
    const auto& column_slices = distributed::x_side(own, false).slices;
    state.nnz = rows.rows.nnz;
    state.first_row = rows.first_row;
    std::vector<std::int64_t> picked = rows.sent;
    picked.insert(picked.end(), split.copied.begin(), split.copied.end());
    make_room(state, own.runtime, picked.size(), static_cast<std::size_t>(split.rest.cols));
    const bool same_bits = own.options.determinism == Determinism::device_count;
    if (!state.ghosts.empty()) {
        state.rest = same_bits ? distribute_by_same_kernel(own, split.rest.view(), row_slices, {})
                               : distributed::distribute_cut(own, split.rest.view(), {row_slices, {}, own.plan.devices},
                                                             own.options.transposed);
    }
    if (!state.sent.empty()) {
        std::vector<std::int64_t> row_ptr(picked.size() + 1);
        for (std::size_t i = 0; i < row_ptr.size(); ++i) {
            row_ptr[i] = static_cast<std::int64_t>(i);
        }
        const HostVector<T> ones(picked.size(), T{1});
        const auto count = static_cast<std::int64_t>(picked.size());
        const CsrView<T> pick{count, rows.own_cols, count, row_ptr.data(), picked.data(), ones.data()};
        state.pick =
            distributed::distribute_cut(own, pick, {{}, column_slices, own.plan.devices}, own.options.transposed);
    }
    state.in_rest = std::move(split.in_rest);
    state.copied = std::move(split.copied);
    state.outside_own = std::move(split.outside_own);
    if (same_bits && !state.in_rest.empty()) {
        state.interior = distribute_by_same_kernel(own, split.interior.view(), row_slices, column_slices);
    }
    state.exchange = rows.exchange;
}

/// Serves until the job is done. \throws what it threw
void finish(const std::shared_ptr<sequence::Outside>& outside, std::future<void> job)
{
    outside->serve(job);
    job.get();
}

template <class T>
void multiply(const std::shared_ptr<GhostedState<T>>& state, T alpha, const DistributedVector<T>& x, T beta,
              DistributedVector<T>& y, bool of_transpose)
{
    const auto& own = MatrixAccess::state(state->own);
    const auto& x_state = checked(VectorAccess::state(x));
    const auto& y_state = checked(VectorAccess::state(y));
    std::lock_guard lock(state->using_);
    if (of_transpose) {
        state->prepare_transposed();
    }
    distributed::require_operands(own, of_transpose, x_state, y_state);
    finish(state->outside, own->runtime->submit([=](engine::Worker& worker, engine::Rendezvous& meeting) {
        state->queue(worker, meeting, alpha, x_state, beta, y_state, of_transpose);
    }));
}

}  // namespace

namespace detail {

template <class T>
void GhostedState<T>::prepare_transposed()
{
    distributed::prepare_apply(*MatrixAccess::state(multiplied()), true);
    if (!ghosts.empty()) {
        distributed::prepare_apply(*MatrixAccess::state(rest), true);
    }
    if (!sent.empty()) {
        distributed::prepare_apply(*MatrixAccess::state(pick), true);
    }
}

template <class T>
void GhostedState<T>::queue(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                            const std::shared_ptr<VectorState<T>>& x, T beta, const std::shared_ptr<VectorState<T>>& y,
                            bool of_transpose)
{
    // What goes out, from vectors and to vectors; with A^T those of the ghosts go out and are added where they belong.
    const std::span<T> out = of_transpose ? ghosts : sent;
    const std::span<T> in = of_transpose ? sent : ghosts;
    const auto& sender = MatrixAccess::state(of_transpose ? rest : pick);
    const auto& receiver = MatrixAccess::state(of_transpose ? pick : rest);
    const bool speaks = worker.rank() == 0;
    const auto begin_exchange = [&] {
        meeting.arrive_and_wait();
        if (!speaks) {
            return;
        }
        if (!out.empty()) {
            distributed::finish_host_y(*sender, out.data(), of_transpose);
        }
        std::copy_n(out.end() - static_cast<std::ptrdiff_t>(copied.size()), copied.size(),
                    in.end() - static_cast<std::ptrdiff_t>(copied.size()));
        outside->post([this, out, in, of_transpose] { exchange->begin(out.data(), in.data(), of_transpose); });
    };

    meeting.arrive_and_wait();
    if (!out.empty()) {
        distributed::apply_on(*sender, worker, meeting, of_transpose ? alpha : T{1}, Source<T>{nullptr, x}, T{0},
                              Target<T>{out.data(), nullptr}, nullptr, of_transpose);
    }
    // A GPU multiplies meanwhile; a host device has done what was queued, and would be late.
    const bool at_once = worker.device().shares_host_memory();
    std::unique_ptr<engine::Event>& gone = parts->parts[static_cast<std::size_t>(worker.rank())].gone;
    if (at_once) {
        worker.stream().synchronize();
        begin_exchange();
    } else {
        if (!gone) {
            gone = worker.device().make_event(false);
        }
        worker.stream().record(*gone);
    }
    distributed::apply_on(*MatrixAccess::state(multiplied()), worker, meeting, alpha, Source<T>{nullptr, x}, beta,
                          Target<T>{nullptr, y}, nullptr, of_transpose);
    if (!at_once) {
        gone->synchronize();
        begin_exchange();
    }
    if (speaks) {
        outside->ask([this] { exchange->end(); });
    }
    meeting.arrive_and_wait();
    if (!in.empty()) {
        distributed::apply_on(*receiver, worker, meeting, of_transpose ? T{1} : alpha, Source<T>{in.data(), nullptr},
                              T{1}, Target<T>{nullptr, y}, nullptr, of_transpose);
    }
    meeting.arrive_and_wait();
}

#define RMSP_INSTANTIATE(T) template struct GhostedState<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace detail

namespace ghosted {

template <class T>
void append(const std::shared_ptr<GhostedState<T>>& matrix, Sequence& sequence, const Vec<T>& x, const Vec<T>& y,
            T alpha, T beta, bool of_transpose)
{
    if (of_transpose) {
        matrix->prepare_transposed();
    }
    distributed::require_operands(MatrixAccess::state(matrix->own), of_transpose, x.state(), y.state());
    detail::SequenceAccess::state(sequence)->stages.push_back(
        std::make_unique<GhostedStage<T>>(matrix, x.state(), y.state(), alpha, beta, of_transpose));
}

}  // namespace ghosted

template <class T>
GhostedMatrix<T>::GhostedMatrix(Runtime& runtime, const GhostedRows<T>& rows, const DistributeOptions& options)
    : state_(std::make_shared<GhostedState<T>>())
{
    check_rows(rows, options);
    const bool same_bits = options.determinism == Determinism::device_count;
    Split<T> split = split_columns(rows.rows, rows.own_cols, same_bits);
    // Whole rows, so that the ghosts' part is cut where this one is.
    DistributeOptions whole = options;
    whole.alignment = RowAlignment::row;
    whole.balance = Balance::nonzeros;
    if (same_bits && whole.kernel == "auto") {
        // What suits the rows of a process depends on how many processes there are.
        whole.kernel =
            kernels::choose_spmv<T>(runtime.devices().front().kind, whole.kernel, whole.determinism, {}, 0).info.name;
    }
    state_->own = runtime.distribute(split.own.view(), whole);
    state_->outside = std::make_shared<sequence::Outside>(rows.processes);
    distribute_rest(*state_, rows, std::move(split));
}

template <class T>
GhostedMatrix<T> ghosted::distribute_beside(const GhostedState<T>& other, const GhostedRows<T>& rows,
                                            const distributed::Cut& cut, bool transposed)
{
    Split<T> split = split_columns(rows.rows, rows.own_cols,
                                   MatrixAccess::state(other.own)->options.determinism == Determinism::device_count);
    auto state = std::make_shared<GhostedState<T>>();
    state->own = distributed::distribute_cut(*MatrixAccess::state(other.own), split.own.view(), cut, transposed);
    state->outside = other.outside;
    distribute_rest(*state, rows, std::move(split));
    return GhostedAccess::handle(std::move(state));
}

template <class T>
const DistributedMatrix<T>& GhostedMatrix<T>::own() const
{
    return GhostedAccess::state(*this)->own;
}

template <class T>
std::int64_t GhostedMatrix<T>::ghosts() const
{
    const auto& state = *GhostedAccess::state(*this);
    return static_cast<std::int64_t>(state.ghosts.size() - state.copied.size());
}

template <class T>
std::int64_t GhostedMatrix<T>::sent() const
{
    const auto& state = *GhostedAccess::state(*this);
    return static_cast<std::int64_t>(state.sent.size() - state.copied.size());
}

template <class T>
void GhostedMatrix<T>::apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    multiply(GhostedAccess::state(*this), alpha, x, beta, y, false);
}

template <class T>
void GhostedMatrix<T>::apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    multiply(GhostedAccess::state(*this), alpha, x, beta, y, true);
}

template <class T>
void GhostedMatrix<T>::update_values(const T* values)
{
    GhostedState<T>& state = *GhostedAccess::state(*this);
    core::require_array("values", values, state.nnz);
    // The values that are listed, or those that are not.
    const auto some = [&](const std::vector<std::int64_t>& list, bool listed) {
        HostVector<T> out;
        out.reserve(listed ? list.size() : static_cast<std::size_t>(state.nnz) - list.size());
        std::size_t next = 0;
        for (std::int64_t i = 0; i < state.nnz; ++i) {
            const bool is_listed = next < list.size() && list[next] == i;
            next += is_listed ? 1 : 0;
            if (is_listed == listed) {
                out.push_back(values[i]);
            }
        }
        return out;
    };
    const bool whole_rows = MatrixAccess::state(state.interior) != nullptr;
    std::lock_guard lock(state.using_);
    state.own.update_values(some(whole_rows ? state.outside_own : state.in_rest, false).data());
    if (whole_rows) {
        state.interior.update_values(some(state.in_rest, false).data());
    }
    if (!state.ghosts.empty()) {
        state.rest.update_values(some(state.in_rest, true).data());
    }
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template class GhostedMatrix<T>;                                                                                   \
    template void ghosted::append(const std::shared_ptr<GhostedState<T>>&, Sequence&, const Vec<T>&, const Vec<T>&, T, \
                                  T, bool);                                                                            \
    template GhostedMatrix<T> ghosted::distribute_beside(const GhostedState<T>&, const GhostedRows<T>&,                \
                                                         const distributed::Cut&, bool);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
