#include "runtime/plan/merge.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rmsp::detail {
std::vector<std::int64_t> received_bytes(const Side& y, std::int64_t entry_bytes)
{
    std::vector<std::int64_t> bytes(y.touched.size(), 0);
    for (std::size_t to = 0; to < bytes.size(); ++to) {
        for (std::size_t from = 0; from < bytes.size(); ++from) {
            const std::int64_t first = std::max(y.slices[to], y.touched[from].first);
            const std::int64_t end = std::min(y.slices[to + 1], y.touched[from].end);
            bytes[to] += from != to ? std::max<std::int64_t>(0, end - first) * entry_bytes : 0;
        }
    }
    return bytes;
}

MergePlan plan_merge(const RuntimeState& runtime, const DistributeOptions& options, const Side& y,
                     std::int64_t entry_bytes)
{
    const auto known = transport::transport_names();
    if (options.merge != "auto" && std::find(known.begin(), known.end(), options.merge) == known.end()) {
        throw Error(ErrorCode::usage,
                    fmt::format("merge \"{}\" is not one of auto, {}", options.merge, fmt::join(known, ", ")));
    }
    MergePlan plan;
    if (runtime.devices() == 1) {
        plan.name = "none";
        return plan;
    }
    const std::vector<std::int64_t> received = received_bytes(y, entry_bytes);
    plan.bytes = *std::max_element(received.begin(), received.end());
    if (runtime.connection.name == "shared") {
        plan.name = "shared";
        return plan;
    }
    plan.name = options.merge;
    if (runtime.options.one_thread && plan.name != "auto" && plan.name != "host") {
        throw Error(ErrorCode::usage,
                    fmt::format("one thread for all devices merges through the host only, not by {}", plan.name));
    }
    if (plan.name == "auto") {
        // The connected one, or host copies, which need no connecting. A described machine: as if everything connected.
        plan.name = runtime.connection.transport ? runtime.connection.name : "peer";
        if (transport::merge_seconds("host", plan.bytes) < transport::merge_seconds(plan.name, plan.bytes)) {
            plan.name = "host";
        }
    }
    plan.seconds = transport::merge_seconds(plan.name, plan.bytes);
    return plan;
}

}  // namespace rmsp::detail
