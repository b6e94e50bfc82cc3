#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/product.hpp"
#include "runtime/matrix/shard.hpp"

/// Products in which several devices have some of the same rows of y: each adds into a partial y of its own, as long as
/// the rows that it touches, and the partial results are added by rows. (MSREP, section 3.2.2 and Algorithms 5 and 7)
/// A GPU's partial y is its slice of y with room beside it for what belongs to others, so that only that is moved and
/// added.
namespace rmsp::distributed {

/// What one device has for such a product besides its part of the matrix.
template <class T>
struct ColumnShard {
    /// Entries [begin, ...) of a vector on the device; `zero` is where entry 0 would be.
    struct Piece {
        kernels::DeviceArray<T> storage;
        T* zero = nullptr;
    };
    Piece partial;  ///< touched entries of y; host devices, which share the caller's y, unless there is only one
    Piece x;        ///< touched entries of a host x; GPUs
    Piece y;        ///< touched entries and the device's slice of a host y; GPUs
    std::unique_ptr<kernels::SpmvOperator<T>> owned_operator;  ///< null: no entries
    std::unique_ptr<kernels::SpmvOperator<T>>
        carry_operator;                   ///< of the row of M that the part shares with its predecessor
    StreamedPart<T>* streamed = nullptr;  ///< instead of the operators: the shard's
    std::int64_t owned_x = 0;             ///< entry of x where the operators' x begins
    std::int64_t carry_x = 0;
};

/// y = M^T x of a matrix M that is stored by rows, or y = M x of unsorted entries. Shared by the devices.
template <class T>
class ColumnProduct final : public Product<T> {
public:
    /// `of_transpose`: for A^T x rather than A x. Connects the transport that the plan's merge names.
    /// \throws Error(device) if that does not connect the devices
    ColumnProduct(MatrixState<T>& matrix, bool of_transpose);

    void apply(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x, T beta,
               const Target<T>& y, PhaseProbe* probe) override;
    /// Nothing is left to do.
    void finish_host_y(T*) const override {}
    void update_values(engine::Worker& worker) override;
    void close(int rank) noexcept override;

private:
    void make_ready() override;
    struct PlacedX {
        const T* zero;
        bool gathered;  ///< through the channel, which is to be settled
    };
    /// Makes one device's operators, room and events; on its worker. Returns the operator of the owned rows, null if
    /// there are no entries. `kernel` becomes another one where the choice is automatic and there is no room for a
    /// sorted copy.
    const kernels::SpmvOperator<T>* open(engine::Worker& worker, std::string& kernel);
    PlacedX place_x(engine::Worker& worker, engine::Rendezvous& meeting, const Source<T>& x, PhaseProbe* probe);
    /// Whether every device has all that it needs of a vector in its own slice.
    bool in_own_slices(const std::vector<std::int64_t>& slices) const;
    /// Queues the product for the touched entries of a partial y, of which those in [kept.first, kept.end) hold what is
    /// to be scaled by beta.
    void multiply(engine::Worker& worker, const engine::Rendezvous& meeting, T alpha, const T* x, T beta, T* y,
                  const transport::Range& kept);

    MatrixState<T>& matrix_;
    const bool of_transpose_;
    const bool swapped_;  ///< M^T x
    const bool coordinates_;
    const CooOrder order_;
    const bool in_order_;
    plan::Side x_;
    plan::Side y_;
    std::vector<void*> partials_;  ///< of each device, entry 0: of what open() made
    std::vector<std::unique_ptr<ColumnShard<T>>> shards_;
    transport::Transport* transport_ = nullptr;
    std::unique_ptr<transport::Channel> channel_;  ///< null: one device, or one memory
};

}  // namespace rmsp::distributed
