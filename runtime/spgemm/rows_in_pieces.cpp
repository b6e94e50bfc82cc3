#include "runtime/spgemm/rows_in_pieces.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <kernels/steps/convert/convert.hpp>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::spgemm {

template <class T>
RowsInPieces<T>::RowsInPieces(RuntimeState& runtime, std::int64_t rows, std::vector<Piece> pieces)
    : runtime_(runtime), rows_(rows), pieces_(std::move(pieces))
{
}

template <class T>
void RowsInPieces<T>::split(const Partition& partition)
{
    const std::size_t devices = pieces_.size();
    // Where each device's entries of each part begin, and where they end.
    std::vector<std::vector<transport::Range>> entries(devices, std::vector<transport::Range>(devices));
    std::vector<std::int64_t> all(devices);
    runtime_
        .submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            pieces_[rank].pointers.visit([&](const auto* pointers) {
                using Pointer = std::remove_cvref_t<decltype(*pointers)>;
                std::vector<Pointer> found(2 * devices + 1);
                const auto fetch = [&](std::int64_t row, Pointer& to) {
                    worker.device().download(worker.stream(), &to, pointers + row, sizeof to);
                };
                for (std::size_t part = 0; part < devices; ++part) {
                    fetch(partition.parts[part].start_row, found[2 * part]);
                    fetch(partition.parts[part].end_row, found[2 * part + 1]);
                }
                fetch(rows_, found.back());
                worker.stream().synchronize();
                for (std::size_t part = 0; part < devices; ++part) {
                    entries[rank][part] = {found[2 * part], found[2 * part + 1]};
                }
                all[rank] = found.back();
            });
        })
        .get();
    std::vector<transport::Range> pointers;
    part_rows_.clear();
    for (const PartialCsr& part : partition.parts) {
        part_rows_.push_back(part.rows());
        pointers.push_back(part.rows() > 0 ? transport::Range{part.start_row, part.end_row + 1} : transport::Range{});
    }
    from_.clear();
    for (std::size_t rank = 0; rank < devices; ++rank) {
        const auto slices = [&](std::int64_t size) {
            return all_on(static_cast<int>(rank), static_cast<int>(devices), size);
        };
        from_.emplace_back(new From{SliceExchange(runtime_, slices(rows_ + 1), pointers),
                                    SliceExchange(runtime_, slices(all[rank]), std::move(entries[rank]))});
    }
}

template <class T>
template <class Offset>
std::vector<kernels::DeviceArray<Offset>> RowsInPieces<T>::bring_pointers(engine::Worker& worker,
                                                                          engine::Rendezvous& meeting)
{
    const int rank = worker.rank();
    const IndexView own = pieces_[static_cast<std::size_t>(rank)].pointers;
    std::vector<kernels::DeviceArray<Offset>> pointers;
    for (const std::unique_ptr<From>& from : from_) {
        pointers.emplace_back(*worker.context().memory, static_cast<std::size_t>(from->pointers.size(rank)));
        from->pointers.gather(worker, meeting, static_cast<const Offset*>(own.data()), pointers.back().data());
    }
    return pointers;
}

template <class T>
template <class Offset, class Item>
void RowsInPieces<T>::join_as(engine::Worker& worker, engine::Rendezvous& meeting, const Item* Piece::*items, Item* to)
{
    const int rank = worker.rank();
    const Piece& own = pieces_[static_cast<std::size_t>(rank)];
    const std::int64_t rows = part_rows_[static_cast<std::size_t>(rank)];
    kernels::Memory& memory = *worker.context().memory;
    const std::vector<kernels::DeviceArray<Offset>> pointers = bring_pointers<Offset>(worker, meeting);
    std::vector<kernels::DeviceArray<Item>> entries;
    std::vector<kernels::RowPieces<Item, Offset>> pieces;
    for (const std::unique_ptr<From>& from : from_) {
        entries.emplace_back(memory, static_cast<std::size_t>(from->entries.size(rank)));
        from->entries.gather(worker, meeting, own.*items, entries.back().data());
        pieces.push_back({pointers[pieces.size()].data(), entries.back().data()});
    }
    if (rows > 0) {
        const kernels::DeviceArray<kernels::RowPieces<Item, Offset>> there(memory, pieces.size());
        worker.device().upload(worker.stream(), there.data(), pieces.data(), pieces.size() * sizeof(pieces.front()));
        kernels::join_rows(rows, static_cast<const kernels::RowPieces<Item, Offset>*>(there.data()),
                           static_cast<int>(pieces.size()), to, worker.context());
        worker.stream().synchronize();  // before `pieces` goes
    }
}

template <class T>
template <class Item>
void RowsInPieces<T>::join(engine::Worker& worker, engine::Rendezvous& meeting, const Item* Piece::*items, Item* to)
{
    if (pieces_.front().pointers.type() == IndexType::i32) {
        join_as<std::int32_t>(worker, meeting, items, to);
    } else {
        join_as<std::int64_t>(worker, meeting, items, to);
    }
}

template <class T>
void RowsInPieces<T>::gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to)
{
    join(worker, meeting, &Piece::values, to);
}

template <class T>
void RowsInPieces<T>::gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to)
{
    join(worker, meeting, &Piece::col_idx, to);
}

template <class T>
template <class Offset>
void RowsInPieces<T>::add_pointers(engine::Worker& worker, engine::Rendezvous& meeting, IndexType type, void* to)
{
    const std::int64_t rows = part_rows_[static_cast<std::size_t>(worker.rank())];
    const std::vector<kernels::DeviceArray<Offset>> pointers = bring_pointers<Offset>(worker, meeting);
    if (rows == 0) {
        const std::int64_t none = 0;
        worker.device().upload(worker.stream(), to, &none, type == IndexType::i32 ? 4 : 8);
        worker.stream().synchronize();
        return;
    }
    std::vector<const Offset*> arrays;
    for (const kernels::DeviceArray<Offset>& one : pointers) {
        arrays.push_back(one.data());
    }
    const kernels::DeviceArray<const Offset*> there(*worker.context().memory, arrays.size());
    worker.device().upload(worker.stream(), there.data(), arrays.data(), arrays.size() * sizeof(const Offset*));
    kernels::add_pointers(rows, static_cast<const Offset* const*>(there.data()), static_cast<int>(arrays.size()), type,
                          to, worker.context());
    worker.stream().synchronize();  // before `arrays` goes
}

template <class T>
void RowsInPieces<T>::add_pointers(engine::Worker& worker, engine::Rendezvous& meeting, IndexType type, void* to)
{
    if (pieces_.front().pointers.type() == IndexType::i32) {
        add_pointers<std::int32_t>(worker, meeting, type, to);
    } else {
        add_pointers<std::int64_t>(worker, meeting, type, to);
    }
}

template <class T>
void RowsInPieces<T>::gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to)
{
    add_pointers(worker, meeting, IndexType::i32, to);
}

template <class T>
void RowsInPieces<T>::gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t* to)
{
    add_pointers(worker, meeting, IndexType::i64, to);
}

#define RMSP_INSTANTIATE(T) template class RowsInPieces<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
