#include "runtime/multigrid/hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/clock.hpp"
#include "core/value_types.hpp"
#include "matrix/coarse_inverse.hpp"
#include "runtime/matrix/distribute_like.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/matrix/vector.hpp"
#include "runtime/multigrid/cycle.hpp"
#include "runtime/multigrid/options.hpp"
#include "runtime/multigrid/smoothing.hpp"
#include "runtime/sequence/sequence_state.hpp"
#include "runtime/spgemm/product.hpp"

namespace rmsp::multigrid {
namespace {

using detail::MatrixAccess;
using detail::MatrixState;

template <class T>
MatrixState<T>& state(const DistributedMatrix<T>& matrix)
{
    return *detail::checked(MatrixAccess::state(matrix));
}

/// Whether products of matrices take it.
template <class T>
bool is_factor(const MatrixState<T>& matrix)
{
    return matrix.options.mode == Mode::resident && matrix.plan.format == Format::csr &&
           matrix.options.values == StoredValues::exact;
}

}  // namespace

template <class T>
void append_product(Sequence& sequence, const Level<T>& level, const Vec<T>& x, const Vec<T>& y, T alpha, T beta)
{
    sequence.multiply(level.a, x, y, alpha, beta);
}

template <class T>
void append_restriction(Sequence& sequence, const Level<T>& level, const Vec<T>& residual, const Vec<T>& b)
{
    sequence.multiply(level.r, residual, b);
}

template <class T>
void append_prolongation(Sequence& sequence, const Level<T>& level, const Vec<T>& coarse, const Vec<T>& x, T beta)
{
    sequence.multiply(level.p, coarse, x, T{1}, beta);
}

namespace {

void add_seconds(std::vector<PhaseTimes>& phases, const std::string& name, double seconds)
{
    auto found =
        std::find_if(phases.begin(), phases.end(), [&](const PhaseTimes& times) { return times.name == name; });
    if (found == phases.end()) {
        found = phases.insert(found, {name, {0.0}, true});
    }
    found->seconds.front() += seconds;
}

}  // namespace

template <class T>
void Hierarchy<T>::note_steps(const char* phase, const std::vector<PhaseTimes>& steps)
{
    for (const PhaseTimes& step : steps) {
        if (!step.seconds.empty()) {
            add_seconds(report_.steps, fmt::format("{}/{}", phase, step.name),
                        *std::max_element(step.seconds.begin(), step.seconds.end()));
        }
    }
}

template <class T>
void Hierarchy<T>::note_products(const TripleProduct<T>& galerkin)
{
    note_steps("A P", detail::ProductAccess::inner(galerkin).phases());
    note_steps("R (A P)", galerkin.product().phases());
}

template <class T>
template <class F>
decltype(auto) Hierarchy<T>::timed(const char* phase, const F& f)
{
    const auto began = core::Clock::now();
    const auto add = [&] { add_seconds(report_.phases, phase, core::seconds_since(began)); };
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
        f();
        add();
    } else {
        auto result = f();
        add();
        return result;
    }
}

template <class T>
Hierarchy<T>::Hierarchy(const DistributedMatrix<T>& matrix, Method method, const MultigridOptions& options,
                        MakeSmoother<T> make_smoother)
    : method_(method), options_(options), make_smoother_(std::move(make_smoother))
{
    const auto began = core::Clock::now();
    check_options(method_, options_);
    if (method_ == Method::classical) {
        options_.unknowns = 1;
    } else if (options_.near_nullspace.empty()) {
        if (matrix.rows() % options_.unknowns != 0) {
            throw Error(ErrorCode::usage, fmt::format("multigrid of {} unknowns a node: the matrix has {} rows",
                                                      options_.unknowns, matrix.rows()));
        }
        near_nullspace_.host.count = options_.unknowns;
    } else {
        near_nullspace_.host.count = options_.near_null_vectors;
        near_nullspace_.host.values.assign(options_.near_nullspace.begin(), options_.near_nullspace.end());
    }
    levels_.emplace_back();
    levels_.back().a = matrix;
    if (!is_factor(state(matrix))) {
        source_ = matrix;
        levels_.back().a = distributed::distribute_like(state(matrix), download(matrix).view());
    }
    while (levels_.back().a.rows() > options_.coarse_rows && static_cast<int>(levels_.size()) < options_.levels &&
           coarsen(levels_.size() - 1)) {
    }
    finish();
    describe(core::seconds_since(began));
}

template <class T>
CsrMatrix<T> Hierarchy<T>::download(const DistributedMatrix<T>& matrix)
{
    return timed("download", [&] { return download_canonical(state(matrix)); });
}

/// False if the matrix is not for that way of making it. Where coarsening stalls, there is no P.
template <class T>
bool Hierarchy<T>::make(Transfer<T>& transfer, std::size_t number)
{
    const std::int64_t before = levels_[number].a.rows();
    timed("gather", [&] { transfer.read(); });
    const std::int64_t rows = timed("coarsen", [&] { return transfer.coarsen(near_nullspace_); });
    if (rows >= 0 && is_stalled(rows, before)) {
        stalled_ = fmt::format("coarsening stalled at level {}: of {} rows {} would be left", number, before, rows);
        return true;
    }
    return rows >= 0 && timed("interpolate", [&] { return transfer.interpolate(near_nullspace_); });
}

