#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/engine/hand_over.hpp"
#include "runtime/matrix/ghosts.hpp"
#include "runtime/matrix/shard.hpp"
#include "runtime/node/node.hpp"
#include "runtime/plan/sides.hpp"
#include "runtime/transport/transport.hpp"

/// What a matrix's handle points to. Shared between the handles and the jobs that use it.
namespace rmsp::detail {

template <class T>
class ColumnProduct;
template <class T>
class FactorRows;

template <class T>
struct MatrixState {
    ~MatrixState();

    std::shared_ptr<RuntimeState> runtime;
    Plan plan;
    DistributeOptions options;
    Mode mode = Mode::resident;
    bool coordinates = false;               ///< see Stored
    bool sorted_copy = false;               ///< the values are not in the caller's order
    CooMatrix<T> kept_copy;                 ///< what a streamed matrix has beside the caller's arrays: sorted entries,
    HostVector<std::int64_t> kept_row_ptr;  ///< and row pointers of coordinates
    std::int64_t raw_bytes =
        0;  ///< streamed and encoded: what an apply would copy to the devices without; 0: not encoded
    std::vector<std::string> notes;
    /// Of a streamed matrix. Freed with the matrix and not behind it on a worker: the caller's arrays may go right then.
    std::unique_ptr<StreamSource<T>> source;
    std::vector<std::unique_ptr<Shard<T>>> shards;
    std::vector<std::int64_t> x_even;        ///< even slices of x: how a host x is spread before it is gathered
    std::vector<std::int64_t> x_slices;      ///< slices of an x by rows
    std::vector<transport::Range> x_needed;  ///< columns that each device's shard touches
    bool exchanges = false;                  ///< an x by rows: some device needs entries of another
    bool upload_needed = false;  ///< a host x goes to each device as far as it is needed there; nothing is gathered
    std::vector<std::int64_t> row_slices;  ///< first owned row of each device, rows at the end
    std::vector<void*> x_buffers;          ///< Shard::x of each device
    bool by_entries = false;  ///< the columns of the shards are numbered anew: the own slice of x, then the ghosts
    /// Products with the columns of the own slice and the popular ghosts run while the others come, where operators can be
    /// split so.
    bool hides_entries = false;
    std::array<GhostMessage, ghost_messages> messages;
    bool popular_first() const { return !messages[popular_ghosts].empty; }
    std::vector<std::int64_t> ghosts;             ///< of each device; 0 where x is not exchanged by entries
    std::vector<std::int64_t> popular;            ///< those of them that come first; 0 where none are hidden
    std::vector<void*> local_x;                   ///< where entry 0 would be in Shard::local_x of each device
    std::shared_ptr<transport::Channel> channel;  ///< null: nothing is gathered
    std::shared_ptr<engine::HandOver> carry_order;
    /// What each device adds to its predecessor's last row: one entry a device for a y on the devices, and as many for a host y.
    std::shared_ptr<engine::PinnedBuffer> carries;
    std::vector<int> carry_count;  ///< for each device: how many devices after it add to its last row
    bool any_carry = false;
    Side rows;     ///< of M
    Side columns;  ///< of M
    /// y = M x by rows: ready, or made ready at the first use, under `preparing`. By columns: M^T x, and M x if unsorted.
    bool rows_ready = false;
    std::array<std::shared_ptr<ColumnProduct<T>>, 2> column_products;
    std::shared_ptr<ColumnProduct<T>>& column_product(bool of_transpose)
    {
        return column_products[of_transpose ? 1 : 0];
    }
    std::weak_ptr<FactorRows<T>>
        factor_rows;  ///< as products of matrices take the matrix, while there are any; under `preparing`
    std::mutex preparing;
    std::atomic<std::int64_t> round{0};  ///< how often the values were renewed
    std::vector<PhaseTimes> setup;       ///< under runtime->mutex
    std::vector<Measurement> measurements;

    explicit MatrixState(int devices)
        : shards(static_cast<std::size_t>(devices)),
          x_buffers(static_cast<std::size_t>(devices)),
          ghosts(static_cast<std::size_t>(devices)),
          popular(static_cast<std::size_t>(devices)),
          local_x(static_cast<std::size_t>(devices)),
          carry_order(std::make_shared<engine::HandOver>(devices)),
          carries(std::make_shared<engine::PinnedBuffer>()),
          carry_count(static_cast<std::size_t>(devices))
    {
    }
};

/// The side of M that holds the x of A x or A^T x; the other one holds y.
template <class T>
const Side& x_side(const MatrixState<T>& matrix, bool of_transpose)
{
    return of_transpose == transposed(matrix.plan) ? matrix.columns : matrix.rows;
}

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
