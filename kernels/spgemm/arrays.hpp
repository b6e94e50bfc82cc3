#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <kernels/context.hpp>
#include <rmsp/error.hpp>

namespace rmsp::kernels::spgemm {

/// Arrays side by side in one allocation.
class Layout {
public:
    template <class E>
    std::size_t add(std::int64_t n)
    {
        const std::size_t at = bytes_;
        bytes_ += (static_cast<std::size_t>(n) * sizeof(E) + 255) / 256 * 256;
        return at;
    }
    std::size_t bytes() const { return bytes_; }

private:
    std::size_t bytes_ = 0;
};

/// Empty if the device has no room for it: then it is done without.
template <class E>
DeviceArray<E> try_array(const Context& context, std::int64_t n)
{
    try {
        return DeviceArray<E>(*context.memory, static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
    } catch (const Error& e) {
        if (e.code() != ErrorCode::out_of_memory) {
            throw;
        }
        return {};
    }
}

[[noreturn]] inline void over_limit(std::int64_t bytes, std::int64_t limit)
{
    throw Error(ErrorCode::out_of_memory, "SpGEMM needs a workspace of " + std::to_string(bytes) +
                                              " bytes on the GPU, the limit is " + std::to_string(limit));
}

}  // namespace rmsp::kernels::spgemm
