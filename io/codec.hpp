#pragma once

#include <cstdint>
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

/// Decompresses all members (streams, frames) of the data of the limit's file.
/// \throws Error(io) "NAME: ..." if they are damaged or truncated, and as ReadLimit::take()
core::GrowingBuffer decompress(Codec codec, std::string_view data, core::ReadLimit& limit, const Progress& progress);

/// One whole member; members behind each other are again a valid file, so blocks of a file can be compressed in
/// parallel. Codec::none returns the text itself. \throws Error(out_of_memory)
std::string compress_member(Codec codec, std::string text);

}  // namespace rmsp::io
