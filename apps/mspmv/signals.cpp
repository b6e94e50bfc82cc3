#include "apps/mspmv/signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "apps/mspmv/output.hpp"
#include "apps/mspmv/progress.hpp"

namespace rmsp::mspmv {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
std::atomic<bool> main_has_returned{false};
fs::path pending;  // symbolic links resolved; empty: no output is under way

/// What librmsp and write_text() add to the name of a file that is not whole yet.
std::string part_prefix(const fs::path& path)
{
    return fmt::format("{}.part-{}", path.filename().string(), ::getpid());
}

void remove_parts()
{
    std::error_code error;
    const std::string prefix = part_prefix(pending);
    const fs::path folder = pending.has_parent_path() ? pending.parent_path() : fs::path(".");
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        // "x.part-12" and "x.part-12-0" are this process's, 12; "x.part-123" is not.
        if (name == prefix || name.starts_with(prefix + '-')) {
            std::error_code ignored;
            fs::remove(it->path(), ignored);
        }
    }
}

void remove_pending_output() noexcept
{
    const std::lock_guard lock(mutex);
    try {
        if (!pending.empty()) {
            remove_parts();
        }
    } catch (const std::exception&) {
        // Out of memory: the unfinished file stays.
    }
}

/// exit() was called by other than main(): OpenMP's runtime does so where it gets no thread or no memory.
void end_of_a_library() noexcept
{
    if (main_has_returned) {
        return;
    }
    clear_progress_line();
    print_error("mspmv: error: a library ended the process, for lack of memory or threads\n");
    remove_pending_output();
    ::_exit(static_cast<int>(ErrorCode::out_of_memory));
}

/// An exception could not be passed on. Destructors of other libraries allocate, nlohmann::json's for one.
[[noreturn]] void last_resort() noexcept
{
    if (const std::exception_ptr error = std::current_exception()) {
        try {
            std::rethrow_exception(error);
        } catch (const std::bad_alloc&) {
            clear_progress_line();
            print_error("mspmv: error: out of host memory, beyond recovery\n");
            remove_pending_output();
            ::_exit(static_cast<int>(ErrorCode::out_of_memory));
        } catch (...) {
            // Not for lack of memory: a core file says more.
        }
    }
    std::abort();
}

}  // namespace

void expect_return_of_main()
{
    std::set_terminate(last_resort);
    if (std::atexit(end_of_a_library) != 0) {
        throw std::bad_alloc();
    }
}

int return_of_main(int status) noexcept
{
    main_has_returned = true;
    return status;
}

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
        while (sigwait(&signals, &signal) != 0) {
        }
        clear_progress_line();
        remove_pending_output();
        // Devices may be in the middle of anything: no destructors.
        ::_exit(128 + signal);
    }).detach();
}

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
    pending.clear();
}

std::string PendingOutput::final_name() const { return pending.string(); }

std::string PendingOutput::temporary_name() const { return (pending.parent_path() / part_prefix(pending)).string(); }

}  // namespace rmsp::mspmv
