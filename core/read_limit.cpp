#include "core/read_limit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/memory.hpp"

namespace rmsp::core {

ReadLimit::ReadLimit(const std::string& file, std::int64_t most)
    : file_(file), most_(most > 0 ? static_cast<std::uint64_t>(most) : UINT64_MAX)
{
    if (most < 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: ReadOptions::max_bytes is {}, it must be at least 0", file, most));
    }
}

void ReadLimit::take(uint128 bytes, std::string_view what)
{
    check(bytes > most_ ? held_.load() : held_.fetch_add(static_cast<std::uint64_t>(bytes)), bytes, what);
}

void ReadLimit::require(uint128 bytes, std::string_view what) const { check(held_.load(), bytes, what); }

void ReadLimit::check(uint128 held, uint128 bytes, std::string_view what) const
{
    if (held + bytes > most_) {
        constexpr uint128 countable = UINT64_MAX;
        throw Error(
            ErrorCode::io,
            fmt::format("{}: {} would take {}{} bytes beside {} that reading it holds; io.max_bytes is {}", file_, what,
                        bytes > countable ? "more than " : "", static_cast<std::uint64_t>(std::min(bytes, countable)),
                        static_cast<std::uint64_t>(held), most_));
    }
    require_memory(held + bytes, fmt::format("{}: {}", file_, what));
}

}  // namespace rmsp::core