template <class T>
std::unique_ptr<Transfer<T>> Hierarchy<T>::make_transfer(std::size_t number)
{
    const auto& a = MatrixAccess::state(levels_[number].a);
    const Coarsener how = coarsener(method_, options_, near_nullspace_.host.count, number);
    try {
        auto transfer = device_transfer<T>(a, how);
        if (transfer && make(*transfer, number)) {
            return transfer;
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::out_of_memory) {
            throw;
        }
        made_on_host_ = fmt::format("P of level {} was made on the host: {}", number, e.what());
    }
    auto transfer = host_transfer<T>(a, how);
    make(*transfer, number);
    return transfer;
}

template <class T>
bool Hierarchy<T>::coarsen(std::size_t number)
{
    auto transfer = make_transfer(number);
    if (!stalled_.empty()) {
        return false;
    }
    Level<T>& level = levels_[number];
    level.transfer = std::move(transfer);
    const MatrixState<T>& fine = state(level.a);
    timed("distribute", [&] {
        // The cut of R's rows is that of all there is of the coarser level: on as many devices as pay, of those that
        // have rows here.
        const std::vector<std::int64_t>& fine_slices = distributed::x_side(fine, true).slices;
        plan::Stored<T> r = level.transfer->r();
        r.on_what_pays = true;
        level.r = distributed::distribute_cut(fine, r, {{}, fine_slices, fine.plan.devices == 1 ? 1 : 0, from_csr});
        if (state(level.r).plan.devices > fine.plan.devices) {
            level.r = distributed::distribute_cut(fine, r, {{}, fine_slices, fine.plan.devices, from_csr});
        }
        level.p = distributed::distribute_cut(
            fine, level.transfer->p(),
            {fine_slices, distributed::x_side(state(level.r), true).slices, fine.plan.devices, from_csr});
        level.transfer->keep_distributed();
    });
    note_steps("distribute R", state(level.r).record.setup);
    note_steps("distribute P", state(level.p).record.setup);
    level.galerkin.emplace(level.r, level.a, level.p);
    timed("galerkin", [&] { level.galerkin->compute(); });
    if (const TripleProduct<T>* const whole = level.galerkin->whole()) {
        note_products(*whole);
    }
    Level<T> next;
    timed("distribute", [&] {
        DistributeOptions options;
        options.devices = state(level.r).plan.devices;
        options.balance = Balance::nonzeros;
        options.determinism = fine.options.determinism;
        options.expected_applies = fine.options.expected_applies;
        next.a = level.galerkin->distribute(options, distributed::x_side(state(level.r), true).slices);
    });
    note_steps("distribute R A P", state(next.a).record.setup);
    levels_.push_back(std::move(next));
    return true;
}

template <class T>
void Hierarchy<T>::finish()
{
    const std::int64_t rows = levels_.back().a.rows();
    std::future<Inverse> inverse;
    if ((!stalled_.empty() || static_cast<int>(levels_.size()) >= options_.levels) &&
        rows > std::max(options_.coarse_rows, stalled_.empty() ? 0 : most_inverted)) {
        stalled_ += fmt::format("{}the last matrix has {} rows, and is smoothed, not inverted",
                                stalled_.empty() ? "" : "; ", rows);
    } else {
        near_nullspace_.download(*state(levels_.back().a).runtime, rows);
        if (near_nullspace_.constant()) {
            near_nullspace_.host = matrix::constants(rows, near_nullspace_.host.count);
        }
        inverse = invert_last();
    }
    timed("smoothers", [&] {
        if (varies()) {
            scalars_.emplace(detail::SequenceAccess::handle(std::make_shared<detail::ScalarsState>(
                state(levels_.front().a).runtime, 256, state(levels_.front().a).plan.devices)));
        }
        for (std::size_t i = 0; i < levels_.size(); ++i) {
            if (i + 1 < levels_.size() || !inverse.valid()) {
                make_vectors(i);
            }
        }
    });
    if (inverse.valid()) {
        timed("coarse inverse", [&] {
            Inverse found = inverse.get();
            inverse_note_ = std::move(found.note);
            Level<T>& last = levels_.back();
            inverse_ = distributed::distribute_like(state(last.a), found.matrix.view());
            if (levels_.size() > 1) {
                last.x.emplace(detail::VectorAccess::handle(
                    distributed::make_shared_x(state(last.a), state(levels_[levels_.size() - 2].p))));
                last.b.emplace(inverse_->make_x(Layout::rows));
            }
        });
    }
}

template <class T>
std::future<typename Hierarchy<T>::Inverse> Hierarchy<T>::invert_last()
{
    CsrMatrix<T> last = download(levels_.back().a);
    const double sign = timed("coarse inverse", [&] { return sign_before_last(); });
    return std::async([last = std::move(last), near = near_nullspace_.host, sign] {
        Inverse found;
        found.matrix = matrix::coarse_inverse(last.view(), near, sign, found.note);
        return found;
    });
}

