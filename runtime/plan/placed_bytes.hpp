#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/plan/stored.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::plan {

/// Bytes of each device's memory without which M cannot be placed there as planned: its arrays, what products need
/// beside them, and what is staged meanwhile. A device that is streamed to: buffers of the least size. Formats of the
/// kernels' own, and the larger buffers of streams, are taken where there is room for them, and are not counted; nor
/// are lists of the entries that the devices exchange. \param transport  through which they do; null: none is counted
template <class T>
std::vector<std::int64_t> placed_bytes(const Plan& plan, const Stored<T>& m, const DistributeOptions& options,
                                       bool shared_memory, const transport::Transport* transport);

}  // namespace rmsp::plan
