#include <rmsp/solver.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <kernels/steps/ghosts/ghosts.hpp>
#include <rmsp/error.hpp>

#include "core/caller_array.hpp"
#include "core/clock.hpp"
#include "runtime/matrix/caller_indices.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/vector.hpp"
#include "runtime/sequence/sequence_state.hpp"
#include "runtime/solvers/solver_state.hpp"

namespace rmsp {
namespace {

using core::Clock;
using core::seconds_since;
using detail::SolverState;

/// Nothing has ended a solve yet.
constexpr Outcome none{};

/// One solve: b and x are in the recipe's vectors.
template <class T>
class Solve {
public:
    explicit Solve(SolverState<T>& state) : s_(state), options_(state.options), began_(Clock::now()) {}

    SolveResult run()
    {
        SolveResult& result = result_;
        result.method = options_.method;
        // What is reached by a recurrence is checked; where the truth differs, the method begins again from there. So
        // do methods that have only lost the vectors that they project on, or replace theirs now and then since they
        // get lost.
        constexpr int most_restarts = 20;
        const SolverInfo& info = s_.method.info;
        const bool may_be_lost = (!info.symmetric && !info.definite && !info.rectangular) || info.turn > 1;
        for (double before = std::numeric_limits<double>::infinity();; ++result.restarts) {
            start();
            Outcome outcome = outcome_of(s_.scalars.outcome());
            if (outcome == none) {
                outcome = iterate();
            }
            // What forms x is done although the iteration has stopped.
            detail::SequenceAccess::state(s_.scalars)->write(kernels::scalar_stopped, {0.0});
            s_.recipe.finish.run();
            const double miss = true_miss();
            const bool lost = may_be_lost && outcome == Outcome::breakdown;
            result.outcome = lost && miss == 0 ? Outcome::converged : outcome;
            if ((outcome != Outcome::converged && !lost) || miss == 0) {
                break;
            }
            if (result.restarts == most_restarts || !(miss < 0.9 * before)) {
                result.outcome = !std::isfinite(result.true_residual)                     ? Outcome::not_finite
                                 : lost && (!info.definite || result.iterations == base_) ? Outcome::breakdown
                                                                                          : Outcome::stagnation;
                break;
            }
            before = miss;
        }
        if (!std::isfinite(result.true_residual) && result.outcome != Outcome::diverged) {
            result.outcome = Outcome::not_finite;
        }
        explain();
        for (const Sequence& step : s_.recipe.cycle) {
            result.iteration_bytes += static_cast<double>(step.bytes()) / static_cast<double>(s_.recipe.cycle.size());
        }
        if (s_.preconditioner && result.outcome != Outcome::cancelled) {
            s_.preconditioner->solved(result.iterations, result.converged());
        }
        result.seconds = seconds_since(began_);
        return std::move(result_);
    }

private:
    static Outcome outcome_of(int code) { return static_cast<Outcome>(code); }
    static double code_of(Outcome outcome) { return static_cast<double>(outcome); }

    void start()
    {
        // The residual before the first iteration is recorded as iteration 0.
        detail::SequenceAccess::state(s_.scalars)->send_new();
        detail::SequenceAccess::state(s_.scalars)->restart(-1.0);
        const bool first = result_.restarts == 0;
        s_.scalars.set(s_.recipe.limit(), first ? std::numeric_limits<double>::infinity() : limit_);
        s_.recipe.start.run();
        base_ = result_.iterations;
        seen_ = 0;
        result_.residual = s_.scalars.residual(0);
        if (first) {
            result_.rhs_norm = s_.scalars.get(s_.rhs_norm);
            result_.target = s_.scalars.get(s_.recipe.target());
            limit_ = options_.divergence * std::max(result_.residual, result_.target);
            s_.scalars.set(s_.recipe.limit(), limit_);
            if (options_.history) {
                result_.history.push_back(result_.residual);
            }
        }
        best_ = result_.residual;
        best_at_ = result_.iterations;
    }

