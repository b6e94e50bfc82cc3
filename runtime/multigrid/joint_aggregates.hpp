#pragma once

#include <cstdint>
#include <vector>

#include <kernels/steps/coarsening/aggregates.hpp>

#include "runtime/node/node.hpp"

namespace rmsp::multigrid {

using detail::RuntimeState;

/// Aggregates of rows that several GPUs have, found by all of them together: each reads and writes the others' memory.
class JointAggregates {
public:
    /// Whether the runtime's devices can.
    static bool possible(const RuntimeState& runtime);

    explicit JointAggregates(RuntimeState& runtime);

    /// Every worker of the job calls it, with the rows of its device. Returns how many aggregates all have; -1 where
    /// only the host finds them.
    /// \param own  rows, marks and numbers, all in memory that the other devices reach; room is not needed
    std::int64_t find(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::AggregatePart& own);

private:
    RuntimeState& runtime_;
    std::vector<kernels::AggregatePart> parts_;
    std::vector<std::int64_t> said_;  ///< by each device
};

/// The same of rows that one device has, all of them.
std::int64_t find_aggregates(kernels::AggregatePart all, const kernels::Context& context);

}  // namespace rmsp::multigrid
