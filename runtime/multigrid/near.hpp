#pragma once

#include <cstdint>

#include "matrix/aggregation.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::multigrid {

using detail::RuntimeState;

/// The near-nullspace of the last level so far.
struct Near {
    matrix::NearNullspace host;  ///< without values: constants, unless they are on a device
    /// One vector in the memory of the first device, which the transfer to this level holds; null: none is there.
    const double* on_first_device = nullptr;

    bool constant() const { return host.values.empty() && on_first_device == nullptr; }
    /// Brings a vector of so many rows to the host, if it is on the device. Not on a worker; blocks.
    void download(RuntimeState& runtime, std::int64_t rows);
};

}  // namespace rmsp::multigrid