    /// Queues iterations, some ahead of what is known of them, until a device or the host stops.
    Outcome iterate()
    {
        struct Block {
            std::future<void> done;
            std::int64_t iterations;
        };
        // The host needs a tenth of that to queue and to hear of a block; processes agree on each, which takes long
        // over a slow network.
        double block_seconds = s_.ghosted ? 2e-3 : 200e-6;
        double agreed_seconds = std::numeric_limits<double>::infinity();  // the least that it took
        constexpr std::int64_t most = std::min<std::int64_t>(kernels::ScalarProgress::kept / 4, 1024);
        std::deque<Block> ahead;
        std::int64_t queued = 0;
        std::int64_t completed = 0;
        std::int64_t block = 1;
        Clock::time_point last = Clock::now();
        Outcome ended = none;
        const std::int64_t left = options_.max_iterations - base_;
        while (true) {
            while (ended == none && ahead.size() < 2 && queued < left) {
                const std::int64_t count = std::min(block, left - queued);
                ahead.push_back({sequence::run_steps(s_.cycle, queued, count), count});
                queued += count;
            }
            if (ahead.empty()) {
                break;
            }
            ahead.front().done.get();
            const std::int64_t count = ahead.front().iterations;
            ahead.pop_front();
            const double took = seconds_since(last);
            last = Clock::now();
            block = std::clamp<std::int64_t>(
                static_cast<std::int64_t>(block_seconds * static_cast<double>(count) / std::max(took, 1e-9)), 1,
                std::min(most, 2 * block));
            completed += count;
            const Outcome found = look(completed);
            if (ended == none) {
                ended = found != none ? found : host_stop();
            }
            if (s_.ghosted) {
                // What clocks and callbacks say is the first process's: iterations, or less than that what ended them.
                const auto asked = Clock::now();
                const double said =
                    s_.ghosted->outside->of_first(ended == none ? static_cast<double>(block) : -code_of(ended));
                block = said > 0 ? static_cast<std::int64_t>(said) : block;
                ended = said > 0 ? none : outcome_of(static_cast<int>(-said));
                agreed_seconds = std::min(agreed_seconds, seconds_since(asked));
                block_seconds = std::max(2e-3, 10 * agreed_seconds);
            }
        }
        result_.iterations = base_ + s_.scalars.iterations();
        const Outcome stopped = outcome_of(s_.scalars.outcome());
        if (stopped != none) {
            return stopped;
        }
        return ended != none ? ended : Outcome::iterations;
    }

    /// Takes over what the devices have recorded of the completed iterations, as others may be under way; returns what
    /// stopped them.
    Outcome look(std::int64_t completed)
    {
        const std::int64_t recorded = std::min(s_.scalars.iterations(), completed);
        for (std::int64_t i = seen_ + 1; i <= recorded; ++i) {
            const double residual = s_.scalars.residual(i);
            result_.residual = residual;
            if (options_.history) {
                result_.history.push_back(residual);
            }
            if (residual < best_) {
                best_ = residual;
                best_at_ = base_ + i;
            }
        }
        seen_ = recorded;
        result_.iterations = base_ + recorded;
        return outcome_of(s_.scalars.outcome());
    }

    Outcome host_stop()
    {
        const double elapsed = seconds_since(began_);
        if (options_.callback && !options_.callback({result_.iterations, result_.residual, result_.target, elapsed})) {
            return Outcome::cancelled;
        }
        if (const JobOptions* const terms = JobScope::current(); terms != nullptr) {
            const bool stopped = terms->stop.stop_requested();
            if (stopped || Clock::now() >= terms->deadline) {
                ended_by_scope_ = true;
                return stopped ? Outcome::cancelled : Outcome::time;
            }
        }
        if (elapsed > options_.max_seconds) {
            return Outcome::time;
        }
        if (options_.stagnation_window > 0 && result_.iterations - best_at_ > options_.stagnation_window) {
            return Outcome::stagnation;
        }
        return {};
    }

    /// Computes the residual from x. Returns how far it is from what counts as converged: 0 if it is not.
    double true_miss()
    {
        // What a recurrence says may differ by as much from the truth.
        constexpr double slack = 1.01;
        const auto miss = [](double value, double target) { return value <= slack * target ? 0.0 : value / target; };
        s_.check.run();
        SolveResult& r = result_;
        r.true_residual = s_.scalars.get(s_.check_norm);
        const double missed = miss(r.true_residual, r.target);
        if (!s_.recipe.matrix_norm) {
            return missed;
        }
        r.normal_residual = s_.scalars.get(s_.check_normal);
        const double norm = s_.scalars.get(*s_.recipe.matrix_norm);
        return std::min(missed, miss(r.normal_residual, options_.normal_tolerance * norm * r.true_residual));
    }

