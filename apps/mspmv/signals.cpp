#include "apps/mspmv/signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/mspmv/progress.hpp"

namespace rmsp::mspmv {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
fs::path pending;  // symbolic links resolved; empty: no output is under way

enum class Cancel : std::uint8_t { off, possible, requested };
std::atomic<Cancel> cancel{Cancel::off};

/// Whether a signal has only asked a Cancellation.
bool take_as_cancellation() noexcept
{
    Cancel expected = Cancel::possible;
    return cancel.compare_exchange_strong(expected, Cancel::requested);
}

/// What librmsp and write_text() add to the name of a file that is not whole yet.
std::string part_prefix(const fs::path& path)
{
    return fmt::format("{}.part-{}", path.filename().string(), ::getpid());
}

void remove_parts()
{
    std::error_code error;
    const fs::path folder = pending.has_parent_path() ? pending.parent_path() : fs::path(".");
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (it->path().filename().string().starts_with(part_prefix(pending))) {
            std::error_code ignored;
            fs::remove(it->path(), ignored);
        }
    }
}

}  // namespace

void handle_termination()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    // Inherited by every thread that starts later, so that only the one below takes these signals.
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
        int signal = 0;
        while (sigwait(&signals, &signal) != 0 || take_as_cancellation()) {
        }
        clear_progress_line();
        const std::lock_guard lock(mutex);
        if (!pending.empty()) {
            remove_parts();
        }
        // Devices may be in the middle of anything: no destructors.
        ::_exit(128 + signal);
    }).detach();
}

Cancellation::Cancellation() { cancel = Cancel::possible; }

Cancellation::~Cancellation() { cancel = Cancel::off; }

bool Cancellation::requested() noexcept { return cancel == Cancel::requested; }

PendingOutput::PendingOutput(const std::string& path)
{
    std::error_code error;
    const fs::path resolved = fs::weakly_canonical(path, error);
    const std::lock_guard lock(mutex);
    pending = error ? fs::path(path) : resolved;
}

PendingOutput::~PendingOutput()
{
    const std::lock_guard lock(mutex);
    try {
        remove_parts();
    } catch (const std::exception&) {
        // Out of memory: the unfinished file stays.
    }
    pending.clear();
}

std::string PendingOutput::final_name() const { return pending.string(); }

std::string PendingOutput::temporary_name() const { return (pending.parent_path() / part_prefix(pending)).string(); }

}  // namespace rmsp::mspmv
