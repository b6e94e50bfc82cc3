#include "runtime/doctor/examination.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include <kernels/steps/support/support.hpp>
#include <numa/binding.hpp>

#include "core/shared_library.hpp"
#include "core/text.hpp"
#include "runtime/engine/cuda/cuda_backend.hpp"
#include "runtime/transport/table.hpp"
#include "runtime/transport/test.hpp"

namespace rmsp::doctor {
namespace {

using engine::PinnedBuffer;
using engine::Rendezvous;
using engine::Worker;
using kernels::DeviceArray;
using Clock = std::chrono::steady_clock;

/// Copies of one kind whose best counts.
constexpr int repetitions = 4;
/// Copies that all devices make at once, each of other host memory: far more together than the host's caches hold, as a
/// matrix that is streamed, and so long that it does not matter which device begins first.
constexpr int uncached_copies = 32;
/// A link below this share of the fastest of its kind is worth a warning.
constexpr double slow_share = 0.5;

/// Word i of what device `rank` sends.
std::uint64_t pattern(int rank, std::size_t i)
{
    return (static_cast<std::uint64_t>(rank + 1) << 48) + (i + 1) * 0x9E3779B97F4A7C15u;
}

double gbs(double bytes, double seconds) { return seconds > 0 ? bytes / seconds * 1e-9 : 0; }

/// The devices with what the checks need of each, and the report that they write.
class Examination {
public:
    Examination(RuntimeState& state, const DoctorOptions& options, DoctorReport& report)
        : state_(state),
          report_(report),
          names_(device_names(state.infos)),
          jobs_(state.workers, false),
          bytes_(static_cast<std::size_t>((options.bytes + 1023) / 1024 * 1024)),
          limit_(
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.time_limit_seconds))),
          places_(state.workers.size())
    {
    }
    ~Examination()
    {
        try {
            jobs_.submit([this](Worker& worker, Rendezvous&) { place(worker) = Place(); }).get();
        } catch (const std::exception&) {
            // A device that fails here takes its memory with it.
        }
    }
    Examination(const Examination&) = delete;
    Examination& operator=(const Examination&) = delete;

    void run()
    {
        const std::size_t n = places_.size();
        for (auto* rates :
             {&report_.to_device, &report_.from_device, &report_.to_device_together, &report_.from_device_together}) {
            rates->assign(n, 0.0);
        }
        for (auto* rates : {&report_.read_by_kernel, &report_.write_by_kernel, &report_.copy_engine}) {
            rates->assign(n, std::vector<double>(n, 0.0));
        }
        each("binding", [this](Worker& worker, DoctorCheck& check) { check_binding(worker, check); });
        each("memory", [this](Worker& worker, DoctorCheck& check) { check_memory(worker, check); });
        each("host link", [this](Worker& worker, DoctorCheck& check) { check_host_link(worker, check); });
        time_together();
        for (int from = 0; from < state_.devices(); ++from) {
            for (int to = 0; to < state_.devices(); ++to) {
                if (from != to) {
                    any_shares_ = any_shares_ || share_gpu(from, to);
                    check_device_link(from, to);
                }
            }
        }
        if (!state_.shared_memory()) {
            warn_of_slow_links();
        }
        check_transports();
        if (!state_.shared_memory()) {
            check_libraries();
        }
    }

private:
    struct Place {
        DeviceArray<std::uint64_t> send;  // the device's pattern
        DeviceArray<std::uint64_t> receive;
        PinnedBuffer host;
        std::unique_ptr<engine::Event> begin;
        std::unique_ptr<engine::Event> end;
    };

