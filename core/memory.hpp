#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "core/wide.hpp"

namespace rmsp::core {

/// Refuses an allocation that this machine can never hold. Linux grants such requests and kills the process at the
/// first touch of the pages that it lacks, so the answer of operator new comes too late. \throws Error(out_of_memory)
/// naming `what`, the bytes and the machine's memory
void require_memory(uint128 bytes, const std::string& what);

/// Bytes of unknown final length. Grows by realloc, which moves the pages of a large block instead of copying them.
class GrowingBuffer {
public:
    /// Makes room for `extra` more bytes behind the used ones and returns where they go.
    /// \throws Error(out_of_memory)
    char* reserve(std::size_t extra);
    void use(std::size_t n) noexcept { size_ += n; }

    std::size_t size() const noexcept { return size_; }
    std::size_t free_bytes() const noexcept { return capacity_ - size_; }
    std::string_view view() const noexcept { return {data_.get(), size_}; }

private:
    struct Free {
        void operator()(char* p) const noexcept { std::free(p); }
    };
    std::unique_ptr<char, Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace rmsp::core
