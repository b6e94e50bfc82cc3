#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <kernels/spmv/spmv.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/engine/memory_budget.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/ghosts.hpp"
#include "runtime/matrix/race.hpp"
#include "runtime/matrix/streamed.hpp"
#include "runtime/plan/sides.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::detail {

/// A race between the first two candidates of a shard's plan.
struct RaceRecord {
    std::shared_ptr<detail::RaceOutcome> outcome;
    std::array<std::int64_t, 2> apply_bytes{};  ///< ShardPlan::apply_bytes with each
};

/// A part of a matrix on its device. The row that the part shares with its predecessor, if any, is a matrix of one row of its
/// own (`carry`), so that every kernel multiplies whole rows only.
template <class T>
struct Shard {
    bool streams = false;                  ///< comes to the device in pieces
    std::unique_ptr<MemoryBudget> budget;  ///< of a streamed part: what the arrays below are taken from
    PartialCsr part;
    std::int64_t carry_nnz = 0;  ///< nonzeros of the shared first row
    kernels::DeviceArray<std::byte> row_ptr;
    kernels::DeviceArray<std::int64_t> carry_row_ptr;
    kernels::DeviceArray<std::int32_t> row_idx;  ///< coordinates: laid out as col_idx
    kernels::DeviceArray<std::int32_t>
        col_idx;  ///< carry first, padded to whole 256-byte lines, then the owned rows; empty if borrowed
    kernels::DeviceArray<T> values;  ///< laid out as col_idx
    kernels::CsrShard<T> owned;      ///< coordinates: without row pointers
    kernels::CsrShard<T> carry;
    const std::int32_t* owned_rows = nullptr;  ///< coordinates: row indices of M, as those of `owned`
    RowStatistics statistics;                  ///< of the owned rows; not of coordinates
    std::unique_ptr<kernels::SpmvOperator<T>> owned_operator;
    std::optional<RaceRecord> race;  ///< of owned_operator, which is then a Race
    /// By how much owned_operator reads and keeps more than the plan says since values were renewed: they may compress otherwise.
    std::atomic<std::int64_t> more_read{0};
    std::atomic<std::int64_t> more_kept{0};
    std::unique_ptr<kernels::SpmvOperator<T>> carry_operator;
    /// Owned rows that need no entry of x of another device and are multiplied while those come, if the operator can multiply
    /// some rows alone; empty: there are too few.
    transport::Range interior;
    std::unique_ptr<engine::Event> begun;      ///< where an overlapped apply leaves the worker's stream,
    std::unique_ptr<engine::Event> exchanged;  ///< and what that waits for before it needs the others' entries, or ends
    std::unique_ptr<StreamedPart<T>> streamed;  ///< instead of all of the above but the sizes in `owned`
    kernels::DeviceArray<T> carry_out;          ///< one entry
    kernels::DeviceArray<T> x;                  ///< all of x, where it has to be gathered first
    kernels::DeviceArray<std::int32_t> ghosts;  ///< columns behind the own slice, where x is exchanged by entries,
    kernels::DeviceArray<T> local_x;            ///< room for slice and ghosts, for an x that has none,
    std::array<PackedEntries<T>, ghost_messages> packed;  ///< what others need of the slice, in each message,
    kernels::DeviceArray<T> y;                            ///< owned rows of y, where y lives on the host,
    std::vector<std::unique_ptr<engine::Event>>
        y_done;                              ///< for each stretch of them that leaves as one: its product has ended,
    std::unique_ptr<engine::Event> y_there;  ///< and all of them are in host memory
};

/// Whether the shard's applies are still shared among two kernels.
template <class T>
bool is_racing(const Shard<T>& shard)
{
    return shard.race && shard.race->outcome->winner.load(std::memory_order_relaxed) < 0;
}

/// Whether the shard's operator can begin with the columns of the device's own slice of x and the popular ghosts.
template <class T>
bool begins_with_own_columns(const Shard<T>& shard)
{
    return shard.owned.early_cols > 0 && shard.owned_operator->splits_columns();
}

/// Stretches in which the rows of a resident part leave for a host y, each while the next is multiplied.
inline constexpr int host_y_stretches = 8;

/// Where the nonzeros [first, first + n) of the matrix go on the device.
struct Piece {
    std::int64_t first;
    std::int64_t n;
    std::int64_t position;
};

template <class T>
std::vector<Piece> pieces_of(const Shard<T>& shard)
{
    const std::int64_t carry = shard.carry_nnz;
    return {{shard.part.start_idx, carry, 0},
            {shard.part.start_idx + carry, shard.part.nnz() - carry, whole_lines(carry)}};
}

/// What a streamed part takes its memory from.
std::unique_ptr<MemoryBudget> make_budget(engine::Device& device, const DistributeOptions& options);

}  // namespace rmsp::detail
