#pragma once

#include <cstddef>

#include <rmsp/io.hpp>
#include <rmsp/matrix.hpp>

#include "io/codec.hpp"
#include "io/file.hpp"
#include "io/matrix_market_header.hpp"

/// Matrix Market exchange format (Boisvert, Pozo, Remington: "The Matrix Market exchange formats: initial design",
/// NISTIR 5935).
namespace rmsp::io {

/// Parses the text in chunks of about chunk_bytes; 0 chooses by size and threads.
/// \throws Error(io), Error(out_of_memory)
template <class T>
CsrMatrix<T> parse_matrix_market(const Source& source, const ReadOptions& options, core::ReadLimit& limit,
                                 std::size_t chunk_bytes);

/// Writes coordinate real general text with the shortest decimals that read back as the same values.
template <class T>
void write_matrix_market(OutputFile& file, Codec codec, const CsrView<T>& a, const WriteOptions& options);

}  // namespace rmsp::io
