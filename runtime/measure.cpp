#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include <kernels/support/support.hpp>

#include "runtime/choose.hpp"
#include "runtime/predict.hpp"
#include "runtime/state.hpp"

namespace rmsp {
namespace detail {
namespace {

using Clock = std::chrono::steady_clock;

// Applies whose phases are recorded, after the timed ones, unless fewer are timed: events between phases cost about a microsecond
// each.
constexpr std::int64_t most_profiled_applies = 11;
constexpr std::int64_t least_profiled_applies = 3;
// What kernels::read_all() writes.
constexpr std::int64_t sink_entries = 4096;
// Of an apply: begin, x upload, x exchange, x packing, boundary, interior, y upload, kernel, merge.
constexpr int marks_each = 9;

double median(std::vector<double> values)
{
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Events that belong to the devices, made and freed on their workers.
class DeviceEvents {
public:
    DeviceEvents(RuntimeState& runtime, std::size_t each)
        : runtime_(runtime), events_(static_cast<std::size_t>(runtime.devices()))
    {
        runtime_
            .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
                auto& own = events_[static_cast<std::size_t>(worker.rank())];
                for (std::size_t i = 0; i < each; ++i) {
                    own.push_back(worker.device().make_event(true));
                }
            })
            .get();
    }
    ~DeviceEvents()
    {
        for (std::size_t rank = 0; rank < events_.size(); ++rank) {
            auto* const own = new std::vector<std::unique_ptr<runtime::Event>>(std::move(events_[rank]));
            runtime_.release(static_cast<int>(rank), [own] { delete own; });
        }
    }
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    runtime::Event& at(int rank, std::size_t i) const { return *events_[static_cast<std::size_t>(rank)][i]; }

private:
    RuntimeState& runtime_;
    std::vector<std::vector<std::unique_ptr<runtime::Event>>> events_;
};

/// Evicts what applies left in the caches of the devices, by reading more than they hold: what is written would have to be written
/// back at the expense of the apply that follows.
class CacheFlush {
public:
    explicit CacheFlush(RuntimeState& runtime) : runtime_(runtime), data_(static_cast<std::size_t>(runtime.devices()))
    {
        constexpr std::int64_t gpu_bytes = std::int64_t{256} << 20;
        constexpr std::int64_t host_bytes = std::int64_t{512} << 20;
        entries_ = (runtime_.shared_memory() ? host_bytes / std::max(1, runtime_.devices()) : gpu_bytes) /
                   static_cast<std::int64_t>(sizeof(double));
        runtime_
            .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
                auto& data = data_[static_cast<std::size_t>(worker.rank())];
                data = kernels::DeviceArray<double>(worker.device(), static_cast<std::size_t>(entries_ + sink_entries));
                kernels::fill(data.data(), entries_, 0.0, worker.context());
            })
            .get();
    }
    ~CacheFlush()
    {
        for (std::size_t rank = 0; rank < data_.size(); ++rank) {
            auto* const own = new kernels::DeviceArray<double>(std::move(data_[rank]));
            runtime_.release(static_cast<int>(rank), [own] { delete own; });
        }
    }
    CacheFlush(const CacheFlush&) = delete;
    CacheFlush& operator=(const CacheFlush&) = delete;

    void queue(runtime::Worker& worker) const
    {
        double* const data = data_[static_cast<std::size_t>(worker.rank())].data();
        kernels::read_all(data, entries_, data + entries_, worker.context());
    }

private:
    RuntimeState& runtime_;
    std::int64_t entries_;
    std::vector<kernels::DeviceArray<double>> data_;
};

