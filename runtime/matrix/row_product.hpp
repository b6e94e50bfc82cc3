#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/engine/hand_over.hpp"
#include "runtime/matrix/ghosts.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/product.hpp"
#include "runtime/matrix/row_shard.hpp"

namespace rmsp::distributed {

struct GhostSearch;

/// y = M x of a matrix M that is stored by rows: each row of y belongs to one device, which gets what it needs of x.
template <class T>
class RowProduct final : public Product<T> {
public:
    /// Of a matrix whose parts are on the devices.
    explicit RowProduct(MatrixState<T>& matrix);

    /// Chooses ranges or entries for the exchange of an x by rows. For entries it numbers the columns of all uploaded
    /// shards anew and makes what the devices need to send and to receive them. Before prepare().
    void choose_exchange(Exchange wanted);
    void apply(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x, T beta,
               const Target<T>& y, PhaseProbe* probe) override;
    std::int64_t leave_sums(int rank, double* sums) override;
    /// Adds the shared rows' carries to a host y, in device order.
    void finish_host_y(T* y) const override;
    void note_races(Plan& plan) const override;
    /// Bytes that an apply of a device takes, with the kernel that won if its race is decided. By any thread.
    std::int64_t apply_bytes(std::size_t rank) const;
    void update_values(engine::Worker& worker) override;
    void close(int rank) noexcept override;

    /// Whether some device needs entries of another one's slice of an x by rows.
    bool exchanges() const noexcept { return exchanges_; }
    /// Whether the columns of the shards are numbered anew: the own slice of x, then the ghosts.
    bool by_entries() const noexcept { return by_entries_; }
    /// How many ghosts each device has; 0 where x is not exchanged by entries.
    const std::vector<std::int64_t>& ghosts() const noexcept { return ghosts_; }
    /// Slices of an x by rows.
    const std::vector<std::int64_t>& x_slices() const noexcept { return x_slices_; }
    RowShard<T>& shard(std::size_t rank) const { return *shards_[rank]; }
    /// Gives columns of the worker's shard the matrix's own numbers, as far as those fit 32 bits; queued.
    void restore_columns(engine::Worker& worker, const std::int32_t* columns, std::int64_t n, std::int32_t* to) const;

private:
    void make_ready() override;
    /// Where the worker's kernel finds the entry of x that it calls 0 (see ShardPlan::index_base).
    struct PlacedX {
        const T* data;
        bool gathered;  ///< through the channel, which is to be settled
    };

