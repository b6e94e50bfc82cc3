#include "runtime/multigrid/options.hpp"

#include <cmath>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::multigrid {
namespace {

template <class Value>
void require(bool good, const char* option, const Value& value, const char* wants)
{
    if (!good) {
        throw Error(ErrorCode::usage, fmt::format("multigrid option {} is {}, it must be {}", option, value, wants));
    }
}

}  // namespace

void check_options(Method method, const MultigridOptions& options)
{
    const MultigridOptions& o = options;
    const bool classical = method == Method::classical;
    require(o.threshold <= 1, "threshold", o.threshold, "at most 1");
    require(o.interpolation == "auto" || o.interpolation == (classical ? "extended" : "smoothed") ||
                o.interpolation == (classical ? "direct" : "tentative"),
            "interpolation", o.interpolation,
            classical ? "auto, extended or direct, of amg" : "auto, smoothed or tentative, of sa-amg");
    require(o.truncation >= 0 && o.truncation <= 1, "truncation", o.truncation, "0 to 1");
    require(o.interpolation_entries >= 0, "interpolation_entries", o.interpolation_entries, "at least 0");
    require(o.cycle == "v" || o.cycle == "w" || o.cycle == "f" || o.cycle == "k", "cycle", o.cycle, "v, w, f or k");
    require(o.aggressive_levels >= 0, "aggressive_levels", o.aggressive_levels, "at least 0");
    require(o.aggressive_levels == 0 || (classical && o.interpolation != "direct"), "aggressive_levels",
            o.aggressive_levels, "0, unless the preconditioner is amg with interpolation auto or extended");
    require(o.rebuild_factor == 0 || o.rebuild_factor >= 1, "rebuild_factor", o.rebuild_factor, "0 or at least 1");
    require(o.sweeps >= 1 && o.sweeps <= 100, "sweeps", o.sweeps, "1 to 100");
    require(o.coarse_rows >= 1 && o.coarse_rows <= most_inverted, "coarse_rows", o.coarse_rows, "1 to 4096");
    require(o.levels >= 1 && o.levels <= 100, "levels", o.levels, "1 to 100");
    require(o.unknowns >= 1 && o.unknowns <= 16, "unknowns", o.unknowns, "1 to 16");
    require(o.near_nullspace.empty() || (o.near_null_vectors >= 1 && o.near_null_vectors <= 16), "near_null_vectors",
            o.near_null_vectors, "1 to 16");
}

Coarsener coarsener(Method method, const MultigridOptions& options, int vectors, std::size_t level)
{
    Coarsener out;
    out.method = method;
    out.threshold = options.threshold;
    if (out.threshold < 0) {
        constexpr double of_aggregation = 0.08;
        out.threshold = method == Method::classical ? 0.25 : std::ldexp(of_aggregation, -static_cast<int>(level));
    }
    // The nodes of coarser levels are aggregates.
    out.unknowns = method == Method::classical ? 1 : level == 0 ? options.unknowns : vectors;
    out.direct = options.interpolation == "direct";
    out.aggressive = static_cast<int>(level) < options.aggressive_levels;
    out.smooth = options.interpolation != "tentative";
    out.truncation = options.truncation;
    out.interpolation_entries = options.interpolation_entries;
    return out;
}

}  // namespace rmsp::multigrid