/// Largest rate in GB/s of `work`, which moves `bytes` and is queued by all devices at the same time.
double best_rate(runtime::Worker& worker, runtime::Rendezvous& meeting, std::int64_t bytes,
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

double read_rate(runtime::Worker& worker, runtime::Rendezvous& meeting, std::int64_t bytes)
{
    const std::int64_t n = bytes / static_cast<std::int64_t>(sizeof(double));
    const auto context = worker.context();
    kernels::DeviceArray<double> data(worker.device(), static_cast<std::size_t>(n));
    kernels::DeviceArray<double> sink(worker.device(), sink_entries);
    kernels::fill(data.data(), n, 1.0, context);
    return best_rate(worker, meeting, bytes, [&] { kernels::read_all(data.data(), n, sink.data(), context); });
}

/// Rate in GB/s of each device's link while all devices copy from the host, until the slowest is done: links may share what lies
/// before them, unevenly, and the sum of their own best rates is more than all of them carry at once. What is copied are the arrays
/// that the matrix is streamed from, where they lie, or pinned memory if they are not locked. `seconds` has an entry a device.
template <class T>
double copy_rate(MatrixState<T>& matrix, runtime::Worker& worker, runtime::Rendezvous& meeting,
                 std::vector<double>& seconds)
{
    constexpr int repetitions = 3;
    constexpr std::int64_t bytes = std::int64_t{512} << 20;
    constexpr std::size_t buffer_bytes = std::size_t{256} << 20;
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto& part = matrix.shards[rank]->streamed;
    runtime::PinnedBuffer from;
    kernels::DeviceArray<std::byte> to;
    const auto copy = [&] {
        const std::int64_t queued = part ? part->copy_without_use(worker, bytes) : 0;
        if (queued > 0) {
            return queued;
        }
        if (from.bytes() == 0) {
            from = runtime::PinnedBuffer(worker.device(), buffer_bytes);
            to = kernels::DeviceArray<std::byte>(worker.device(), buffer_bytes);
        }
        for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(buffer_bytes)) {
            worker.stream().copy(to.data(), from.data(), buffer_bytes);
        }
        return bytes;
    };
    const auto before = worker.device().make_event(true);
    const auto after = worker.device().make_event(true);
    double best = 0;
    for (int i = 0; i <= repetitions; ++i) {
        worker.stream().synchronize();
        meeting.arrive_and_wait();
        worker.stream().record(*before);
        const std::int64_t copied = copy();
        worker.stream().record(*after);
        after->synchronize();
        seconds[rank] = after->seconds_since(*before);
        meeting.arrive_and_wait();
        const double slowest = *std::max_element(seconds.begin(), seconds.end());
        // The first one may have made the buffer.
        best = i == 0 || slowest <= 0 ? best : std::max(best, static_cast<double>(copied) / slowest * 1e-9);
    }
    return best;
}

/// Measured anew: a link's rate is not the same all the time.
template <class T>
std::vector<double> measure_links(MatrixState<T>& matrix)
{
    RuntimeState& runtime = *matrix.runtime;
    std::vector<double> rates(matrix.shards.size());
    std::vector<double> seconds(rates.size());
    runtime
        .submit([&](runtime::Worker& worker, runtime::Rendezvous& meeting) {
            rates[static_cast<std::size_t>(worker.rank())] = copy_rate(matrix, worker, meeting, seconds);
        })
        .get();
    std::lock_guard lock(runtime.mutex);
    runtime.link_gbs = rates;
    return rates;
}

}  // namespace

PhaseProbe::PhaseProbe(RuntimeState& runtime, int applies, int marks)
    : runtime_(runtime), marks_(static_cast<std::size_t>(runtime.devices())), used_(marks_.size(), 0)
{
    runtime_
        .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
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
        auto* const own = new std::vector<Mark>(std::move(marks_[rank]));
        runtime_.release(static_cast<int>(rank), [own] { delete own; });
    }
}

std::size_t PhaseProbe::mark(runtime::Worker& worker, const char* phase)
{
    const std::size_t used = used_[static_cast<std::size_t>(worker.rank())];
    return mark(worker, phase, worker.stream(), used > 0 ? used - 1 : 0);
}

std::size_t PhaseProbe::mark(runtime::Worker& worker, const char* phase, runtime::Stream& stream, std::size_t since)
{
    Mark& mark = next(worker);
    mark.phase = phase;
    mark.since = since;
    stream.record(*mark.event);
    return used_[static_cast<std::size_t>(worker.rank())] - 1;
}

