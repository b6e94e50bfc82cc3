#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/matrix/device_columns.hpp"
#include "runtime/plan/stored.hpp"
#include "runtime/spgemm/exchange.hpp"

namespace rmsp::spgemm {

/// Columns and values of a matrix that are in the devices' memory, on their way to the parts of a distributed one: from
/// device to device, however they lie.
template <class T>
class EntriesOnDevices final : public plan::ResidentEntries<T> {
public:
    /// \param slices  device i has entries [slices[i], slices[i + 1]), the first of them where parts[i] says
    EntriesOnDevices(RuntimeState& runtime, std::vector<FactorPart<T>> parts, std::vector<std::int64_t> slices);

    /// For the host to look at.
    distributed::DeviceColumns columns() const;

    void split(const Partition& partition) override;
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) override;
    void gather_columns(engine::Worker& worker, engine::Rendezvous& meeting, std::int32_t* to) override;

private:
    RuntimeState& runtime_;
    std::vector<FactorPart<T>> parts_;
    std::vector<std::int64_t> slices_;
    std::optional<ClosedAfterUse> exchange_;
};

}  // namespace rmsp::spgemm
