#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <kernels/spmv/spmv.hpp>

#include "runtime/engine/worker.hpp"
#include "runtime/matrix/ghosts.hpp"
#include "runtime/matrix/race.hpp"
#include "runtime/matrix/shard.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::distributed {

/// A race between the first candidates of a shard's plan.
struct RaceRecord {
    std::shared_ptr<RaceOutcome> outcome;
    std::vector<std::int64_t> apply_bytes;  ///< ShardPlan::apply_bytes with each
};

/// What a device packs of its slice for one message, and where.
template <class T>
struct PackedEntries {
    kernels::DeviceArray<std::int32_t> list;
    kernels::DeviceArray<T> entries;
};

/// What one device has for products by rows besides its part of the matrix.
template <class T>
struct RowShard {
    std::unique_ptr<kernels::SpmvOperator<T>> owned_operator;
    std::optional<RaceRecord> race;  ///< of owned_operator, which is then a Race
    /// By how much owned_operator reads and keeps more than the plan says since values were renewed: they may compress
    /// otherwise.
    std::atomic<std::int64_t> more_read{0};
    std::atomic<std::int64_t> more_kept{0};
    std::unique_ptr<kernels::SpmvOperator<T>> carry_operator;
    /// Owned rows that need no entry of x of another device and are multiplied while those come, if the operator can
    /// multiply some rows alone; empty: there are too few.
    transport::Range interior;
    std::unique_ptr<engine::Event> begun;  ///< where an overlapped apply leaves the worker's stream
    std::unique_ptr<engine::Event>
        exchanged;                      ///< what that stream waits for before it needs the others' entries, or ends
    kernels::DeviceArray<T> carry_out;  ///< one entry
    /// All of x, where it has to be gathered first; of a matrix that came from the devices once that was needed.
    kernels::DeviceArray<T> x;
    kernels::DeviceArray<std::int32_t> ghosts;  ///< columns behind the own slice, where x is exchanged by entries
    kernels::DeviceArray<T> local_x;            ///< room for slice and ghosts, for an x that has none
    std::array<PackedEntries<T>, ghost_messages> packed;  ///< what others need of the slice, in each message
    kernels::DeviceArray<T> y;                            ///< owned rows of y, where y lives on the host; as `x`
    /// For each stretch of rows of such a y that leaves as one: its product has ended.
    std::vector<std::unique_ptr<engine::Event>> y_done;
    std::unique_ptr<engine::Event> y_there;  ///< all rows of such a y are in host memory
};

/// Whether the shard's applies are still shared among several kernels.
template <class T>
bool is_racing(const RowShard<T>& own)
{
    return own.race && own.race->outcome->winner.load(std::memory_order_relaxed) < 0;
}

/// Whether the shard's operator can begin with the columns of the device's own slice of x and the popular ghosts.
template <class T>
bool begins_with_own_columns(const Shard<T>& shard, const RowShard<T>& own)
{
    return shard.owned.early_cols > 0 && own.owned_operator->splits_columns();
}

/// Stretches in which the rows of a resident part leave for a host y, each while the next is multiplied.
inline constexpr int host_y_stretches = 8;

}  // namespace rmsp::distributed
