#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/plan.hpp>

namespace rmsp {

/// Seconds of one phase on each device, the median over the profiled applies ("kernel", "exchange", "merge", ...), or
/// the time of a phase that happened once ("partition", "upload", ...).
struct PhaseTimes {
    std::string name;
    std::vector<double> seconds;  ///< one for each device; a single entry where the phase is the whole machine's
    bool once = false;            ///< true: part of set-up, not of an apply
};

/// One measured operation.
struct Measurement {
    std::string name;    ///< "spmv/csr/double/resident"
    std::string layout;  ///< where x and y live: "replicated -> rows", "host -> host", "rows -> rows"
    bool cold = false;   ///< the devices' caches were flushed before each apply
    std::int64_t iterations = 0;
    double median_seconds = 0;  ///< of one apply
    double min_seconds = 0;
    double max_seconds = 0;
    double wall_seconds = 0;  ///< the whole timed loop over its iterations
    double flops = 0;         ///< 2 nnz
    double bytes = 0;         ///< least traffic of one apply, all devices together
    double raw_bytes = 0;     ///< streamed and encoded: what an apply would copy to the devices without; 0: not encoded
    double limit_gbs = 0;  ///< of all devices together: of memory, or of the link to the host if streamed; 0: unknown
    /// Streamed to GPUs: what the links carried right before and after the timed applies; limit_gbs is the larger of
    /// the two.
    double limit_before_gbs = 0;
    double limit_after_gbs = 0;
    std::string limit_source;   ///< "measured read bandwidth", "measured host-to-device copies", "given"
    double time_imbalance = 0;  ///< largest busy time over the mean, minus one
    std::vector<PhaseTimes> phases;

    double gflops() const { return median_seconds > 0 ? flops / median_seconds * 1e-9 : 0; }
    double bytes_per_second() const { return median_seconds > 0 ? bytes / median_seconds : 0; }
    /// Bytes of the matrix as it is in host memory that an apply gets through, whatever the links carry of it.
    double raw_bytes_per_second() const { return median_seconds > 0 ? raw_bytes / median_seconds : 0; }
    double share_of_limit() const { return limit_gbs > 0 ? bytes_per_second() / (limit_gbs * 1e9) : 0; }
};

/// Outcome of the comparison with the serial reference.
struct Verification {
    bool done = false;
    bool passed = false;
    /// Largest |y - ref| / (|alpha| |A||x| + |beta y|) over the rows, beyond what underflow explains: a row's length +
    /// 4 times the smallest number above 0, max(1, |alpha|) times.
    double error = 0;
    double bound = 0;  ///< what it had to stay under, from the longest row and the precision
    std::int64_t worst_row = -1;
    /// Results that are not finite where the terms' magnitudes add up to more than the precision holds: a sum in one
    /// order or another overflows, so that they are neither right nor wrong: `passed` leaves them out.
    std::int64_t overflows = 0;
};

/// What a run did: plan, phases, figures and the verified error.
struct Report {
    std::string matrix;    ///< file name or description
    std::string topology;  ///< one line
    Plan plan;
    std::vector<PhaseTimes> setup;
    std::vector<Measurement> measurements;
    Verification verification;
    std::vector<std::string> notes;  ///< warnings and facts worth a line ("platform names no NUMA node ...")
    std::map<std::string, std::string> context;  ///< versions, commit, date, host name, device names
    /// GFLOP/s that the arithmetic of the devices with a part reached together (rmsp/limits.hpp); 0: not known.
    double peak_gflops = 0;

    /// The table that a person reads.
    RMSP_API std::string to_text() const;
    /// Google Benchmark's shape: context and benchmarks (docs/report.md).
    RMSP_API std::string to_json() const;
};

}  // namespace rmsp
