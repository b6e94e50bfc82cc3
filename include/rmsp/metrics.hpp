#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/export.hpp>

namespace rmsp {

/// How often which times were seen. Bucket 0 counts those under 1 us, bucket i those from 2^(i-1) up to 2^i us, the
/// last one all longer ones.
struct TimeHistogram {
    static constexpr std::size_t buckets = 32;
    std::array<std::uint64_t, buckets> counts{};
    std::uint64_t count = 0;
    double sum_seconds = 0;

    /// The time below which a bucket's are, in seconds; infinity for the last one.
    RMSP_API static double end_of(std::size_t bucket) noexcept;
    /// A time that the share `q`, 0 to 1, of those seen does not exceed: the end of a bucket, so up to twice too
    /// large; 0 if none was seen.
    RMSP_API double quantile(double q) const noexcept;
};

/// What a device did.
struct DeviceMetrics {
    std::string name;  ///< "cuda:0 NVIDIA H200"
    bool lost = false;
    /// With a job given to the device, whether it worked or waited for others in it.
    double busy_seconds = 0;
    double busy_share = 0;            ///< of the time since busy_seconds are counted
    std::int64_t resident_bytes = 0;  ///< now, of the device's memory: what the runtime has there
    std::int64_t peak_bytes = 0;      ///< the most that resident_bytes were since the runtime was opened
    std::int64_t reserved_bytes = 0;  ///< now, promised to what is being placed there, and not taken yet
};

/// What a runtime did since it was opened, and what it has to do. Counters only grow. Times, those of devices included,
/// are taken from the first call of Runtime::metrics() or job with options on: a clock costs as much as a tenth of a
/// small job.
struct Metrics {
    double seconds = 0;                ///< since the runtime was opened
    std::uint64_t accepted = 0;        ///< jobs; an apply is one, a solve is several
    std::uint64_t finished = 0;        ///< with a result
    std::uint64_t failed = 0;          ///< by an error of a device or of the job itself
    std::uint64_t cancelled = 0;       ///< JobOptions::stop
    std::uint64_t expired = 0;         ///< JobOptions::deadline
    std::uint64_t refused = 0;         ///< never accepted, as the queue was full or too late
    std::int64_t waiting = 0;          ///< now, for their turn
    std::int64_t running = 0;          ///< now, given to the devices
    TimeHistogram wait;                ///< from acceptance until given to the devices
    TimeHistogram run;                 ///< for which the devices had a job, without that of the jobs before it
    std::uint64_t streamed_bytes = 0;  ///< copied to the devices for products of streamed matrices
    std::uint64_t memory_refused = 0;  ///< matrices, vectors and products that found no memory, or waited in vain
    std::int64_t memory_waiting = 0;   ///< now, for memory
    std::vector<DeviceMetrics> devices;
    std::vector<std::string> transports;    ///< in use
    std::uint64_t transports_replaced = 0;  ///< that failed and that another one took the place of

    /// The text format 0.0.4 of Prometheus; names begin with "rmsp_" (docs/service.md).
    RMSP_API std::string to_prometheus() const;
};

}  // namespace rmsp
