#include "core/process.hpp"

#include <atomic>

#include <unistd.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::core {

void require_own_process()
{
    static std::atomic<pid_t> first{0};
    const pid_t own = ::getpid();
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
