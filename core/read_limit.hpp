#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/wide.hpp"

namespace rmsp::core {

/// The bytes that reading one file may hold at a time: of what comes through a pipe, of what it unpacks, and of the
/// arrays that are made of it. Any thread may count. Nothing is given back where reading ends by an error, since the
/// limit ends with it.
class ReadLimit {
public:
    /// `file` stands for the file in messages. `most`: ReadOptions::max_bytes. \throws Error(usage) below 0
    ReadLimit(const std::string& file, std::int64_t most);

    const std::string& file() const noexcept { return file_; }
    /// Counts bytes that are about to be allocated for `what`. \throws Error(io) beyond the limit, Error(out_of_memory)
    /// where the machine never holds as much; both name the file, the bytes and the most there may be
    void take(uint128 bytes, std::string_view what);
    /// Throws what take() would, and counts nothing.
    void require(uint128 bytes, std::string_view what) const;
    /// Bytes that were freed.
    void give_back(std::uint64_t bytes) noexcept { held_ -= bytes; }

private:
    void check(uint128 held, uint128 bytes, std::string_view what) const;

    std::string file_;
    std::uint64_t most_;
    std::atomic<std::uint64_t> held_{0};
};

}  // namespace rmsp::core