    void explain()
    {
        SolveResult& r = result_;
        switch (r.outcome) {
            case Outcome::converged:
                break;
            case Outcome::iterations:
                r.reason = fmt::format("{} iterations were done; the residual is {:.3g}, {:.3g} was asked for",
                                       r.iterations, r.true_residual, r.target);
                break;
            case Outcome::time:
                r.reason = ended_by_scope_
                               ? fmt::format(
                                     "the deadline passed after {} iterations; the residual is "
                                     "{:.3g}, {:.3g} was asked for",
                                     r.iterations, r.true_residual, r.target)
                               : fmt::format(
                                     "{:.3g} s were over after {} iterations; the residual is {:.3g}, {:.3g} was "
                                     "asked for",
                                     options_.max_seconds, r.iterations, r.true_residual, r.target);
                break;
            case Outcome::stagnation:
                r.reason = fmt::format(
                    "the residual stays at {:.3g} where {:.3g} was asked for: that may be all that "
                    "the precision allows, or the method does not suit the matrix",
                    r.true_residual, r.target);
                break;
            case Outcome::breakdown:
                r.reason =
                    fmt::format("{} cannot go on after iteration {}: {}", options_.method, r.iterations,
                                s_.method.info.definite ? "the matrix, or the preconditioner, is not positive definite"
                                                        : "it would divide by zero");
                break;
            case Outcome::diverged:
                r.reason = fmt::format("the residual grew to {:.3g}, more than {:.3g} times the first one", r.residual,
                                       options_.divergence);
                break;
            case Outcome::not_finite:
                r.reason =
                    "the residual is not a finite number: look for NaN, infinities or very large entries in the "
                    "matrix, b, x and the preconditioner";
                break;
            case Outcome::cancelled:
                r.reason = ended_by_scope_ ? "a stop was requested" : "the callback cancelled";
                break;
        }
    }

