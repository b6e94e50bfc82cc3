#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <matrix/blocks.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/matrix/product.hpp"
#include "runtime/matrix/shard.hpp"
#include "runtime/matrix/vector_state.hpp"
#include "runtime/node/node.hpp"
#include "runtime/plan/sides.hpp"

namespace rmsp::spgemm {
template <class T>
class FactorRows;
}  // namespace rmsp::spgemm

namespace rmsp::distributed {

/// Where a matrix came from: what of the caller's arrays is in use still, and what stands beside them.
template <class T>
struct MatrixOrigin {
    bool coordinates = false;               ///< see Stored
    bool devices = false;                   ///< see Stored::from_devices()
    bool sorted_copy = false;               ///< the values are not in the caller's order
    CooMatrix<T> kept_copy;                 ///< of a streamed matrix: entries that were sorted
    HostVector<std::int64_t> kept_row_ptr;  ///< of a streamed matrix: row pointers of coordinates
    std::vector<IndexArray> kept_indices;   ///< of a streamed matrix: indices that were renumbered
    /// Of a matrix of blocks: how new values, which come block by block, are to be ordered.
    std::optional<matrix::BlockLayout> blocks;
    /// Of a streamed matrix whose parts were copied to the devices' nodes: rows, columns, values; else empty.
    std::vector<std::shared_ptr<std::byte>> copies;
    const T* copied_values = nullptr;    ///< the caller's, of which there is a copy
    std::shared_ptr<const void> before;  ///< of a streamed matrix that was redistributed: the one that has the arrays
    /// Of a streamed matrix. Freed with the matrix and not behind it on a worker: the caller's arrays may go right
    /// then.
    std::unique_ptr<StreamSource<T>> source;
};

/// What a matrix has once it was asked for.
template <class T>
struct MadeOnDemand {
    std::mutex making;  ///< held while it is made, and where it is looked for
    /// As products of matrices take the matrix, while there are any.
    std::weak_ptr<spgemm::FactorRows<T>> factor_rows;
    /// For products of arrays in GPU memory: vectors along the columns and the rows of A.
    std::array<std::shared_ptr<detail::VectorState<T>>, 2> scratch;
};

/// What a report says of a matrix besides its plan. Written under RuntimeState::mutex once the matrix has a handle.
struct MatrixRecord {
    std::vector<PhaseTimes> setup;
    std::vector<Measurement> measurements;
    std::vector<std::string> notes;
    /// Streamed and encoded: bytes that an apply would copy to the devices without; 0: not encoded.
    std::int64_t raw_bytes = 0;
};

}  // namespace rmsp::distributed

namespace rmsp::detail {

/// What a matrix's handle points to. Shared between the handles and the jobs that use it.
template <class T>
struct MatrixState {
    explicit MatrixState(int devices)
        : shards(static_cast<std::size_t>(devices)), room(static_cast<std::size_t>(devices))
    {
    }
    ~MatrixState();

    std::shared_ptr<RuntimeState> runtime;
    Plan plan;
    DistributeOptions options;
    distributed::MatrixOrigin<T> origin;
    std::vector<std::unique_ptr<distributed::Shard<T>>> shards;
    engine::Tasks room;  ///< to free the shards
    plan::Side rows;     ///< of M
    plan::Side columns;  ///< of M
    /// A x and A^T x. Those by rows are there from the start, those by columns once they were asked for; made ready
    /// under `on_demand.making`.
    std::array<std::shared_ptr<distributed::Product<T>>, 2> products;
    distributed::MadeOnDemand<T> on_demand;
    std::atomic<std::int64_t> round{0};  ///< how often the values were renewed
    distributed::MatrixRecord record;
};

/// What the handle points to.
/// \throws Error(usage) for one that is empty: made by the default constructor, or moved from
template <class T>
const std::shared_ptr<MatrixState<T>>& checked(const std::shared_ptr<MatrixState<T>>& state);

/// What a matrix's handle points to.
struct MatrixAccess {
    template <class T>
    static const std::shared_ptr<MatrixState<T>>& state(const DistributedMatrix<T>& matrix)
    {
        return matrix.state_;
    }
    template <class T>
    static DistributedMatrix<T> handle(std::shared_ptr<MatrixState<T>> state)
    {
        return DistributedMatrix<T>(std::move(state));
    }
};

}  // namespace rmsp::detail

namespace rmsp::distributed {

using detail::checked;
using detail::MatrixAccess;
using detail::MatrixState;
using detail::RuntimeState;

/// The side of M that holds the x of A x or A^T x; the other one holds y.
template <class T>
const plan::Side& x_side(const MatrixState<T>& matrix, bool of_transpose)
{
    return of_transpose == plan::transposed(matrix.plan) ? matrix.columns : matrix.rows;
}

/// The plan with what races have found so far.
template <class T>
Plan current_plan(const MatrixState<T>& matrix);

}  // namespace rmsp::distributed
