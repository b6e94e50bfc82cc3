#pragma once

#include <rmsp/preconditioner.hpp>
#include <rmsp/sequence.hpp>

/// What levels of one process and of several have in common: L has smoother, residual and correction.
namespace rmsp::multigrid {

/// Appends sweeps of smoothing; append_residual() appends what makes the level's residual b - A x.
template <class L, class T, class F>
void append_sweeps(Sequence& sequence, const L& level, const Vec<T>& x, const Vec<T>& b, bool from_zero, int sweeps,
                   const F& append_residual)
{
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        if (from_zero && sweep == 0) {
            level.smoother->append(sequence, x, b);
        } else {
            append_residual();
            level.smoother->append(sequence, *level.correction, *level.residual);
            sequence.pass(x += *level.correction);
        }
    }
}

/// Adds what the level's smoother takes, if there is one, to the report of all levels, and its notes if it is the
/// first.
template <class L>
void report_smoother(const L& level, bool first, PreconditionerReport& report)
{
    if (!level.smoother) {
        return;
    }
    const PreconditionerReport smoother = level.smoother->report();
    report.device_bytes += smoother.device_bytes;
    report.host_bytes += smoother.host_bytes;
    if (first) {
        report.notes.insert(report.notes.end(), smoother.notes.begin(), smoother.notes.end());
    }
}

}  // namespace rmsp::multigrid
