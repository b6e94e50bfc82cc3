#include "runtime/matrix/prepare_kernel.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/value_types.hpp"
#include "runtime/plan/rank_kernels.hpp"
#include "runtime/plan/streamed_kernels.hpp"

namespace rmsp::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// Fewer applies do not repay that a second kernel is made ready.
constexpr std::int64_t least_raced_applies = 100;
// Products that a GPU is predicted to do in less are not raced: 6 us start any, so that kernels differ by less than
// their times scatter, and the formats of those that lose cost some sixty products.
constexpr double least_raced_seconds = 7e-6;
// A kernel that is predicted to take longer than this, in times of the best, is not raced.
constexpr double most_predicted_ratio = 1.5;
// Nor are more than cost this share of the expected applies if they lose: their preparation, and the applies that they
// run.
constexpr double most_race_share = 0.125;
// Nor is one whose format takes more than this share of the memory that is still free: until the race is decided,
// vectors and other matrices need some as well.
constexpr double most_memory_share = 0.25;
// Runners that together hold more than this share of it are not kept until applies have decided the race, which may be
// long after other matrices wanted the memory: it is run at once.
constexpr double most_held_share = 1.0 / 32;
// A host device's team of threads takes as long to wake as one of them to multiply so many nonzeros, a row counted as
// four. It sleeps unless a call has just ended.
constexpr std::int64_t least_shared = 65536;
// As many for kernels with a format of their own, which are faster.
constexpr std::int64_t least_shared_in_format = 131072;
// A team that is awake shares less, but so many for each thread: to begin and end together takes a microsecond.
constexpr std::int64_t least_of_a_thread = 8192;

/// What it costs that a candidate is made ready and raced, if it loses.
template <class T>
double cost_of_racing(const KernelCandidate& challenger)
{
    return challenger.prepare_seconds + Race<T>::first_applies * challenger.predicted_seconds;
}

/// Brings the first candidate from number `next` on whose chance to win is worth what it costs to that place; false:
/// there is none. \param room  bytes that one may allocate; 0: not known
template <class T>
bool bring_challenger(std::vector<KernelCandidate>& candidates, std::size_t next, double left_to_spend,
                      std::int64_t room)
{
    const double most_bytes = room > 0 ? most_memory_share * static_cast<double>(room) : HUGE_VAL;
    const double favourite = candidates.front().predicted_seconds;
    const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(next);
    const auto found = std::find_if(begin, candidates.end(), [&](const KernelCandidate& c) {
        return c.predicted_seconds < most_predicted_ratio * favourite && cost_of_racing<T>(c) <= left_to_spend &&
               (!c.own_format || c.bytes <= most_bytes);
    });
    if (found == candidates.end()) {
        return false;
    }
    std::rotate(begin, found, found + 1);
    return true;
}

template <class T>
void decide_if_large(Race<T>& race, const Shard<T>& shard, engine::Worker& worker)
{
    const std::int64_t room = worker.device().room();
    if (room > 0 && static_cast<double>(race.workspace_bytes()) > most_held_share * static_cast<double>(room)) {
        try {
            race.decide_now(shard.owned.cols, shard.owned.rows);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::out_of_memory) {
                throw;
            }
        }
    }
}

}  // namespace

