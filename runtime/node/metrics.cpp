#include <rmsp/metrics.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "runtime/node/node.hpp"

namespace rmsp {
namespace {

/// Lines of one metric after the other; labels are escaped.
class Exposition {
public:
    void begin(std::string_view name, std::string_view type, std::string_view help)
    {
        fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }
    template <class Value>
    void value(std::string_view name, std::string_view labels, Value v)
    {
        fmt::format_to(std::back_inserter(text_), "{}{}{}{} {}\n", name, labels.empty() ? "" : "{", labels,
                       labels.empty() ? "" : "}", v);
    }
    template <class Value>
    void single(std::string_view name, std::string_view type, std::string_view help, Value v)
    {
        begin(name, type, help);
        value(name, "", v);
    }
    void histogram(const std::string& name, std::string_view help, const TimeHistogram& h)
    {
        begin(name, "histogram", help);
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < TimeHistogram::buckets; ++i) {
            below += h.counts[i];
            const double end = TimeHistogram::end_of(i);
            value(name + "_bucket", fmt::format("le=\"{}\"", std::isinf(end) ? "+Inf" : fmt::format("{:.9g}", end)),
                  below);
        }
        value(name + "_sum", "", h.sum_seconds);
        value(name + "_count", "", h.count);
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

std::string label(std::string_view name, std::string_view value)
{
    std::string text = fmt::format("{}=\"", name);
    for (const char c : value) {
        if (c == '\\' || c == '"') {
            text += '\\';
        }
        text += c == '\n' ? ' ' : c;
    }
    return text + '"';
}

}  // namespace

double TimeHistogram::end_of(std::size_t bucket) noexcept
{
    return bucket + 1 >= buckets ? std::numeric_limits<double>::infinity() : std::ldexp(1e-6, static_cast<int>(bucket));
}

double TimeHistogram::quantile(double q) const noexcept
{
    const double wanted = std::clamp(q, 0.0, 1.0) * static_cast<double>(count);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
        below += counts[i];
        if (below > 0 && static_cast<double>(below) >= wanted) {
            return end_of(i);
        }
    }
    return 0;
}

std::string Metrics::to_prometheus() const
{
    Exposition out;
    out.single("rmsp_uptime_seconds", "gauge", "Since the runtime was opened.", seconds);
    out.single("rmsp_jobs_accepted_total", "counter", "Jobs that were accepted.", accepted);
    out.begin("rmsp_jobs_ended_total", "counter", "Jobs that ended, by outcome.");
    for (const auto& [outcome, count] :
         {std::pair{"finished", finished}, {"failed", failed}, {"cancelled", cancelled}, {"expired", expired}}) {
        out.value("rmsp_jobs_ended_total", label("outcome", outcome), count);
    }
    out.single("rmsp_jobs_refused_total", "counter", "Jobs that were never accepted.", refused);
    out.single("rmsp_jobs_waiting", "gauge", "Jobs that wait for their turn.", waiting);
    out.single("rmsp_jobs_running", "gauge", "Jobs that the devices were given.", running);
    out.histogram("rmsp_job_wait_seconds", "From acceptance until given to the devices.", wait);
    out.histogram("rmsp_job_run_seconds", "For which the devices had a job.", run);
    out.single("rmsp_streamed_bytes_total", "counter", "Copied to the devices for products of streamed matrices.",
               streamed_bytes);
    out.single("rmsp_memory_refused_total", "counter", "Matrices, vectors and products that were refused for memory.",
               memory_refused);
    out.single("rmsp_memory_waiting", "gauge", "Matrices, vectors and products that wait for memory.", memory_waiting);
    const auto each = [&](std::string_view name, std::string_view type, std::string_view help, const auto& value_of) {
        out.begin(name, type, help);
        for (const DeviceMetrics& device : devices) {
            out.value(name, label("device", device.name), value_of(device));
        }
    };
    each("rmsp_device_busy_seconds_total", "counter", "With a job given to the device.",
         [](const auto& d) { return d.busy_seconds; });
    each("rmsp_device_memory_resident_bytes", "gauge", "Taken of the device's memory.",
         [](const auto& d) { return d.resident_bytes; });
    each("rmsp_device_memory_peak_bytes", "gauge", "The most that was taken of the device's memory.",
         [](const auto& d) { return d.peak_bytes; });
    each("rmsp_device_memory_reserved_bytes", "gauge", "Promised to what is being placed, and not taken yet.",
         [](const auto& d) { return d.reserved_bytes; });
    each("rmsp_device_lost", "gauge", "1 if the device is lost.", [](const auto& d) { return d.lost ? 1 : 0; });
    out.begin("rmsp_transport_in_use", "gauge", "Transports that are connected.");
    for (const std::string& name : transports) {
        out.value("rmsp_transport_in_use", label("transport", name), 1);
    }
    out.single("rmsp_transports_replaced_total", "counter",
               "Transports that failed and that another one took the place of.", transports_replaced);
    return out.take();
}

Metrics Runtime::metrics() const
{
    const auto held = detail::current(state_);
    const detail::RuntimeState& state = *held;
    state.require_live();
    Metrics metrics = state.jobs->metrics();
    state.memory->add_to(metrics);
    std::lock_guard lock(state.mutex);
    for (std::size_t i = 0; i < metrics.devices.size(); ++i) {
        metrics.devices[i].name = engine::label_of(state.infos[i]);
    }
    metrics.transports.push_back(state.transport_name());
    metrics.transports_replaced = state.connection.transport ? state.connection.transport->replacements() : 0;
    for (const auto& other : state.others) {
        metrics.transports.emplace_back(other->name());
        metrics.transports_replaced += other->replacements();
    }
    return metrics;
}

std::int64_t Runtime::drain(double seconds)
{
    const auto held = detail::current(state_);
    const detail::RuntimeState& state = *held;
    state.require_live();
    state.memory->close();
    // What would not fit into a time point is for ever.
    constexpr double longest = 1e9;
    return state.jobs->drain(seconds < longest
                                 ? engine::Clock::now() + std::chrono::duration_cast<engine::Clock::duration>(
                                                              std::chrono::duration<double>(std::max(0.0, seconds)))
                                 : engine::Clock::time_point::max());
}

}  // namespace rmsp
