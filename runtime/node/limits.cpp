#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/version.hpp>

#include <kernels/steps/support/support.hpp>

#include "runtime/node/node.hpp"

/// What bounds an apply: the bandwidth of the devices' memory.
namespace rmsp {
namespace node {
namespace {

/// Largest rate in GB/s of `work`, which moves `bytes` and is queued by all devices at the same time.
double best_rate(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t bytes,
                 const std::function<void()>& work)
{
    constexpr int repetitions = 7;
    const auto before = worker.device().make_event(true);
    const auto after = worker.device().make_event(true);
    double best = 0;
    for (int i = 0; i < repetitions; ++i) {
        worker.stream().synchronize();
        meeting.arrive_and_wait();
        worker.stream().record(*before);
        work();
        worker.stream().record(*after);
        after->synchronize();
        const double seconds = after->seconds_since(*before);
        best = std::max(best, seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0.0);
    }
    return best;
}

double read_rate(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t bytes)
{
    const std::int64_t n = bytes / static_cast<std::int64_t>(sizeof(double));
    const auto context = worker.context();
    kernels::DeviceArray<double> data(worker.device(), static_cast<std::size_t>(n));
    kernels::DeviceArray<double> sink(worker.device(), read_sink_entries);
    kernels::fill(data.data(), n, 1.0, context);
    return best_rate(worker, meeting, bytes, [&] { kernels::read_all(data.data(), n, sink.data(), context); });
}

/// Host memory that is read to measure its bandwidth: little of it stays in the last-level cache from one pass to the
/// next.
std::int64_t uncached_host_bytes()
{
    constexpr std::int64_t least = std::int64_t{512} << 20;
    constexpr std::int64_t most = std::int64_t{2} << 30;
#ifdef _SC_LEVEL3_CACHE_SIZE
    return std::clamp(3 * std::int64_t{sysconf(_SC_LEVEL3_CACHE_SIZE)}, least, most);
#else
    return least;
#endif
}

/// What an earlier process measured; nothing if that is not kept, or is not one number for each device.
std::vector<double> recalled_limits(const RuntimeState& runtime)
{
    if (!runtime.cache.enabled()) {
        return {};
    }
    std::istringstream text(runtime.cache.read(limits_cache_name(runtime)).value_or(""));
    const std::vector<double> limits{std::istream_iterator<double>(text), {}};
    const bool whole = limits.size() == static_cast<std::size_t>(runtime.devices()) &&
                       std::all_of(limits.begin(), limits.end(), [](double l) { return l > 0 && std::isfinite(l); });
    return whole ? limits : std::vector<double>();
}

}  // namespace

std::string machine_key(const RuntimeState& runtime)
{
    Topology topology = runtime.topology;
    for (NumaNode& node : topology.nodes) {
        node.memory_bytes = 0;  // grows while a virtual machine runs
    }
    std::string key = topology.to_toml();
    for (const DeviceInfo& device : runtime.infos) {
        key += fmt::format("\n{}:{} {} {} {}", to_string(device.kind), device.index, device.name, device.pci_bus_id,
                           fmt::join(device.placement.cpus, ","));
    }
    return key;
}

std::string limits_cache_name(const RuntimeState& runtime)
{
    return fmt::format("limits-{:016x}", engine::fingerprint(machine_key(runtime) + '\n' + version()));
}

std::vector<double> measure_limits(RuntimeState& runtime)
{
    runtime.require_live();
    std::vector<double> limits = runtime.limits(Mode::resident);
    if (std::all_of(limits.begin(), limits.end(), [](double limit) { return limit > 0; })) {
        return limits;
    }
    const std::vector<double> recalled = recalled_limits(runtime);
    if (!recalled.empty()) {
        const std::lock_guard lock(runtime.mutex);
        runtime.limits_recalled = true;
        for (std::size_t i = 0; i < recalled.size(); ++i) {
            runtime.infos[i].limit_gbs = recalled[i];
        }
        return recalled;
    }
    // Far above any cache, and all devices at once, as an apply uses them.
    constexpr std::int64_t gpu_bytes = std::int64_t{2} << 30;
    const std::int64_t host_bytes = std::min(uncached_host_bytes(), runtime.most_host_bytes_read);
    const std::int64_t bytes = runtime.shared_memory() ? host_bytes / std::max(1, runtime.devices()) : gpu_bytes;
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            limits[static_cast<std::size_t>(worker.rank())] = read_rate(worker, meeting, bytes);
        })
        .get();
    // Where it cannot be kept, the next process measures it as well.
    static_cast<void>(runtime.cache.enabled() &&
                      runtime.cache.write(limits_cache_name(runtime), fmt::format("{}\n", fmt::join(limits, " "))));
    std::lock_guard lock(runtime.mutex);
    for (std::size_t i = 0; i < limits.size(); ++i) {
        runtime.infos[i].limit_gbs = limits[i];
    }
    return limits;
}

}  // namespace node

std::vector<double> Runtime::measure_limits() { return node::measure_limits(*detail::current(state_)); }

}  // namespace rmsp
