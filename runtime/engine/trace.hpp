#pragma once

#include <cstdint>

/// Ranges of NVTX, which Nsight Systems shows on the timeline of the thread. A build without CUDA has none; where no
/// tool is attached, one costs a call.
namespace rmsp::engine {

/// `name` is a literal; `job` is the range's payload, 0: none.
void begin_range(const char* name, std::uint64_t job) noexcept;
void end_range() noexcept;

/// A range of the calling thread, as long as this lives.
class TraceRange {
public:
    explicit TraceRange(const char* name, std::uint64_t job = 0) noexcept { begin_range(name, job); }
    ~TraceRange() { end_range(); }
    TraceRange(const TraceRange&) = delete;
    TraceRange& operator=(const TraceRange&) = delete;
};

}  // namespace rmsp::engine
