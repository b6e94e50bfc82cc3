#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::distributed {

/// How a matrix is cut, so that its products go from some vectors to some others.
struct Cut {
    std::vector<std::int64_t> first_rows;     ///< of the devices' parts; empty: the planner cuts
    std::vector<std::int64_t> column_slices;  ///< of x; empty: as Stored::column_slices
    int devices = 0;                          ///< that have rows; 0: as DistributeOptions::devices
    /// As DistributeOptions::expected_applies; 0: as the matrix beside it. Few: no kernel keeps a second copy.
    std::int64_t expected_applies = 0;
};

/// Distributes a matrix, cut as asked for, with the determinism and the expected applies of another one. Whole rows.
template <class T>
DistributedMatrix<T> distribute_cut(const MatrixState<T>& beside, plan::Stored<T> stored, const Cut& cut,
                                    bool transposed = false)
{
    stored.first_rows = cut.first_rows;
    stored.column_slices = cut.column_slices;
    DistributeOptions options;
    options.devices = cut.devices;
    options.alignment = RowAlignment::row;
    options.balance = Balance::nonzeros;
    options.determinism = beside.options.determinism;
    options.expected_applies = cut.expected_applies > 0 ? cut.expected_applies : beside.options.expected_applies;
    options.transposed = transposed;
    return detail::MatrixAccess::handle(distribute(beside.runtime, stored, options));
}

template <class T>
DistributedMatrix<T> distribute_cut(const MatrixState<T>& beside, const CsrView<T>& m, const Cut& cut,
                                    bool transposed = false)
{
    return distribute_cut(beside, plan::stored(m), cut, transposed);
}

/// A square matrix whose rows, and with them its vectors, are cut where those of `like` are.
template <class T>
DistributedMatrix<T> distribute_like(const MatrixState<T>& like, const CsrView<T>& m)
{
    return distribute_cut(like, m, {x_side(like, true).slices, {}, like.plan.devices}, like.options.transposed);
}

/// Bytes of the matrix, on all devices.
template <class T>
std::int64_t device_bytes(const DistributedMatrix<T>& there)
{
    std::int64_t bytes = 0;
    for (const ShardPlan& shard : there.plan().shards) {
        bytes += shard.matrix_bytes;
    }
    return bytes;
}

}  // namespace rmsp::distributed
