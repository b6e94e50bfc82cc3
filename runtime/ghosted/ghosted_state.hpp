#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <kernels/steps/ghosts/ghosts.hpp>
#include <rmsp/ghosted.hpp>

#include "runtime/matrix/distribute_like.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/operands.hpp"
#include "runtime/matrix/vector_state.hpp"
#include "runtime/node/per_device.hpp"
#include "runtime/sequence/outside.hpp"
#include "runtime/sequence/stage.hpp"

namespace rmsp::detail {

/// What one device has for exchanges.
struct GhostedPart {
    /// Of the first device: all that is sent, then all ghosts. Empty: they are in memory of the devices.
    engine::PinnedBuffer numbers;
    std::size_t copied = 0;                        ///< entries on the device that are copied there
    std::unique_ptr<engine::Event> begun;          ///< x is there; each event is made when it is needed
    std::unique_ptr<engine::Event> gone;           ///< what is sent is there
    std::unique_ptr<engine::Event> came;           ///< so are the ghosts, and what was multiplied by them beside
    kernels::DeviceArray<std::int32_t> rest_rows;  ///< GhostedState::rest_rows of the device, from its first row on
};

/// Entries that leave or arrive: those of other processes, then those that are copied; on devices, those of each.
template <class T>
struct GhostedEntries {
    std::size_t count = 0;
    T* data = nullptr;  ///< in host memory that the devices copy directly
    /// Has them in memory of the devices; null: they are in `data`.
    std::shared_ptr<VectorState<T>> vector;

    bool empty() const noexcept { return count == 0; }
    distributed::Source<T> source() const { return {vector ? nullptr : data, vector}; }
    distributed::Target<T> target() const { return {vector ? nullptr : data, vector}; }
};

/// What a ghosted matrix's handle points to.
template <class T>
struct GhostedState {
    DistributedMatrix<T> own;   ///< own columns
    DistributedMatrix<T> rest;  ///< the ghosts' columns; empty: there are none
    /// The rows of `rest`, and its vector along them; empty: all rows.
    std::vector<std::int64_t> rest_rows;
    DistributedVector<T> of_rest_rows;
    /// A row for each entry that is sent, with a 1 in its column: packs what is sent, and its transpose adds what comes
    /// back. Empty: nothing is sent.
    DistributedMatrix<T> pick;
    /// What comes back, before it is added; empty: `y` has room for it.
    DistributedVector<T> back;
    std::optional<node::PerDevice<GhostedPart>> parts;
    GhostedEntries<T> sent;  ///< or what comes back
    GhostedEntries<T> ghosts;
    // With determinism "device_count" each row is summed in its own order: rows with ghosts are in `rest` with all
    // their columns. Own columns that they touch have numbers behind the ghosts; their entries are copied instead of
    // sent.
    DistributedMatrix<T> interior;          ///< the other rows, for products; empty: `own` is multiplied
    std::vector<std::int64_t> copied;       ///< own columns of rows with ghosts
    std::vector<std::int64_t> outside_own;  ///< which of the caller's nonzeros are not in `own`

    /// Of each column of `rest`, which ghost it is; empty: the same.
    std::vector<std::int64_t> ghost_of;
    std::vector<DeviceArrays> arrays;   ///< each worker's own, of which the first one begins the exchange
    bool in_order = false;              ///< the first worker's, between two meetings: exchange_on() said so
    std::vector<std::int64_t> in_rest;  ///< which of the caller's nonzeros, in their order, are in `rest`
    std::int64_t nnz = 0;
    std::int64_t first_row = 0;
    std::shared_ptr<GhostExchange> exchange;
    std::shared_ptr<sequence::Outside> outside;
    std::mutex using_;  ///< the buffers, and who serves

