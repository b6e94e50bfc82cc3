#include "apps/mspmv/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

#include "apps/mspmv/print.hpp"
#include "apps/mspmv/terminal.hpp"

namespace rmsp::mspmv {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);
/// Work that is over sooner draws nothing.
constexpr auto first_after = std::chrono::milliseconds(300);
constexpr int bar_width = 40;

std::mutex drawing_mutex;
bool alive = false;       ///< there is a bar
bool drawn = false;       ///< it is on the screen
std::string stage;        ///< what is done now; empty: nothing that is drawn
std::string how_far;      ///< in it; empty: not known
Clock::time_point began;  ///< with the stage
Clock::time_point last_drawn;

/// With the mutex locked.
void draw()
{
    const auto now = Clock::now();
    if (!alive || stage.empty() || now - last_drawn < redraw_interval || (!drawn && now - began < first_after)) {
        return;
    }
    last_drawn = now;
    drawn = true;
    const std::string time = fmt::format("{:.1f} s", std::chrono::duration<double>(now - began).count());
    std::string line = fmt::format("{:<10} {}{}", stage, how_far, time);
    // What goes on in the next line could not be drawn over.
    const std::size_t room = terminal_width(STDERR_FILENO) - 1;
    if (line.size() > room) {
        line = fmt::format("{:<10} {}", stage, time).substr(0, room);
    }
    print_error("\r\033[K" + line);
}

/// With the mutex locked.
void enter(std::string_view name)
{
    if (stage != name) {
        stage = name;
        began = Clock::now();
    }
    how_far.clear();
}

void draw_share(std::string_view phase, double done)
{
    const std::lock_guard lock(drawing_mutex);
    enter(phase);
    const double share = std::clamp(done, 0.0, 1.0);
    const int filled = static_cast<int>(share * bar_width);
    how_far = fmt::format("[{:#<{}}{:.<{}}] {:3.0f} %  ", "", filled, "", bar_width - filled, 100 * share);
    draw();
}

}  // namespace

void enter_stage(std::string_view name)
{
    const std::lock_guard lock(drawing_mutex);
    if (alive) {
        enter(name);
        draw();
    }
}

void clear_progress_line() noexcept
{
    const std::lock_guard lock(drawing_mutex);
    stage.clear();
    if (drawn) {
        print_error("\r\033[K");
        drawn = false;
    }
}

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) != 0 && !appearance().quiet)
{
    if (!terminal_) {
        return;
    }
    {
        const std::lock_guard lock(drawing_mutex);
        alive = true;
        stage.clear();
        enter("starting");
    }
    thread_ = std::thread([this] { redraw(); });
}

ProgressBar::~ProgressBar()
{
    if (thread_.joinable()) {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }
    {
        const std::lock_guard lock(drawing_mutex);
        alive = false;
    }
    clear_progress_line();
}

void ProgressBar::redraw()
{
    // Seldom, so that what is timed meanwhile does not notice.
    constexpr auto interval = std::chrono::milliseconds(500);
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, interval, [&] { return ends_; })) {
        const std::lock_guard drawing(drawing_mutex);
        draw();
    }
}

void ProgressBar::solving(const SolverProgress& progress) const
{
    if (terminal_) {
        const std::lock_guard lock(drawing_mutex);
        enter("solving");
        how_far = fmt::format("iteration {}, residual {:.3e} of {:.3e}, ", progress.iteration, progress.residual,
                              progress.target);
        draw();
    }
}

Progress ProgressBar::callback() const { return terminal_ ? Progress(draw_share) : Progress(); }

}  // namespace rmsp::mspmv
