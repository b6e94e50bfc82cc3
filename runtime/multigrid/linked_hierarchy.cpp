#include "runtime/multigrid/linked_hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/error.hpp>

#include "core/clock.hpp"
#include "core/value_types.hpp"
#include "matrix/coarse_inverse.hpp"
#include "runtime/matrix/distribute_like.hpp"
#include "runtime/matrix/download.hpp"
#include "runtime/matrix/vector.hpp"
#include "runtime/multigrid/cycle.hpp"
#include "runtime/multigrid/options.hpp"
#include "runtime/multigrid/smoothing.hpp"
#include "runtime/sequence/sequence_state.hpp"

namespace rmsp::multigrid {
namespace {

using detail::GhostedAccess;
using detail::MatrixAccess;

/// Rows that a process has at least; where there are fewer, some of the processes have them all: what a small level
/// costs is messages.
constexpr std::int64_t least_rows = 512;

template <class T>
const MatrixState<T>& own_state(const GhostedMatrix<T>& matrix)
{
    return *MatrixAccess::state(matrix.own());
}

template <class T>
const std::vector<std::int64_t>& row_slices(const GhostedMatrix<T>& matrix)
{
    return distributed::x_side(own_state(matrix), true).slices;
}

/// What GhostedRows says of messages.
template <class T>
GhostedRows<T> ghosted_rows(const Links& links, const CsrMatrix<T>& rows, std::int64_t own_cols, const Known& known)
{
    GhostedRows<T> out;
    out.rows = rows.view();
    out.own_cols = own_cols;
    out.sent = known.sent;
    out.exchange = links.processes()->exchange(known.receives, known.sends, sizeof(T));
    out.processes = links.processes();
    return out;
}

template <class T>
std::int64_t device_bytes(const GhostedMatrix<T>& matrix)
{
    const auto& state = *GhostedAccess::state(matrix);
    std::int64_t bytes = 0;
    for (const auto* const part : {&state.own, &state.rest, &state.pick}) {
        bytes += MatrixAccess::state(*part) ? distributed::device_bytes(*part) : 0;
    }
    return bytes;
}

}  // namespace

template <class T>
LinkedHierarchy<T>::LinkedHierarchy(const GhostedMatrix<T>& matrix, const GhostedNumbers& numbers,
                                    std::shared_ptr<LinkedProcesses> processes, Method method,
                                    const MultigridOptions& options, MakeSmoother<T> make_smoother)
    : links_(std::move(processes)),
      numbers_(numbers),
      method_(method),
      options_(options),
      make_smoother_(std::move(make_smoother))
{
    const auto began = core::Clock::now();
    check_options(method_, options_);
    if (own_state(matrix).options.determinism == Determinism::device_count) {
        throw Error(ErrorCode::usage,
                    "multigrid over several processes does not keep determinism \"device_count\": products with the "
                    "transpose of P, and R A P, add what processes have in their order");
    }
    if (method_ == Method::classical) {
        options_.unknowns = 1;
    }
    levels_.emplace_back();
    levels_.back().a = matrix;
    levels_.back().first_rows = numbers.first_rows;
    begin_near_nullspace();
    WholeColumns<T> rows = download_first();
    levels_.back().nonzeros = std::llround(links_.total(static_cast<double>(rows.columns.size())));
    const auto last_rows = [&] { return levels_.back().first_rows.back(); };
    while (last_rows() > options_.coarse_rows && static_cast<int>(levels_.size()) < options_.levels && coarsen(rows)) {
    }
    if (last_rows() > std::max(options_.coarse_rows, stalled_.empty() ? 0 : most_inverted)) {
        stalled_ += fmt::format("{}the last matrix has {} rows, and is smoothed, not inverted",
                                stalled_.empty() ? "" : "; ", last_rows());
        smooth(levels_.back(), rows);
    } else {
        gather(rows);
        inverse_ = distributed::distribute_like(own_state(levels_.back().a), inverse_of(rows).view());
    }
    make_vectors();
    describe(core::seconds_since(began));
}

template <class T>
void LinkedHierarchy<T>::begin_near_nullspace()
{
    const std::vector<std::int64_t>& first_rows = levels_.front().first_rows;
    if (method_ == Method::classical) {
        return;
    }
    for (const std::int64_t first : first_rows) {
        if (first % options_.unknowns != 0) {
            throw Error(ErrorCode::usage, fmt::format("multigrid of {} unknowns a node: a process has rows up to {}, "
                                                      "which cuts a node",
                                                      options_.unknowns, first));
        }
    }
    const bool given = links_.total(options_.near_nullspace.empty() ? 0 : 1) > 0;
    near_.count = given ? options_.near_null_vectors : options_.unknowns;
    if (given) {
        near_.values.assign(options_.near_nullspace.begin(), options_.near_nullspace.end());
        const std::int64_t own = first_rows[links_.rank() + 1] - first_rows[links_.rank()];
        if (near_.count < 1 || static_cast<std::int64_t>(near_.values.size()) != own * near_.count) {
            throw Error(ErrorCode::usage, fmt::format("a near-nullspace of {} numbers, {} vectors: the process has {} "
                                                      "rows",
                                                      near_.values.size(), near_.count, own));
        }
    }
}

/// The values that the devices have, columns rising in each row, each once.
template <class T>
WholeColumns<T> LinkedHierarchy<T>::download_first() const
{
    const auto& state = *GhostedAccess::state(levels_.front().a);
    const CsrMatrix<T> own = distributed::download_matrix(*MatrixAccess::state(state.own));
    const CsrMatrix<T> rest =
        state.ghosts.empty() ? CsrMatrix<T>{} : distributed::download_matrix(*MatrixAccess::state(state.rest));
    const std::int64_t first = numbers_.first_rows[links_.rank()];
    WholeColumns<T> rows;
    std::vector<std::pair<std::int64_t, T>> row;
    std::size_t next = 0;  // row of the ghosts' part
    for (std::size_t i = 0; i < static_cast<std::size_t>(own.rows); ++i) {
        row.clear();
        for (std::int64_t k = own.row_ptr[i]; k < own.row_ptr[i + 1]; ++k) {
            row.emplace_back(first + own.col_idx[k], own.values[static_cast<std::size_t>(k)]);
        }
        if (next < static_cast<std::size_t>(rest.rows) &&
            (state.rest_rows.empty() || state.rest_rows[next] == static_cast<std::int64_t>(i))) {
            for (std::int64_t k = rest.row_ptr[next]; k < rest.row_ptr[next + 1]; ++k) {
                const auto column = static_cast<std::size_t>(rest.col_idx[k]);
                const auto ghost = state.ghost_of.empty() ? column : static_cast<std::size_t>(state.ghost_of[column]);
                row.emplace_back(numbers_.ghosts[ghost], rest.values[static_cast<std::size_t>(k)]);
            }
            ++next;
        }
        std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t k = 0; k < row.size(); ++k) {
            if (k > 0 && row[k].first == row[k - 1].first) {
                rows.values.back() += row[k].second;
            } else {
                rows.add(row[k].first, row[k].second);
            }
        }
        rows.close();
    }
    return rows;
}

