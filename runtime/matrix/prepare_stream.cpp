#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <utility>

#include "runtime/matrix/encode_pieces.hpp"
#include "runtime/matrix/streamed.hpp"
#include "runtime/plan/streamed_kernels.hpp"

/// What a streamed part makes once: its pieces, their slots and operators, and what is encoded.
namespace rmsp::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// One piece is filled and one is multiplied at any time, and a third keeps the link busy when the two differ in time;
// the others are filled while x comes from the host.
constexpr std::size_t slot_count = 6;
// Without DistributeOptions::chunk_bytes. Starting a copy costs a small share of what the bytes of even the last
// pieces take, which are the smallest: they remain to be multiplied when everything has arrived.
constexpr std::int64_t automatic_chunk_bytes = std::int64_t{64} << 20;
constexpr StreamEnds automatic_ends{std::int64_t{4} << 20, std::int64_t{16} << 20};
// Rows of y that leave for the host as one, at least; a piece's, if it has more.
constexpr std::int64_t least_stretch_bytes = std::int64_t{64} << 10;

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
      encodes_(options.encoding != StreamEncoding::none && !source.coordinates),
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
    const std::int64_t bytes = source_.entry_bytes();
    pieces_ = source_.coordinates
                  ? cut_coordinates(source_.row_idx, source_.order, part, carry_nnz, chunk_bytes, bytes, ends)
                  : cut_stream(source_.a.row_ptr, part, carry_nnz, chunk_bytes, bytes, ends);
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
        if (source_.coordinates) {
            slot.row_idx = kernels::DeviceArray<std::int32_t>(memory_, static_cast<std::size_t>(nnz));
        } else {
            slot.caller_row_ptr =
                kernels::DeviceArray<std::byte>(memory_, pointers * source_.a.row_ptr.element_bytes());
            slot.row_ptr = kernels::DeviceArray<std::int32_t>(memory_, pointers);
        }
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
    if (source_.coordinates) {
        operators_[piece_index] = prepare_coordinates(worker, piece, slot, kernel, determinism, context);
        return;
    }
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
    kernels::CsrShard<T> shard{
        piece.rows, a.cols, piece.nnz, IndexView(slot.row_ptr.data()), slot.col_idx.data(), slot.values.data()};
    shard.entries_later = true;
    operators_[piece_index] = plan::choose_streamed_spmv<T>(worker.device().info().kind, piece.carry ? "auto" : kernel,
                                                            determinism, rows, a.cols)
                                  .prepare(shard, rows, context);
}

template <class T>
std::unique_ptr<kernels::SpmvOperator<T>> StreamedPart<T>::prepare_coordinates(
    engine::Worker& worker, const StreamPiece& piece, const Slot& slot, const std::string& kernel,
    Determinism determinism, const kernels::Context& context) const
{
    const std::int32_t* row_idx = slot.row_idx.data();
    const std::int32_t* col_idx = slot.col_idx.data();
    kernels::CooShard<T> shard{piece.rows,      source_.a.cols, piece.nnz, CooOrder::by_row,
                               piece.first_row, row_idx,        col_idx,   slot.values.data()};
    if (touched_) {
        shard.rows = touched_->end - touched_->first;
        shard.first_row = touched_->first;
        shard.order = CooOrder::unsorted;
        if (source_.order == CooOrder::by_row) {
            // M^T x of an M by rows.
            shard.order = CooOrder::by_column;
            shard.cols = source_.a.rows;
            std::swap(shard.row_idx, shard.col_idx);
        }
    }
    return plan::choose_streamed_coo<T>(worker.device().info().kind, piece.carry ? "auto" : kernel, determinism,
                                        shard.order)
        .prepare(shard, context);
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

#define RMSP_INSTANTIATE(T)                                                                            \
    template StreamedPart<T>::StreamedPart(engine::Worker&, kernels::Memory&, const StreamSource<T>&,  \
                                           const PartialCsr&, std::int64_t, const std::string&,        \
                                           const DistributeOptions&, std::optional<transport::Range>); \
    template void StreamedPart<T>::update_values(engine::Worker&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
