#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rmsp/cluster.hpp>

#include "cluster/communicator.hpp"

namespace rmsp::cluster {

/// How the processes share the rows of a matrix.
struct Shares {
    std::vector<double> weights;  ///< the speed of each process, relative to the others
    /// What an entry and a row cost: entries alone, or bytes of a product.
    std::int64_t of_entry = 1;
    std::int64_t of_row = 0;

    /// Of costs that add up to n, what the processes before this one are to have.
    std::int64_t before(std::int64_t n, int process) const;
};

/// Balance::time: the bandwidth of each process's devices together, measured where it is not known; else `weight`.
/// Collective. \throws Agreed(usage) for another balance on one of them
Shares find_shares(Communicator& processes, Runtime& runtime, double weight, Balance balance, std::size_t value_bytes);

}  // namespace rmsp::cluster
