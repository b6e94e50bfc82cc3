#pragma once

#include <rmsp/io.hpp>

#include "io/file.hpp"

namespace rmsp::io {

/// rmsp::read_matrix() of a file that is open.
template <class T>
CsrMatrix<T> read_matrix(const InputFile& file, const ReadOptions& options);

}  // namespace rmsp::io
