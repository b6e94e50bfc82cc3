#pragma once

#include <cstdint>
#include <vector>

#include "runtime/spgemm/exchange.hpp"

namespace rmsp::spgemm {

/// Arrays of which each device has a slice and needs a range.
class SliceExchange {
public:
    /// Not on a worker. \param slices  device i has entries [slices[i], slices[i + 1]) \param needed  of each device
    SliceExchange(RuntimeState& runtime, std::vector<std::int64_t> slices, std::vector<transport::Range> needed);

    const transport::Range& needed(int rank) const { return exchange_.needed[static_cast<std::size_t>(rank)]; }
    std::int64_t size(int rank) const { return needed(rank).end - needed(rank).first; }

    /// Queues what brings the entries that the worker's device needs to `to`, where the first of them goes. Every
    /// worker of the job calls it. \param held  where its slice begins
    template <class E>
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, const E* held, E* to);
    /// gather() where slices are in the ranges' arrays, in their places.
    template <class E>
    void complete(engine::Worker& worker, engine::Rendezvous& meeting, E* to);

private:
    /// \param held  where entry 0 of the array would be whose slice the worker's device has
    template <class E>
    void gather_from(engine::Worker& worker, engine::Rendezvous& meeting, void* held, E* to);

    EntryExchange exchange_;  ///< the array is its values
};

/// Slices of an array of so many entries that one device has.
std::vector<std::int64_t> all_on(int rank, int devices, std::int64_t size);

}  // namespace rmsp::spgemm
