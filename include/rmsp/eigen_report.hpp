#pragma once

#include <map>
#include <string>
#include <vector>

#include <rmsp/eigen.hpp>
#include <rmsp/export.hpp>
#include <rmsp/preconditioner.hpp>
#include <rmsp/report.hpp>

namespace rmsp {

/// What `mspmv eigen` prints: where the matrix is, how the solve ended and which eigenvalues it found.
struct EigenReport {
    std::string matrix;    ///< file name or description
    std::string topology;  ///< one line
    Plan plan;
    std::string method;
    Spectrum which = Spectrum::smallest;
    int count = 0;
    PreconditionerReport preconditioner{.name = "none"};
    double tolerance = 0;  ///< as in EigenOptions
    std::vector<PhaseTimes> setup;
    bool solved = false;  ///< false: only planned, `result` says nothing
    EigenSummary result;
    std::vector<std::string> notes;
    std::map<std::string, std::string> context;

    /// The table that a person reads.
    RMSP_API std::string to_text() const;
    /// Google Benchmark's shape: context and benchmarks (docs/report.md).
    RMSP_API std::string to_json() const;
};

}  // namespace rmsp
