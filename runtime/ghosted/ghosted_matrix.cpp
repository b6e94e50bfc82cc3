#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/error.hpp>

#include "core/caller_array.hpp"
#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/ghosted/place_on_devices.hpp"
#include "runtime/ghosted/split_columns.hpp"
#include "runtime/matrix/distribute_like.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/sequence/sequence_state.hpp"

namespace rmsp {
namespace {

using detail::checked;
using detail::GhostedAccess;
using detail::GhostedEntries;
using detail::GhostedState;
using detail::MatrixAccess;
using detail::VectorAccess;
using ghosted::Split;
using ghosted::split_columns;

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

/// Room for what is exchanged, of the matrices that read and write it.
template <class T>
void make_room(GhostedState<T>& state, std::size_t sent, std::size_t ghosts, bool on_devices)
{
    const auto& runtime = MatrixAccess::state(state.own)->runtime;
    state.sent.count = sent;
    state.ghosts.count = ghosts;
    if (on_devices) {
        if (sent > 0) {
            state.sent.vector = VectorAccess::state(state.pick.make_y());
        }
        if (ghosts > 0) {
            state.ghosts.vector = VectorAccess::state(state.rest.make_x(Layout::rows));
        }
        return;
    }
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
    state.sent.data = all;
    state.ghosts.data = all + sent;
}

/// What products with some rows need: which they are, and a vector of them.
template <class T>
void list_rest_rows(GhostedState<T>& state, const std::vector<std::int64_t>& row_slices)
{
    const auto& rest = *MatrixAccess::state(state.rest);
    const std::vector<std::int64_t>& slices = distributed::x_side(rest, true).slices;
    state.of_rest_rows = state.rest.make_y();
    rest.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            std::vector<std::int32_t> list;
            for (std::int64_t i = slices[rank]; i < slices[rank + 1]; ++i) {
                list.push_back(
                    static_cast<std::int32_t>(state.rest_rows[static_cast<std::size_t>(i)] - row_slices[rank]));
            }
            auto& there = state.parts->parts[rank].rest_rows;
            there = kernels::DeviceArray<std::int32_t>(worker.device(), list.size());
            worker.device().upload(worker.stream(), there.data(), list.data(), list.size() * sizeof(std::int32_t));
            worker.stream().synchronize();
        })
        .get();
}

/// All but the own columns, cut where these are.
template <class T>
void distribute_rest(GhostedState<T>& state, const GhostedRows<T>& rows, Split<T>&& split)
{
    const auto& own = *MatrixAccess::state(state.own);
    const auto& row_slices = distributed::x_side(own, true).slices;
    const auto& column_slices = distributed::x_side(own, false).slices;
    const bool on_devices = rows.exchange->on_devices();
    state.nnz = rows.rows.nnz;
    state.first_row = rows.first_row;
    state.parts.emplace(own.runtime);
    std::vector<std::int64_t> first_rows = row_slices;  // of `rest`
    if (!split.rest_rows.empty()) {
        for (std::int64_t& row : first_rows) {
            row = std::lower_bound(split.rest_rows.begin(), split.rest_rows.end(), row) - split.rest_rows.begin();
        }
    }
    ghosted::Placed placed;
    if (on_devices) {
        placed = ghosted::place_on_devices(*rows.exchange, rows.sent, split, first_rows, column_slices);
        for (std::size_t device = 0; device < placed.copied.size(); ++device) {
            state.parts->parts[device].copied = placed.copied[device];
        }
        state.arrays.resize(state.parts->parts.size());
        state.ghost_of = std::move(placed.ghost_of);
    } else {
        placed.picked = rows.sent;
        placed.picked.insert(placed.picked.end(), split.copied.begin(), split.copied.end());
    }
    const std::vector<std::int64_t>& picked = placed.picked;
    const auto count = static_cast<std::int64_t>(picked.size());
    const bool same_bits = own.options.determinism == Determinism::device_count;
    if (split.rest.cols > 0) {
        state.rest = same_bits ? distribute_by_same_kernel(own, split.rest.view(), first_rows, placed.rest_slices)
                               : distributed::distribute_cut(own, split.rest.view(),
                                                             {first_rows, placed.rest_slices, own.plan.devices},
                                                             own.options.transposed);
    }
    if (count > 0) {
        std::vector<std::int64_t> row_ptr(picked.size() + 1);
        for (std::size_t i = 0; i < row_ptr.size(); ++i) {
            row_ptr[i] = static_cast<std::int64_t>(i);
        }
        const HostVector<T> ones(picked.size(), T{1});
        const CsrView<T> pick{count, rows.own_cols, count, row_ptr.data(), picked.data(), ones.data()};
        state.pick = distributed::distribute_cut(own, pick, {placed.pick_slices, column_slices, own.plan.devices},
                                                 own.options.transposed);
    }
    make_room(state, picked.size(), static_cast<std::size_t>(split.rest.cols), on_devices);
    state.rest_rows = std::move(split.rest_rows);
    if (!state.rest_rows.empty()) {
        list_rest_rows(state, row_slices);
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
        const bool speaks = worker.rank() == 0;
        try {
            state->queue(worker, meeting, alpha, x_state, beta, y_state, of_transpose);
            if (speaks) {
                state->outside->settle();
            }
        } catch (...) {
            if (speaks) {
                state->outside->settle_failed();
            }
            throw;
        }
    }));
}

}  // namespace

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
    return static_cast<std::int64_t>(state.ghosts.count - state.copied.size());
}

template <class T>
std::int64_t GhostedMatrix<T>::sent() const
{
    const auto& state = *GhostedAccess::state(*this);
    return static_cast<std::int64_t>(state.sent.count - state.copied.size());
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
