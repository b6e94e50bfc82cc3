// Requests for memory of the devices, and for pinned memory, refused one by one or all from one on, in each of the
// library's larger calls. Each run has to give the right result, or an error that names bytes and device; afterwards
// nothing stays taken, and a small matrix is distributed and multiplied by the same runtime. "transfers" refuses those
// of a transport between the devices, which another one then has to take the place of. Exit status 0: all that holds. A
// run that does not end within a minute ends the program.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rmsp/rmsp.hpp>
#include <runtime/engine/refusals.hpp>
#include <runtime/node/node.hpp>
#include <runtime/transport/link.hpp>
#include <runtime/transport/table.hpp>

#include "device_calls.hpp"

namespace {

using namespace rmsp::attack;
using rmsp::engine::Refusals;
using rmsp::engine::Request;

struct Settings {
    std::string devices = "host:2x1";
    std::int64_t sample = 0;  ///< most requests of each call and mode; 0: each
    std::vector<std::string> names;
};

char running[256];

void tell_that_it_hangs(int)
{
    (void)!::write(STDERR_FILENO, running, sizeof running);
    ::_exit(1);
}

rmsp::Runtime open(const Settings& settings)
{
    rmsp::RuntimeOptions options;
    options.devices = settings.devices;
    options.bind = rmsp::BindPolicy::none;
    return rmsp::Runtime(options);
}

/// Bytes taken of all devices, once what was let go is free, also what transports keep of it for later channels; those
/// promised count too.
std::int64_t taken(const rmsp::Runtime& runtime)
{
    const auto state = rmsp::detail::RuntimeAccess::state(runtime);
    state->catch_up();
    rmsp::Metrics metrics;
    metrics.devices.resize(static_cast<std::size_t>(state->devices()));
    state->memory->add_to(metrics);
    std::int64_t bytes = 0;
    for (const auto& device : metrics.devices) {
        bytes += device.resident_bytes + device.reserved_bytes;
    }
    return bytes;
}

/// Fails requests in one call, and looks at the runtime afterwards.
class Sweep {
public:
    Sweep(const Settings& settings, const Inputs& in, const Call& call) : settings_(settings), in_(in), call_(call) {}

    /// Whether all was as it has to be.
    bool run()
    {
        if (!runtime_) {
            runtime_.emplace(open(settings_));
        }
        bool good = true;
        for (const Request kind : {Request::memory, Request::pinned}) {
            const std::int64_t requests = warm_up(kind);
            for (const bool all : {false, true}) {
                good = sweep(kind, requests, all) && good;
            }
        }
        return good;
    }

private:
    /// Requests of the call. Made twice: what the runtime makes once, for the first call that needs it, stays.
    std::int64_t warm_up(Request kind)
    {
        std::int64_t requests = 0;
        for (int i = 0; i < 2; ++i) {
            const Refusals counted(kind, 0, false);
            Steps then(false);
            call_.run(*runtime_, then, in_);
            requests = counted.asked();
            use_small();
            before_ = taken(*runtime_);
        }
        return requests;
    }

    void use_small()
    {
        auto matrix = runtime_->distribute(in_.small.view());
        multiply(matrix, in_.small, in_);
        on_vectors(matrix, in_.small, in_, rmsp::Layout::rows);
    }

    bool sweep(Request kind, std::int64_t requests, bool all)
    {
        const auto began = std::chrono::steady_clock::now();
        std::map<std::string, std::int64_t> outcomes;
        const std::int64_t runs = settings_.sample > 0 ? std::min(settings_.sample, requests) : requests;
        bool good = true;
        for (std::int64_t i = 0; i < runs; ++i) {
            const std::int64_t number = 1 + i * requests / runs;
            const std::string outcome = one(kind, number, all);
            ++outcomes[outcome.empty() ? "wrong" : outcome];
            good = good && !outcome.empty();
        }
        std::string text;
        for (const auto& [outcome, count] : outcomes) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, outcome);
        }
        fmt::print("{}: {}, {}: {} of {} requests: {} ({:.1f} s)\n", call_.name,
                   kind == Request::memory ? "memory of the devices" : "pinned memory",
                   all ? "all from one on fail" : "one fails", runs, requests, text.empty() ? "none" : text,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        std::fflush(stdout);
        return good;
    }

    /// How a run ended; empty: not as it has to.
    std::string one(Request kind, std::int64_t number, bool all)
    {
        const std::string what = fmt::format("{}: {} request {}{}", call_.name,
                                             kind == Request::memory ? "memory" : "pinned", number, all ? " on" : "");
        std::snprintf(running, sizeof running, "%s hangs\n", what.c_str());
        ::alarm(60);
        std::string outcome = "not reached";
        Steps then(!all);
        try {
            const Refusals refusals(kind, number, all);
            try {
                call_.run(*runtime_, then, in_);
            } catch (const rmsp::Error& e) {
                if (then.errors() == 0 || e.code() != rmsp::ErrorCode::out_of_memory) {
                    throw;
                }
            }
            outcome = then.errors() > 0 ? "named errors" : refusals.refused() > 0 ? "successes all the same" : outcome;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s: %s\n", what.c_str(), e.what());
            outcome.clear();
        }
        try {
            const std::int64_t after = taken(*runtime_);
            expect(after == before_, fmt::format("what is taken, {} bytes and not {},", after, before_).c_str());
            use_small();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s: afterwards: %s\n", what.c_str(), e.what());
            outcome.clear();
            runtime_.emplace(open(settings_));
            (void)warm_up(kind);
        }
        ::alarm(0);
        return outcome;
    }

