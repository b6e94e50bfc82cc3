#include "core/process.hpp"

#include <atomic>

#include <pthread.h>
#include <unistd.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::core {
namespace {

std::atomic<pid_t> own_pid{0};

}  // namespace

int own_process() noexcept
{
    pid_t own = own_pid.load(std::memory_order_relaxed);
    if (own == 0) {
        own = ::getpid();
        // A child of fork() has another number.
        static const bool told = ::pthread_atfork(nullptr, nullptr, [] { own_pid = 0; }) == 0;
        if (told) {
            own_pid.store(own, std::memory_order_relaxed);
        }
    }
    return own;
}

void require_own_process()
{
    static std::atomic<pid_t> first{0};
    const pid_t own = own_process();
    pid_t user = 0;
    if (!first.compare_exchange_strong(user, own) && user != own) {
        throw Error(
            ErrorCode::usage,
            fmt::format("process {} was made by fork() of one that had used librmsp, process {}, whose threads and "
                        "devices it does not have; fork before the first use, or start a program with exec()",
                        own, user));
    }
}

}  // namespace rmsp::core
