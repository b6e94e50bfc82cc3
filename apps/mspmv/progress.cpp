#include "apps/mspmv/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/mspmv/output.hpp"
#include "apps/mspmv/terminal.hpp"

namespace rmsp::mspmv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr int bar_width = 40;

std::mutex mutex;
bool drawn = false;
Clock::time_point last_drawn;

/// Draws the text that f() makes, unless the last one is fresh.
template <class F>
void draw_line(const F& f)
{
    const std::lock_guard lock(mutex);
    const auto now = Clock::now();
    if (now - last_drawn < redraw_interval) {
        return;
    }
    last_drawn = now;
    drawn = true;
    print_error("\r\033[K" + f());
}

void draw(std::string_view phase, double done)
{
    draw_line([&] {
        const double share = std::clamp(done, 0.0, 1.0);
        const int filled = static_cast<int>(share * bar_width);
        return fmt::format("{:<10} [{:#<{}}{:.<{}}] {:3.0f} %", phase, "", filled, "", bar_width - filled, 100 * share);
    });
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

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) != 0 && !appearance().quiet)
{
    const std::lock_guard lock(mutex);
    // Work that is over within an interval draws nothing.
    last_drawn = Clock::now();
}

ProgressBar::~ProgressBar() { clear_progress_line(); }

void ProgressBar::solving(const SolverProgress& progress) const
{
    if (terminal_) {
        draw_line([&] {
            return fmt::format("iteration {}, residual {:.3e} of {:.3e}, {:.1f} s", progress.iteration,
                               progress.residual, progress.target, progress.seconds);
        });
    }
}

Progress ProgressBar::callback() const { return terminal_ ? Progress(draw) : Progress(); }

}  // namespace rmsp::mspmv
