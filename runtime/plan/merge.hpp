#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"
#include "runtime/plan/sides.hpp"

/// How partial results of y are added.
namespace rmsp::plan {

/// For each device, the bytes of others' sums that its slice of a vector on that side takes.
std::vector<std::int64_t> received_bytes(const Side& y, std::int64_t entry_bytes);
/// How partial results of y are added, what one device receives at most, and how long that takes by the model.
struct MergePlan {
    std::string name;
    std::int64_t bytes = 0;
    double seconds = 0;
};
/// \throws Error(usage) if the options name no transport
MergePlan plan_merge(const detail::RuntimeState& runtime, const DistributeOptions& options, const Side& y,
                     std::int64_t entry_bytes);

}  // namespace rmsp::plan
