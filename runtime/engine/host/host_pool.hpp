#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <vector>

#include <kernels/context.hpp>
#include <numa/binding.hpp>
#include <rmsp/error.hpp>

namespace rmsp::engine {

/// Memory near a NUMA node, of which some that is given back is kept for the next who asks for as much: to map pages
/// anew and to have them cleared takes longer than a product of sparse matrices of as many bytes. Host devices do
/// everything at once, so there is no order to keep.
class HostPool final : public kernels::Memory {
public:
    static constexpr std::size_t most_kept = std::size_t{256} << 20;
    static constexpr std::size_t most_blocks = 64;

    explicit HostPool(int os_node) : os_node_(os_node) { kept_.reserve(most_blocks); }
    HostPool(const HostPool&) = delete;
    HostPool& operator=(const HostPool&) = delete;
    ~HostPool() override { release(kept_.size()); }

    /// \throws Error(out_of_memory) naming bytes and node
    void* allocate(std::size_t bytes) override
    {
        const std::size_t size = rounded(bytes);
        const std::lock_guard lock(mutex_);
        // The newest is likeliest to be in the caches.
        const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Block& b) { return b.bytes == size; });
        if (found != kept_.rend()) {
            void* const p = found->p;
            kept_bytes_ -= size;
            kept_.erase(std::next(found).base());
            return p;
        }
        try {
            return numa::allocate_on_node(size, os_node_);
        } catch (const Error&) {
            release(kept_.size());
            return numa::allocate_on_node(size, os_node_);
        }
    }

    void deallocate(void* p, std::size_t bytes) noexcept override
    {
        if (p == nullptr) {
            return;
        }
        const std::size_t size = rounded(bytes);
        if (size > most_kept / 2) {
            numa::free_on_node(p, size);
            return;
        }
        const std::lock_guard lock(mutex_);
        std::size_t old = kept_.size() == most_blocks ? 1 : 0;
        std::size_t left = kept_bytes_ + size;
        for (std::size_t i = 0; i < kept_.size() && (i < old || left > most_kept); ++i) {
            left -= kept_[i].bytes;
            old = std::max(old, i + 1);
        }
        release(old);
        kept_.push_back({p, size});  // within what was reserved
        kept_bytes_ += size;
    }

private:
    struct Block {
        void* p;
        std::size_t bytes;
    };

    /// Sizes that differ little are alike: an eighth of a power of two, and at least pages.
    static std::size_t rounded(std::size_t bytes)
    {
        const std::size_t unit = std::max(std::bit_floor(bytes) / 8, std::size_t{4096});
        return (bytes + unit - 1) / unit * unit;
    }

    /// Gives the oldest n back to the system.
    void release(std::size_t n) noexcept
    {
        for (std::size_t i = 0; i < n; ++i) {
            numa::free_on_node(kept_[i].p, kept_[i].bytes);
            kept_bytes_ -= kept_[i].bytes;
        }
        kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(n));
    }

    int os_node_;
    std::mutex mutex_;
    std::vector<Block> kept_;  ///< oldest first
    std::size_t kept_bytes_ = 0;
};

}  // namespace rmsp::engine
