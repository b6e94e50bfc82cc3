#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan/stored.hpp"
#include "runtime/spgemm/slice_exchange.hpp"

namespace rmsp::spgemm {

/// A matrix whose rows are in pieces in the memory of the devices, on its way to the parts of a distributed one. A row
/// is what the first device has of it, then what the second one has, and so on: the transpose of a matrix that is cut
/// by rows.
template <class T>
class RowsInPieces final : public plan::ResidentEntries<T> {
public:
    /// Of all rows, on one device.
    struct Piece {
        IndexView pointers;  ///< rows + 1 of them, from 0; of the same width on all devices
        const std::int32_t* col_idx = nullptr;
        const T* values = nullptr;
    };
    /// \param pieces  of each device
    RowsInPieces(RuntimeState& runtime, std::int64_t rows, std::vector<Piece> pieces);

    /// Reads row pointers on the devices.
    void split(const Partition& partition) override;
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) override;
    void gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) override;
    void gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) override;
    void gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t* to) override;

private:
    /// What goes from one device to all.
    struct From {
        SliceExchange pointers;
        SliceExchange entries;
    };

    /// Brings the device's row pointers of all pieces.
    template <class Offset>
    std::vector<kernels::DeviceArray<Offset>> bring_pointers(engine::Worker& worker, engine::Rendezvous& meeting);
    template <class Offset>
    void add_pointers(engine::Worker& worker, engine::Rendezvous& meeting, IndexType type, void* to);
    void add_pointers(engine::Worker& worker, engine::Rendezvous& meeting, IndexType type, void* to);
    template <class Item>
    void join(engine::Worker& worker, engine::Rendezvous& meeting, const Item* Piece::*items, Item* to);
    template <class Offset, class Item>
    void join_as(engine::Worker& worker, engine::Rendezvous& meeting, const Item* Piece::*items, Item* to);

    RuntimeState& runtime_;
    std::int64_t rows_;
    std::vector<Piece> pieces_;
    std::vector<std::unique_ptr<From>> from_;
    std::vector<std::int64_t> part_rows_;  ///< of each device
};

}  // namespace rmsp::spgemm
