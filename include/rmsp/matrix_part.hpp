#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/host_vector.hpp>
#include <rmsp/io.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/value_types.hpp>

/// A matrix file that several readers, processes for example, read together: each takes some of its bytes, and nobody
/// has the whole matrix. What they have to tell each other is the caller's; Cluster::read() of <rmsp/cluster.hpp> does
/// it by MPI.
namespace rmsp {

/// An entry of a sparse matrix; rows and columns count from 0.
template <class T>
struct MatrixEntry {
    std::int64_t row;
    std::int64_t col;
    T value;
};

/// What readers compare before they read: all must see the same file.
struct MatrixFile {
    bool in_parts = false;  ///< whether it can be read so
    std::string reason;     ///< why not
    std::int64_t bytes = 0;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t entries = 0;  ///< that the file states; those of a symmetric one are fewer than the matrix has
};

namespace detail {
template <class T>
class PartReader;
}  // namespace detail

/// One of several parts of what read_matrix() reads. It can be read in parts if it is a Matrix Market file, plain or
/// compressed, or an .npz whose members are not compressed, as write_matrix() makes it; other files are read by one
/// reader. Of a compressed file each reader decompresses all up to the end of its part, and keeps its part alone.
template <class T>
class MatrixPart {
public:
    /// Opens a regular file and reads its header. \throws Error(io) as read_matrix(), Error(usage) for a part that is
    /// not in [0, parts)
    RMSP_API MatrixPart(const std::string& path, int part, int parts, const ReadOptions& options = {});
    RMSP_API ~MatrixPart();
    RMSP_API MatrixPart(MatrixPart&&) noexcept;
    RMSP_API MatrixPart& operator=(MatrixPart&&) noexcept;

    RMSP_API const MatrixFile& file() const noexcept;
    /// Reads this part. Returns 4 numbers, which all readers have to know of each other.
    /// \throws Error(io) naming the place in the file, Error(usage) if it cannot be read in parts
    RMSP_API std::vector<std::int64_t> read();
    /// The entries of this part in the order of the file, mirrored ones of symmetric files right behind the given ones:
    /// one run after the other. `of_all`: the numbers of all parts, in their order. Once.
    /// \throws Error(io) for what can only be known of all parts together, on one of them at least
    RMSP_API std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t> of_all);

private:
    std::unique_ptr<detail::PartReader<T>> reader_;
};

/// Rows [first_row, first_row + rows) of a matrix of `cols` columns, from all of their entries, those of the first part
/// first: with them sorted and, as the options say, repeated ones added in the order of the file, which gives the bits
/// that read_matrix() does. Frees the runs. \throws Error(usage) for an entry elsewhere; Error(out_of_memory)
template <class T>
RMSP_API CsrMatrix<T> rows_of_entries(std::vector<HostVector<MatrixEntry<T>>>& runs, std::int64_t first_row,
                                      std::int64_t rows, std::int64_t cols, const ReadOptions& options = {});

}  // namespace rmsp