    const Settings& settings_;
    const Inputs& in_;
    const Call& call_;
    std::optional<rmsp::Runtime> runtime_;
    std::int64_t before_ = 0;
};

/// Requests that fail while a runtime is opened.
bool sweep_open(const Settings& settings, const Inputs& in)
{
    bool good = true;
    std::int64_t errors = 0;
    std::int64_t runs = 0;
    for (const Request kind : {Request::memory, Request::pinned}) {
        for (const bool all : {false, true}) {
            for (std::int64_t number = 1;; ++number, ++runs) {
                std::snprintf(running, sizeof running, "opening a runtime, request %d, hangs\n",
                              static_cast<int>(number));
                ::alarm(60);
                std::optional<rmsp::Runtime> runtime;
                bool reached = false;
                try {
                    Steps then(!all);
                    const Refusals refusals(kind, number, all);
                    try {
                        then([&] { runtime.emplace(open(settings)); });
                    } catch (const rmsp::Error&) {
                    }
                    reached = refusals.refused() > 0;
                    errors += then.errors();
                } catch (const std::exception& e) {
                    std::fprintf(stderr, "opening a runtime, request %d: %s\n", static_cast<int>(number), e.what());
                    good = false;
                }
                if (!runtime) {
                    runtime.emplace(open(settings));
                }
                auto matrix = runtime->distribute(in.small.view());
                multiply(matrix, in.small, in);
                ::alarm(0);
                if (!reached) {
                    break;
                }
            }
        }
    }
    fmt::print("open: {} runs: {} named errors\n", runs, errors);
    return good;
}

/// Transfers that fail in use; each in a runtime of its own, whose transport another one takes the place of. Host
/// devices, which need none, exchange entries through copies.
bool sweep_transfers(const Settings& settings, const Inputs& in)
{
    const auto run = [&](std::int64_t number, Steps& then, std::uint64_t& replaced) {
        rmsp::Runtime runtime = open(settings);
        const auto state = rmsp::detail::RuntimeAccess::state(runtime);
        const bool host = state->shared_memory();
        if (host && state->devices() > 1) {
            state->connection = {
                std::make_unique<rmsp::transport::Link>(rmsp::transport::make_transport("host", state->workers),
                                                        std::vector<std::string>{"host"}, state->workers),
                "host", "an attack"};
        }
        const Refusals refusals(Request::transfer, number, false);
        entries(runtime, then, in);
        if (!host) {
            resident(runtime, then, in);
            columns(runtime, then, in);
            spgemm(runtime, then, in);
        }
        replaced = runtime.metrics().transports_replaced;
        return number == 0 ? refusals.asked() : refusals.refused();
    };
    std::uint64_t replaced = 0;
    Steps undisturbed(false, true);
    ::alarm(60);
    const std::int64_t requests = run(0, undisturbed, replaced);
    ::alarm(0);
    const std::int64_t runs = settings.sample > 0 ? std::min(settings.sample, requests) : requests;
    std::int64_t good = 0;
    for (std::int64_t i = 0; i < runs; ++i) {
        const std::int64_t number = 1 + i * requests / runs;
        std::snprintf(running, sizeof running, "transfer %d hangs\n", static_cast<int>(number));
        ::alarm(60);
        try {
            Steps then(true, true);
            const std::int64_t refused = run(number, then, replaced);
            expect(refused == 0 || (then.errors() == 1 && replaced == 1), "how often the transport was replaced");
            ++good;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "transfer %d: %s\n", static_cast<int>(number), e.what());
        }
        ::alarm(0);
    }
    fmt::print("transfers: {} of {} fail: {} named errors, after which another transport went on\n", runs, requests,
               good);
    return good == runs;
}

int attack(const Settings& settings)
{
    const Inputs in;
    bool good = true;
    const auto wanted = [&](const std::string& name) {
        return settings.names.empty() ||
               std::find(settings.names.begin(), settings.names.end(), name) != settings.names.end();
    };
    if (wanted("open")) {
        good = sweep_open(settings, in);
    }
    if (wanted("transfers")) {
        good = sweep_transfers(settings, in) && good;
    }
    for (const Call& call : calls) {
        if (wanted(call.name)) {
            good = Sweep(settings, in, call).run() && good;
        }
    }
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    Settings settings;
    settings.devices = argc > 1 ? argv[1] : settings.devices;
    settings.sample = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 0;
    for (int i = 3; i < argc; ++i) {
        settings.names.emplace_back(argv[i]);
    }
    (void)std::signal(SIGALRM, tell_that_it_hangs);
    try {
        return attack(settings);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "attack_device_memory: error: %s\n", e.what());
        return 1;
    }
}
