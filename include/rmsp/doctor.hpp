#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/runtime.hpp>

namespace rmsp {

/// Outcome of one check of the self test.
enum class Verdict : std::uint8_t {
    passed,
    skipped,  ///< does not apply to this machine, or cannot be told
    warning,  ///< works, but not as well as it should
    failed,   ///< broken: not used
};
/// "ok", "skipped", "warning", "FAILED".
RMSP_API const char* to_string(Verdict verdict) noexcept;

/// One line of the self test.
struct DoctorCheck {
    std::string name;     ///< "binding", "memory", "host link", "device link", "transport"
    std::string subject;  ///< "cuda:0", "cuda:0 -> cuda:1", "nccl"
    Verdict verdict = Verdict::skipped;
    std::string detail;
};

struct DoctorOptions {
    RuntimeOptions runtime{};         ///< devices, bind and cache are used
    std::int64_t bytes = 32LL << 20;  ///< of each copy, at least 1024; rounded up to 1024
    double time_limit_seconds = 30;   ///< what is not done by then has failed
    bool refresh = false;             ///< test anew, even if the cache holds a result for this machine
};

/// What the self test found. Bandwidths are in GB/s, each the best of a few copies; 0 where none was made.
struct DoctorReport {
    std::string date;     ///< when it was tested, "2026-11-21T17:20:03Z"
    bool cached = false;  ///< read from the cache
    std::string machine;  ///< nodes, cores and GPUs in one line
    std::map<std::string, std::string>
        versions;                      ///< of librmsp and of what it runs on: "driver", "CUDA runtime", "NCCL", ...
    std::vector<std::string> devices;  ///< "cuda:0 NVIDIA H200"
    std::vector<DoctorCheck> checks;
    /// Copies between pinned host memory near a device and the device, device by device: one at a time, and all at once
    /// (GPUs: from memory that the host's caches cannot hold, as a streamed matrix is).
    std::vector<double> to_device;
    std::vector<double> from_device;
    std::vector<double> to_device_together;
    std::vector<double> from_device_together;
    /// Copies between devices, one pair at a time; entry [i][j] moves data from device j to device i.
    std::vector<std::vector<double>> read_by_kernel;   ///< device i loads from the memory of j
    std::vector<std::vector<double>> write_by_kernel;  ///< device j stores into the memory of i
    std::vector<std::vector<double>> copy_engine;

    /// Number of checks that failed.
    RMSP_API int failures() const;
    /// Verdicts and tables that a person reads.
    RMSP_API std::string to_text() const;
    /// Checks and verdicts as a JSON object (docs/doctor.md).
    RMSP_API std::string to_json() const;
};

/// Tests the devices that options.runtime asks for, and everything between them: that threads and memory are where they
/// were placed, that data survive every link in both directions, how fast they move, and that each transport connects
/// and gathers within the time limit. On a machine without GPUs these are the host devices. The result goes into the
/// cache, where a Runtime on the same devices finds which transports passed. Blocks; moves a few GB per device; other
/// work of the machine spoils the bandwidths only.
/// \throws Error(usage) for bad options or a described machine, Error(device) if a device cannot be opened
RMSP_API DoctorReport diagnose(const DoctorOptions& options = {});

/// What this process runs with, by name: "librmsp", and of a build with CUDA "driver", "CUDA runtime", "cuSPARSE" and
/// others, as the loaded libraries say. Opens no device.
RMSP_API std::map<std::string, std::string> library_versions();

}  // namespace rmsp
