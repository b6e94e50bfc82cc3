#include "runtime/matrix/phase_probe.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rmsp::distributed {
double median(std::vector<double> values)
{
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

PhaseProbe::PhaseProbe(RuntimeState& runtime, int applies, int marks)
    : runtime_(runtime),
      marks_(static_cast<std::size_t>(runtime.devices())),
      used_(marks_.size(), 0),
      room_(marks_.size())
{
    runtime_
        .submit([&](engine::Worker& worker, engine::Rendezvous&) {
            auto& own = marks_[static_cast<std::size_t>(worker.rank())];
            own.resize(static_cast<std::size_t>(applies) * static_cast<std::size_t>(marks));
            for (auto& mark : own) {
                mark.event = worker.device().make_event(true);
            }
        })
        .get();
}

PhaseProbe::~PhaseProbe()
{
    for (std::size_t rank = 0; rank < marks_.size(); ++rank) {
        runtime_.release(static_cast<int>(rank), room_, [own = std::move(marks_[rank])]() mutable { own.clear(); });
    }
}

std::size_t PhaseProbe::mark(engine::Worker& worker, const char* phase)
{
    const std::size_t used = used_[static_cast<std::size_t>(worker.rank())];
    return mark(worker, phase, worker.stream(), used > 0 ? used - 1 : 0);
}

std::size_t PhaseProbe::mark(engine::Worker& worker, const char* phase, engine::Stream& stream, std::size_t since)
{
    Mark& mark = next(worker);
    mark.phase = phase;
    mark.since = since;
    stream.record(*mark.event);
    return used_[static_cast<std::size_t>(worker.rank())] - 1;
}

void PhaseProbe::add(engine::Worker& worker, const char* phase, double seconds)
{
    // Recorded as well, since the next mark may count from here.
    marks_[static_cast<std::size_t>(worker.rank())][mark(worker, phase)].seconds = seconds;
}

PhaseProbe::Mark& PhaseProbe::next(engine::Worker& worker)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    auto& own = marks_[rank];
    if (used_[rank] == own.size()) {
        own.push_back({});
        own.back().event = worker.device().make_event(true);
    }
    return own[used_[rank]++];
}

std::vector<PhaseTimes> PhaseProbe::medians() const
{
    std::vector<PhaseTimes> phases;
    const std::size_t devices = marks_.size();
    for (std::size_t rank = 0; rank < devices; ++rank) {
        struct Samples {
            std::string name;
            std::vector<double> seconds;  // of each apply
            int last_apply = -1;
        };
        std::vector<Samples> samples;
        int apply = -1;
        for (std::size_t i = 0; i < used_[rank]; ++i) {
            const Mark& mark = marks_[rank][i];
            const std::string name = mark.phase;
            if (name.empty()) {
                ++apply;
            }
            if (name.empty() || name == no_phase) {
                continue;
            }
            auto place = std::find_if(samples.begin(), samples.end(), [&](const auto& s) { return s.name == name; });
            if (place == samples.end()) {
                place = samples.insert(samples.end(), {name, {}, -1});
            }
            if (std::exchange(place->last_apply, apply) != apply) {
                place->seconds.push_back(0);
            }
            place->seconds.back() +=
                mark.seconds >= 0 ? mark.seconds : mark.event->seconds_since(*marks_[rank][mark.since].event);
        }
        for (auto& sample : samples) {
            auto place =
                std::find_if(phases.begin(), phases.end(), [&](const auto& p) { return p.name == sample.name; });
            if (place == phases.end()) {
                place = phases.insert(phases.end(), PhaseTimes{sample.name, std::vector<double>(devices), false});
            }
            place->seconds[rank] = median(std::move(sample.seconds));
        }
    }
    return phases;
}

}  // namespace rmsp::distributed
