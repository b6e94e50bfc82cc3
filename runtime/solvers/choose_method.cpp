#include "runtime/solvers/choose_method.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/enumerator.hpp"
#include "core/text.hpp"
#include "core/value_names.hpp"
#include "runtime/plan/device_count.hpp"
#include "runtime/transport/table.hpp"

namespace rmsp {
namespace solvers {
namespace {

/// Where the bandwidth of a host device is not known.
constexpr double assumed_host_gbs = 10;

std::string described(const MethodCandidate& c)
{
    if (!(c.product_seconds > 0)) {
        return fmt::format("{} {}", c.method, text::seconds(c.seconds));
    }
    return fmt::format("{} {} (products {}, vectors {}, launches {}, sums {})", c.method, text::seconds(c.seconds),
                       text::seconds(c.product_seconds), text::seconds(c.vector_seconds),
                       text::seconds(c.launch_seconds), text::seconds(c.sum_seconds));
}

MethodCandidate predicted(const StepModel& model, const StepFacts& facts)
{
    const int more = facts.preconditioned ? 1 : 0;
    // Entries of x come from other processes in about the time in which sums do.
    const double product = facts.product_seconds + (facts.processes ? facts.outside_seconds : 0);
    const double inside = facts.devices > 1 ? facts.costs.sum + (facts.devices - 1) * facts.costs.device : 0;
    const double sum = inside + (facts.processes ? facts.outside_seconds : 0);
    MethodCandidate c;
    c.method = model.method;
    c.product_seconds = model.products * product;
    c.vector_seconds = (model.entries + more * model.more_entries) * facts.entries_seconds;
    // What has begun beside a product ends in a pass of its own, but where there is nothing to wait for.
    const int passes = model.passes + more * model.more_passes + (model.beside && sum > 0 ? 1 : 0);
    c.launch_seconds = passes * facts.costs.launch;
    c.sum_seconds = model.beside ? std::max(0.0, sum - product) : model.sums * sum;
    c.seconds = c.product_seconds + c.vector_seconds + c.launch_seconds + c.sum_seconds;
    return c;
}

}  // namespace

StepFacts step_facts(const Plan& plan, const detail::RuntimeState& runtime, bool preconditioned)
{
    StepFacts facts;
    facts.preconditioned = preconditioned;
    const bool host = runtime.shared_memory();
    const auto* const row = transport::find_transport(runtime.transport_name());
    const bool peers = row != nullptr ? row->peer_memory : runtime.connection.name == "unknown";
    facts.costs = host ? host_costs : peers ? peer_costs : copy_costs;
    const double assumed = host ? assumed_host_gbs : plan::apply_costs.assumed_gbs;
    const auto value_bytes = static_cast<double>(core::value_bytes(plan.precision));
    int devices = 0;
    for (const ShardPlan& shard : plan.shards) {
        if (shard.part.rows() == 0) {
            continue;
        }
        ++devices;
        const double bytes_per_second = (shard.limit_gbs > 0 ? shard.limit_gbs : assumed) * 1e9;
        facts.product_seconds = std::max({facts.product_seconds, shard.predicted_seconds,
                                          static_cast<double>(shard.apply_bytes) / bytes_per_second});
        facts.entries_seconds = std::max(facts.entries_seconds, static_cast<double>(shard.end_row - shard.first_row) *
                                                                    value_bytes / bytes_per_second);
    }
    facts.devices = std::max(devices, 1);
    return facts;
}

std::size_t choose_among(const std::array<double, step_models.size()>& seconds)
{
    std::size_t best = 0;
    for (std::size_t i = 1; i < step_models.size(); ++i) {
        if (std::all_of(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](double simpler) { return simpler > step_models[i].worth * seconds[i]; })) {
            best = i;
        }
    }
    return best;
}

std::size_t position(const MethodChoice& choice)
{
    return static_cast<std::size_t>(
        std::find_if(step_models.begin(), step_models.end(),
                     [&](const StepModel& model) { return model.method == choice.method; }) -
        step_models.begin());
}

void take(MethodChoice& choice, std::size_t chosen)
{
    choice.method = step_models[chosen].method;
    std::size_t fastest = 0;
    choice.reason = "an iteration is expected to take: ";
    for (std::size_t i = 0; i < choice.candidates.size(); ++i) {
        fastest = choice.candidates[i].seconds < choice.candidates[fastest].seconds ? i : fastest;
        choice.reason += (i > 0 ? ", " : "") + described(choice.candidates[i]);
    }
    if (fastest != chosen) {
        choice.reason +=
            fmt::format("; {} is not taken, since {}", step_models[fastest].method, step_models[fastest].why);
    }
}

MethodChoice choose(const StepFacts& facts, Determinism determinism)
{
    MethodChoice choice;
    if (determinism == Determinism::device_count) {
        choice.method = step_models.front().method;
        choice.reason = "determinism \"device_count\" wants the same method on any number of devices";
        return choice;
    }
    for (const StepModel& model : step_models) {
        choice.candidates.push_back(predicted(model, facts));
    }
    return choose_method(std::move(choice.candidates));
}

}  // namespace solvers

MethodChoice choose_method(std::vector<MethodCandidate> candidates)
{
    MethodChoice choice{.method = {}, .reason = {}, .candidates = std::move(candidates)};
    std::array<double, solvers::step_models.size()> seconds{};
    bool known = choice.candidates.size() == seconds.size();
    for (std::size_t i = 0; known && i < seconds.size(); ++i) {
        known = choice.candidates[i].method == solvers::step_models[i].method;
        seconds[i] = choice.candidates[i].seconds;
    }
    if (!known) {
        throw Error(ErrorCode::usage, fmt::format("{} candidates for method \"auto\", they must be cg, cg_single and "
                                                  "cg_pipelined",
                                                  choice.candidates.size()));
    }
    solvers::take(choice, solvers::choose_among(seconds));
    return choice;
}

MethodChoice choose_method(const Runtime& runtime, const Plan& plan, const SolverOptions& options,
                           Determinism determinism)
{
    core::require_enumerator("determinism", determinism, Determinism::device_count);
    if (options.method != solvers::automatic) {
        return {.method = options.method, .reason = {}, .candidates = {}};
    }
    return solvers::choose(
        solvers::step_facts(plan, *detail::RuntimeAccess::state(runtime), options.preconditioner != "none"),
        determinism);
}

}  // namespace rmsp
