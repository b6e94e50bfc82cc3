#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kernels/spmv/choose/features.hpp>

#include "runtime/engine/worker.hpp"

namespace rmsp::distributed {

/// Columns of a part that are in the memory of its device, looked at there: the host gets the few that it asks for.
/// Entries have the numbers of the whole matrix. On the device's worker; waits for the device.
class PartColumns final : public kernels::ColumnReader {
public:
    /// \param columns  of the entries from number `first` on
    PartColumns(engine::Worker& worker, const std::int32_t* columns, std::int64_t first)
        : worker_(worker), columns_(columns), first_(first)
    {
    }
    kernels::IndexRange extent(const kernels::EntryRange& entries) override;
    std::vector<IndexView> ranges(std::span<const kernels::EntryRange> ranges) override;
    std::vector<std::int64_t> spread(std::int64_t first, std::int64_t step, std::int64_t count) override;
    kernels::FeatureSample sample() const override
    {
        return worker_.device().shares_host_memory() ? kernels::feature_sample : kernels::sample_beside_devices;
    }

private:
    engine::Worker& worker_;
    const std::int32_t* columns_;
    std::int64_t first_;
    HostVector<std::int32_t> copy_;
};

}  // namespace rmsp::distributed
