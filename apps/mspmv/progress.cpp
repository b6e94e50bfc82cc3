#include "apps/mspmv/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/mspmv/output.hpp"

namespace rmsp::mspmv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr int bar_width = 40;

std::mutex mutex;
bool drawn = false;
Clock::time_point last_drawn;

void draw(std::string_view phase, double done)
{
    const std::lock_guard lock(mutex);
    const auto now = Clock::now();
    if (now - last_drawn < redraw_interval) {
        return;
    }
    last_drawn = now;
    drawn = true;
    const double share = std::clamp(done, 0.0, 1.0);
    const int filled = static_cast<int>(share * bar_width);
    print_error(fmt::format("\r\033[K{:<10} [{:#<{}}{:.<{}}] {:3.0f} %", phase, "", filled, "", bar_width - filled,
                            100 * share));
}

}  // namespace

void clear_progress_line() noexcept
{
    const std::lock_guard lock(mutex);
    if (drawn) {
        print_error("\r\033[K");
        drawn = false;
    }
}

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) != 0)
{
    const std::lock_guard lock(mutex);
    // Work that is over within an interval draws nothing.
    last_drawn = Clock::now();
}

ProgressBar::~ProgressBar() { clear_progress_line(); }

Progress ProgressBar::callback() const { return terminal_ ? Progress(draw) : Progress(); }

}  // namespace rmsp::mspmv
