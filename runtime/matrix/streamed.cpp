#include "runtime/matrix/streamed.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <span>

#include <kernels/steps/support/support.hpp>

#include "runtime/matrix/encode_pieces.hpp"
#include "runtime/plan/streamed_kernels.hpp"

namespace rmsp::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// One piece is filled and one is multiplied at any time, and a third keeps the link busy when the two differ in time;
// the others are filled while x comes from the host.
constexpr std::size_t slot_count = 6;
// Without DistributeOptions::chunk_bytes. A link takes 1.2 ms for the largest pieces, 0.3 for the first ones and 75 us
// for the last ones, which is what remains to be multiplied when everything has arrived. Each copy costs 3 us more than
// its bytes.
constexpr std::int64_t automatic_chunk_bytes = std::int64_t{64} << 20;
constexpr StreamEnds automatic_ends{std::int64_t{4} << 20, std::int64_t{16} << 20};
// Of the pieces that are on their way before a vector that takes the cores long: two of the first ones.
constexpr std::int64_t most_bytes_ahead = std::int64_t{24} << 20;
// How much longer than a link a core takes for a vector; its helpers are awake only after 0.3 ms, which is the first
// piece's time.
constexpr std::int64_t core_over_link = 10;
// Rows of y that leave for the host as one, at least; a piece's, if it has more.
constexpr std::int64_t least_stretch_bytes = std::int64_t{64} << 10;

template <class T>
constexpr std::int64_t entry_bytes = sizeof(std::int32_t) + sizeof(T);

}  // namespace

template <class T>
StreamedPart<T>::StreamedPart(engine::Worker& worker, kernels::Memory& memory, const StreamSource<T>& source,
                              const PartialCsr& part, std::int64_t carry_nnz, const std::string& kernel,
                              const DistributeOptions& options, std::optional<transport::Range> touched)
    : source_(source),
      memory_(memory),
      row_pointers_(options.row_pointers),
      first_owned_row_(part.first_owned_row()),
      touched_(touched),
      copies_(worker.device().make_stream(engine::StreamPriority::normal)),
      results_(worker.device().make_stream(engine::StreamPriority::normal)),
      results_there_(worker.device().make_event(false)),
      vector_there_(worker.device().make_event(false)),
      encodes_(options.encoding != StreamEncoding::none),
      // With determinism device_count a row's bits must not depend on how the piece that it falls into is encoded.
      may_multiply_packed_(!touched && options.kernel == "auto" && options.determinism != Determinism::device_count)
{
    const bool automatic = options.chunk_bytes == 0;
    for (std::int64_t chunk_bytes = automatic ? automatic_chunk_bytes : options.chunk_bytes;; chunk_bytes /= 2) {
        try {
            build(worker, part, carry_nnz, chunk_bytes, automatic ? automatic_ends : StreamEnds{}, kernel, options);
            return;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory || chunk_bytes / 2 < plan::least_chunk_bytes) {
                throw;
            }
            // The copies of row pointers that were queued read and write what goes now.
            worker.stream().synchronize();
            operators_.clear();
            slots_.clear();
        }
    }
}

template <class T>
void StreamedPart<T>::build(engine::Worker& worker, const PartialCsr& part, std::int64_t carry_nnz,
                            std::int64_t chunk_bytes, const StreamEnds& ends, const std::string& kernel,
                            const DistributeOptions& options)
{
    pieces_ = cut_stream(source_.a.row_ptr, part, carry_nnz, chunk_bytes, entry_bytes<T>, ends);
    make_slots(worker);
    make_stretches(worker);
    operators_.resize(pieces_.size());
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        prepare(worker, i, kernel, options.determinism);
    }
    if (encodes_) {
        encode(worker);
    }
}