template <class T>
void prepare_kernel(ShardPlan& plan, const Shard<T>& shard, RowShard<T>& own, engine::Worker& worker,
                    const DistributeOptions& options, const RowStatistics& rows)
{
    const DeviceKind kind = worker.device().info().kind;
    const auto prepare = [&](const kernels::SpmvKernel<T>& kernel) {
        kernels::Context context = worker.context();
        const std::int64_t work = shard.owned.nnz + 4 * shard.owned.rows;
        if (worker.device().shares_host_memory() &&
            work < (kernel.info.streams ? least_shared : least_shared_in_format)) {
            context.wakes_team = false;
            context.threads = static_cast<int>(std::clamp<std::int64_t>(work / least_of_a_thread, 1, context.threads));
        }
        return kernel.prepare(shard.owned, rows, context);
    };
    const auto named = [&](const std::string& name) -> const kernels::SpmvKernel<T>& {
        return kernels::choose_spmv<T>(kind, name, options.determinism, rows, shard.owned.cols);
    };
    std::size_t next = 0;
    // The next candidate that there is room for and that suits the matrix; those that do not are dropped.
    const auto prepare_next = [&]() -> std::unique_ptr<kernels::SpmvOperator<T>> {
        while (next < plan.candidates.size()) {
            KernelCandidate& candidate = plan.candidates[next];
            try {
                worker.stream().synchronize();
                const auto begin = Clock::now();
                auto made = prepare(named(candidate.kernel));
                worker.stream().synchronize();
                if (made->worthwhile()) {
                    candidate.prepare_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                    ++next;
                    return made;
                }
            } catch (const Error& e) {
                if (e.code() != ErrorCode::out_of_memory) {
                    throw;
                }
            }
            plan.candidates.erase(plan.candidates.begin() + static_cast<std::ptrdiff_t>(next));
            plan.kernel_reason = "predicted";
        }
        return nullptr;
    };

    const std::int64_t csr_bytes = plan.matrix_bytes;
    const std::int64_t csr_apply_bytes = plan.apply_bytes;
    const auto apply_bytes = [&](const kernels::SpmvOperator<T>& made) {
        return made.format_bytes() < 0 ? csr_apply_bytes : csr_apply_bytes + made.format_bytes() - csr_bytes;
    };
    if (plan.candidates.empty()) {
        own.owned_operator = prepare(named(plan.kernel));
    } else {
        own.owned_operator = prepare_next();
        if (!own.owned_operator) {
            // Without room for any format, one that needs none.
            const auto* const last =
                &plan::choose_streamed_spmv<T>(kind, "auto", options.determinism, rows, shard.owned.cols);
            plan.kernel = last->info.name;
            plan.kernel_reason = "needs no memory of its own";
            own.owned_operator = prepare(*last);
        } else {
            plan.kernel = plan.candidates.front().kernel;
        }
        plan.apply_bytes = apply_bytes(*own.owned_operator);
        const bool raced =
            options.determinism == Determinism::none && plan.kernel_reason == "predicted" && next == 1 &&
            options.expected_applies >= least_raced_applies &&
            (worker.device().shares_host_memory() || plan.candidates.front().predicted_seconds >= least_raced_seconds);
        if (raced) {
            double left_to_spend = most_race_share * static_cast<double>(options.expected_applies) *
                                   plan.candidates.front().predicted_seconds;
            typename Race<T>::Runners runners;
            runners.push_back(std::move(own.owned_operator));
            std::vector<std::int64_t> bytes{plan.apply_bytes};
            while (runners.size() < Race<T>::most_runners &&
                   bring_challenger<T>(plan.candidates, next, left_to_spend, worker.device().room())) {
                const double cost = cost_of_racing<T>(plan.candidates[next]);
                auto challenger = prepare_next();
                if (!challenger) {
                    break;
                }
                left_to_spend -= cost;
                bytes.push_back(apply_bytes(*challenger));
                runners.push_back(std::move(challenger));
            }
            if (runners.size() > 1) {
                own.race = RaceRecord{std::make_shared<RaceOutcome>(), std::move(bytes)};
                auto race = std::make_unique<Race<T>>(worker, std::move(runners), own.race->outcome);
                decide_if_large(*race, shard, worker);
                own.owned_operator = std::move(race);
            } else {
                own.owned_operator = std::move(runners.front());
            }
        }
        plan.break_even_applies = plan::break_even(plan.candidates, plan.kernel);
    }
    plan.apply_bytes = own.race ? own.race->apply_bytes[0] : apply_bytes(*own.owned_operator);
    plan.matrix_bytes += own.owned_operator->workspace_bytes();
}

template <class T>
void end_race_in_order(const Shard<T>& shard, RowShard<T>& own)
{
    if (own.race) {
        static_cast<Race<T>&>(*own.owned_operator).decide_in_order(shard.owned.rows);
    }
}

template <class T>
void note_kept(ShardPlan& plan, const kernels::SpmvOperator<T>& made)
{
    if (const std::int64_t bytes = made.format_bytes(); bytes >= 0) {
        plan.apply_bytes += bytes - plan.matrix_bytes;
    }
    plan.matrix_bytes += made.workspace_bytes();
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template void note_kept(ShardPlan&, const kernels::SpmvOperator<T>&);                                              \
    template void prepare_kernel(ShardPlan&, const Shard<T>&, RowShard<T>&, engine::Worker&, const DistributeOptions&, \
                                 const RowStatistics&);                                                                \
    template void end_race_in_order(const Shard<T>&, RowShard<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
