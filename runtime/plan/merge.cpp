#include "runtime/plan/merge.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/transport/table.hpp"

namespace rmsp::plan {
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

MergePlan plan_merge(const detail::RuntimeState& runtime, const DistributeOptions& options, const Side& y,
                     std::int64_t entry_bytes)
{
    const transport::TransportRow* row =
        options.merge == "auto" ? nullptr : &transport::transport_named(options.merge, "merge", {"auto"});
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
    if (runtime.options.one_thread && row != nullptr && !row->through_host) {
        throw Error(ErrorCode::usage,
                    fmt::format("one thread for all devices merges through the host only, not by {}", row->name));
    }
    if (row == nullptr) {
        // The connected one, or host copies, which need no connecting. A described machine: as if everything connected.
        row = runtime.connection.transport ? &transport::transport_named(runtime.transport_name())
                                           : &transport::transports().front();
        if (const auto& host = transport::transport_through_host();
            host.seconds(plan.bytes) < row->seconds(plan.bytes)) {
            row = &host;
        }
    }
    plan.name = row->name;
    plan.seconds = row->seconds(plan.bytes);
    return plan;
}

}  // namespace rmsp::plan
