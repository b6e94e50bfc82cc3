#include "core/memory.hpp"

#include <algorithm>

#include <unistd.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::core {

void require_memory(uint128 bytes, const std::string& what)
{
    const auto pages = static_cast<uint128>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
    const auto machine = pages * static_cast<uint128>(std::max(0L, sysconf(_SC_PAGESIZE)));
    if (machine > 0 && bytes > machine) {
        throw Error(ErrorCode::out_of_memory,
                    fmt::format("{} would take {:.4g} GB, this machine has {:.4g} GB of memory", what,
                                static_cast<double>(bytes) * 1e-9, static_cast<double>(machine) * 1e-9));
    }
}

char* GrowingBuffer::reserve(std::size_t extra)
{
    if (extra > capacity_ - size_) {
        const std::size_t wanted = std::max(size_ + extra, capacity_ + capacity_ / 2);
        char* grown = static_cast<char*>(std::realloc(data_.get(), wanted));
        if (grown == nullptr) {
            throw Error(ErrorCode::out_of_memory,
                        fmt::format("decompressed data needs {} bytes, which could not be allocated", wanted));
        }
        static_cast<void>(data_.release());
        data_.reset(grown);
        capacity_ = wanted;
    }
    return data_.get() + size_;
}

}  // namespace rmsp::core
