#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/stored.hpp"
#include "runtime/spgemm/pointer_exchange.hpp"
#include "runtime/spgemm/slice_exchange.hpp"

namespace rmsp::spgemm {

/// Columns and values of a matrix that are in the devices' memory, on their way to the parts of a distributed one: from
/// device to device, however they lie.
template <class T>
class EntriesOnDevices final : public plan::ResidentEntries<T> {
public:
    /// \param slices  device i has entries [slices[i], slices[i + 1]), the first of them where parts[i] says
    /// \param first_rows  and rows [first_rows[i], first_rows[i + 1]); empty: row pointers do not come from here
    EntriesOnDevices(RuntimeState& runtime, std::vector<FactorPart<T>> parts, std::vector<std::int64_t> slices,
                     std::vector<std::int64_t> first_rows = {});

    void split(const Partition& partition) override;
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) override;
    void gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) override;
    void gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) override;
    void gather_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t* to) override;

private:
    template <class Pointer>
    void bring_row_ptr(engine::Worker& worker, engine::Rendezvous& meeting, Pointer* to);

    RuntimeState& runtime_;
    std::vector<FactorPart<T>> parts_;
    std::vector<std::int64_t> slices_;
    std::vector<std::int64_t> first_rows_;
    std::optional<SliceExchange> exchange_;
    Partition partition_;
    std::optional<PointerExchange> pointers_;
};

}  // namespace rmsp::spgemm
