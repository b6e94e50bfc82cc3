#pragma once

#include <rmsp/io.hpp>
#include <rmsp/matrix.hpp>

#include "io/file.hpp"

/// Sparse matrices as SciPy's save_npz() and load_npz() exchange them: a ZIP file of NumPy arrays.
namespace rmsp::io {

/// Reads format csr, csc or coo. Stored members are read by several threads straight into the arrays of the matrix.
/// \throws Error(io)
template <class T>
CsrMatrix<T> read_npz(const InputFile& file, const ReadOptions& options);

/// Writes format csr, not compressed. 32-bit row pointers go with 32-bit columns where nnz allows, because SciPy wants
/// equal types and copies otherwise. `always_zip64` is for tests.
template <class T>
void write_npz(OutputFile& file, const CsrView<T>& a, const WriteOptions& options, bool always_zip64 = false);

}  // namespace rmsp::io
