#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/spmv.hpp>
#include <kernels/steps/stream/stream.hpp>

#include "runtime/engine/device.hpp"
#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/phase_probe.hpp"
#include "runtime/matrix/stream_pieces.hpp"
#include "runtime/matrix/stream_source.hpp"
#include "runtime/transport/transport.hpp"

/// The streamed mode: a matrix that stays in the caller's host memory and comes to the devices in pieces at each apply.
namespace rmsp::distributed {

/// One device's part of a streamed matrix. Slots of device memory hold the pieces on their way: some wait, one is
/// filled, one is multiplied, by two streams that wait for each other's events. Made, used and freed on the device's
/// worker.
template <class T>
class StreamedPart {
public:
    /// Cuts the part, makes the slots, prepares the kernel of every piece, and encodes the pieces if the options say
    /// so; of the matrix only row pointers are copied to the device. Pieces are cut smaller where the memory has no
    /// room for the slots. `source` and `memory` outlive this. \throws Error(out_of_memory) if there is no room for the
    /// smallest pieces either `touched`: the rows of the streamed matrix are columns of products that add into these
    /// entries of y.
    StreamedPart(engine::Worker& worker, kernels::Memory& memory, const StreamSource<T>& source, const PartialCsr& part,
                 std::int64_t carry_nnz, const std::string& kernel, const DistributeOptions& options,
                 std::optional<transport::Range> touched = {});

    /// The caller's values changed: encodes them anew. No apply may be under way.
    void update_values(engine::Worker& worker);
    /// Bytes that an apply copies to the device.
    std::int64_t link_bytes() const noexcept;
    /// Pinned host memory that the encoded pieces take; 0: none is encoded.
    std::int64_t encoded_bytes() const noexcept { return static_cast<std::int64_t>(packets_.bytes()); }
    /// Seconds that encoding took.
    double encode_seconds() const noexcept { return encode_seconds_; }
    /// Whether the system refused page-locked memory for the encoded pieces, which are copied as they are then.
    bool encode_refused() const noexcept { return encode_refused_; }

    /// Queues the copy of the first piece, beside whatever the worker's stream does until apply().
    /// `probe`, if not null, gets the phase "pointers": what makes the pieces' row pointers local takes, all together.
    void start(engine::Worker& worker, PhaseProbe* probe);
    /// Between start() and apply(): copies entries of a vector from host memory of any kind, behind the pieces that
    /// were queued, and other pieces behind them while the cores prepare the next entries. The worker's stream goes on
    /// when they are there. On the stream of the pieces, since a copy engine serves one stream for as long as it has
    /// copies.
    void upload(engine::Worker& worker, T* to, const T* from, std::size_t bytes);
    /// Queues y = alpha A x + beta y for the owned rows and, if the part has a shared row, *carry = alpha A x for that.
    /// The job may end between two pieces: abandon() is then called for. \throws as Rendezvous::stop_point()
    void apply(engine::Worker& worker, const engine::Rendezvous& meeting, T alpha, const T* x, T beta, T* y, T* carry);
    /// By columns: queues y += alpha M^T x, with x from entry 0 and y from the first touched entry on.
    /// \throws as apply()
    void add_columns(engine::Worker& worker, const engine::Rendezvous& meeting, T alpha, const T* x, T* y);
    /// Behind apply(): copies the owned rows of y to host memory of any kind, each stretch as soon as it is complete,
    /// beside the copies of pieces to come. Pageable: returns when they are there. Pinned: the worker's stream goes on
    /// when they are.
    void download(engine::Worker& worker, T* host, const T* y);
    /// Queues copies from the part's page-locked arrays to its slots on the worker's stream, as large as fit, to
    /// measure the link: `bytes` together, some of them again where there are fewer. Returns what it queued; 0: nothing
    /// is locked.
    std::int64_t copy_without_use(engine::Worker& worker, std::int64_t bytes);
    /// After a failure between start() and the end of the apply: waits for what was queued, since the job ends when the
    /// worker's stream does, which then waits for these copies no more, and the caller may free the arrays.
    void abandon(engine::Worker& worker) noexcept;

private:
    struct Slot {
        kernels::DeviceArray<std::byte> caller_row_ptr;  ///< as they are in the caller's array
        kernels::DeviceArray<std::byte> packet;          ///< what is encoded of a piece
        kernels::DeviceArray<std::int32_t> row_ptr;
        kernels::DeviceArray<std::int32_t> row_idx;  ///< coordinates, which have no row pointers
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<T> values;
        std::unique_ptr<engine::Event> filled;  ///< recorded by the copies' stream
        std::unique_ptr<engine::Event> free;  ///< recorded by the worker's stream behind the kernels that read the slot
    };