    Place& place(const Worker& worker) { return places_[static_cast<std::size_t>(worker.rank())]; }
    std::size_t words() const { return bytes_ / sizeof(std::uint64_t); }
    const std::string& name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }
    std::string link_name(int from, int to) const { return fmt::format("{} -> {}", name(from), name(to)); }
    bool share_gpu(int one, int other) const
    {
        return !state_.shared_memory() &&
               state_.infos[static_cast<std::size_t>(one)].index == state_.infos[static_cast<std::size_t>(other)].index;
    }

    /// Runs f on one worker and waits for it.
    template <class F>
    void on(int rank, const F& f)
    {
        jobs_
            .submit([&](Worker& worker, Rendezvous&) {
                if (worker.rank() == rank) {
                    f(worker);
                }
            })
            .get();
    }

    /// One line for each device, which f completes on the device's worker; what f throws is a failure.
    template <class F>
    void each(const char* name, const F& f)
    {
        for (int rank = 0; rank < state_.devices(); ++rank) {
            DoctorCheck check{name, this->name(rank), Verdict::passed, ""};
            try {
                on(rank, [&](Worker& worker) { f(worker, check); });
            } catch (const Error& e) {
                check.verdict = Verdict::failed;
                check.detail = e.what();
            }
            report_.checks.push_back(std::move(check));
        }
    }

    void finish(Worker& worker)
    {
        if (!transport::wait_for_stream(worker, limit_)) {
            throw Error(ErrorCode::device,
                        fmt::format("not done after {:.0f} s", std::chrono::duration<double>(limit_).count()));
        }
    }

    void check_binding(Worker& worker, DoctorCheck& check)
    {
        const std::vector<int>& placed = worker.device().info().placement.cpus;
        const std::vector<int> actual = numa::current_cpuset();
        if (placed.empty()) {
            check.verdict = Verdict::skipped;
            check.detail = "not bound: " + worker.device().info().placement.reason;
            return;
        }
        std::vector<int> sorted = placed;
        std::sort(sorted.begin(), sorted.end());
        const bool inside =
            !actual.empty() && std::includes(sorted.begin(), sorted.end(), actual.begin(), actual.end());
        check.verdict = inside ? Verdict::passed : Verdict::failed;
        check.detail = inside ? fmt::format("thread on hardware threads {}", text::ranges(actual))
                              : fmt::format("thread on hardware threads {}, placed on {}", text::ranges(actual),
                                            text::ranges(placed));
    }

    void check_memory(Worker& worker, DoctorCheck& check)
    {
        constexpr std::size_t bytes = std::size_t{4} << 20;
        const int wanted = worker.device().info().numa_node;
        const PinnedBuffer buffer(worker.device(), bytes);
        auto* const data = static_cast<char*>(buffer.data());
        std::fill_n(data, bytes, '\1');
        const int first = numa::node_of_page(data);
        const int last = numa::node_of_page(data + bytes - 1);
        if (wanted < 0 || first < 0 || last < 0) {
            check.verdict = Verdict::skipped;
            check.detail =
                wanted < 0 ? "the device's NUMA node is not known" : "the system does not tell the node of a page";
        } else {
            // Not a failure: a full node gives way to its neighbour.
            check.verdict = first == wanted && last == wanted ? Verdict::passed : Verdict::warning;
            check.detail = fmt::format("pinned pages on node {}{}", first,
                                       check.verdict == Verdict::passed ? "" : fmt::format(", wanted on {}", wanted));
        }
    }

    /// GB/s of the best of a few copies that `copy` queues on the worker's stream.
    template <class Copy>
    double best_rate(Worker& worker, const Copy& copy)
    {
        Place& own = place(worker);
        double best = 0;
        for (int i = 0; i < repetitions; ++i) {
            worker.stream().record(*own.begin);
            copy();
            worker.stream().record(*own.end);
            finish(worker);
            best = std::max(best, gbs(static_cast<double>(bytes_), own.end->seconds_since(*own.begin)));
        }
        return best;
    }

    /// \throws Error(device) naming the first word of `data` that is not what device `rank` sends
    void compare(const void* data, int rank, const char* way) const
    {
        const auto* const received = static_cast<const std::uint64_t*>(data);
        for (std::size_t i = 0; i < words(); ++i) {
            if (received[i] != pattern(rank, i)) {
                throw Error(ErrorCode::device, fmt::format("{}: data arrived wrong, word {} of {} first", way,
                                                           text::grouped(static_cast<std::int64_t>(i)),
                                                           text::grouped(static_cast<std::int64_t>(words()))));
            }
        }
    }

    void check_host_link(Worker& worker, DoctorCheck& check)
    {
        engine::Device& device = worker.device();
        Place& own = place(worker);
        own.send = DeviceArray<std::uint64_t>(device, words());
        own.receive = DeviceArray<std::uint64_t>(device, words());
        own.host = PinnedBuffer(device, bytes_);
        own.begin = device.make_event(true);
        own.end = device.make_event(true);
        auto* const host = static_cast<std::uint64_t*>(own.host.data());
        for (std::size_t i = 0; i < words(); ++i) {
            host[i] = pattern(worker.rank(), i);
        }
        const auto rank = static_cast<std::size_t>(worker.rank());
        report_.to_device[rank] =
            best_rate(worker, [&] { worker.stream().copy(own.send.data(), own.host.data(), bytes_); });
        std::fill_n(host, words(), 0);
        report_.from_device[rank] =
            best_rate(worker, [&] { worker.stream().copy(own.host.data(), own.send.data(), bytes_); });
        compare(own.host.data(), worker.rank(), "to the device and back");
        check.detail = text::bytes(static_cast<std::int64_t>(bytes_)) + " to the device and back unharmed";
    }

    void time_together()
    {
        jobs_
            .submit([this](Worker& worker, Rendezvous& meeting) {
                Place& own = place(worker);
                const auto rank = static_cast<std::size_t>(worker.rank());
                if (own.end == nullptr) {
                    throw Error(ErrorCode::device, name(worker.rank()) + " has no working link to the host");
                }
                const PinnedBuffer uncached = uncached_memory(worker);
                auto* const host = static_cast<std::byte*>(uncached.bytes() > 0 ? uncached.data() : own.host.data());
                const int copies = uncached.bytes() > 0 ? uncached_copies : repetitions;
                const auto rate = [&](const auto& copy) {
                    copy(host);
                    finish(worker);
                    meeting.arrive_and_wait();
                    worker.stream().record(*own.begin);
                    for (int i = 0; i < copies; ++i) {
                        copy(host + (uncached.bytes() > 0 ? static_cast<std::size_t>(i) * bytes_ : 0));
                    }
                    worker.stream().record(*own.end);
                    finish(worker);
                    return gbs(static_cast<double>(bytes_) * copies, own.end->seconds_since(*own.begin));
                };
                report_.to_device_together[rank] =
                    rate([&](const std::byte* at) { worker.stream().copy(own.receive.data(), at, bytes_); });
                report_.from_device_together[rank] =
                    rate([&](std::byte* at) { worker.stream().copy(at, own.receive.data(), bytes_); });
            })
            .get();
    }

    /// Host memory for so many copies; none for host devices, and where the system grants no more.
    PinnedBuffer uncached_memory(Worker& worker)
    {
        if (state_.shared_memory()) {
            return {};
        }
        try {
            PinnedBuffer memory(worker.device(), bytes_ * uncached_copies);
            auto* const words = static_cast<std::uint64_t*>(memory.data());
            for (std::size_t i = 0; i < memory.bytes() / sizeof(std::uint64_t); ++i) {
                words[i] = pattern(worker.rank(), i);
            }
            return memory;
        } catch (const Error&) {
            return {};
        }
    }

    /// Copies the pattern of `from` to `to` by f on the worker of `by`, compares it there, and returns GB/s.
    template <class F>
    double moved(int from, int to, int by, const char* way, const F& f)
    {
        Place& target = places_[static_cast<std::size_t>(to)];
        on(to, [&](Worker& worker) {
            kernels::fill(reinterpret_cast<double*>(target.receive.data()), static_cast<std::int64_t>(words()), 0.0,
                          worker.context());
            finish(worker);
        });
        double rate = 0;
        on(by, [&](Worker& worker) {
            rate = best_rate(
                worker, [&] { f(worker, target.receive.data(), places_[static_cast<std::size_t>(from)].send.data()); });
        });
        on(to, [&](Worker& worker) {
            worker.stream().copy(target.host.data(), target.receive.data(), bytes_);
            finish(worker);
            compare(target.host.data(), from, way);
        });
        return rate;
    }

    void check_device_link(int from, int to)
    {
        DoctorCheck check{"device link", link_name(from, to), Verdict::passed, ""};
        const auto i = static_cast<std::size_t>(to);
        const auto j = static_cast<std::size_t>(from);
        const auto by_engine = [this](Worker& worker, void* out, const void* in) {
            worker.stream().copy(out, in, bytes_);
        };
        const auto by_kernel = [this](Worker& worker, void* out, const void* in) {
            const kernels::CopyPart part{out, in, static_cast<std::int64_t>(bytes_)};
            kernels::copy_parts(&part, 1, worker.context());
        };
        try {
            if (state_.shared_memory()) {
                report_.copy_engine[i][j] = moved(from, to, to, "copies", by_engine);
                check.detail = "copies arrived whole";
            } else if (!reachable(from, to) || !reachable(to, from)) {
                all_reachable_ = false;
                check.verdict = Verdict::skipped;
                check.detail = "they cannot reach each other's memory";
            } else {
                report_.read_by_kernel[i][j] = moved(from, to, to, "a kernel that reads", by_kernel);
                report_.write_by_kernel[i][j] = moved(from, to, from, "a kernel that writes", by_kernel);
                report_.copy_engine[i][j] = moved(from, to, to, "copies", by_engine);
                check.detail = "reads, writes and copies arrived whole";
            }
        } catch (const Error& e) {
            check.verdict = Verdict::failed;
            check.detail = e.what();
            links_work_ = false;
        }
        report_.checks.push_back(std::move(check));
    }

    bool reachable(int from, int to)
    {
        bool can = false;
        on(from, [&](Worker& worker) {
            can = engine::enable_peer_access(worker, *state_.workers[static_cast<std::size_t>(to)]);
        });
        return can;
    }

    DoctorCheck* passed_check(const char* name, const std::string& subject)
    {
        const auto check = std::find_if(report_.checks.begin(), report_.checks.end(), [&](const DoctorCheck& c) {
            return c.name == name && c.subject == subject && c.verdict == Verdict::passed;
        });
        return check == report_.checks.end() ? nullptr : &*check;
    }

    /// Links of one kind are meant to be alike: one that is much slower than the fastest has a reason worth finding.
    void warn_of_slow_links()
    {
        const auto warn = [&](const char* name, const std::string& subject, const char* what, double rate,
                              double best) {
            DoctorCheck* const check = rate > 0 && rate < slow_share * best ? passed_check(name, subject) : nullptr;
            if (check != nullptr) {
                check->verdict = Verdict::warning;
                check->detail +=
                    fmt::format(", but {} reach {:.1f} GB/s where another link reaches {:.1f}", what, rate, best);
            }
        };
        for (const auto& [what, rates] :
             {std::pair<const char*, const std::vector<double>*>{"copies to it", &report_.to_device},
              {"copies from it", &report_.from_device}}) {
            const double best = *std::max_element(rates->begin(), rates->end());
            for (int rank = 0; rank < state_.devices(); ++rank) {
                warn("host link", name(rank), what, (*rates)[static_cast<std::size_t>(rank)], best);
            }
        }
        // Between devices that share a GPU there is no link.
        const auto each_link = [&](const auto& f) {
            for (int to = 0; to < state_.devices(); ++to) {
                for (int from = 0; from < state_.devices(); ++from) {
                    if (!share_gpu(to, from)) {
                        f(to, from,
                          report_.read_by_kernel[static_cast<std::size_t>(to)][static_cast<std::size_t>(from)]);
                    }
                }
            }
        };
        double best = 0;
        each_link([&](int, int, double rate) { best = std::max(best, rate); });
        each_link(
            [&](int to, int from, double rate) { warn("device link", link_name(from, to), "reads", rate, best); });
    }

    void check_transports()
    {
        const transport::DeviceFacts facts{.devices = state_.devices(),
                                           .share_memory = state_.shared_memory(),
                                           .share_gpus = any_shares_,
                                           .all_reachable = all_reachable_};
        for (const transport::TransportRow& row : transport::transports()) {
            DoctorCheck check{"transport", row.name, Verdict::skipped, row.why_skipped(facts)};
            if (row.peer_memory && facts.devices > 1 && !facts.share_memory && !links_work_) {
                check.verdict = Verdict::failed;
                check.detail = "a device link is broken";
            } else if (check.detail.empty()) {
                check_transport(row.name, check);
            }
            report_.checks.push_back(std::move(check));
        }
    }

    void check_transport(const char* name, DoctorCheck& check)
    {
        try {
            const auto start = Clock::now();
            const auto transport = transport::make_transport(name, state_.workers, {.limit = limit_});
            const auto connected = Clock::now();
            transport::test_with_data(*transport, state_.workers, limit_);
            check.verdict = Verdict::passed;
            check.detail = fmt::format("connected in {}, gathered test data in {}",
                                       text::seconds(std::chrono::duration<double>(connected - start).count()),
                                       text::seconds(std::chrono::duration<double>(Clock::now() - connected).count()));
        } catch (const core::MissingLibrary& e) {
            check.verdict = Verdict::skipped;
            check.detail = e.what();
        } catch (const Error& e) {
            check.verdict = Verdict::failed;
            check.detail = e.what();
        }
    }

    /// Nothing is broken where one is missing: the rest of librmsp does without.
    void check_libraries()
    {
        for (const engine::CudaLibrary& library : engine::cuda_libraries()) {
            const bool missing = library.version.empty();
            report_.checks.push_back({"library", library.name, missing ? Verdict::skipped : Verdict::passed,
                                      missing ? library.why_missing : "version " + library.version});
        }
    }

    RuntimeState& state_;
    DoctorReport& report_;
    const std::vector<std::string> names_;
    engine::JobQueue jobs_;
    const std::size_t bytes_;
    const Clock::duration limit_;
    std::vector<Place> places_;
    bool any_shares_ = false;
    bool all_reachable_ = true;
    bool links_work_ = true;
};

}  // namespace

std::vector<std::string> device_names(const std::vector<DeviceInfo>& infos)
{
    std::vector<std::string> names;
    for (auto info = infos.begin(); info != infos.end(); ++info) {
        const auto is_same = [&](const DeviceInfo& other) { return other.index == info->index; };
        std::string& name = names.emplace_back(fmt::format("{}:{}", to_string(info->kind), info->index));
        if (std::count_if(infos.begin(), infos.end(), is_same) > 1) {
            name += fmt::format("#{}", std::count_if(infos.begin(), info, is_same));
        }
    }
    return names;
}

void examine(RuntimeState& state, const DoctorOptions& options, DoctorReport& report)
{
    Examination(state, options, report).run();
}

}  // namespace rmsp::doctor