template <class T>
void StreamedPart<T>::make_slots(engine::Worker& worker)
{
    engine::Device& device = worker.device();
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
    for (const StreamPiece& piece : pieces_) {
        rows = std::max(rows, piece.rows);
        nnz = std::max(nnz, piece.nnz);
    }
    slots_.resize(std::min(slot_count, pieces_.size()));
    for (Slot& slot : slots_) {
        const auto pointers = static_cast<std::size_t>(rows + 1);
        slot.caller_row_ptr = kernels::DeviceArray<std::byte>(memory_, pointers * source_.a.row_ptr.element_bytes());
        slot.row_ptr = kernels::DeviceArray<std::int32_t>(memory_, pointers);
        slot.col_idx = kernels::DeviceArray<std::int32_t>(memory_, static_cast<std::size_t>(nnz));
        slot.values = kernels::DeviceArray<T>(memory_, static_cast<std::size_t>(nnz));
        slot.filled = device.make_event(false);
        slot.free = device.make_event(false);
    }
}

template <class T>
void StreamedPart<T>::make_stretches(engine::Worker& worker)
{
    stretches_.clear();
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        rows += pieces_[i].carry || pieces_[i].continues ? 0 : pieces_[i].rows;
        const bool last = i + 1 == pieces_.size();
        // A row that is cut is complete with its last piece.
        if (last || (rows * static_cast<std::int64_t>(sizeof(T)) >= least_stretch_bytes && !pieces_[i + 1].continues)) {
            stretches_.push_back({i + 1, worker.device().make_event(false)});
            rows = 0;
        }
    }
}

template <class T>
void StreamedPart<T>::prepare(engine::Worker& worker, std::size_t piece_index, const std::string& kernel,
                              Determinism determinism)
{
    const StreamPiece& piece = pieces_[piece_index];
    Slot& slot = slot_of(piece_index);
    const CsrView<T>& a = source_.a;
    kernels::Context context = worker.context();
    context.memory = &memory_;
    // All on the worker's stream, so the slot's row pointers are those of this piece until its operator is made.
    send_row_pointers(worker, worker.stream(), piece, slot);
    localize_row_pointers(worker, piece, slot);
    if (touched_) {
        const kernels::CscShard<T> shard{touched_->end - touched_->first,
                                         piece.rows,
                                         piece.nnz,
                                         IndexView(slot.row_ptr.data()),
                                         slot.col_idx.data(),
                                         slot.values.data(),
                                         touched_->first};
        operators_[piece_index] =
            plan::choose_streamed_csc<T>(worker.device().info().kind, kernel, determinism).prepare(shard, context);
        return;
    }
    RowStatistics rows{1, piece.nnz, piece.nnz == 0 ? 1 : 0, piece.nnz, static_cast<double>(piece.nnz), 0};
    if (piece.rows > 1) {
        rows =
            a.row_ptr.visit([&](const auto* p) { return row_statistics(piece.rows, IndexView(p + piece.first_row)); });
    }
    const kernels::CsrShard<T> shard{
        piece.rows, a.cols, piece.nnz, IndexView(slot.row_ptr.data()), slot.col_idx.data(), slot.values.data()};
    operators_[piece_index] = plan::choose_streamed_spmv<T>(worker.device().info().kind, piece.carry ? "auto" : kernel,
                                                            determinism, rows, a.cols)
                                  .prepare(shard, rows, context);
}

template <class T>
bool StreamedPart<T>::multiplies_packed(const StreamPiece& piece, const kernels::PacketLayout& layout) const
{
    // One thread a row: enough rows for a GPU, and none that a thread would be at long after the others.
    constexpr std::int64_t least_rows = 32'768;
    constexpr std::int64_t longest_row = 512;
    if (!may_multiply_packed_ || !kernels::multipliable(layout) || piece.rows < least_rows) {
        return false;
    }
    return source_.a.row_ptr.visit([&](const auto* p) {
        return row_statistics(piece.rows, IndexView(p + piece.first_row)).longest_row <= longest_row;
    });
}