/// Of the diagonal of the matrix from which the last one was made, as far as its entries agree; 0: there is none.
template <class T>
double Hierarchy<T>::sign_before_last() const
{
    if (levels_.size() < 2) {
        return 0;
    }
    const DistributedMatrix<T>& a = levels_[levels_.size() - 2].a;
    std::vector<T> diagonal(static_cast<std::size_t>(a.rows()));
    a.diagonal().download(diagonal.data());
    double sum = 0;
    for (const T entry : diagonal) {
        sum += static_cast<double>(entry > 0) - static_cast<double>(entry < 0);
    }
    return sum;
}

/// Of a level that is smoothed.
template <class T>
void Hierarchy<T>::make_vectors(std::size_t number)
{
    Level<T>& level = levels_[number];
    const bool last = number + 1 == levels_.size();
    if (number > 0) {
        const DistributedMatrix<T>& before = levels_[number - 1].p;
        level.x.emplace(detail::VectorAccess::handle(distributed::make_shared_x(state(level.a), state(before))));
        level.b.emplace(level.a.make_y());
    }
    level.smoother = make_smoother_(level.a);
    level.residual.emplace(last ? level.a.make_y() : level.r.make_x(Layout::rows));
    level.correction.emplace(level.a.make_y());
    if (varies() && number > 0 && number <= most_doubled) {
        make_krylov(level, level.a, *scalars_);
    }
}

template <class T>
void Hierarchy<T>::append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b)
{
    CycleOverLevels<T, Level<T>>(levels_, inverse_, options_.sweeps)
        .append(sequence, x, b, cycle_of(options_), scalars_);
}

template <class T>
void Hierarchy<T>::renew()
{
    const auto began = core::Clock::now();
    report_.phases.clear();
    report_.steps.clear();
    if (source_) {
        distributed::update_values(MatrixAccess::state(levels_.front().a), download(*source_).values.data());
    }
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
        Level<T>& level = levels_[i];
        if (!options_.keep_interpolation) {
            renew_transfer(level);
        }
        timed("galerkin", [&] { level.galerkin->renew(levels_[i + 1].a); });
    }
    std::future<Inverse> inverse;
    if (inverse_) {
        inverse = invert_last();
    }
    timed("smoothers", [&] {
        for (const Level<T>& level : levels_) {
            if (level.smoother) {
                level.smoother->renew();
            }
        }
    });
    if (inverse_) {
        timed("coarse inverse", [&] {
            Inverse found = inverse.get();
            inverse_note_ = std::move(found.note);
            distributed::update_values(MatrixAccess::state(*inverse_), found.matrix.values.data());
        });
    }
    describe(core::seconds_since(began));
}

template <class T>
void Hierarchy<T>::rebuild()
{
    *this = Hierarchy(source_ ? *source_ : levels_.front().a, method_, options_, make_smoother_);
}

template <class T>
void Hierarchy<T>::renew_transfer(Level<T>& level)
{
    Transfer<T>& transfer = *level.transfer;
    timed("gather", [&] { transfer.read(); });
    timed("interpolate", [&] { transfer.renew(MatrixAccess::state(level.p)); });
    timed("distribute", [&] { transfer.write(MatrixAccess::state(level.p), MatrixAccess::state(level.r)); });
}

template <class T>
void Hierarchy<T>::describe(double seconds)
{
    report_.seconds = seconds;
    report_.levels.clear();
    report_.notes.clear();
    report_.device_bytes = inverse_ ? distributed::device_bytes(*inverse_) : 0;
    report_.host_bytes = 0;
    if (source_) {
        report_.notes.emplace_back(
            "the matrix is not on the devices in CSR with exact values: multigrid has such a copy");
    }
    if (!stalled_.empty()) {
        report_.notes.push_back(stalled_);
    }
    if (!made_on_host_.empty()) {
        report_.notes.push_back(made_on_host_);
    }
    if (!inverse_note_.empty()) {
        report_.notes.push_back(inverse_note_);
    }
    for (std::size_t i = 0; i < levels_.size(); ++i) {
        const Level<T>& level = levels_[i];
        MultigridLevel row;
        row.rows = level.a.rows();
        row.nonzeros = level.a.nnz();
        row.devices = state(level.a).plan.devices;
        row.device_bytes = i > 0 || source_ ? distributed::device_bytes(level.a) : 0;
        if (i + 1 < levels_.size()) {
            row.interpolation_nonzeros = level.p.nnz();
            row.device_bytes += distributed::device_bytes(level.p) + distributed::device_bytes(level.r);
            row.device_bytes += level.galerkin->device_bytes() + level.transfer->device_bytes();
            report_.host_bytes += level.transfer->host_bytes();
            if (level.galerkin->slabs() > 0) {
                report_.notes.push_back(
                    fmt::format("R A P of level {} was computed in {} slabs of rows", i, level.galerkin->slabs()));
            }
        }
        report_.device_bytes += row.device_bytes;
        report_.levels.push_back(row);
        report_smoother(level, i == 0, report_);
    }
}

#define RMSP_INSTANTIATE(T) template class Hierarchy<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