    SolverState<T>& s_;
    const SolverOptions& options_;
    const Clock::time_point began_;
    SolveResult result_;
    double limit_ = 0;
    bool ended_by_scope_ = false;  ///< by the thread's JobScope
    std::int64_t base_ = 0;        ///< iterations before the last start
    std::int64_t seen_ = 0;        ///< recorded iterations since that have been looked at
    double best_ = 0;              ///< least residual, and after which iteration
    std::int64_t best_at_ = 0;
};

/// Copies entries between vectors that may be in different orders: by the matrix, and by its kernel.
template <class T>
void copy_entries(const std::shared_ptr<detail::VectorState<T>>& from,
                  const std::shared_ptr<detail::VectorState<T>>& to)
{
    if (from->runtime != to->runtime || from->size != to->size || from->offsets != to->offsets ||
        from->layout != Layout::rows) {
        throw Error(ErrorCode::usage,
                    "a vector of the solve is not sliced as the matrix's are; make b with make_y() and "
                    "x with make_x(Layout::rows)");
    }
    from->runtime
        ->submit([from, to](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const std::int64_t count = from->offsets[rank + 1] - from->offsets[rank];
            const auto order_of = [](const auto& v) { return v->order ? v->order->matrix.get() : nullptr; };
            if (order_of(from) == order_of(to)) {
                worker.stream().copy(to->slices[rank], from->slices[rank], static_cast<std::size_t>(count) * sizeof(T));
            } else if (to->order) {
                kernels::pack(from->slices[rank], to->order->rows.row, count, to->slices[rank], worker.context());
            } else {
                kernels::pack(from->slices[rank], from->order->rows.place, count, to->slices[rank], worker.context());
            }
        })
        .get();
}

}  // namespace

const char* to_string(Outcome outcome) noexcept
{
    switch (outcome) {
        case Outcome::converged:
            return "converged";
        case Outcome::iterations:
            return "iterations";
        case Outcome::time:
            return "time";
        case Outcome::stagnation:
            return "stagnation";
        case Outcome::breakdown:
            return "breakdown";
        case Outcome::diverged:
            return "diverged";
        case Outcome::not_finite:
            return "not finite";
        case Outcome::cancelled:
            return "cancelled";
    }
    return "unknown";
}

template <class T>
Solver<T>::Solver(const DistributedMatrix<T>& matrix, const SolverOptions& options,
                  std::shared_ptr<Preconditioner<T>> preconditioner)
{
    // b, x, the residual that is checked, and one more at least.
    constexpr std::int64_t fewest = 4;
    const auto& distributed_matrix = *detail::checked(detail::MatrixAccess::state(matrix));
    const std::int64_t basis = options.method == "gmres" ? std::clamp(options.restart, 0, 10000) : 0;
    const engine::Placing placing(
        distributed_matrix.runtime->admit("the solver", distributed::vector_bytes(distributed_matrix, fewest + basis)));
    solvers::Chosen chosen = solvers::choose_for(matrix, options, preconditioner);
    state_ = std::make_shared<detail::SharedSolver<T>>(
        std::make_unique<detail::SolverState<T>>(matrix, std::move(chosen.options), std::move(preconditioner)),
        std::move(chosen.choice));
}

template <class T>
Solver<T>::Solver(const GhostedMatrix<T>& matrix, const SolverOptions& options,
                  std::shared_ptr<Preconditioner<T>> preconditioner)
{
    const auto& ghosted = detail::GhostedAccess::state(matrix);
    std::lock_guard lock(ghosted->using_);
    solvers::Chosen chosen = solvers::choose_for(ghosted->own, options, preconditioner, ghosted.get());
    state_ = std::make_shared<detail::SharedSolver<T>>(
        std::make_unique<detail::SolverState<T>>(ghosted->own, std::move(chosen.options), std::move(preconditioner),
                                                 false, ghosted),
        std::move(chosen.choice));
}

template <class T>
SolveResult Solver<T>::solve(const T* b, T* x)
{
    const auto exchanging = state_->lock_ghosted();
    std::lock_guard lock(state_->solving);
    detail::SolverState<T>& s = state_->current();
    core::require_array("b", b, s.matrix.rows());
    core::require_array("x", x, s.matrix.cols());
    const auto began = Clock::now();
    s.recipe.b.vector().upload(b);
    s.recipe.x.vector().upload(x);
    const double uploaded = seconds_since(began);
    SolveResult result = Solve<T>(s).run();
    result.phases.push_back({"upload", {uploaded}, true});
    result.phases.push_back({"iterate", {result.seconds}, true});
    const double solved = seconds_since(began);
    s.recipe.x.vector().download(x);
    result.seconds = seconds_since(began);
    result.phases.push_back({"download", {result.seconds - solved}, true});
    return result;
}

template <class T>
SolveResult Solver<T>::solve(const T* b, T* x, StreamRef after)
{
    core::require_array("b", b, state_->current().matrix.rows());
    distributed::wait_for_caller("b", b, state_->current().matrix.rows(), after);
    return solve(b, x);
}

template <class T>
SolveResult Solver<T>::solve(const DistributedVector<T>& b, DistributedVector<T>& x)
{
    const auto exchanging = state_->lock_ghosted();
    const auto b_state = detail::checked(detail::VectorAccess::state(b));
    const auto x_state = detail::checked(detail::VectorAccess::state(x));
    std::lock_guard lock(state_->solving);
    detail::SolverState<T>& s = state_->current();
    const auto began = Clock::now();
    copy_entries(b_state, s.recipe.b.state());
    copy_entries(x_state, s.recipe.x.state());
    SolveResult result = Solve<T>(s).run();
    result.phases.push_back({"iterate", {result.seconds}, true});
    copy_entries(s.recipe.x.state(), x_state);
    result.seconds = seconds_since(began);
    return result;
}

template <class T>
void Solver<T>::renew()
{
    const auto exchanging = state_->lock_ghosted();
    std::lock_guard lock(state_->solving);
    if (const auto& preconditioner = state_->state->preconditioner) {
        preconditioner->renew();
    }
    state_->current().prepare();
}

template <class T>
const SolverOptions& Solver<T>::options() const
{
    return *state_->options;
}

template <class T>
const MethodChoice& Solver<T>::choice() const
{
    return state_->choice;
}

#define RMSP_INSTANTIATE(T) template class Solver<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