template <class T>
void StreamedPart<T>::encode(engine::Worker& worker)
{
    const auto begin = Clock::now();
    const int threads = std::max(1, static_cast<int>(worker.device().info().placement.cpus.size()));
    std::vector<kernels::Packet> packets = encode_pieces(source_.a, pieces_, threads);

    encoded_.assign(pieces_.size(), {});
    std::size_t all_bytes = 0;
    std::size_t most_bytes = 0;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        constexpr std::size_t line = 256;
        encoded_[i] = {packets[i].layout, all_bytes, multiplies_packed(pieces_[i], packets[i].layout)};
        all_bytes += (packets[i].bytes.size() + line - 1) / line * line;
        most_bytes = std::max(most_bytes, packets[i].bytes.size());
    }
    packets_ = {};
    try {
        packets_ = engine::PinnedBuffer(worker.device(), all_bytes);
        encode_refused_ = false;
    } catch (const Error&) {
        encoded_.clear();
        encode_refused_ = true;
        return;
    }
    auto* const to = static_cast<std::byte*>(packets_.data());
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (std::size_t i = 0; i < packets.size(); ++i) {
        std::copy(packets[i].bytes.begin(), packets[i].bytes.end(), to + encoded_[i].begin);
        packets[i].bytes = {};
    }
    for (Slot& slot : slots_) {
        if (slot.packet.size() < most_bytes) {
            slot.packet.reset();
            slot.packet = kernels::DeviceArray<std::byte>(memory_, most_bytes);
        }
    }
    encode_seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
}

template <class T>
void StreamedPart<T>::update_values(engine::Worker& worker)
{
    if (encodes_) {
        encode(worker);
    }
}

template <class T>
std::int64_t StreamedPart<T>::piece_bytes(std::size_t piece) const noexcept
{
    const auto pointer_bytes = static_cast<std::int64_t>(
        row_pointers_ == RowPointers::host ? sizeof(std::int32_t) : source_.a.row_ptr.element_bytes());
    const kernels::PacketLayout packet = encoded_.empty() ? kernels::PacketLayout{} : encoded_[piece].layout;
    const std::int64_t nnz = pieces_[piece].nnz;
    return (packet.encoded() ? packet.bytes : (pieces_[piece].rows + 1) * pointer_bytes) +
           (packet.columns == kernels::ColumnCode::raw ? nnz * static_cast<std::int64_t>(sizeof(std::int32_t)) : 0) +
           (packet.values == kernels::ValueCode::raw ? nnz * static_cast<std::int64_t>(sizeof(T)) : 0);
}

template <class T>
std::int64_t StreamedPart<T>::link_bytes() const noexcept
{
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        bytes += piece_bytes(i);
    }
    return bytes;
}

template <class T>
void StreamedPart<T>::send_row_pointers(engine::Worker& worker, engine::Stream& stream, const StreamPiece& piece,
                                        Slot& slot) const
{
    source_.a.row_ptr.visit([&](const auto* p) {
        if (row_pointers_ == RowPointers::host) {
            std::atomic<std::int64_t> nanoseconds = 0;
            worker.device().upload(
                stream, slot.row_ptr.data(), static_cast<std::size_t>(piece.rows + 1) * sizeof(std::int32_t),
                [&, fill = engine::localized(p + piece.first_row, piece.first, piece.nnz, slot.row_ptr.data())](
                    std::byte* out, std::size_t begin, std::size_t bytes) {
                    const auto started = Clock::now();
                    fill(out, begin, bytes);
                    nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - started).count();
                });
            if (probe_ != nullptr) {
                probe_->add(worker, "pointers", 1e-9 * static_cast<double>(nanoseconds));
            }
            return;
        }
        source_.row_ptr->send(worker.device(), stream, slot.caller_row_ptr.data(), p + piece.first_row,
                              static_cast<std::size_t>(piece.rows + 1) * sizeof(*p));
    });
}

template <class T>
void StreamedPart<T>::localize_row_pointers(engine::Worker& worker, const StreamPiece& piece, Slot& slot) const
{
    if (row_pointers_ == RowPointers::host) {
        return;
    }
    const std::size_t begin = probe_ != nullptr ? probe_->mark(worker, PhaseProbe::no_phase) : 0;
    source_.a.row_ptr.visit([&](const auto* p) {
        const auto* const sent = reinterpret_cast<decltype(p)>(slot.caller_row_ptr.data());
        kernels::localize_row_ptr(IndexView(sent), piece.rows, piece.first, piece.nnz, slot.row_ptr.data(),
                                  worker.context());
    });
    if (probe_ != nullptr) {
        probe_->mark(worker, "pointers", worker.stream(), begin);
    }
}

