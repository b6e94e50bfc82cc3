#include "core/epoch.hpp"

#include <climits>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rmsp::core {

#ifdef __linux__

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept
{
    // Errors are that the word has changed, or a signal: who waits looks again.
    static_cast<void>(::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0));
}

}  // namespace

void Epoch::advance() noexcept
{
    // Sequentially consistent with wait_past(): either it is seen there, or the sleeper is here.
    value_.fetch_add(1);
    if (sleepers_.load() != 0) {
        futex(value_, FUTEX_WAKE_PRIVATE, INT_MAX);
    }
}

void Epoch::wait_past(std::uint32_t seen) noexcept
{
    sleepers_.fetch_add(1);
    while (value_.load() == seen) {
        futex(value_, FUTEX_WAIT_PRIVATE, seen);
    }
    sleepers_.fetch_sub(1);
}

#else

void Epoch::advance() noexcept
{
    value_.fetch_add(1);
    value_.notify_all();
}

void Epoch::wait_past(std::uint32_t seen) noexcept { value_.wait(seen); }

#endif

}  // namespace rmsp::core
