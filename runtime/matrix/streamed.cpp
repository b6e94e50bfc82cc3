#include "runtime/matrix/streamed.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>

#include <kernels/steps/support/support.hpp>

namespace rmsp::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// Of the pieces that are on their way before a vector that takes the cores long: two of the first ones.
constexpr std::int64_t most_bytes_ahead = std::int64_t{24} << 20;
// How much longer than a link a core takes for a vector. Its helpers are awake only when the first piece is there.
constexpr std::int64_t core_over_link = 10;

}  // namespace

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
        source_.rows->send(worker.device(), stream, slot.caller_row_ptr.data(), p + piece.first_row,
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
void StreamedPart<T>::send_indices(engine::Worker& worker, const StreamPiece& piece, IndexView indices,
                                   const engine::LockedArray& locked, std::int32_t* to) const
{
    const std::size_t bytes = static_cast<std::size_t>(piece.nnz) * sizeof(std::int32_t);
    indices.visit([&](const auto* index) {
        if constexpr (sizeof(*index) == sizeof(std::int32_t)) {
            locked.send(worker.device(), *copies_, to, index + piece.first, bytes);
        } else {
            worker.device().upload(*copies_, to, bytes, engine::narrowed(index + piece.first));
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
    } else if (source_.coordinates) {
        send_indices(worker, piece, source_.row_idx, *source_.rows, slot.row_idx.data());
    } else {
        send_row_pointers(worker, *copies_, piece, slot);
    }
    if (encoded.layout.columns == kernels::ColumnCode::raw) {
        send_indices(worker, piece, source_.a.col_idx, *source_.col_idx, slot.col_idx.data());
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
    } else if (!source_.coordinates) {
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
void StreamedPart<T>::heed(const engine::Rendezvous& meeting, std::size_t piece)
{
    if (!meeting.may_stop()) {
        return;
    }
    // What is queued cannot be taken back, and all of it would be queued long before it is done: a device has a few
    // pieces to multiply then, and the copies of as many as there are slots.
    constexpr std::size_t ahead = 3;
    if (piece >= ahead && slots_.size() > ahead) {
        slot_of(piece - ahead).free->synchronize();
    }
    meeting.stop_point();
}

template <class T>
void StreamedPart<T>::add_columns(engine::Worker& worker, const engine::Rendezvous& meeting, T alpha, const T* x, T* y)
{
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        heed(meeting, i);
        arrive(worker, i);
        // Coordinates hold entry numbers of x, pointers count from the piece's first row.
        const std::int64_t first = source_.coordinates ? 0 : pieces_[i].first_row;
        operators_[i]->apply(alpha, x + first, T{1}, y, worker.context());
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
void StreamedPart<T>::apply(engine::Worker& worker, const engine::Rendezvous& meeting, T alpha, const T* x, T beta,
                            T* y, T* carry)
{
    std::size_t stretch = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        heed(meeting, i);
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

template <class T>
std::int64_t StreamedPart<T>::piece_bytes(std::size_t piece) const noexcept
{
    const auto pointer_bytes = static_cast<std::int64_t>(
        row_pointers_ == RowPointers::host ? sizeof(std::int32_t) : source_.a.row_ptr.element_bytes());
    const kernels::PacketLayout packet = encoded_.empty() ? kernels::PacketLayout{} : encoded_[piece].layout;
    const std::int64_t nnz = pieces_[piece].nnz;
    if (source_.coordinates) {
        return nnz * source_.entry_bytes();
    }
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

#define RMSP_INSTANTIATE(T) template class StreamedPart<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