void PhaseProbe::add(runtime::Worker& worker, const char* phase, double seconds)
{
    // Recorded as well, since the next mark may count from here.
    marks_[static_cast<std::size_t>(worker.rank())][mark(worker, phase)].seconds = seconds;
}

PhaseProbe::Mark& PhaseProbe::next(runtime::Worker& worker)
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

template <class T>
Measurement measure_matrix(const std::shared_ptr<MatrixState<T>>& matrix,
                           typename DistributedMatrix<T>::Vectors vectors, std::int64_t warmup, std::int64_t iterations,
                           T alpha, const T* x, T beta, const T* y_in, T* y_out, bool cold)
{
    using Vectors = typename DistributedMatrix<T>::Vectors;
    RuntimeState& runtime = *matrix->runtime;
    const Plan& plan = matrix->plan;
    if (iterations < 1 || warmup < 0) {
        throw Error(ErrorCode::usage, fmt::format("{} timed applies after {} to warm up", iterations, warmup));
    }
    if ((vectors == Vectors::rows || vectors == Vectors::kernel_order) && plan.rows != plan.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("x by rows needs a square matrix; this one is {} x {}", plan.rows, plan.cols));
    }

    // The vectors' places. Host vectors are copies, since the timed applies overwrite y.
    HostVector<T> host_y;
    Source<T> source;
    Target<T> target;
    std::shared_ptr<VectorState<T>> device_x;
    std::shared_ptr<VectorState<T>> device_y;
    const auto set_y = [&] {
        if (device_y && y_in != nullptr) {
            upload_vector(device_y, y_in);
        } else if (device_y) {
            runtime
                .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
                    const auto rank = static_cast<std::size_t>(worker.rank());
                    kernels::fill(device_y->slices[rank], device_y->offsets[rank + 1] - device_y->offsets[rank], T{0},
                                  worker.context());
                })
                .get();
        } else if (y_in != nullptr) {
            std::copy_n(y_in, plan.rows, host_y.data());
        } else {
            std::fill(host_y.begin(), host_y.end(), T{0});
        }
    };
    if (vectors == Vectors::host) {
        host_y.resize(static_cast<std::size_t>(plan.rows));
        source.host = x;
        target.host = host_y.data();
    } else {
        const Layout layout = vectors == Vectors::replicated ? Layout::replicated : Layout::rows;
        const Order order = vectors == Vectors::kernel_order ? Order::kernel : Order::matrix;
        device_x = make_vector(matrix, x_side(*matrix, false), layout, order);
        device_y = make_vector(matrix, x_side(*matrix, true), Layout::rows, order);
        upload_vector(device_x, x);
        source.vector = device_x;
        target.vector = device_y;
    }
    set_y();

    const auto submit = [&](PhaseProbe* probe, const DeviceEvents* ends, std::size_t index) {
        const bool host = !target.vector;
        return runtime.submit(
            [&, matrix, probe, ends, index](runtime::Worker& worker, runtime::Rendezvous& meeting) {
                apply_on(*matrix, worker, meeting, alpha, source, beta, target, probe);
                if (ends != nullptr) {
                    worker.stream().record(ends->at(worker.rank(), index));
                }
            },
            [matrix, host, y = target.host] {
                if (host) {
                    finish_host_y(*matrix, y);
                }
            },
            host);
    };

    std::optional<CacheFlush> flush;
    if (cold) {
        flush.emplace(runtime);
    }
    const auto submit_flush = [&](const DeviceEvents* begins, std::size_t index) {
        return runtime.submit([&flush, begins, index](runtime::Worker& worker, runtime::Rendezvous&) {
            flush->queue(worker);
            if (begins != nullptr) {
                worker.stream().record(begins->at(worker.rank(), index));
            }
        });
    };

    Measurement m;
    const bool link = matrix->mode == Mode::streamed && !runtime.shared_memory();
    const auto total = [](const std::vector<double>& rates) {
        return std::accumulate(rates.begin(), rates.end(), 0.0);
    };
    if (link && !(runtime.options.limit_gbs > 0)) {
        m.limit_before_gbs = total(measure_links(*matrix));
    }
    m.cold = cold;
    m.iterations = iterations;
    // As the timed ones, since kernels are raced in them.
    for (std::int64_t i = 0; i < warmup; ++i) {
        if (cold) {
            submit_flush(nullptr, 0);
        }
        submit(nullptr, nullptr, 0).get();
    }
    std::vector<double> times(static_cast<std::size_t>(iterations));
    const auto begin = Clock::now();
    if (vectors == Vectors::host) {
        for (auto& time : times) {
            if (cold) {
                submit_flush(nullptr, 0).get();
            }
            const auto start = Clock::now();
            submit(nullptr, nullptr, 0).get();
            time = std::chrono::duration<double>(Clock::now() - start).count();
        }
        m.wall_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    } else {
        // The caller does not wait between applies, as in a solver. An apply's time is from the end of the one before, or of
        // the flush, to its own end, on the slowest device.
        const DeviceEvents ends(runtime, times.size() + 1);
        const DeviceEvents begins(runtime, cold ? times.size() : 0);
        const auto loop_begin = Clock::now();
        runtime.submit(
            [&](runtime::Worker& worker, runtime::Rendezvous&) { worker.stream().record(ends.at(worker.rank(), 0)); });
        std::future<void> last;
        for (std::size_t i = 1; i <= times.size(); ++i) {
            if (cold) {
                submit_flush(&begins, i - 1);
            }
            last = submit(nullptr, &ends, i);
        }
        last.get();
        m.wall_seconds = std::chrono::duration<double>(Clock::now() - loop_begin).count();
        runtime
            .submit([&](runtime::Worker& worker, runtime::Rendezvous& meeting) {
                // One after the other: a maximum over devices.
                for (int rank = 0; rank < runtime.devices(); ++rank) {
                    if (rank == worker.rank()) {
                        for (std::size_t i = 0; i < times.size(); ++i) {
                            const runtime::Event& from = cold ? begins.at(rank, i) : ends.at(rank, i);
                            times[i] = std::max(times[i], ends.at(rank, i + 1).seconds_since(from));
                        }
                    }
                    meeting.arrive_and_wait();
                }
            })
            .get();
    }

    const auto profiled_applies =
        static_cast<int>(std::clamp(iterations, least_profiled_applies, most_profiled_applies));
    PhaseProbe probe(runtime, profiled_applies, marks_each);
    for (int i = 0; i < profiled_applies; ++i) {
        if (cold) {
            submit_flush(nullptr, 0);
        }
        submit(&probe, nullptr, 0).get();
    }
    runtime
        .submit([&](runtime::Worker& worker, runtime::Rendezvous&) {
            if (worker.rank() == 0) {
                m.phases = probe.medians();
            }
        })
        .get();

    if (y_out != nullptr) {
        set_y();
        submit(nullptr, nullptr, 0).get();
        if (device_y) {
            download_vector(device_y, y_out);
        } else {
            std::copy(host_y.begin(), host_y.end(), y_out);
        }
    }

    m.name = fmt::format("spmv/{}/{}/{}", to_string(plan.format), plan.precision, plan.mode);
    m.layout = vectors == Vectors::host         ? "x host -> y host"
               : vectors == Vectors::replicated ? "x replicated -> y by rows"
               : vectors == Vectors::rows       ? "x by rows -> y by rows"
                                                : "x by rows -> y by rows, in the kernel's order";
    m.min_seconds = *std::min_element(times.begin(), times.end());
    m.max_seconds = *std::max_element(times.begin(), times.end());
    m.median_seconds = median(std::move(times));
    m.flops = 2.0 * static_cast<double>(plan.nnz);
    const Plan now = current_plan(*matrix);
    for (const auto& shard : now.shards) {
        m.bytes += static_cast<double>(shard.apply_bytes);
    }
    // beta reads y once more, from the devices' own memory
    m.bytes += beta != T{0} && !link ? static_cast<double>(plan.rows) * sizeof(T) : 0;
    m.raw_bytes = static_cast<double>(matrix->raw_bytes);
    if (m.limit_before_gbs > 0) {
        m.limit_after_gbs = total(measure_links(*matrix));
        m.limit_gbs = std::max(m.limit_before_gbs, m.limit_after_gbs);
    } else {
        m.limit_gbs = total(measure_limits(runtime));
    }
    m.limit_source = runtime.options.limit_gbs > 0 ? "given"
                     : link                        ? "measured host-to-device copies"
                                                   : "measured read bandwidth";
    for (const auto& phase : m.phases) {
        if ((phase.name == "kernel" || phase.name == "stream") && !phase.seconds.empty()) {
            const double mean = std::accumulate(phase.seconds.begin(), phase.seconds.end(), 0.0) /
                                static_cast<double>(phase.seconds.size());
            m.time_imbalance =
                mean > 0 ? *std::max_element(phase.seconds.begin(), phase.seconds.end()) / mean - 1.0 : 0;
        }
    }
    std::lock_guard lock(runtime.mutex);
    matrix->measurements.push_back(m);
    return m;
}