template <class T>
void StreamedPart<T>::send_columns(engine::Worker& worker, const StreamPiece& piece, Slot& slot) const
{
    const std::size_t bytes = static_cast<std::size_t>(piece.nnz) * sizeof(std::int32_t);
    source_.a.col_idx.visit([&](const auto* col) {
        if constexpr (sizeof(*col) == sizeof(std::int32_t)) {
            source_.col_idx->send(worker.device(), *copies_, slot.col_idx.data(), col + piece.first, bytes);
        } else {
            worker.device().upload(*copies_, slot.col_idx.data(), bytes, engine::narrowed(col + piece.first));
        }
    });
}

template <class T>
void StreamedPart<T>::send(engine::Worker& worker, std::size_t piece_index)
{
    const StreamPiece& piece = pieces_[piece_index];
    Slot& slot = slot_of(piece_index);
    const EncodedPiece encoded = encoded_.empty() ? EncodedPiece{} : encoded_[piece_index];
    // Recorded behind the slot's last use, be it in this apply or the one before; copies run ahead of the kernels until
    // then.
    copies_->wait(*slot.free);
    if (encoded.layout.encoded()) {
        copies_->copy(slot.packet.data(), static_cast<const std::byte*>(packets_.data()) + encoded.begin,
                      static_cast<std::size_t>(encoded.layout.bytes));
    } else {
        send_row_pointers(worker, *copies_, piece, slot);
    }
    if (encoded.layout.columns == kernels::ColumnCode::raw) {
        send_columns(worker, piece, slot);
    }
    if (encoded.layout.values == kernels::ValueCode::raw) {
        source_.values->send(worker.device(), *copies_, slot.values.data(), source_.a.values + piece.first,
                             static_cast<std::size_t>(piece.nnz) * sizeof(T));
    }
    copies_->record(*slot.filled);
}

template <class T>
void StreamedPart<T>::arrive(engine::Worker& worker, std::size_t piece_index)
{
    const StreamPiece& piece = pieces_[piece_index];
    Slot& slot = slot_of(piece_index);
    // As far ahead as there are slots: the kernels that read them before have been queued.
    for (; sent_ < std::min(piece_index + slots_.size(), pieces_.size()); ++sent_) {
        send(worker, sent_);
    }
    worker.stream().wait(*slot.filled);
    if (!encoded_.empty() && encoded_[piece_index].multiplied_packed) {
        return;
    }
    if (!encoded_.empty() && encoded_[piece_index].layout.encoded()) {
        kernels::decode_packet(encoded_[piece_index].layout, slot.packet.data(), slot.row_ptr.data(),
                               slot.col_idx.data(), slot.values.data(), worker.context());
    } else {
        localize_row_pointers(worker, piece, slot);
    }
}

template <class T>
void StreamedPart<T>::queue(engine::Worker& worker, std::size_t piece_index, T alpha, const T* x, T beta, T* y,
                            T* carry)
{
    const StreamPiece& piece = pieces_[piece_index];
    arrive(worker, piece_index);
    T* const out = piece.carry ? carry : y + (piece.first_row - first_owned_row_);
    const T out_beta = piece.continues ? T{1} : piece.carry ? T{0} : beta;
    if (!encoded_.empty() && encoded_[piece_index].multiplied_packed) {
        kernels::multiply_packet(encoded_[piece_index].layout, slot_of(piece_index).packet.data(), alpha, x, out_beta,
                                 out, worker.context());
    } else {
        operators_[piece_index]->apply(alpha, x, out_beta, out, worker.context());
    }
    worker.stream().record(*slot_of(piece_index).free);
}

template <class T>
void StreamedPart<T>::add_columns(engine::Worker& worker, T alpha, const T* x, T* y)
{
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        arrive(worker, i);
        operators_[i]->apply(alpha, x + pieces_[i].first_row, T{1}, y, worker.context());
        worker.stream().record(*slot_of(i).free);
    }
    sent_ = 0;
    probe_ = nullptr;
}

template <class T>
void StreamedPart<T>::start(engine::Worker& worker, PhaseProbe* probe)
{
    probe_ = probe;
    sent_ = 0;
    if (!pieces_.empty()) {
        send(worker, sent_++);
    }
}

