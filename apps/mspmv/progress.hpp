#pragma once

#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

#include <rmsp/io.hpp>
#include <rmsp/solver.hpp>

namespace rmsp::mspmv {

/// A line on standard error while it lives: the stage, how far that is where it is known, and how long it has taken.
/// It is drawn anew while nothing is reported, too. Nothing is drawn, and no thread started, unless standard error is a
/// terminal and --quiet is not given. The line is cleared at the end. One at a time.
class ProgressBar {
public:
    ProgressBar();
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    /// To be passed on to librmsp; empty where nothing is drawn.
    Progress callback() const;
    /// Draws how far a solve is.
    void solving(const SolverProgress& progress) const;

private:
    void redraw();

    bool terminal_;
    bool ends_ = false;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::thread thread_;
};

/// What is done from now on: preparing, timing, verifying. No effect where no bar is drawn. Any thread.
void enter_stage(std::string_view name);

/// Removes a bar that may be on the screen, and draws none until something is reported again. Any thread.
void clear_progress_line() noexcept;

}  // namespace rmsp::mspmv
