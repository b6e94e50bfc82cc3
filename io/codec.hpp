#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/memory.hpp"
#include "core/read_limit.hpp"

#include <rmsp/io.hpp>

namespace rmsp::io {

/// By the formats' own libraries: libarchive 3.6 refuses the long windows of zstd, and passes over what follows a gzip
/// member (docs/architecture.md).
enum class Codec : std::uint8_t { none, gzip, xz, zstd };

/// By the magic bytes at the beginning.
Codec detect_codec(std::string_view bytes) noexcept;
/// By the name's ending (.gz, .xz, .zst).
Codec codec_of_name(std::string_view name) noexcept;

/// Where decompressed bytes go.
class Unpacked {
public:
    virtual ~Unpacked() = default;
    /// Room for the next ones, at least a byte.
    virtual std::span<char> room() = 0;
    /// So many bytes are in that room, of the compressed ones before `position`. False: no more are wanted.
    virtual bool take(std::size_t bytes, std::size_t position) = 0;
};

/// Decompresses all members (streams, frames) of the data of a file, as far as they are wanted.
/// \throws Error(io) "NAME: ..." if they are damaged or truncated, as far as was seen; what `out` throws
void decompress(Codec codec, std::string_view data, const std::string& name, const Progress& progress, Unpacked& out);

/// What the data of the limit's file decompress to. \throws as above, Error(io) if that does not begin as a file in
/// Matrix Market format does, and as ReadLimit::take()
core::GrowingBuffer decompress(Codec codec, std::string_view data, core::ReadLimit& limit, const Progress& progress);

/// \throws Error(io) if what a file decompresses to does not begin as one in Matrix Market format does
void require_matrix_market(std::string_view beginning, const std::string& name);

/// One whole member; members behind each other are again a valid file, so blocks of a file can be compressed in
/// parallel. Codec::none returns the text itself. \throws Error(out_of_memory)
std::string compress_member(Codec codec, std::string text);

}  // namespace rmsp::io
