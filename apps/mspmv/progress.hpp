#pragma once

#include <rmsp/io.hpp>
#include <rmsp/solver.hpp>

namespace rmsp::mspmv {

/// A bar on standard error while it lives; nothing is drawn unless that is a terminal. The line is cleared at the end.
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
    bool terminal_;
};

/// Removes a bar that may be on the screen. Any thread.
void clear_progress_line() noexcept;

}  // namespace rmsp::mspmv
