#pragma once

#include <memory>
#include <vector>

#include <runtime/engine/host/host_device.hpp>
#include <runtime/engine/worker.hpp>

namespace rmsp::engine::test {

/// Workers of so many host devices, which are open.
inline std::vector<std::unique_ptr<Worker>> host_workers(int count)
{
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < count; ++i) {
        DeviceInfo info;
        info.index = i;
        info.compute_units = 1;
        workers.push_back(std::make_unique<Worker>(i, Placement{}, [info] { return make_host_device(info); }));
    }
    for (auto& worker : workers) {
        worker->wait_until_open();
    }
    return workers;
}

}  // namespace rmsp::engine::test
