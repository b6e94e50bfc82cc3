// Jobs from many threads, with whatever may go wrong: bodies that throw, stops, deadlines, full queues, host devices
// that are lost. Every job has to end, with the right result or with a named error, and memory must not grow.
// Exit status 0: all that holds. A job that does not end within a minute ends the program.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rmsp/rmsp.hpp>
#include <runtime/matrix/matrix_state.hpp>
#include <runtime/node/node.hpp>

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
    std::int64_t jobs = 1000000;
    int threads = 16;
    std::string devices = "host:3x1";
    int rounds = 20;  ///< each with a runtime of its own; in every second one a host device is lost
    unsigned seed = 1;
};

/// How jobs ended.
struct Tally {
    std::atomic<std::int64_t> right{0};
    std::atomic<std::int64_t> wrong{0};
    std::atomic<std::int64_t> failed{0};  ///< as a body threw
    std::atomic<std::int64_t> cancelled{0};
    std::atomic<std::int64_t> expired{0};
    std::atomic<std::int64_t> refused{0};
    std::atomic<std::int64_t> lost{0};  ///< with the name of a device
    std::atomic<std::int64_t> unnamed{0};

    std::int64_t all() const { return right + wrong + failed + cancelled + expired + refused + lost + unnamed; }
};

double resident_mib()
{
    std::ifstream statm("/proc/self/statm");
    double pages = 0;
    statm >> pages >> pages;
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// What all threads of a round use.
struct Round {
    rmsp::Runtime runtime;
    rmsp::CsrMatrix<double> small;
    rmsp::CsrMatrix<double> large;
    rmsp::DistributedMatrix<double> everywhere;    ///< `large`, on all devices
    rmsp::DistributedMatrix<double> on_the_first;  ///< `small`, on one
    std::vector<std::int64_t> columns;             ///< of `large`: wide ones are streamed in pieces
    rmsp::DistributedMatrix<double> streamed;      ///< `large`, in pieces between which products may end
    bool loses = false;

    Round(const rmsp::RuntimeOptions& options, bool loses_one)
        : runtime(options),
          small(rmsp::generate<double>("stencil7 4 4 4")),
          large(rmsp::generate<double>("stencil7 12 12 12"))
    {
        // A GPU that is lost stays so until the process ends, and later rounds would lack it.
        const auto devices = runtime.devices();
        loses = loses_one && devices.size() > 1 && devices.front().kind == rmsp::DeviceKind::host;
        everywhere = runtime.distribute(large.view());
        rmsp::DistributeOptions first;
        first.devices = 1;
        on_the_first = runtime.distribute(small.view(), first);
        for (std::int64_t i = 0; i < large.nnz(); ++i) {
            columns.push_back(large.col_idx[i]);
        }
        rmsp::DistributeOptions in_pieces;
        in_pieces.mode = rmsp::Mode::streamed;
        in_pieces.chunk_bytes = 4096;
        streamed = runtime.distribute(wide(), in_pieces);
    }

    rmsp::CsrView<double> wide() const
    {
        rmsp::CsrView<double> view = large.view();
        view.col_idx = columns.data();
        return view;
    }
};

class Client {
public:
    Client(Round& round, Tally& tally, unsigned seed) : round_(round), tally_(tally), random_(seed) {}

    void work(std::int64_t jobs)
    {
        for (std::int64_t i = 0; i < jobs; ++i) {
            one();
        }
    }

private:
    int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

    rmsp::JobOptions some_options()
    {
        rmsp::JobOptions options;
        options.priority = static_cast<rmsp::Priority>(below(3));
        options.when_full = below(2) == 0 ? rmsp::WhenFull::wait : rmsp::WhenFull::refuse;
        options.lane = below(4) == 0 ? static_cast<std::uint64_t>(1 + below(8)) : 0;
        if (below(4) == 0) {
            options.deadline = Clock::now() + std::chrono::microseconds(below(400));
        }
        options.stop = source_->get_token();
        return options;
    }

    void one()
    {
        source_.emplace();
        const int kind = below(100);
        try {
            if (kind < 8) {
                throws();
            } else if (kind < 9) {
                on_vectors();
            } else if (kind < 10) {
                (void)round_.runtime.metrics().to_prometheus();
                ++tally_.right;
            } else {
                product(kind);
            }
        } catch (const rmsp::Error& e) {
            const std::string what = e.what();
            switch (e.code()) {
                case rmsp::ErrorCode::cancelled:
                    ++tally_.cancelled;
                    return;
                case rmsp::ErrorCode::deadline:
                    ++tally_.expired;
                    return;
                case rmsp::ErrorCode::busy:
                    ++tally_.refused;
                    return;
                default:
                    break;
            }
            if (what.find("injected by a body") != std::string::npos ||
                what.find("another device failed") != std::string::npos) {
                ++tally_.failed;
            } else if (round_.loses && what.find("is lost: injected") != std::string::npos) {
                ++tally_.lost;
            } else {
                tell(what);
            }
        } catch (const std::bad_alloc&) {
            ++tally_.failed;
        } catch (const std::exception& e) {
            tell(e.what());
        }
    }

    void tell(const std::string& what)
    {
        if (tally_.unnamed++ < 10) {
            std::fprintf(stderr, "unnamed: %s\n", what.c_str());
        }
    }

    /// \throws what the job threw
    static void end(std::future<void>& done)
    {
        if (done.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
            std::fprintf(stderr, "a job hangs\n");
            std::_Exit(1);
        }
        done.get();
    }

    /// A body throws on one device, before or after the others wait for it.
    void throws()
    {
        const int rank = below(round_.runtime.devices().size() > 1 ? 2 : 1);
        const bool late = below(2) == 0;
        const bool memory = below(4) == 0;
        auto done = rmsp::detail::RuntimeAccess::state(round_.runtime)
                        ->submit(
                            [=](rmsp::engine::Worker& worker, rmsp::engine::Rendezvous& meeting) {
                                if (late) {
                                    meeting.arrive_and_wait();
                                }
                                if (worker.rank() == rank && memory) {
                                    throw std::bad_alloc();
                                }
                                if (worker.rank() == rank) {
                                    throw rmsp::Error(rmsp::ErrorCode::device, "injected by a body");
                                }
                                meeting.arrive_and_wait();
                            },
                            {}, below(2) == 0);
        end(done);
        ++tally_.wrong;  // it did not throw
    }

    const std::vector<double>& fill_x(std::int64_t size)
    {
        x_.resize(static_cast<std::size_t>(size));
        for (double& value : x_) {
            value = below(9) - 4;
        }
        return x_;
    }

    void judge(const rmsp::CsrMatrix<double>& a)
    {
        const auto verdict = rmsp::verify_spmv<double>(a.view(), 1.0, x_.data(), 0.0, nullptr, y_.data());
        ++(verdict.passed ? tally_.right : tally_.wrong);
    }

    void product(int kind)
    {
        const bool first = below(2) == 0;
        const auto& a = first ? round_.small : round_.large;
        auto& matrix = first ? round_.on_the_first : below(4) == 0 ? round_.streamed : round_.everywhere;
        fill_x(a.cols);
        y_.assign(static_cast<std::size_t>(a.rows), 1e300);
        if (kind < 40) {
            auto done = matrix.apply_async(1.0, x_.data(), 0.0, y_.data());
            end(done);
        } else {
            const auto options = some_options();
            if (kind < 45) {
                source_->request_stop();
            }
            auto done = matrix.apply_async(1.0, x_.data(), 0.0, y_.data(), options);
            if (kind < 60) {
                std::this_thread::sleep_for(std::chrono::microseconds(below(2) * below(300)));
                source_->request_stop();
            }
            end(done);
        }
        judge(a);
    }

    void on_vectors()
    {
        const auto& a = round_.small;
        fill_x(a.cols);
        y_.assign(static_cast<std::size_t>(a.rows), 1e300);
        auto x = round_.on_the_first.make_x(rmsp::Layout::rows);
        auto y = round_.on_the_first.make_y();
        x.upload(x_.data());
        auto done = round_.on_the_first.apply_async(1.0, x, 0.0, y, some_options());
        end(done);
        y.download(y_.data());
        judge(a);
    }

    Round& round_;
    Tally& tally_;
    std::mt19937 random_;
    std::optional<std::stop_source> source_;  ///< of the job that is running, if any
    std::vector<double> x_;
    std::vector<double> y_;
};

/// After the last device was lost: the matrix comes back on the others, and the one that had no part there goes on.
bool recovers(Round& round)
{
    const std::size_t before = round.runtime.devices().size();
    round.runtime.redistribute(round.everywhere, round.large.view());
    round.runtime.redistribute(round.streamed, round.wide());
    bool right = round.runtime.devices().size() + 1 == before;
    for (auto* const pair : {&round.everywhere, &round.streamed, &round.on_the_first}) {
        const auto& a = pair == &round.on_the_first ? round.small : round.large;
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        pair->apply(1.0, x.data(), 0.0, y.data());
        right = right && rmsp::verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed;
    }
    return right;
}

int attack(const Settings& settings)
{
    Tally tally;
    bool recovered = true;
    int lost = 0;
    double first_mib = 0;
    double last_mib = 0;
    const std::int64_t each = settings.jobs / settings.rounds / settings.threads;
    for (int number = 0; number < settings.rounds; ++number) {
        rmsp::RuntimeOptions options;
        options.devices = settings.devices;
        options.bind = rmsp::BindPolicy::none;
        options.queue_limit = number % 3 == 0 ? 0 : 12;
        Round round(options, number % 2 == 1);
        {
            std::vector<std::jthread> threads;
            for (int t = 0; t < settings.threads; ++t) {
                const auto seed = settings.seed + static_cast<unsigned>(number * settings.threads + t);
                threads.emplace_back([&, seed] { Client(round, tally, seed).work(each); });
            }
            if (round.loses) {
                const std::int64_t half = tally.all() + each * settings.threads / 2;
                while (tally.all() < half) {
                    std::this_thread::sleep_for(std::chrono::microseconds(200));
                }
                const auto state = rmsp::detail::RuntimeAccess::state(round.runtime);
                state->workers.back()->device().lose("injected");
            }
        }
        recovered = recovered && (!round.loses || recovers(round));
        lost += round.loses ? 1 : 0;
        const rmsp::Metrics metrics = round.runtime.metrics();
        if (metrics.waiting + metrics.running != 0) {
            std::fprintf(stderr, "round %d: %lld jobs wait or run for ever\n", number,
                         static_cast<long long>(metrics.waiting + metrics.running));
            return 1;
        }
        last_mib = resident_mib();
        first_mib = number == settings.rounds / 4 ? last_mib : first_mib;
    }
    fmt::print(
        "{} jobs of {} threads on {}: {} right, {} wrong, {} failed as injected, {} cancelled, {} "
        "expired, {} refused, {} on a lost device, {} unnamed errors\n",
        tally.all(), settings.threads, settings.devices, tally.right.load(), tally.wrong.load(), tally.failed.load(),
        tally.cancelled.load(), tally.expired.load(), tally.refused.load(), tally.lost.load(), tally.unnamed.load());
    fmt::print("resident memory {:.0f} MiB after a quarter, {:.0f} MiB at the end; lost devices: {}{}\n", first_mib,
               last_mib, lost, recovered ? "" : ", NOT made good");
    const bool grew = last_mib > 1.25 * first_mib + 16;
    return tally.wrong == 0 && tally.unnamed == 0 && recovered && !grew ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    Settings settings;
    const auto number = [&](int i, long long least) {
        char* end = nullptr;
        const long long value = i < argc ? std::strtoll(argv[i], &end, 10) : least;
        if (i < argc && (*end != '\0' || value < least)) {
            std::fprintf(stderr, "usage: attack_jobs [JOBS [THREADS [DEVICES [ROUNDS [SEED]]]]]: %s\n", argv[i]);
            std::exit(2);
        }
        return value;
    };
    settings.jobs = argc > 1 ? number(1, 1) : settings.jobs;
    settings.threads = argc > 2 ? static_cast<int>(number(2, 1)) : settings.threads;
    settings.devices = argc > 3 ? argv[3] : settings.devices;
    settings.rounds = argc > 4 ? static_cast<int>(number(4, 1)) : settings.rounds;
    settings.seed = argc > 5 ? static_cast<unsigned>(number(5, 0)) : settings.seed;
    try {
        return attack(settings);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "attack_jobs: error: %s\n", e.what());
        return 1;
    }
}
