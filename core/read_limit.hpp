#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include <rmsp/error.hpp>

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
    /// Counts bytes that are about to be allocated for `what`. \throws Error(io) naming the file, the bytes and the
    /// limit; Error(out_of_memory) likewise, where the machine never holds as much
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

/// Calls read(), which reads the file, and makes every lack of host memory an Error(out_of_memory) that names the file.
/// Its message is made beforehand: there may be no memory for one.
template <class Read>
auto reading(const std::string& file, const Read& read)
{
    const Error lack(ErrorCode::out_of_memory, file + ": out of host memory while it is read");
    try {
        try {
            return read();
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory || std::string_view(e.what()).starts_with(file)) {
                throw;
            }
            throw Error(e.code(), file + ": " + e.what(), e.where());
        }
    } catch (const std::bad_alloc&) {
        throw lack;
    }
}

}  // namespace rmsp::core