/// Where coarse rows are: with the rows that they stand for, but no process has few.
template <class T>
std::vector<std::int64_t> LinkedHierarchy<T>::on_fewer(const std::vector<std::int64_t>& first_rows) const
{
    std::vector<std::size_t> having;
    for (std::size_t p = 0; p + 1 < first_rows.size(); ++p) {
        if (first_rows[p] < first_rows[p + 1]) {
            having.push_back(p);
        }
    }
    const std::int64_t rows = first_rows.back();
    const auto most = rows <= options_.coarse_rows ? std::int64_t{1} : std::max<std::int64_t>(1, rows / least_rows);
    std::size_t groups = having.size();
    while (static_cast<std::int64_t>(groups) > most) {
        groups = (groups + 1) / 2;
    }
    std::vector<std::int64_t> counts(first_rows.size() - 1);
    for (std::size_t i = 0; i < having.size(); ++i) {
        // The first of those whose group it is.
        const std::size_t group = i * groups / having.size();
        const std::size_t leader = (group * having.size() + groups - 1) / groups;
        counts[having[leader]] += first_rows[having[i] + 1] - first_rows[having[i]];
    }
    std::vector<std::int64_t> out{0};
    for (const std::int64_t count : counts) {
        out.push_back(out.back() + count);
    }
    return out;
}

