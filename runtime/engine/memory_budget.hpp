#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <kernels/context.hpp>
#include <rmsp/error.hpp>

namespace rmsp::engine {

/// Memory of a device of which only so much may be taken, with the most that was held at once. The memory outlives
/// this.
class MemoryBudget final : public kernels::Memory {
public:
    /// limit 0: all there is. `whose` is for messages: "a streamed matrix on cuda 1".
    MemoryBudget(kernels::Memory& memory, std::int64_t limit, std::string whose)
        : memory_(memory), limit_(limit), whose_(std::move(whose))
    {
    }
    /// \throws Error(out_of_memory) naming limit, what is taken, and what was asked for; or as the memory itself does
    void* allocate(std::size_t bytes) override
    {
        const auto more = static_cast<std::int64_t>(bytes);
        if (limit_ > 0 && more > limit_ - used_) {
            throw Error(ErrorCode::out_of_memory,
                        fmt::format("{} may take {} bytes of memory: {} are taken, and {} more are needed", whose_,
                                    limit_, used_, more));
        }
        void* const p = memory_.allocate(bytes);
        used_ += more;
        peak_ = std::max(peak_, used_);
        return p;
    }
    void deallocate(void* p, std::size_t bytes) noexcept override
    {
        memory_.deallocate(p, bytes);
        used_ -= static_cast<std::int64_t>(bytes);
    }

    std::int64_t limit() const noexcept { return limit_; }
    std::int64_t used() const noexcept { return used_; }
    std::int64_t peak() const noexcept { return peak_; }
    /// What is left, at least 1; 0 without a limit.
    std::int64_t left() const noexcept { return limit_ == 0 ? 0 : std::max<std::int64_t>(limit_ - used_, 1); }

private:
    kernels::Memory& memory_;
    std::int64_t limit_;
    std::string whose_;
    std::int64_t used_ = 0;
    std::int64_t peak_ = 0;
};

}  // namespace rmsp::engine
