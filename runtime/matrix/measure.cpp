#include "runtime/matrix/measure.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/steps/support/support.hpp>

#include "runtime/matrix/links.hpp"
#include "runtime/matrix/phase_probe.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/matrix/vector.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// Applies whose phases are recorded, after the timed ones, unless fewer are timed: events between phases cost about a
// microsecond each.
constexpr std::int64_t most_profiled_applies = 11;
constexpr std::int64_t least_profiled_applies = 3;
// Of an apply: begin, x upload, x exchange, x packing, boundary, interior, y upload, kernel, merge.
constexpr int marks_each = 9;

/// Events that belong to the devices, made and freed on their workers.
class DeviceEvents {
public:
    DeviceEvents(RuntimeState& runtime, std::size_t each)
        : runtime_(runtime),
          events_(static_cast<std::size_t>(runtime.devices())),
          room_(static_cast<std::size_t>(runtime.devices()))
    {
        runtime_
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
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
            runtime_.release(static_cast<int>(rank), room_,
                             [own = std::move(events_[rank])]() mutable { own.clear(); });
        }
    }
    DeviceEvents(const DeviceEvents&) = delete;
    DeviceEvents& operator=(const DeviceEvents&) = delete;

    engine::Event& at(int rank, std::size_t i) const { return *events_[static_cast<std::size_t>(rank)][i]; }

private:
    RuntimeState& runtime_;
    std::vector<std::vector<std::unique_ptr<engine::Event>>> events_;
    engine::Tasks room_;
};

/// Jobs that use what the caller has on his stack: none is left when this goes, also where one could not be submitted.
class UnderWay {
public:
    UnderWay() = default;
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay()
    {
        for (const auto& job : jobs_) {
            if (job.valid()) {
                job.wait();
            }
        }
    }
    /// Room for so many; add() does not allocate then.
    void reserve(std::size_t jobs) { jobs_.reserve(jobs); }
    void add(std::future<void> job) { jobs_.push_back(std::move(job)); }
    /// Waits for all. \throws the error of the first that failed
    void get()
    {
        jobs_.back().wait();
        for (auto& job : jobs_) {
            job.get();
        }
    }

private:
    std::vector<std::future<void>> jobs_;
};

/// Evicts what applies left in the caches of the devices, by reading more than they hold: what is written would have to
/// be written back at the expense of the apply that follows.
class CacheFlush {
public:
    explicit CacheFlush(RuntimeState& runtime)
        : runtime_(runtime),
          data_(static_cast<std::size_t>(runtime.devices())),
          room_(static_cast<std::size_t>(runtime.devices()))
    {
        constexpr std::int64_t gpu_bytes = std::int64_t{256} << 20;
        const std::int64_t host_bytes = std::min(std::int64_t{512} << 20, runtime_.most_host_bytes_read);
        entries_ = (runtime_.shared_memory() ? host_bytes / std::max(1, runtime_.devices()) : gpu_bytes) /
                   static_cast<std::int64_t>(sizeof(double));
        runtime_
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                auto& data = data_[static_cast<std::size_t>(worker.rank())];
                data = kernels::DeviceArray<double>(worker.device(),
                                                    static_cast<std::size_t>(entries_ + node::read_sink_entries));
                kernels::fill(data.data(), entries_, 0.0, worker.context());
            })
            .get();
    }
    ~CacheFlush()
    {
        for (std::size_t rank = 0; rank < data_.size(); ++rank) {
            runtime_.release(static_cast<int>(rank), room_, [own = std::move(data_[rank])]() mutable { own.reset(); });
        }
    }
    CacheFlush(const CacheFlush&) = delete;
    CacheFlush& operator=(const CacheFlush&) = delete;

    void queue(engine::Worker& worker) const
    {
        double* const data = data_[static_cast<std::size_t>(worker.rank())].data();
        kernels::read_all(data, entries_, data + entries_, worker.context());
    }

private:
    RuntimeState& runtime_;
    std::int64_t entries_;
    std::vector<kernels::DeviceArray<double>> data_;
    engine::Tasks room_;  ///< to free them
};

/// Applies of a matrix to vectors of their own, timed one by one.
template <class T>
class TimedApplies {
public:
    using Vectors = typename DistributedMatrix<T>::Vectors;