    /// What products multiply besides `rest`.
    const DistributedMatrix<T>& multiplied() const { return MatrixAccess::state(interior) ? interior : own; }
    /// Makes products with A^T ready. \throws as distributed::prepare_apply()
    void prepare_transposed();
    /// Queues one worker's part of y = alpha A x + beta y, or with A^T; every worker calls it, and the thread that
    /// waits for the job serves `outside`, which the first worker settles at its end.
    /// \param sums  null, or where A x leaves sums of x y, if leaves_sums()
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const std::shared_ptr<VectorState<T>>& x,
               T beta, const std::shared_ptr<VectorState<T>>& y, bool of_transpose,
               sequence::ProductSums* sums = nullptr);
    /// Whether products may leave sums: y is then complete but for some rows once the own columns are multiplied.
    bool leaves_sums() const
    {
        return !MatrixAccess::state(interior) && (ghosts.empty() || !rest_rows.empty()) &&
               !MatrixAccess::state(own)->runtime->shared_memory();
    }

private:
    /// Whether what leaves and what arrived is worked on beside the product with own columns, on the side stream: that
    /// of a GPU which has nobody to exchange with there.
    bool works_beside(engine::Worker& worker, bool of_transpose) const;
    /// Begins the exchange of what all devices have queued to be sent.
    void exchange_on_devices(engine::Worker& worker, engine::Rendezvous& meeting, bool of_transpose);
    /// Queue the parts of queue(): into `out`, with what came into `in` but for y, and into y.
    void queue_leaving(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                       const std::shared_ptr<VectorState<T>>& x, bool of_transpose);
    void queue_ghosts(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, bool of_transpose);
    void queue_arrived(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                       const std::shared_ptr<VectorState<T>>& x, const std::shared_ptr<VectorState<T>>& y,
                       bool of_transpose, sequence::ProductSums* sums);
    /// Copies entries of rows that `rest` has from a vector of all rows.
    void take_rest_rows(engine::Worker& worker, const VectorState<T>& from);
    /// Adds what queue_ghosts() found to y, and what that adds to the sums that products with own columns have left.
    void add_rest_rows(engine::Worker& worker, const VectorState<T>& x, const VectorState<T>& y,
                       sequence::ProductSums* sums);
};

struct GhostedAccess {
    template <class T>
    static const std::shared_ptr<GhostedState<T>>& state(const GhostedMatrix<T>& matrix)
    {
        if (!matrix.state_) {
            throw Error(ErrorCode::usage, "an empty handle of a ghosted matrix");
        }
        return matrix.state_;
    }
    template <class T>
    static GhostedMatrix<T> handle(std::shared_ptr<GhostedState<T>> state)
    {
        GhostedMatrix<T> matrix;
        matrix.state_ = std::move(state);
        return matrix;
    }
};

}  // namespace rmsp::detail

namespace rmsp::ghosted {

/// Rows that belong to another ghosted matrix, whose processes and determinism they have, cut as asked for. Own columns
/// and ghosts as GhostedMatrix distributes them. \param transposed  products with A^T will be asked for
template <class T>
GhostedMatrix<T> distribute_beside(const detail::GhostedState<T>& other, const GhostedRows<T>& rows,
                                   const distributed::Cut& cut, bool transposed = false);

/// y = alpha A x + beta y, or with A^T, in a sequence whose scalars have the matrix's `outside`.
template <class T>
class GhostedStage final : public sequence::Stage {
public:
    GhostedStage(std::shared_ptr<detail::GhostedState<T>> matrix, std::shared_ptr<detail::VectorState<T>> x,
                 std::shared_ptr<detail::VectorState<T>> y, T alpha, T beta, bool of_transpose)
        : matrix_(std::move(matrix)),
          x_(std::move(x)),
          y_(std::move(y)),
          alpha_(alpha),
          beta_(beta),
          of_transpose_(of_transpose)
    {
    }
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* /*programs*/) override
    {
        matrix_->queue(worker, meeting, alpha_, x_, beta_, y_, of_transpose_, sums_.get());
    }
    std::shared_ptr<sequence::ProductSums> sums_of(const void* a, const void* b) override
    {
        const bool these = (a == x_.get() && b == y_.get()) || (a == y_.get() && b == x_.get());
        if (!these || of_transpose_ || x_->offsets != y_->offsets || !matrix_->leaves_sums()) {
            return nullptr;
        }
        if (!sums_) {
            sums_ = std::make_shared<sequence::ProductSums>(detail::MatrixAccess::state(matrix_->own)->runtime, *y_,
                                                            kernels::add_at_sums);
        }
        return sums_;
    }
    /// Those of the three products that it may be.
    std::int64_t waits() const override { return 3 * distributed::ghost_messages; }
    /// Of this process.
    std::int64_t bytes() const override
    {
        std::int64_t sum = 0;
        for (const DistributedMatrix<T>& part : {matrix_->multiplied(), matrix_->rest}) {
            const auto& state = detail::MatrixAccess::state(part);
            for (std::size_t rank = 0; state && rank < state->plan.shards.size(); ++rank) {
                sum += state->plan.shards[rank].apply_bytes;
            }
        }
        return sum;
    }

private:
    std::shared_ptr<detail::GhostedState<T>> matrix_;
    std::shared_ptr<detail::VectorState<T>> x_;
    std::shared_ptr<detail::VectorState<T>> y_;
    T alpha_;
    T beta_;
    bool of_transpose_;
    std::shared_ptr<sequence::ProductSums> sums_;  ///< null: nobody asks for them
};

/// Appends such a product to a sequence. \throws Error(usage) as GhostedMatrix::apply() does
template <class T>
void append(const std::shared_ptr<detail::GhostedState<T>>& matrix, Sequence& sequence, const Vec<T>& x,
            const Vec<T>& y, T alpha, T beta, bool of_transpose);

}  // namespace rmsp::ghosted