namespace {

/// Host memory that is read to measure its bandwidth: little of it stays in the last-level cache from one pass to the next.
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

}  // namespace

std::vector<double> measure_limits(RuntimeState& runtime)
{
    runtime.require_live();
    std::vector<double> limits = runtime.limits(Mode::resident);
    if (std::all_of(limits.begin(), limits.end(), [](double limit) { return limit > 0; })) {
        return limits;
    }
    // Far above any cache, and all devices at once, as an apply uses them.
    constexpr std::int64_t gpu_bytes = std::int64_t{2} << 30;
    const std::int64_t bytes =
        runtime.shared_memory() ? uncached_host_bytes() / std::max(1, runtime.devices()) : gpu_bytes;
    runtime
        .submit([&](runtime::Worker& worker, runtime::Rendezvous& meeting) {
            limits[static_cast<std::size_t>(worker.rank())] = read_rate(worker, meeting, bytes);
        })
        .get();
    std::lock_guard lock(runtime.mutex);
    for (std::size_t i = 0; i < limits.size(); ++i) {
        runtime.infos[i].limit_gbs = limits[i];
    }
    return limits;
}

template Measurement measure_matrix(const std::shared_ptr<MatrixState<float>>&, DistributedMatrix<float>::Vectors,
                                    std::int64_t, std::int64_t, float, const float*, float, const float*, float*, bool);
template Measurement measure_matrix(const std::shared_ptr<MatrixState<double>>&, DistributedMatrix<double>::Vectors,
                                    std::int64_t, std::int64_t, double, const double*, double, const double*, double*,
                                    bool);

}  // namespace detail

std::vector<double> Runtime::measure_limits() { return detail::measure_limits(*detail::checked(state_)); }

template <class T>
Report DistributedMatrix<T>::report() const
{
    detail::RuntimeState& runtime = *detail::checked(state_)->runtime;
    const std::vector<double> limits = runtime.limits(state_->mode);
    std::lock_guard lock(runtime.mutex);
    Report report;
    report.plan = detail::current_plan(*state_);
    for (std::size_t i = 0; i < report.plan.shards.size(); ++i) {
        report.plan.shards[i].limit_gbs = limits[i];
    }
    detail::predict(report.plan, runtime, state_->options.x_layout);
    report.setup = state_->setup;
    report.measurements = state_->measurements;
    report.notes = runtime.notes;
    report.notes.insert(report.notes.end(), state_->notes.begin(), state_->notes.end());
    report.topology = runtime.topology.name;
    return report;
}

template Report DistributedMatrix<float>::report() const;
template Report DistributedMatrix<double>::report() const;

}  // namespace rmsp