    TimedApplies(const std::shared_ptr<MatrixState<T>>& matrix, Vectors vectors, T alpha, const T* x, T beta,
                 const T* y_in, bool cold)
        : matrix_(matrix), runtime_(*matrix->runtime), alpha_(alpha), beta_(beta), y_in_(y_in)
    {
        if (vectors == Vectors::host) {
            // A copy, since the timed applies overwrite y.
            host_y_.resize(static_cast<std::size_t>(matrix->plan.rows));
            source_.host = x;
            target_.host = host_y_.data();
        } else {
            const Layout layout = vectors == Vectors::replicated ? Layout::replicated : Layout::rows;
            const Order order = vectors == Vectors::kernel_order ? Order::kernel : Order::matrix;
            source_.vector = make_vector(matrix, x_side(*matrix, false), layout, order);
            target_.vector = make_vector(matrix, x_side(*matrix, true), Layout::rows, order);
            upload_vector(source_.vector, x);
        }
        set_y();
        if (cold) {
            flush_.emplace(runtime_);
        }
    }

    /// As the timed ones, since kernels are raced in them; as many more as races take.
    void warm_up(std::int64_t applies)
    {
        const auto racing = [&] {
            const RowProduct<T>* const rows = row_product(*matrix_);
            for (std::size_t i = 0; rows != nullptr && i < matrix_->shards.size(); ++i) {
                if (is_racing(rows->shard(i))) {
                    return true;
                }
            }
            return false;
        };
        const std::int64_t most = applies + Race<T>::most_applies + 1;
        for (std::int64_t i = 0; i < applies || (i < most && racing()); ++i) {
            if (flush_) {
                submit_flush(nullptr, 0).get();
            }
            submit(nullptr, nullptr, 0).get();
        }
    }

    /// Sets the time of each, and returns that of all.
    double time(std::vector<double>& times) { return target_.vector ? time_on_devices(times) : time_from_host(times); }

    std::vector<PhaseTimes> profile(int applies)
    {
        PhaseProbe probe(runtime_, applies, marks_each);
        for (int i = 0; i < applies; ++i) {
            if (flush_) {
                submit_flush(nullptr, 0).get();
            }
            submit(&probe, nullptr, 0).get();
        }
        std::vector<PhaseTimes> phases;
        runtime_
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                if (worker.rank() == 0) {
                    phases = probe.medians();
                }
            })
            .get();
        return phases;
    }

    /// The y of one more apply, from y_in.
    void result(T* y_out)
    {
        set_y();
        submit(nullptr, nullptr, 0).get();
        if (target_.vector) {
            download_vector(target_.vector, y_out);
        } else {
            std::copy(host_y_.begin(), host_y_.end(), y_out);
        }
    }

private:
    void set_y()
    {
        const auto& device_y = target_.vector;
        if (device_y && y_in_ != nullptr) {
            upload_vector(device_y, y_in_);
        } else if (device_y) {
            runtime_
                .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                    const auto rank = static_cast<std::size_t>(worker.rank());
                    kernels::fill(device_y->slices[rank], device_y->offsets[rank + 1] - device_y->offsets[rank], T{0},
                                  worker.context());
                })
                .get();
        } else if (y_in_ != nullptr) {
            std::copy_n(y_in_, host_y_.size(), host_y_.data());
        } else {
            std::fill(host_y_.begin(), host_y_.end(), T{0});
        }
    }

    std::future<void> submit(PhaseProbe* probe, const DeviceEvents* ends, std::size_t index)
    {
        const bool host = !target_.vector;
        return runtime_.submit(
            [this, probe, ends, index](engine::Worker& worker, engine::Rendezvous& meeting) {
                apply_on(*matrix_, worker, meeting, alpha_, source_, beta_, target_, probe);
                if (ends != nullptr) {
                    worker.stream().record(ends->at(worker.rank(), index));
                }
            },
            [this, host] {
                if (host) {
                    finish_host_y(*matrix_, target_.host);
                }
            },
            host);
    }

    std::future<void> submit_flush(const DeviceEvents* begins, std::size_t index)
    {
        return runtime_.submit([this, begins, index](engine::Worker& worker, engine::Rendezvous&) {
            flush_->queue(worker);
            if (begins != nullptr) {
                worker.stream().record(begins->at(worker.rank(), index));
            }
        });
    }

    double time_from_host(std::vector<double>& times)
    {
        const auto begin = Clock::now();
        for (auto& time : times) {
            if (flush_) {
                submit_flush(nullptr, 0).get();
            }
            const auto start = Clock::now();
            submit(nullptr, nullptr, 0).get();
            time = std::chrono::duration<double>(Clock::now() - start).count();
        }
        return std::chrono::duration<double>(Clock::now() - begin).count();
    }

    /// The caller does not wait between applies, as in a solver. An apply's time is from the end of the one before, or
    /// of the flush, to its own end, on the slowest device.
    double time_on_devices(std::vector<double>& times)
    {
        const DeviceEvents ends(runtime_, times.size() + 1);
        const DeviceEvents begins(runtime_, flush_ ? times.size() : 0);
        UnderWay jobs;
        jobs.reserve(2 * times.size() + 1);
        const auto begin = Clock::now();
        jobs.add(runtime_.submit(
            [&](engine::Worker& worker, engine::Rendezvous&) { worker.stream().record(ends.at(worker.rank(), 0)); }));
        for (std::size_t i = 1; i <= times.size(); ++i) {
            if (flush_) {
                jobs.add(submit_flush(&begins, i - 1));
            }
            jobs.add(submit(nullptr, &ends, i));
        }
        jobs.get();
        const double all = std::chrono::duration<double>(Clock::now() - begin).count();
        runtime_
            .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
                // One after the other: a maximum over devices.
                for (int rank = 0; rank < runtime_.devices(); ++rank) {
                    if (rank == worker.rank()) {
                        for (std::size_t i = 0; i < times.size(); ++i) {
                            const engine::Event& from = flush_ ? begins.at(rank, i) : ends.at(rank, i);
                            times[i] = std::max(times[i], ends.at(rank, i + 1).seconds_since(from));
                        }
                    }
                    meeting.arrive_and_wait();
                }
            })
            .get();
        return all;
    }

    std::shared_ptr<MatrixState<T>> matrix_;
    RuntimeState& runtime_;
    T alpha_;
    T beta_;
    const T* y_in_;
    HostVector<T> host_y_;
    Source<T> source_;
    Target<T> target_;
    std::optional<CacheFlush> flush_;
};