    /// What link_bytes() counts of one piece.
    std::int64_t piece_bytes(std::size_t piece) const noexcept;

    /// Pieces [first piece, end) whose rows go to a host y as one.
    struct Stretch {
        std::size_t end = 0;
        std::unique_ptr<engine::Event> done;  ///< recorded by the worker's stream behind the last of them
    };
    /// Where an encoded piece is among the packets.
    struct EncodedPiece {
        kernels::PacketLayout layout;
        std::size_t begin = 0;
        bool multiplied_packed = false;  ///< by kernels::multiply_packet() instead of the piece's operator
    };

    Slot& slot_of(std::size_t piece) noexcept { return slots_[piece % slots_.size()]; }
    void build(engine::Worker& worker, const PartialCsr& part, std::int64_t carry_nnz, std::int64_t chunk_bytes,
               const StreamEnds& ends, const std::string& kernel, const DistributeOptions& options);
    void make_slots(engine::Worker& worker);
    void prepare(engine::Worker& worker, std::size_t piece, const std::string& kernel, Determinism determinism);
    std::unique_ptr<kernels::SpmvOperator<T>> prepare_coordinates(engine::Worker& worker, const StreamPiece& piece,
                                                                  const Slot& slot, const std::string& kernel,
                                                                  Determinism determinism,
                                                                  const kernels::Context& context) const;
    void encode(engine::Worker& worker);
    bool multiplies_packed(const StreamPiece& piece, const kernels::PacketLayout& layout) const;
    /// As they are in the caller's array, or made local on the way.
    void send_row_pointers(engine::Worker& worker, engine::Stream& stream, const StreamPiece& piece, Slot& slot) const;
    /// Makes what was sent local, on the worker's stream, unless it is. (MSREP, section 4.1)
    void localize_row_pointers(engine::Worker& worker, const StreamPiece& piece, Slot& slot) const;
    /// Row indices or columns, narrowed on the way if they are wide.
    void send_indices(engine::Worker& worker, const StreamPiece& piece, IndexView indices,
                      const engine::LockedArray& locked, std::int32_t* to) const;
    void make_stretches(engine::Worker& worker);
    /// Before a piece is queued, where the job may be stopped. \throws as Rendezvous::stop_point()
    void heed(const engine::Rendezvous& meeting, std::size_t piece);
    /// Queues the copy of a piece to its slot.
    void send(engine::Worker& worker, std::size_t piece);
    /// Queues what makes a piece's arrays ready in its slot.
    void arrive(engine::Worker& worker, std::size_t piece);
    void queue(engine::Worker& worker, std::size_t piece, T alpha, const T* x, T beta, T* y, T* carry);

    const StreamSource<T>& source_;
    kernels::Memory& memory_;
    const RowPointers row_pointers_;
    const std::int64_t first_owned_row_;
    const std::optional<transport::Range> touched_;
    std::unique_ptr<engine::Stream> copies_;
    std::unique_ptr<engine::Stream> results_;  ///< y on its way to the host
    std::unique_ptr<engine::Event> results_there_;
    std::unique_ptr<engine::Event> vector_there_;
    std::vector<Slot> slots_;
    std::vector<StreamPiece> pieces_;
    std::size_t sent_ = 0;         ///< pieces whose copies were queued for the apply under way
    PhaseProbe* probe_ = nullptr;  ///< of the apply under way
    std::vector<Stretch> stretches_;
    std::vector<std::unique_ptr<kernels::SpmvOperator<T>>>
        operators_;  ///< one a piece, for the slot that it passes through
    bool encodes_ = false;
    bool may_multiply_packed_ = false;  ///< products by rows whose kernel is chosen by the library, bits by nobody
    bool encode_refused_ = false;
    std::vector<EncodedPiece> encoded_;  ///< one a piece, if pieces are encoded
    engine::PinnedBuffer packets_;
    double encode_seconds_ = 0;
};

}  // namespace rmsp::distributed
