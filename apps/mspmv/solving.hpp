#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

#include <rmsp/config.hpp>
#include <rmsp/solver.hpp>

#include "apps/mspmv/dry_run.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"

/// What solve and eigen have in common. R: SolveReport or EigenReport.
namespace rmsp::mspmv {

/// \throws Error(usage) if the configuration names another format than CSR
inline void require_csr(const Config& config, const char* command)
{
    if (config.matrix.format != "csr" && config.matrix.format != "auto") {
        throw Error(ErrorCode::usage,
                    fmt::format("matrix.format is \"{}\", but mspmv {} multiplies csr", config.matrix.format, command));
    }
}

/// Draws how far a solve is, and ends it where the user asks for that. `bar` has to outlive it.
inline auto watched_by(const ProgressBar& bar)
{
    return [&bar](const SolverProgress& progress) {
        bar.solving(progress);
        return !Cancellation::requested();
    };
}

/// Plans matrices in CSR. `runtime` has to outlive it.
template <class T>
PlannerOf<T> csr_planner(Runtime& runtime)
{
    return [&runtime](const CsrMatrix<T>& matrix) -> Planner {
        return [&](const DistributeOptions& o) { return runtime.plan(matrix.view(), o); };
    };
}

/// Adds what the report of the matrix has.
template <class R>
void take_report_of_matrix(R& report, Report of_matrix)
{
    report.plan = std::move(of_matrix.plan);
    report.setup.insert(report.setup.begin(), of_matrix.setup.begin(), of_matrix.setup.end());
    report.notes = std::move(of_matrix.notes);
}

/// Adds what reading, generating or planning took, and writes the report. \throws Error(not_converged)
template <class R>
void finish_report(R& report, const Config& config, bool dry_run, double load_seconds)
{
    const char* const phase = dry_run ? "plan" : config.matrix.file.empty() ? "generate" : "read";
    report.setup.insert(report.setup.begin(), PhaseTimes{phase, {load_seconds}, true});
    clear_progress_line();
    write_report(report.to_text(), report.to_json(), config.output.json);
    if (report.solved && !report.result.converged()) {
        throw Error(ErrorCode::not_converged,
                    fmt::format("not converged ({}): {}", to_string(report.result.outcome), report.result.reason));
    }
}

}  // namespace rmsp::mspmv