/// Largest busy time of a device over the mean, minus one.
double time_imbalance(const std::vector<PhaseTimes>& phases)
{
    double imbalance = 0;
    for (const auto& phase : phases) {
        if ((phase.name == "kernel" || phase.name == "stream") && !phase.seconds.empty()) {
            const double mean = std::accumulate(phase.seconds.begin(), phase.seconds.end(), 0.0) /
                                static_cast<double>(phase.seconds.size());
            imbalance = mean > 0 ? *std::max_element(phase.seconds.begin(), phase.seconds.end()) / mean - 1.0 : 0;
        }
    }
    return imbalance;
}

}  // namespace

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
    TimedApplies<T> applies(matrix, vectors, alpha, x, beta, y_in, cold);
    Measurement m;
    const bool link = matrix->options.mode == Mode::streamed && !runtime.shared_memory();
    const auto total = [](const std::vector<double>& rates) {
        return std::accumulate(rates.begin(), rates.end(), 0.0);
    };
    if (link && !(runtime.options.limit_gbs > 0)) {
        m.limit_before_gbs = total(measure_links(*matrix));
    }
    m.cold = cold;
    m.iterations = iterations;
    applies.warm_up(warmup);
    std::vector<double> times(static_cast<std::size_t>(iterations));
    m.wall_seconds = applies.time(times);
    m.phases = applies.profile(static_cast<int>(std::clamp(iterations, least_profiled_applies, most_profiled_applies)));
    if (y_out != nullptr) {
        applies.result(y_out);
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
    m.raw_bytes = static_cast<double>(matrix->record.raw_bytes);
    if (m.limit_before_gbs > 0) {
        m.limit_after_gbs = total(measure_links(*matrix));
        m.limit_gbs = std::max(m.limit_before_gbs, m.limit_after_gbs);
    } else {
        m.limit_gbs = total(node::measure_limits(runtime));
    }
    m.time_imbalance = time_imbalance(m.phases);
    std::lock_guard lock(runtime.mutex);
    m.limit_source = runtime.options.limit_gbs > 0 ? "given"
                     : link                        ? "measured host-to-device copies"
                     : runtime.limits_recalled     ? "read bandwidth, measured earlier"
                                                   : "measured read bandwidth";
    matrix->record.measurements.push_back(m);
    return m;
}

#define RMSP_INSTANTIATE(T)                                                                                    \
    template Measurement measure_matrix(const std::shared_ptr<MatrixState<T>>&, DistributedMatrix<T>::Vectors, \
                                        std::int64_t, std::int64_t, T, const T*, T, const T*, T*, bool);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
