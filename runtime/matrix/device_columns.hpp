#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kernels/spmv/choose/features.hpp>

#include "runtime/node/node.hpp"

namespace rmsp::distributed {

/// So many columns are faster copied to the host than looked at here and there.
inline constexpr std::int64_t few_columns = 1 << 20;

/// Columns of a matrix that are in the devices' memory, looked at there: the host gets the few that it asks for. Not on
/// a worker; blocks.
class DeviceColumns final : public kernels::ColumnReader {
public:
    /// \param slices  device i has entries [slices[i], slices[i + 1]), the first of them at parts[i]
    DeviceColumns(detail::RuntimeState& runtime, std::vector<const std::int32_t*> parts,
                  std::vector<std::int64_t> slices);
    kernels::IndexRange extent(const kernels::EntryRange& entries) override;
    std::vector<IndexView> ranges(std::span<const kernels::EntryRange> ranges) override;
    std::vector<std::int64_t> spread(std::int64_t first, std::int64_t step, std::int64_t count) override;

private:
    /// What the device has of these entries.
    kernels::EntryRange held(std::size_t rank, const kernels::EntryRange& entries) const;
    const std::int32_t* at(std::size_t rank, std::int64_t entry) const
    {
        return parts_[rank] + (entry - slices_[rank]);
    }
    /// f(worker) on all devices; waits.
    template <class F>
    void on_devices(const F& f);

    detail::RuntimeState& runtime_;
    std::vector<const std::int32_t*> parts_;
    std::vector<std::int64_t> slices_;
    HostVector<std::int32_t> copy_;
};

}  // namespace rmsp::distributed
