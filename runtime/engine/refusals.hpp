#pragma once

#include <atomic>
#include <cstdint>

namespace rmsp::engine {

/// What can be made to fail, to see what comes of it.
enum class Request : std::uint8_t {
    memory,    ///< of a device: arrays, and what its pools hand out
    pinned,    ///< host memory near a device that all devices reach, and pages of the caller's to be locked
    transfer,  ///< of a transport, by one device: a gather, or a reduction
};

/// While it lives, one request of a kind is refused, or all from one on. For tests and attacks: there is one at a time
/// in a process, made and destroyed by one thread.
class Refusals {
public:
    /// `first` counts from 1, from now on and over all devices; 0: none is refused, they are counted. `all`: the later
    /// ones too.
    Refusals(Request kind, std::int64_t first, bool all) noexcept;
    ~Refusals();
    Refusals(const Refusals&) = delete;
    Refusals& operator=(const Refusals&) = delete;

    /// Requests of that kind so far.
    std::int64_t asked() const noexcept;
    std::int64_t refused() const noexcept;

    static bool any() noexcept { return any_.load(std::memory_order_relaxed); }

private:
    friend bool is_refused(Request kind) noexcept;
    static bool refuse(Request kind) noexcept;
    static std::atomic<bool> any_;
};

/// Whether that request, which is counted, is to fail.
inline bool is_refused(Request kind) noexcept { return Refusals::any() && Refusals::refuse(kind); }

}  // namespace rmsp::engine