template <class T>
bool LinkedHierarchy<T>::coarsen(WholeColumns<T>& rows)
{
    const LinkedLevel<T>& fine = levels_.back();
    const std::size_t number = levels_.size() - 1;
    std::unique_ptr<LinkedTransfer<T>> transfer =
        linked_transfer(links_, fine.first_rows, rows, near_, coarsener(method_, options_, near_.count, number));
    const std::int64_t coarse = transfer->first_rows.back();
    if (is_stalled(coarse, fine.first_rows.back())) {
        stalled_ = fmt::format("coarsening stalled at level {}: of {} rows {} would be left", number,
                               fine.first_rows.back(), coarse);
        return false;
    }
    std::vector<std::int64_t> first_rows = on_fewer(transfer->first_rows);
    if (method_ == Method::aggregation) {
        // To where the coarse rows go.
        std::vector<std::vector<double>> to(links_.size());
        const std::int64_t first = transfer->first_rows[links_.rank()];
        if (first < transfer->first_rows[links_.rank() + 1]) {
            const auto owner = std::upper_bound(first_rows.begin(), first_rows.end(), first) - first_rows.begin() - 1;
            to[static_cast<std::size_t>(owner)].assign(transfer->near.values.begin(), transfer->near.values.end());
        }
        near_.values.clear();
        for (const std::vector<double>& came : links_.bring(to)) {
            near_.values.insert(near_.values.end(), came.begin(), came.end());
        }
    }
    smooth(levels_.back(), rows);
    const std::size_t fine_number = levels_.size() - 1;
    add_level(rows, transfer->p, std::move(first_rows));
    levels_[fine_number].transfer = std::move(transfer);
    return true;
}

/// Brings the last level to one process, if it is on several.
template <class T>
void LinkedHierarchy<T>::gather(WholeColumns<T>& rows)
{
    LinkedLevel<T>& last = levels_.back();
    const std::vector<std::int64_t>& first_rows = last.first_rows;
    const auto having = [&](std::size_t p) { return first_rows[p] < first_rows[p + 1]; };
    std::size_t count = 0;
    std::size_t first = links_.size() - 1;
    for (std::size_t p = links_.size(); p-- > 0;) {
        count += having(p) ? 1 : 0;
        first = having(p) ? p : first;
    }
    if (count < 2) {
        return;
    }
    last.gathers = true;
    std::vector<std::int64_t> on_one(first_rows.size());
    std::fill(on_one.begin() + static_cast<std::ptrdiff_t>(first) + 1, on_one.end(), first_rows.back());
    if (method_ == Method::aggregation && links_.total(near_.values.empty() ? 0 : 1) > 0) {
        std::vector<std::vector<double>> to(links_.size());
        to[first].assign(near_.values.begin(), near_.values.end());
        near_.values.clear();
        for (const std::vector<double>& came : links_.bring(to)) {
            near_.values.insert(near_.values.end(), came.begin(), came.end());
        }
    }
    add_level(rows, identity(last), std::move(on_one));
}

template <class T>
WholeColumns<T> LinkedHierarchy<T>::identity(const LinkedLevel<T>& level) const
{
    WholeColumns<T> identity;
    for (std::int64_t row = level.first_rows[links_.rank()]; row < level.first_rows[links_.rank() + 1]; ++row) {
        identity.add(row, T{1});
        identity.close();
    }
    return identity;
}

template <class T>
void LinkedHierarchy<T>::find_sign(const LinkedLevel<T>& level, const WholeColumns<T>& rows)
{
    const std::int64_t first = level.first_rows[links_.rank()];
    double sign = 0;
    for (std::int64_t row = 0; row < rows.rows(); ++row) {
        for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
            const T value = rows.values[static_cast<std::size_t>(k)];
            sign += rows.columns[static_cast<std::size_t>(k)] == first + row
                        ? static_cast<double>(value > 0) - static_cast<double>(value < 0)
                        : 0.0;
        }
    }
    sign_ = links_.total(sign);
}

template <class T>
std::unique_ptr<LinkedGalerkin<T>> LinkedHierarchy<T>::make_galerkin(
    const LinkedLevel<T>& level, const WholeColumns<T>& rows, const WholeColumns<T>& p,
    const std::vector<std::int64_t>& coarse_first_rows) const
{
    const auto& state = own_state(level.a);
    return std::make_unique<LinkedGalerkin<T>>(links_, state.runtime, level.first_rows, coarse_first_rows, rows, p,
                                               state.options.determinism);
}

