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
    /// Fewer are found sooner by one device that gets their pattern: so many decisions wait for each other that they
    /// keep no more than one busy, and devices wait longer for each other. (Fitted to 7 points of 256^3 to 600^3 on
    /// four H200; tests change it.)
    static inline std::int64_t least_rows = std::int64_t{1} << 25;
    /// Whether the runtime's devices can, and so many rows are enough.
    static bool pays(const RuntimeState& runtime, std::int64_t rows);

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

/// find_aggregates() where one device has all rows.
std::int64_t find_aggregates(kernels::AggregatePart all, const kernels::Context& context);

}  // namespace rmsp::multigrid
