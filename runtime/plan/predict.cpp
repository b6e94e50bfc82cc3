#include "runtime/plan/predict.hpp"
#include "runtime/transport/table.hpp"

#include <algorithm>

#include <kernels/spmv/spmv.hpp>

#include "core/value_names.hpp"
#include "runtime/plan/device_count.hpp"
#include "runtime/transport/halo.hpp"

namespace rmsp::plan {
namespace {

/// Of one device, by itself.
double kernel_seconds(const ShardPlan& shard)
{
    if (shard.part.rows() == 0) {
        return 0;
    }
    const KernelCandidate* const chosen = !shard.candidates.empty() && shard.candidates.front().kernel == shard.kernel
                                              ? &shard.candidates.front()
                                              : nullptr;
    if (chosen != nullptr && chosen->measured_seconds > 0) {
        return chosen->measured_seconds;
    }
    if (!(shard.limit_gbs > 0)) {
        return 0;
    }
    const double bytes_per_second = shard.limit_gbs * 1e9;
    // The candidate may have been weighed before the limit was known.
    return chosen != nullptr ? std::max(chosen->predicted_seconds, chosen->bytes / bytes_per_second)
                             : static_cast<double>(shard.apply_bytes) / bytes_per_second;
}

}  // namespace

double exchange_latency(const detail::RuntimeState& runtime)
{
    const auto* const row = transport::find_transport(runtime.transport_name());
    // A described machine: as if everything connected.
    const bool peers = row != nullptr ? row->peer_memory : runtime.connection.name == "unknown";
    return peers ? plan::apply_costs.exchange_by_peers : plan::apply_costs.exchange_by_copies;
}

void predict(Plan& plan, const detail::RuntimeState& runtime, Layout x_layout)
{
    const plan::ApplyCosts& costs = plan::apply_costs;
    const bool entries = plan.exchange == "entries";
    const bool exchanged =
        plan.mode == "resident" && x_layout == Layout::rows && (entries || plan.exchange == "ranges");
    const auto value_bytes = static_cast<double>(core::value_bytes(plan.precision));
    for (ShardPlan& shard : plan.shards) {
        const double kernel = kernel_seconds(shard);
        shard.exchange_seconds = 0;
        shard.predicted_seconds = kernel;
        if (!exchanged || shard.part.nnz() == 0) {
            continue;
        }
        const auto* const row = transport::find_transport(runtime.transport_name());
        const double gbs = row != nullptr && row->through_host ? costs.host_gbs
                           : entries                           ? costs.packed_gbs
                                                               : costs.link_gbs;
        const double moved = static_cast<double>(shard.halo_entries) * value_bytes / (gbs * 1e9);
        const double fixed = exchange_latency(runtime);
        shard.exchange_seconds = fixed + moved;
        if (kernel <= 0) {
            continue;
        }
        const kernels::Beside beside =
            kernels::beside_exchange(runtime.infos[static_cast<std::size_t>(shard.device)].kind, shard.kernel);
        if (!entries && beside == kernels::Beside::rows) {
            // Most rows need none of it.
            shard.predicted_seconds = std::max(kernel, moved) + fixed;
        } else if (entries && beside == kernels::Beside::columns &&
                   transport::entries_worth_hiding(shard.halo_entries, static_cast<std::size_t>(value_bytes))) {
            const double first = costs.first_step * kernel;
            shard.predicted_seconds = std::max(first, shard.exchange_seconds) + costs.second_step * kernel - first;
        } else {
            shard.predicted_seconds = kernel + shard.exchange_seconds;
        }
    }
}

}  // namespace rmsp::plan