/// Of a P whose rows are here, columns being those of the whole; `rows` become those of the new level.
template <class T>
void LinkedHierarchy<T>::add_level(WholeColumns<T>& rows, const WholeColumns<T>& p,
                                   std::vector<std::int64_t> first_rows)
{
    LinkedLevel<T>& fine = levels_.back();
    const std::int64_t first = fine.first_rows[links_.rank()];
    find_sign(fine, rows);
    fine.p_nonzeros = std::llround(links_.total(static_cast<double>(p.columns.size())));
    WholeColumns<T> coarse = make_galerkin(fine, rows, p, first_rows)->coarse();
    LinkedLevel<T> next;
    next.a = distribute(coarse, first_rows);
    next.nonzeros = std::llround(links_.total(static_cast<double>(coarse.columns.size())));
    next.first_rows = std::move(first_rows);

    const std::int64_t coarse_first = next.first_rows[links_.rank()];
    const std::int64_t own_cols = next.first_rows[links_.rank() + 1] - coarse_first;
    const Known of_p = ask(links_, next.first_rows, others(p, coarse_first, coarse_first + own_cols));
    const CsrMatrix<T> local = numbered(p, coarse_first, own_cols, of_p.numbers);
    GhostedRows<T> ghosted = ghosted_rows(links_, local, own_cols, of_p);
    ghosted.first_row = first;
    fine.p = ghosted::distribute_beside(
        *GhostedAccess::state(fine.a), ghosted,
        {row_slices(fine.a), row_slices(next.a), own_state(fine.a).plan.devices, from_csr}, true);
    levels_.push_back(std::move(next));
    rows = std::move(coarse);
}

template <class T>
GhostedMatrix<T> LinkedHierarchy<T>::distribute(const WholeColumns<T>& rows,
                                                const std::vector<std::int64_t>& first_rows) const
{
    const std::int64_t first = first_rows[links_.rank()];
    const Known known = ask(links_, first_rows, others(rows, first, first + rows.rows()));
    const CsrMatrix<T> local = numbered(rows, first, rows.rows(), known.numbers);
    GhostedRows<T> ghosted = ghosted_rows(links_, local, rows.rows(), known);
    ghosted.first_row = first;
    const auto& finest = *GhostedAccess::state(levels_.front().a);
    const int most = MatrixAccess::state(finest.own)->plan.devices;
    // On as many devices as pay, of those that have rows of the first level, whose sums count.
    GhostedMatrix<T> matrix = ghosted::distribute_beside(finest, ghosted, {{}, {}, most == 1 ? 1 : 0});
    return own_state(matrix).plan.devices > most ? ghosted::distribute_beside(finest, ghosted, {{}, {}, most}) : matrix;
}

/// Of the last level's own rows, which one process has.
template <class T>
CsrMatrix<T> LinkedHierarchy<T>::inverse_of(const WholeColumns<T>& rows)
{
    CsrMatrix<T> last = numbered(rows, levels_.back().first_rows[links_.rank()], rows.rows(), {});
    if (near_.values.empty()) {
        near_ = matrix::constants(last.rows, near_.count);
    }
    return last.rows > 0 ? matrix::coarse_inverse(last.view(), near_, sign_, inverse_note_) : std::move(last);
}

