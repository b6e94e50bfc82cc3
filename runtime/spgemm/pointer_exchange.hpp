#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <kernels/context.hpp>

#include "runtime/spgemm/exchange.hpp"

namespace rmsp::spgemm {

/// How devices get row pointers of a matrix from each other: each has some rows, with local pointers, and needs those
/// of some others.
class PointerExchange {
public:
    /// \param first_rows    of those that each device has, and the rows at the end
    /// \param first_entries of each device, and all at the end
    /// \param rows          that each device needs
    /// \param end_entries   entries before the end of those rows
    PointerExchange(RuntimeState& runtime, const std::string& transport, std::vector<std::int64_t> first_rows,
                    std::vector<std::int64_t> first_entries, std::vector<transport::Range> rows,
                    std::vector<std::int64_t> end_entries);

    /// Memory for what goes on at a device.
    struct Room {
        kernels::DeviceArray<std::byte> own;
        kernels::DeviceArray<std::byte> needed;
    };
    /// \throws Error(out_of_memory)
    Room make_room(engine::Worker& worker) const;
    /// Calls use(pointers): those of the rows that the device needs, and what follows the last of them, counted from
    /// the matrix's first entry. What it queues may read them. Every worker of the job calls this. Waits for the
    /// device. \param held  local pointers of the device's rows
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, IndexView held, const Room& room,
                const std::function<void(IndexView pointers)>& use);

private:
    template <class Pointer>
    void gather_as(engine::Worker& worker, engine::Rendezvous& meeting, IndexView held, const Room& room,
                   const std::function<void(IndexView pointers)>& use);
    std::int64_t nnz() const { return first_entries_.back(); }

    std::vector<std::int64_t> first_entries_;
    std::vector<std::int64_t> end_entries_;
    EntryExchange exchange_;  ///< of rows: `values` are the pointers
};

}  // namespace rmsp::spgemm
