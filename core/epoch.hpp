#pragma once

#include <atomic>
#include <cstdint>

namespace rmsp::core {

/// A number that threads sleep on until it advances; it wraps.
///
/// Not std::atomic::wait(): libstdc++ yields the core several times before it sleeps. Where others want the core too,
/// each of these lasts for a time slice of theirs, which is far longer than falling asleep and waking up.
class Epoch {
public:
    std::uint32_t now() const noexcept { return value_.load(std::memory_order_acquire); }
    /// The next one: wakes all who wait. What was written before is seen by who sees it.
    void advance() noexcept;
    /// Sleeps while it is `seen`.
    void wait_past(std::uint32_t seen) noexcept;

private:
    std::atomic<std::uint32_t> value_{0};
    std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace rmsp::core