/// Smoothers see the own rows and columns. What couples them to others is added to the diagonal, with its sign, so that
/// what is smoothed by is no less than the matrix: methods that converge for each process then do for all.
template <class T>
CsrMatrix<T> LinkedHierarchy<T>::smoothed_part(const LinkedLevel<T>& level, const WholeColumns<T>& rows) const
{
    const bool diagonal_only = options_.smoother == "l1-jacobi";
    const std::int64_t first = level.first_rows[links_.rank()];
    CsrMatrix<T> own;
    own.rows = own.cols = rows.rows();
    own.row_ptr.push_back(0);
    HostVector<std::int64_t> columns;
    for (std::int64_t row = 0; row < rows.rows(); ++row) {
        double outside = 0;
        double diagonal = 0;
        bool has_diagonal = false;
        for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
            const std::int64_t column = rows.columns[static_cast<std::size_t>(k)] - first;
            const auto value = static_cast<double>(rows.values[static_cast<std::size_t>(k)]);
            has_diagonal = has_diagonal || column == row;
            diagonal = column == row ? value : diagonal;
            outside += column != row && (diagonal_only || column < 0 || column >= rows.rows()) ? std::fabs(value) : 0.0;
        }
        for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
            const std::int64_t column = rows.columns[static_cast<std::size_t>(k)] - first;
            if (column == row) {
                columns.push_back(column);
                own.values.push_back(static_cast<T>(diagonal + std::copysign(outside, diagonal)));
            } else if (!diagonal_only && column >= 0 && column < rows.rows()) {
                columns.push_back(column);
                own.values.push_back(rows.values[static_cast<std::size_t>(k)]);
            }
        }
        if (!has_diagonal && diagonal_only) {
            columns.push_back(row);
            own.values.push_back(static_cast<T>(outside));
        }
        own.row_ptr.push_back(static_cast<std::int64_t>(own.values.size()));
    }
    own.col_idx = std::move(columns);
    return own;
}

template <class T>
void LinkedHierarchy<T>::smooth(LinkedLevel<T>& level, const WholeColumns<T>& rows)
{
    level.smoothed = distributed::distribute_like(own_state(level.a), smoothed_part(level, rows).view());
    level.smoother = make_smoother_(level.smoothed);
}

template <class T>
void LinkedHierarchy<T>::make_vectors()
{
    if (varies()) {
        const auto& finest = own_state(levels_.front().a);
        auto bank = std::make_shared<detail::ScalarsState>(finest.runtime, 256, finest.plan.devices);
        bank->outside = GhostedAccess::state(levels_.front().a)->outside;
        scalars_.emplace(detail::SequenceAccess::handle(std::move(bank)));
    }
    for (std::size_t i = 0; i < levels_.size(); ++i) {
        LinkedLevel<T>& level = levels_[i];
        const DistributedMatrix<T>& own = level.a.own();
        if (i > 0) {
            // P^T also leaves sums of rows that other devices of the process have.
            for (std::optional<Vec<T>>* const vector : {&level.x, &level.b}) {
                vector->emplace(detail::VectorAccess::handle(
                    distributed::make_shared_x(own_state(level.a), own_state(levels_[i - 1].p))));
            }
        }
        if (level.smoother) {
            level.residual.emplace(own.make_y());
            level.correction.emplace(own.make_y());
        }
        if (varies() && i > 0 && i <= most_doubled && level.smoother) {
            make_krylov(level, own, *scalars_);
        }
    }
}

template <class T>
void LinkedHierarchy<T>::describe(double seconds)
{
    report_.seconds = seconds;
    report_.levels.clear();
    report_.notes.clear();
    report_.host_bytes = 0;
    report_.device_bytes = inverse_ ? distributed::device_bytes(*inverse_) : 0;
    std::vector<std::int64_t> processes;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
        const LinkedLevel<T>& level = levels_[i];
        MultigridLevel row;
        row.rows = level.first_rows.back();
        row.nonzeros = level.nonzeros;
        row.interpolation_nonzeros = level.p_nonzeros;
        row.devices = own_state(level.a).plan.devices;
        row.device_bytes = i > 0 ? device_bytes(level.a) : 0;
        row.device_bytes += i + 1 < levels_.size() ? device_bytes(level.p) : 0;
        report_.device_bytes += row.device_bytes;
        report_.host_bytes += level.transfer ? level.transfer->host_bytes() : 0;
        report_.host_bytes += level.galerkin ? level.galerkin->host_bytes() : 0;
        report_.levels.push_back(row);
        std::int64_t having = 0;
        for (std::size_t p = 0; p + 1 < level.first_rows.size(); ++p) {
            having += level.first_rows[p] < level.first_rows[p + 1] ? 1 : 0;
        }
        processes.push_back(having);
        report_smoother(level, i == 0, report_);
    }
    report_.notes.push_back(
        fmt::format("of {} processes so many have rows of the levels: {}", links_.size(), fmt::join(processes, ", ")));
    for (const std::string& note : {stalled_, inverse_note_}) {
        if (!note.empty()) {
            report_.notes.push_back(note);
        }
    }
}

#define RMSP_INSTANTIATE(T) template class LinkedHierarchy<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
