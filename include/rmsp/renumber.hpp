#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <rmsp/export.hpp>
#include <rmsp/io.hpp>
#include <rmsp/matrix.hpp>

/// Another numbering of a square matrix, its rows and columns alike. A mesh whose numbering is bad has its neighbours
/// far apart in memory, and on other devices: numbered anew before it is distributed, each device needs a thin halo of
/// x instead of nearly all of it. A numbering is given as `row_at`: the old row at each new place.
/// Runtime::distribute() numbers nothing anew by itself: the caller distributes the renumbered matrix, and brings x, y
/// and later values into its order.
///
///     const auto row_at = rmsp::mesh_order(a);
///     const auto b = rmsp::renumbered(a, row_at);  // may be given up once it is distributed
///     auto matrix = runtime.distribute(b.view());
///     rmsp::renumber(row_at, x.data(), new_x.data());
///     matrix.apply(1.0, new_x.data(), 0.0, new_y.data());
///     rmsp::restore(row_at, new_y.data(), y.data());
namespace rmsp {

/// Cuthill and McKee's order ("Reducing the bandwidth of sparse symmetric matrices", 1969): breadth first through the
/// graph that has an edge from each row to its columns, from a row far from the middle; the neighbours of a row by
/// their number of entries, rows of equal columns (several unknowns of a node) beside each other. Rows that are not
/// reached begin anew. One thread.
/// \throws Error(usage) as validate(), and for a matrix that is not square
template <class T>
RMSP_API HostVector<std::int64_t> mesh_order(const CsrView<T>& a);

/// P A P^T: row i is row_at[i] of A, with the columns' new numbers, which rise.
/// \throws Error(usage) as mesh_order(), and if row_at does not name each row once
template <class T>
RMSP_API CsrMatrix<T> renumbered(const CsrView<T>& a, std::span<const std::int64_t> row_at);

/// A vector in the new numbering, to[i] = from[row_at[i]], and back. Both are of row_at.size() entries and do not
/// overlap.
template <class T>
RMSP_API void renumber(std::span<const std::int64_t> row_at, const T* from, T* to);
template <class T>
RMSP_API void restore(std::span<const std::int64_t> row_at, const T* from, T* to);

/// A numbering in a file of NumPy, .npy, one-dimensional and of integers: numpy.load() reads what is written.
/// \throws Error(io) naming the file, also for another one; renumbered() says whether it names each row once;
///         Error(out_of_memory) naming the file
RMSP_API HostVector<std::int64_t> read_order(const std::string& path, const ReadOptions& options = {});
/// The file appears under its name only when it is whole.
RMSP_API void write_order(const std::string& path, std::span<const std::int64_t> row_at);

}  // namespace rmsp
