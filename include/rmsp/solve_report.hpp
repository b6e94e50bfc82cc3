#pragma once

#include <map>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/preconditioner.hpp>
#include <rmsp/report.hpp>
#include <rmsp/solver.hpp>

namespace rmsp {

/// What `mspmv solve` prints: where the matrix is, how the solve ended and how its residual went down.
struct SolveReport {
    std::string matrix;    ///< file name or description
    std::string rhs;       ///< of b: file name or description
    std::string topology;  ///< one line
    Plan plan;
    std::string method;     ///< of "auto" what that became
    MethodChoice choice{};  ///< why
    PreconditionerReport preconditioner{.name = "none"};
    double tolerance = 0;  ///< as in SolverOptions
    double absolute_tolerance = 0;
    std::vector<PhaseTimes> setup;
    bool solved = false;  ///< false: only planned, `result` says nothing
    SolveResult result;
    double solution_error = -1;  ///< |x - x*| / |x*| where the solution x* is known; below 0: it is not
    std::vector<std::string> notes;
    std::map<std::string, std::string> context;

    /// The solve alone, without copies of host vectors to the devices and back, over its iterations; 0: there were
    /// none.
    RMSP_API double seconds_per_iteration() const;
    /// SolveResult::iteration_bytes over the time of an iteration, all devices together; 0: not known.
    RMSP_API double bytes_per_second() const;
    /// bytes_per_second() over what the devices' memories, or links, give; 0: not known.
    RMSP_API double share_of_limit() const;
    /// The table that a person reads, with a plot of the residual.
    RMSP_API std::string to_text() const;
    /// Google Benchmark's shape: context and benchmarks (docs/report.md).
    RMSP_API std::string to_json() const;
};

}  // namespace rmsp
