#include "runtime/engine/locked_array.hpp"

#include <algorithm>
#include <cstring>

#include <unistd.h>

namespace rmsp::engine {

LockedArray::LockedArray(engine::Device& device, const void* data, std::size_t bytes, bool lock)
    : device_(device), data_(static_cast<const std::byte*>(data)), bytes_(bytes)
{
    if (bytes == 0) {
        return;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    if (device.is_pinned(data, bytes)) {
        begin_ = begin;
        end_ = begin + bytes;
        return;
    }
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first_page = (begin + page - 1) / page * page;
    const std::uintptr_t end_page = (begin + bytes) / page * page;
    if (!lock || first_page >= end_page) {
        return;
    }
    // Another matrix may have locked the same pages. If that goes first, copies are slower from then on, but right.
    const bool locked = device.is_pinned(reinterpret_cast<void*>(first_page), end_page - first_page);
    owned_ = !locked && device.pin(reinterpret_cast<void*>(first_page), end_page - first_page);
    refused_ = !locked && !owned_;
    if (!refused_) {
        begin_ = first_page;
        end_ = end_page;
        try {
            ends_ = engine::PinnedBuffer(device, (begin_ - begin) + (begin + bytes - end_));
        } catch (...) {
            if (owned_) {
                device.unpin(reinterpret_cast<void*>(begin_));
            }
            throw;
        }
        refresh();
    }
}

void LockedArray::refresh()
{
    if (ends_.bytes() > 0) {
        const std::size_t head = begin_ - reinterpret_cast<std::uintptr_t>(data_);
        const std::size_t tail = ends_.bytes() - head;
        auto* const to = static_cast<std::byte*>(ends_.data());
        std::copy_n(data_, head, to);
        std::copy_n(data_ + (bytes_ - tail), tail, to + head);
    }
}

LockedArray::~LockedArray()
{
    if (owned_) {
        device_.unpin(reinterpret_cast<void*>(begin_));
    }
}

std::span<const std::byte> LockedArray::direct(const void* src, std::size_t bytes) const
{
    const auto begin = reinterpret_cast<std::uintptr_t>(src);
    const std::uintptr_t first = std::clamp(begin_, begin, begin + bytes);
    const std::uintptr_t end = std::clamp(end_, first, begin + bytes);
    return {static_cast<const std::byte*>(src) + (first - begin), end - first};
}

void LockedArray::send(engine::Device& device, engine::Stream& stream, void* dst, const void* src,
                       std::size_t bytes) const
{
    const auto begin = reinterpret_cast<std::uintptr_t>(src);
    const auto* const from = static_cast<const std::byte*>(src);
    const std::span<const std::byte> whole = direct(src, bytes);
    const auto head = static_cast<std::size_t>(whole.data() - from);
    auto* const to = static_cast<std::byte*>(dst);
    const auto stage = [&](std::size_t first, std::size_t count) {
        if (count > 0 && ends_.bytes() > 0) {
            const std::uintptr_t at = begin + first;
            const std::size_t in_ends = at < begin_
                                            ? at - reinterpret_cast<std::uintptr_t>(data_)
                                            : ends_.bytes() - (reinterpret_cast<std::uintptr_t>(data_) + bytes_ - at);
            stream.copy(to + first, static_cast<const std::byte*>(ends_.data()) + in_ends, count);
        } else if (count > 0) {
            device.upload(stream, to + first, count,
                          [part = from + first](std::byte* out, std::size_t offset, std::size_t n) {
                              std::memcpy(out, part + offset, n);
                          });
        }
    };
    stage(0, head);
    if (!whole.empty()) {
        stream.copy(to + head, whole.data(), whole.size());
    }
    stage(head + whole.size(), bytes - head - whole.size());
}

std::shared_ptr<LockedArray> LockedArrays::find_or_lock(engine::Device& device, const void* data, std::size_t bytes,
                                                        bool lock)
{
    if (!lock) {
        return std::make_shared<LockedArray>(device, data, bytes, false);
    }
    const std::lock_guard guard(mutex_);
    std::erase_if(arrays_, [](const auto& entry) { return entry.second.expired(); });
    auto& known = arrays_[{data, bytes}];
    auto array = known.lock();
    if (!array) {
        array = std::make_shared<LockedArray>(device, data, bytes, true);
        known = array;
    }
    return array;
}

}  // namespace rmsp::engine