    /// Counts the columns of the shard outside the device's slice of x.
    void find_ghosts(engine::Worker& worker, GhostSearch& search);
    /// Divides the ghosts into the popular ones and the others.
    void find_popular(engine::Worker& worker, GhostSearch& search);
    /// Numbers the columns of the shard anew, the ghosts behind the device's slice of x, and lists the ghosts.
    void renumber_shard(engine::Worker& worker, GhostSearch& search);
    /// Makes what a device needs to send and to receive entries.
    void open_halo(engine::Worker& worker, const GhostSearch& search);
    /// Finds the rows that are multiplied while x is exchanged, if that pays.
    void find_interior(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker) const;
    /// What products by rows need besides the part of the matrix: room for x and y where they are not on the device,
    /// and events.
    void open_shard(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker);
    /// Builds the operator of the owned rows. The names in the options and the plan are of the kernels for A itself,
    /// which may turn out not to be the planned ones; the plan then says so.
    void prepare_owned(Shard<T>& shard, RowShard<T>& own, engine::Worker& worker);
    /// Makes products by rows ready on one device.
    void prepare_rows(engine::Worker& worker);
    /// Whether x is exchanged between the devices as it is, rather than through copies of all of it.
    bool exchanged_by_rows(const Source<T>& x) const;
    /// Whether such an x has room for what comes from other devices, so that it need not be copied first.
    bool has_ghost_room(const VectorState<T>& x) const;
    /// Where the worker's kernel finds entry 0 of an x by rows that has all it needs.
    const T* entry_zero(const engine::Worker& worker, const VectorState<T>& x) const
    {
        const auto rank = static_cast<std::size_t>(worker.rank());
        return static_cast<const T*>(x.entry_zero[rank]) + matrix_.plan.shards[rank].index_base;
    }
    /// Brings the ghosts of one message; the first of them also brings the slice to where there is room for them.
    /// Returns where the worker's kernel finds its entry 0. The channel is to be settled.
    const T* exchange_message(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting,
                              const VectorState<T>& x, std::size_t index);
    /// Brings what the devices need of such an x to each of them, on one of the worker's streams, and returns where the
    /// worker's kernel finds its entry 0. The channel is to be settled.
    const T* exchange_by_rows(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting,
                              const VectorState<T>& x);
    /// Brings x to where the worker's kernel would read it if columns were not numbered anew.
    PlacedX place_whole_x(engine::Worker& worker, engine::Rendezvous& meeting, const Source<T>& x, PhaseProbe* probe);
    /// Brings x to where the worker's kernel reads it.
    PlacedX place_x(engine::Worker& worker, engine::Rendezvous& meeting, const Source<T>& x, PhaseProbe* probe);
    /// Multiplies with an x that is exchanged by rows, where it is: entries of other devices come to their place beside
    /// the slice on the worker's side stream, while the worker's stream multiplies what needs none of them: the rows of
    /// `interior`, or, if that is empty, the columns of the slice and the popular ghosts, which come first. Other rows
    /// follow on the side stream, other columns on the worker's.
    void multiply_overlapped(engine::Worker& worker, engine::Rendezvous& meeting, const transport::Range& interior,
                             T alpha, const VectorState<T>& x, T beta, T* y, PhaseProbe* probe);
    /// What the devices put their carries into. A host y has its own: its carries are read when the devices are done,
    /// while the next apply, to a y on the devices, may be under way already.
    T* carries_of(bool on_devices) const;
    bool popular_first() const { return !messages_[popular_ghosts].empty; }

    MatrixState<T>& matrix_;
    std::vector<std::unique_ptr<RowShard<T>>> shards_;  ///< of each device
    std::vector<std::int64_t> x_even_;        ///< even slices of x: how a host x is spread before it is gathered
    std::vector<std::int64_t> x_slices_;      ///< slices of an x by rows
    std::vector<transport::Range> x_needed_;  ///< columns that each device's shard touches
    bool exchanges_ = false;
    bool upload_needed_ = false;    ///< a host x goes to each device as far as it is needed there; nothing is gathered
    std::vector<void*> x_buffers_;  ///< RowShard::x of each device
    bool by_entries_ = false;
    /// Products with the columns of the own slice and the popular ghosts run while the others come, where operators can
    /// be split so.
    bool hides_entries_ = false;
    std::array<GhostMessage, ghost_messages> messages_;
    std::vector<std::int64_t> ghosts_;             ///< of each device; 0 where x is not exchanged by entries
    std::vector<std::int64_t> popular_;            ///< those of them that come first; 0 where none are hidden
    std::vector<void*> local_x_;                   ///< where entry 0 would be in RowShard::local_x of each device
    std::unique_ptr<transport::Channel> channel_;  ///< null: nothing is gathered
    engine::HandOver carry_order_;
    /// What each device adds to its predecessor's last row: one entry a device for a y on the devices, and as many for
    /// a host y.
    engine::PinnedBuffer carries_;
    std::vector<int> carry_count_;  ///< for each device: how many devices after it add to its last row
    bool any_carry_ = false;
};

/// The matrix's product by rows; null: its entries are not sorted.
template <class T>
RowProduct<T>* row_product(const MatrixState<T>& matrix)
{
    return plan::multiplies_by_rows(matrix.plan, plan::transposed(matrix.plan))
               ? static_cast<RowProduct<T>*>(matrix.products[plan::transposed(matrix.plan) ? 1 : 0].get())
               : nullptr;
}

}  // namespace rmsp::distributed
