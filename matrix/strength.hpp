#pragma once

#include <cstdint>
#include <span>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

/// Which entries of a matrix count when algebraic multigrid makes a coarser one. Matrices have rising columns, each
/// once a row (canonical()).
namespace rmsp::matrix {

/// Neighbours of each row: row_ptr has rows + 1 entries, columns rise within a row.
struct Graph {
    HostVector<std::int64_t> row_ptr;
    HostVector<std::int32_t> col_idx;

    std::int64_t rows() const noexcept { return static_cast<std::int64_t>(row_ptr.size()) - 1; }
    std::span<const std::int32_t> neighbours(std::int64_t row) const noexcept
    {
        const std::int64_t begin = row_ptr[static_cast<std::size_t>(row)];
        const std::int64_t end = row_ptr[static_cast<std::size_t>(row) + 1];
        return {col_idx.data() + begin, static_cast<std::size_t>(end - begin)};
    }
};

/// When row i depends strongly on column j != i.
enum class Strength : std::uint8_t {
    /// |a_ij| >= threshold times the largest such entry of the row, among those whose sign is not the diagonal's.
    /// (Ruge, Stueben: Algebraic multigrid, in Multigrid Methods, SIAM 1987)
    classical,
    /// a_ij^2 >= threshold^2 |a_ii a_jj| (Vanek, Mandel, Brezina: Algebraic multigrid by smoothed aggregation,
    /// Computing
    /// 56, 1996), or |a_ij| >= share_of_largest times the largest entry beside the diagonal of both row i and row j:
    /// where a row has many entries alike, as in the Laplacian of a graph, each is small beside the diagonal.
    symmetric,
};

/// Of the largest entry beside the diagonal: what the symmetric measure counts whatever the diagonal is.
inline constexpr double share_of_largest = 0.25;

/// What becomes of an entry.
namespace mark {
inline constexpr std::uint8_t weak = 0;
inline constexpr std::uint8_t strong = 1;
/// Symmetric measure: large beside the others of its own row, not beside those of its column's row. It joins no
/// aggregates, but the smoothing of P needs it: at a jump of coefficients, rows of the low side depend on the high
/// side.
inline constexpr std::uint8_t one_sided = 2;
}  // namespace mark

/// A mark for each entry of A; the diagonal is weak, and what is zero or not finite. Parallel.
/// \throws Error(usage) if A is not square or has 2^31 rows, or unless 0 <= threshold <= 1
template <class T>
HostVector<std::uint8_t> strong_entries(const CsrView<T>& a, Strength kind, double threshold);

/// The entries marked strong alone.
template <class T>
Graph strong_graph(const CsrView<T>& a, std::span<const std::uint8_t> marks);

/// An edge in both directions wherever the graph has one.
Graph symmetrised(const Graph& graph);
/// How many rows have an edge to each.
HostVector<std::int32_t> in_degrees(const Graph& graph);

/// Whether the columns of each row rise, each once.
template <class T>
bool is_canonical(const CsrView<T>& a);

/// The matrix whose entries are the Frobenius norms of blocks of `size` rows and columns of A.
/// \throws Error(usage) if the rows are not a multiple of `size`
template <class T>
CsrMatrix<double> block_norms(const CsrView<T>& a, int size);
/// Marks of the entries of A as those of the blocks that they lie in; entries of the diagonal blocks other than the
/// diagonal are strong.
template <class T>
HostVector<std::uint8_t> of_blocks(const CsrView<T>& a, int size, const CsrView<double>& blocks,
                                   std::span<const std::uint8_t> strong);

}  // namespace rmsp::matrix
