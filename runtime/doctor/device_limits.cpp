#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <kernels/steps/limits/limits.hpp>
#include <rmsp/error.hpp>
#include <rmsp/limits.hpp>

#include "core/log.hpp"
#include "runtime/doctor/doctor_cache.hpp"

namespace rmsp {
namespace {

using Json = nlohmann::ordered_json;
using kernels::Babel;
using kernels::LimitArrays;
using kernels::Width;

struct NamedWidth {
    Width width;
    const char* name;
    std::int64_t bytes;
};
constexpr std::array<NamedWidth, 3> widths{{{Width::half_precision, "half", 2},
                                            {Width::single_precision, "single", 4},
                                            {Width::double_precision, "double", 8}}};

struct NamedBabel {
    Babel kernel;
    const char* name;
    int arrays;  ///< that it reads and writes
};
constexpr std::array<NamedBabel, 5> babels{{{Babel::copy, "copy", 2},
                                            {Babel::mul, "mul", 2},
                                            {Babel::add, "add", 3},
                                            {Babel::triad, "triad", 3},
                                            {Babel::dot, "dot", 2}}};

constexpr std::int64_t least_bytes = 4096;
constexpr std::int64_t smallest_bytes = std::int64_t{16} << 10;

/// Seconds of one run of `work`: the best of three stretches of as many runs as take `stretch`.
double seconds_of(engine::Worker& worker, double stretch, const std::function<void()>& work)
{
    const auto before = worker.device().make_event(true);
    const auto after = worker.device().make_event(true);
    const auto timed = [&](std::int64_t runs) {
        worker.stream().record(*before);
        for (std::int64_t i = 0; i < runs; ++i) {
            work();
        }
        worker.stream().record(*after);
        after->synchronize();
        return after->seconds_since(*before) / static_cast<double>(runs);
    };
    timed(1);
    double best = std::max(timed(1), 1e-7);
    constexpr double most_runs = 10'000;
    const auto runs = static_cast<std::int64_t>(std::clamp(stretch / best, 1.0, most_runs));
    for (int i = 0; i < 3 && best < 10 * stretch; ++i) {
        best = std::min(best, timed(runs));
    }
    return best;
}

std::vector<std::int64_t> sizes_up_to(std::int64_t bytes)
{
    std::vector<std::int64_t> sizes{bytes};
    while (sizes.back() / 4 >= smallest_bytes) {
        sizes.push_back(sizes.back() / 4 / 16 * 16);
    }
    std::reverse(sizes.begin(), sizes.end());
    return sizes;
}

void measure(engine::Worker& worker, engine::Rendezvous& meeting, std::int64_t bytes, double stretch,
             DeviceLimit& limit)
{
    const auto context = worker.context();
    const auto room = static_cast<std::size_t>(bytes);
    std::array<kernels::DeviceArray<std::byte>, 3> arrays;
    for (auto& array : arrays) {
        array = kernels::DeviceArray<std::byte>(worker.device(), room);
    }
    const kernels::DeviceArray<double> sums(worker.device(), kernels::limit_sums);
    for (const NamedWidth& width : widths) {
        if (!kernels::has_width(width.width, context)) {
            continue;
        }
        const auto of = [&](std::int64_t size) {
            return LimitArrays{width.width,      size / width.bytes, arrays[0].data(),
                               arrays[1].data(), arrays[2].data(),   sums.data()};
        };
        kernels::limit_fill(of(bytes), context);
        for (const std::int64_t size : sizes_up_to(bytes)) {
            for (const NamedBabel& babel : babels) {
                worker.stream().synchronize();
                meeting.arrive_and_wait();
                const double seconds =
                    seconds_of(worker, stretch, [&] { kernels::babel(babel.kernel, of(size), context); });
                limit.bandwidth.push_back(
                    {babel.name, width.name, size, 1e-9 * static_cast<double>(babel.arrays * size) / seconds});
            }
        }
        // Arithmetic is no one else's, so devices go on by themselves, and stop where more brings no more.
        for (int length = 1; length <= kernels::longest_chain; length *= 2) {
            const std::int64_t size =
                std::max(std::min(bytes, smallest_bytes), bytes / std::max(1, length / 4)) / 16 * 16;
            const double seconds = seconds_of(worker, stretch, [&] { kernels::chain(length, of(size), context); });
            const double gflops = 2e-9 * length * static_cast<double>(size / width.bytes) / seconds;
            const double before = limit.compute.empty() ? 0 : limit.compute.back().gflops;
            limit.compute.push_back({width.name, length / static_cast<double>(width.bytes), gflops});
            constexpr int long_enough = 32;
            if (length >= long_enough && gflops < 1.02 * before) {
                break;
            }
        }
    }
    worker.stream().synchronize();
}

constexpr std::string_view kept = "limits-";

std::string cache_name(const detail::RuntimeState& runtime)
{
    return std::string(kept) + doctor::doctor_cache_name(runtime);
}

DeviceLimits parse(const std::string& text)
{
    const Json json = Json::parse(text);
    DeviceLimits limits;
    limits.date = json.at("date");
    limits.machine = json.at("machine");
    limits.versions = json.at("versions").get<std::map<std::string, std::string>>();
    for (const Json& device : json.at("devices")) {
        DeviceLimit limit;
        limit.device = device.at("device");
        for (const Json& p : device.at("bandwidth")) {
            limit.bandwidth.push_back({p.at("kernel"), p.at("precision"), p.at("bytes"), p.at("gbs")});
        }
        for (const Json& p : device.at("compute")) {
            limit.compute.push_back({p.at("precision"), p.at("intensity"), p.at("gflops")});
        }
        limits.devices.push_back(std::move(limit));
    }
    return limits;
}

}  // namespace

double DeviceLimit::memory_gbs(const std::string& precision) const
{
    std::int64_t largest = 0;
    double best = 0;
    for (const BandwidthPoint& p : bandwidth) {
        if (p.kernel == "triad" && p.precision == precision && p.bytes >= largest) {
            best = p.bytes > largest ? p.gbs : std::max(best, p.gbs);
            largest = p.bytes;
        }
    }
    return best;
}

double DeviceLimit::peak_gflops(const std::string& precision) const
{
    double best = 0;
    for (const ComputePoint& p : compute) {
        best = p.precision == precision ? std::max(best, p.gflops) : best;
    }
    return best;
}

std::string DeviceLimits::to_text() const
{
    std::string text = fmt::format("limits of {}\nmeasured {}\n", machine, date);
    for (const DeviceLimit& device : devices) {
        std::int64_t largest = 0;
        for (const BandwidthPoint& p : device.bandwidth) {
            largest = std::max(largest, p.bytes);
        }
        text += fmt::format("\n{}\n  arrays of {} KiB, GB/s\n  {:<8}", device.device, largest >> 10, "");
        for (const NamedBabel& babel : babels) {
            text += fmt::format("{:>9}", babel.name);
        }
        text += fmt::format("{:>13}\n", "peak GFLOP/s");
        for (const NamedWidth& width : widths) {
            if (!(device.peak_gflops(width.name) > 0)) {
                continue;
            }
            text += fmt::format("  {:<8}", width.name);
            for (const BandwidthPoint& p : device.bandwidth) {
                if (p.bytes == largest && p.precision == width.name) {
                    text += fmt::format("{:>9.4g}", p.gbs);
                }
            }
            text += fmt::format("{:>13.4g}\n", device.peak_gflops(width.name));
        }
    }
    return text;
}

std::string DeviceLimits::to_json() const
{
    Json json{{"schema", "rmsp-limits-1"},
              {"date", date},
              {"machine", machine},
              {"versions", versions},
              {"devices", Json::array()}};
    for (const DeviceLimit& device : devices) {
        Json of{{"device", device.device}, {"bandwidth", Json::array()}, {"compute", Json::array()}};
        for (const BandwidthPoint& p : device.bandwidth) {
            of["bandwidth"].push_back(
                {{"kernel", p.kernel}, {"precision", p.precision}, {"bytes", p.bytes}, {"gbs", p.gbs}});
        }
        for (const ComputePoint& p : device.compute) {
            of["compute"].push_back({{"precision", p.precision}, {"intensity", p.intensity}, {"gflops", p.gflops}});
        }
        json["devices"].push_back(std::move(of));
    }
    return json.dump(1) + "\n";
}

DeviceLimits measure_device_limits(Runtime& runtime, const LimitOptions& options)
{
    detail::RuntimeState& state = *detail::RuntimeAccess::state(runtime);
    state.require_live();
    if ((options.bytes != 0 && options.bytes < least_bytes) || !(options.seconds_each >= 0)) {
        throw Error(ErrorCode::usage,
                    fmt::format("limits are measured over arrays of at least {} bytes, for 0 s or more; given were {} "
                                "bytes and {} s",
                                least_bytes, options.bytes, options.seconds_each));
    }
    const std::int64_t automatic =
        state.shared_memory() ? (std::int64_t{128} << 20) / std::max(1, state.devices()) : std::int64_t{1} << 30;
    const std::int64_t bytes = std::max(least_bytes, options.bytes > 0 ? options.bytes : automatic) / 16 * 16;
    DeviceLimits limits;
    limits.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    limits.machine = doctor::machine_line(state.topology);
    limits.versions = doctor::versions();
    for (const DeviceInfo& info : state.infos) {
        limits.devices.push_back({fmt::format("{}:{} {}", to_string(info.kind), info.index, info.name), {}, {}});
    }
    state
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            measure(worker, meeting, bytes, options.seconds_each,
                    limits.devices[static_cast<std::size_t>(worker.rank())]);
        })
        .get();
    if (state.cache.enabled() && !state.cache.write(cache_name(state), limits.to_json())) {
        core::log_warning(
            fmt::format("the limits are not kept: {} cannot be written", state.cache.path(cache_name(state))));
    }
    return limits;
}

DeviceLimits kept_device_limits(const Runtime& runtime)
{
    const detail::RuntimeState& state = *detail::RuntimeAccess::state(runtime);
    // The name has the versions of CUDA's libraries, for which these are loaded.
    if (!state.cache.has_any(kept)) {
        return {};
    }
    std::string damaged;
    if (const auto text = state.cache.read(cache_name(state), &damaged)) {
        try {
            return parse(*text);
        } catch (const std::exception& e) {
            damaged = fmt::format("{}: {}", state.cache.path(cache_name(state)), e.what());
        }
    }
    if (!damaged.empty()) {
        core::log_warning(fmt::format("kept limits are ignored, mspmv doctor --limits writes them anew: {}", damaged));
    }
    return {};
}

}  // namespace rmsp