template <class T>
void StreamedPart<T>::upload(engine::Worker& worker, T* to, const T* from, std::size_t bytes)
{
    // No more than the link carries while the cores are at the vector: of a small matrix there may be nothing left to
    // multiply else when the vector arrives.
    const std::int64_t needed = static_cast<std::int64_t>(bytes) * core_over_link;
    std::int64_t ahead = 0;
    for (std::size_t i = 0; i < slots_.size() && (i < sent_ || ahead < std::min(needed, most_bytes_ahead)); ++i) {
        if (i == sent_) {
            send(worker, sent_++);
        }
        ahead += piece_bytes(i);
    }
    engine::Between between;
    // Pieces that go through the pinned ring themselves follow the vector.
    if (ahead < needed && row_pointers_ == RowPointers::device && !source_.staged()) {
        between = [&] {
            // Not more than the link needs, since the rest of the vector has to wait for it.
            while (sent_ >= 2 && sent_ < slots_.size() && slot_of(sent_ - 2).filled->ready()) {
                send(worker, sent_++);
            }
        };
    }
    worker.device().upload(*copies_, to, from, bytes, between);
    copies_->record(*vector_there_);
    worker.stream().wait(*vector_there_);
}

template <class T>
void StreamedPart<T>::apply(engine::Worker& worker, T alpha, const T* x, T beta, T* y, T* carry)
{
    std::size_t stretch = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        queue(worker, i, alpha, x, beta, y, carry);
        if (i + 1 == stretches_[stretch].end) {
            worker.stream().record(*stretches_[stretch++].done);
        }
    }
    sent_ = 0;
    probe_ = nullptr;
}

template <class T>
void StreamedPart<T>::download(engine::Worker& worker, T* host, const T* y)
{
    std::vector<engine::Download> parts;
    std::int64_t row = first_owned_row_;
    for (const Stretch& stretch : stretches_) {
        const StreamPiece& last = pieces_[stretch.end - 1];
        const std::int64_t end_row = last.carry ? row : last.first_row + last.rows;
        parts.push_back({host + (row - first_owned_row_), y + (row - first_owned_row_),
                         static_cast<std::size_t>(end_row - row) * sizeof(T), stretch.done.get()});
        row = end_row;
    }
    worker.device().download(*results_, parts);
    results_->record(*results_there_);
    worker.stream().wait(*results_there_);
}

template <class T>
std::int64_t StreamedPart<T>::copy_without_use(engine::Worker& worker, std::int64_t bytes)
{
    if (pieces_.empty()) {
        return 0;
    }
    const std::int64_t first = pieces_.front().first;
    const std::int64_t end = pieces_.back().first + pieces_.back().nnz;
    const std::span<const std::byte> from =
        packets_.bytes() > 0
            ? std::span(static_cast<const std::byte*>(packets_.data()), packets_.bytes())
            : source_.values->direct(source_.a.values + first, static_cast<std::size_t>(end - first) * sizeof(T));
    const auto room = [&](const Slot& slot) {
        return packets_.bytes() > 0 ? slot.packet.size() : slot.values.size() * sizeof(T);
    };
    // Smaller copies would not show what the link carries.
    constexpr std::size_t least_bytes = std::size_t{4} << 20;
    if (std::min(from.size(), room(slots_.front())) < least_bytes) {
        return 0;
    }
    std::size_t begin = 0;
    std::int64_t queued = 0;
    for (std::size_t i = 0; queued < bytes; ++i) {
        Slot& slot = slot_of(i);
        const std::size_t n = std::min({room(slot), from.size() - begin, static_cast<std::size_t>(bytes - queued)});
        void* const to = packets_.bytes() > 0 ? static_cast<void*>(slot.packet.data()) : slot.values.data();
        worker.stream().copy(to, from.data() + begin, n);
        queued += static_cast<std::int64_t>(n);
        begin = begin + n < from.size() ? begin + n : 0;
    }
    return queued;
}

template <class T>
void StreamedPart<T>::abandon(engine::Worker& worker) noexcept
{
    sent_ = 0;
    probe_ = nullptr;
    try {
        copies_->synchronize();
        worker.stream().synchronize();
        results_->synchronize();
    } catch (const Error&) {
        // The device is lost, and the first error says why.
    }
}

#define RMSP_INSTANTIATE(T) template class StreamedPart<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
