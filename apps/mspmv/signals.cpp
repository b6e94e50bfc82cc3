#include "apps/mspmv/signals.hpp"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
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

#include "apps/mspmv/print.hpp"
#include "apps/mspmv/progress.hpp"

namespace rmsp::mspmv {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
std::atomic<bool> main_has_returned{false};
std::string part;  // what the name of a file that is not whole yet begins with; empty: no output is under way

enum class Cancel : std::uint8_t { off, possible, requested };
std::atomic<Cancel> cancel{Cancel::off};

/// Whether a signal has only asked a Cancellation.
bool take_as_cancellation() noexcept
{
    Cancel expected = Cancel::possible;
    return cancel.compare_exchange_strong(expected, Cancel::requested);
}

/// Allocates nothing: there may be no memory left. librmsp counts the files that it begins, of which a command writes
/// one; those of another process, 123 where this one is 12, are no longer names.
void remove_parts() noexcept
{
    constexpr int most_files = 64;
    char name[PATH_MAX];
    ::unlink(part.c_str());
    for (int i = 0; i < most_files; ++i) {
        if (std::snprintf(name, sizeof(name), "%s-%d", part.c_str(), i) < static_cast<int>(sizeof(name))) {
            ::unlink(name);
        }
    }
}

void remove_pending_output() noexcept
{
    const std::lock_guard lock(mutex);
    if (!part.empty()) {
        remove_parts();
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
    // Several threads may call exit() at a time, and each call takes the next of the functions that are left: once for
    // each thread, so that none comes to the destructors while others still run.
    constexpr int most_threads_at_once = 64;
    for (int i = 0; i < most_threads_at_once; ++i) {
        if (std::atexit(end_of_a_library) != 0) {
            throw std::bad_alloc();
        }
    }
}

int return_of_main(int status) noexcept
{
    main_has_returned = true;
    return status;
}

void handle_termination()
{
    // A file that may grow no further is an error of write(), not the end of the process.
    std::signal(SIGXFSZ, SIG_IGN);
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
        remove_pending_output();
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
    final_name_ = error ? path : resolved.string();
    temporary_name_ = fmt::format("{}.part-{}", final_name_, ::getpid());  // as librmsp's OutputFile does
    const std::lock_guard lock(mutex);
    part = temporary_name_;
}

PendingOutput::~PendingOutput()
{
    const std::lock_guard lock(mutex);
    part.clear();
}

}  // namespace rmsp::mspmv
