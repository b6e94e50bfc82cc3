#pragma once

#include <span>
#include <string>
#include <string_view>

#include <rmsp/config.hpp>

/// Vectors of the caller in files, in the numbering that the matrix had in its file.
namespace rmsp::mspmv {

/// A matrix as it is multiplied, and the old row at each new place where matrix.renumber or
/// matrix.permutation numbered it anew; else empty.
template <class T>
struct NumberedMatrix {
    CsrMatrix<T> matrix;
    HostVector<std::int64_t> row_at;
};

/// load_matrix(), with the numbering kept.
template <class T>
NumberedMatrix<T> load_numbered(const Config::Matrix& config, const Progress& progress);

/// The vector of a file, in the numbering of the matrix. `key` and `of_what` ("rows") are for messages.
/// \throws Error(io) if it has not `size` entries, and as read_vector()
template <class T>
HostVector<T> read_input(const char* key, const std::string& path, const ReadOptions& options, std::int64_t size,
                         const char* of_what, std::span<const std::int64_t> row_at);

/// Writes a vector that is in the numbering of the matrix, unless `path` is empty. \throws Error(io)
template <class T>
void write_result(const std::string& path, std::span<const T> v, std::span<const std::int64_t> row_at);

/// What can be said of the name of a result before anything is read; "" is none.
/// \throws Error(usage) if it has none of the endings, Error(io) as require_writable()
void require_result_name(const char* key, const std::string& path, std::span<const std::string_view> endings);

}  // namespace rmsp::mspmv
