#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <kernels/spmv/spmv.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/engine/device.hpp"
#include "runtime/engine/memory_budget.hpp"
#include "runtime/matrix/streamed.hpp"
#include "runtime/plan/sides.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::distributed {

/// A part of a matrix on its device. The row that the part shares with its predecessor, if any, is a matrix of one row
/// of its own (`carry`), so that every kernel multiplies whole rows only.
template <class T>
struct Shard {
    bool streams = false;                          ///< comes to the device in pieces
    std::unique_ptr<engine::MemoryBudget> budget;  ///< of a streamed part: what its products' arrays are taken from
    PartialCsr part;
    std::int64_t carry_nnz = 0;  ///< nonzeros of the shared first row
    kernels::DeviceArray<std::byte> row_ptr;
    kernels::DeviceArray<std::int64_t> carry_row_ptr;
    kernels::DeviceArray<std::int32_t> row_idx;  ///< coordinates: laid out as col_idx
    /// The shared row first, padded to whole 256-byte lines, then the owned rows; empty if borrowed.
    kernels::DeviceArray<std::int32_t> col_idx;
    kernels::DeviceArray<T> values;  ///< laid out as col_idx
    kernels::CsrShard<T> owned;      ///< coordinates: without row pointers; streamed: only the sizes
    kernels::CsrShard<T> carry;
    const std::int32_t* owned_rows = nullptr;   ///< coordinates: row indices of M, as those of `owned`
    RowStatistics statistics;                   ///< of the owned rows; not of coordinates
    std::unique_ptr<StreamedPart<T>> streamed;  ///< a streamed part's pieces, instead of the arrays above
};

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
            {shard.part.start_idx + carry, shard.part.nnz() - carry, plan::whole_lines(carry)}};
}

/// What a streamed part takes its memory from.
std::unique_ptr<engine::MemoryBudget> make_budget(engine::Device& device, const DistributeOptions& options);

}  // namespace rmsp::distributed
