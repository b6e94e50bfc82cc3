#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

namespace rmsp {

/// Called with a phase ("read", "sort", "upload", ...) and the share done, 0 to 1; from one thread at a time.
using Progress = std::function<void(std::string_view phase, double done)>;

struct ReadOptions {
    int threads = 0;             ///< parser threads; 0: all of the process's cpuset
    bool sum_duplicates = true;  ///< add entries at the same place together; false: keep them
    double pattern_value = 1.0;  ///< value of each entry of a pattern file
    Progress progress{};         ///< may be empty
    /// Most bytes of host memory that reading may hold at a time: what comes through a pipe, what a file unpacks, and
    /// the arrays that are made of it, working copies included; a plain file itself is mapped, and not counted. At
    /// least 0; 0: as many as the machine has.
    std::int64_t max_bytes = 0;
};

/// Reads a matrix by its content and name: Matrix Market (.mtx, plain or .gz, .xz, .zst), or SciPy's .npz (CSR or COO
/// or CSC, as save_npz writes it). Symmetric and skew-symmetric files are expanded; rows come out with their columns
/// sorted. Explicit zeros are kept, but of an array file only the values that are not zero. Numbers too small for T
/// become zero, those too large are an error. A plain file is mapped: it must not be truncated by others meanwhile.
/// \throws Error(io) "FILE:LINE:COLUMN: ..." for a bad file; complex files are refused by name; what would take more
///         than max_bytes is refused with these bytes. Error(out_of_memory) naming the file
template <class T>
RMSP_API CsrMatrix<T> read_matrix(const std::string& path, const ReadOptions& options = {});

/// Parses Matrix Market text that is already in memory; `name` stands for the file in messages. \throws as
/// read_matrix()
template <class T>
RMSP_API CsrMatrix<T> parse_matrix_market(std::string_view text, const std::string& name,
                                          const ReadOptions& options = {});

struct WriteOptions {
    std::string comment{};  ///< Matrix Market only; each line gets a "% "
    Progress progress{};
};

/// The endings of names that write_matrix() takes: ".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst", ".npz".
RMSP_API std::span<const std::string_view> written_endings() noexcept;

/// Writes by the name's ending: .mtx, .mtx.gz, .mtx.xz, .mtx.zst (coordinate real general), or .npz (CSR, stored, so
/// that it loads at disk speed; SciPy's load_npz reads it). The file appears under its name only when it is whole.
/// \throws Error(io) naming the file, also for another ending, Error(usage) as validate()
template <class T>
RMSP_API void write_matrix(const std::string& path, const CsrView<T>& a, const WriteOptions& options = {});

/// Reads a vector by its content: NumPy's .npy, one-dimensional, of real numbers or integers; or a matrix of one column
/// in any file that read_matrix() takes, dense or sparse. \throws Error(io) "FILE:LINE:COLUMN: ..." or "FILE: ..." for
/// a bad file, for one with several columns, and for one that would take more than max_bytes; Error(out_of_memory)
/// naming the file
template <class T>
RMSP_API HostVector<T> read_vector(const std::string& path, const ReadOptions& options = {});

/// The endings of names that write_vector() takes: ".npy", ".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst".
RMSP_API std::span<const std::string_view> written_vector_endings() noexcept;

/// Writes by the name's ending: .npy, or .mtx with its packed forms (array real general, of one column, with the
/// shortest decimals that read back as the same values). The file appears under its name only when it is whole.
/// \throws Error(io) naming the file, also for another ending
template <class T>
RMSP_API void write_vector(const std::string& path, std::span<const T> entries);
/// Writes vectors of one size as the columns of a dense array, `entries` being one vector after the other; .npy in
/// Fortran's order, otherwise as write_vector().
/// \throws as write_vector(), and Error(usage) unless the entries are so many whole columns
template <class T>
RMSP_API void write_columns(const std::string& path, std::span<const T> entries, std::int64_t columns);

/// Distribution of generated values. "elasticity" (list_generators()) has values of its own in place of random ones.
enum class ValueKind {
    ones,    ///< every value 1
    random,  ///< uniform in [-1, 1), by a counter-based generator: independent of the number of threads
    /// Stencils only: the graph's Laplacian, diagonal = row length - 1, others -1. Rows sum to zero, so the matrix is
    /// singular: symmetric positive semidefinite, with constant vectors in its kernel.
    laplace,
    /// Stencils only: diagonal = neighbours of a point inside the grid (stencil7: 6, stencil27: 26), others -1. Points
    /// outside the grid are zero (Dirichlet), so rows at its boundary sum to more than zero: symmetric positive
    /// definite.
    poisson,
};

/// Generated matrices; the same arguments give the same matrix on any number of threads. Columns are sorted, rows are
/// whole.
struct GenerateOptions {
    std::uint64_t seed = 1;
    ValueKind values = ValueKind::random;
    Progress progress{};
};

/// Points of a nx x ny x nz grid, natural order (x fastest), coupled to their neighbours inside the grid.
template <class T>
RMSP_API CsrMatrix<T> stencil7(std::int64_t nx, std::int64_t ny, std::int64_t nz, const GenerateOptions& options = {});
template <class T>
RMSP_API CsrMatrix<T> stencil27(std::int64_t nx, std::int64_t ny, std::int64_t nz, const GenerateOptions& options = {});
/// Square, entries where |row - col| <= half_band.
template <class T>
RMSP_API CsrMatrix<T> banded(std::int64_t rows, std::int64_t half_band, const GenerateOptions& options = {});
/// R-MAT graph (Graph500: a = 0.57, b = 0.19, c = 0.19), 2^scale rows, edge_factor * 2^scale edges before duplicates
/// are merged; not symmetrised; vertex labels as generated (not permuted).
template <class T>
RMSP_API CsrMatrix<T> rmat(int scale, int edge_factor, const GenerateOptions& options = {});
/// rows x cols with `per_row` distinct uniform columns in each row (min(per_row, cols)).
template <class T>
RMSP_API CsrMatrix<T> random_uniform(std::int64_t rows, std::int64_t cols, std::int64_t per_row,
                                     const GenerateOptions& options = {});

/// Square, with row lengths that follow a power law: about the share k^-exponent of the rows has k entries, per_row on
/// average and at most the square root of the number of all entries (or 2 per_row). As in crawled graphs, long rows
/// tend to come first: half of the rows stand in descending order, the others anywhere. Columns are spread over the
/// whole row.
/// \throws Error(usage) for an exponent outside [1, 4]
template <class T>
RMSP_API CsrMatrix<T> power_law(std::int64_t rows, std::int64_t per_row, double exponent,
                                const GenerateOptions& options = {});

/// What generate() knows: each generator's name and its parameters, "stencil27 nx ny nz".
RMSP_API std::vector<std::string> list_generators();

/// By description: "stencil27 200 200 200", "banded 100000 15", "rmat 22 16", or another of list_generators(), which
/// docs/mspmv.md explains. What `mspmv generate` and the configuration's matrix.generate use.
/// \throws Error(usage) naming the word that is wrong
template <class T>
RMSP_API CsrMatrix<T> generate(std::string_view description, const GenerateOptions& options = {});

/// Where the nodes of "elasticity nx ny nz" are: 3 numbers each, in the order of the rows, as rigid_body_modes() takes
/// them. \throws Error(usage) as generate(), and for other generators
[[nodiscard]] RMSP_API std::vector<double> generated_coordinates(std::string_view description);

/// Replaces every value, as the generators set them: random ones by seed and position, `laplace` and `poisson` from the
/// structure. The diagonal of `poisson` is the largest number of entries beside the diagonal in any row, which for a
/// stencil is what the generators take if the grid has a point inside.
/// \throws Error(usage) for `laplace` and `poisson` where the matrix is not square, for `poisson` where all rows have
///         equally many entries beside the diagonal: they would sum to zero
template <class T>
RMSP_API void set_values(CsrMatrix<T>& a, ValueKind kind, std::uint64_t seed = 1);

/// A + I: 1 is added to what is on the diagonal, or stored where nothing is. Sorted columns stay sorted.
/// \throws Error(usage) if A is not square, and as validate()
template <class T>
RMSP_API CsrMatrix<T> plus_identity(const CsrView<T>& a);

/// The Kronecker product of A with a block x block matrix of ones: `block` unknowns at each node of a mesh.
/// \throws Error(usage) if block < 1 or if the sizes do not fit 64 bits, and as validate()
template <class T>
RMSP_API CsrMatrix<T> kronecker_ones(const CsrView<T>& a, std::int64_t block);

}  // namespace rmsp
