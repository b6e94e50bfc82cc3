#include "runtime/matrix/shard.hpp"

#include <fmt/format.h>

namespace rmsp::distributed {
std::unique_ptr<engine::MemoryBudget> make_budget(engine::Device& device, const DistributeOptions& options)
{
    return std::make_unique<engine::MemoryBudget>(
        device, options.device_bytes,
        fmt::format("a streamed matrix on {} {}", to_string(device.info().kind), device.info().index));
}

}  // namespace rmsp::distributed
