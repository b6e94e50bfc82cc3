#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "runtime/engine/device.hpp"

namespace rmsp::engine {

/// An array of the caller's, page-locked while this lives unless it already was. Only whole pages are locked: those at
/// the ends may belong to others' data as well, so what lies there is copied.
class LockedArray {
public:
    LockedArray(engine::Device& device, const void* data, std::size_t bytes, bool lock);
    ~LockedArray();
    LockedArray(const LockedArray&) = delete;
    LockedArray& operator=(const LockedArray&) = delete;

    /// Queues a copy of `bytes` at `src` in this array to a device. What is not locked goes through the device's pinned
    /// ring, for which the calling thread waits.
    void send(engine::Device& device, engine::Stream& stream, void* dst, const void* src, std::size_t bytes) const;
    /// The caller wrote to the array.
    void refresh();
    /// Whether it goes through the device's pinned ring.
    bool staged() const noexcept { return bytes_ > 0 && begin_ == end_; }
    /// Whether the system refused to lock it.
    bool refused() const noexcept { return refused_; }
    /// What of the `bytes` at `src` in this array devices may copy directly.
    std::span<const std::byte> direct(const void* src, std::size_t bytes) const;

private:
    engine::Device& device_;
    const std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    engine::PinnedBuffer ends_;  ///< what lies before the first locked page, then what lies behind the last
    std::uintptr_t begin_ = 0;   ///< what devices may copy directly
    std::uintptr_t end_ = 0;
    bool owned_ = false;
    bool refused_ = false;
};

/// What the matrices of a runtime have locked: those that stream the same array share its lock, as the system grants
/// only one. Any thread.
class LockedArrays {
public:
    std::shared_ptr<LockedArray> find_or_lock(engine::Device& device, const void* data, std::size_t bytes, bool lock);

private:
    std::mutex mutex_;
    std::map<std::pair<const void*, std::size_t>, std::weak_ptr<LockedArray>> arrays_;
};

}  // namespace rmsp::engine
