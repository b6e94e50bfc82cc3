#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/matrix.hpp>

namespace rmsp {

/// MSREP's pCSR: a run of nonzeros of a CSR matrix. No values are copied; the local row pointers are made where they
/// are used (local_row_ptr() on the host, a kernel on a GPU). Ranges are half open, unlike the paper's. (MSREP, section
/// 3.2.1 and Algorithm 2)
struct PartialCsr {
    std::int64_t start_idx = 0;  ///< first nonzero
    std::int64_t end_idx = 0;    ///< one past the last nonzero
    std::int64_t start_row = 0;  ///< first row with a nonzero here, or the first empty row that belongs here
    std::int64_t end_row = 0;    ///< one past the last row
    bool start_flag = false;     ///< true: start_row began in an earlier part, which owns it; this part adds a carry

    std::int64_t nnz() const noexcept { return end_idx - start_idx; }
    std::int64_t rows() const noexcept { return end_row - start_row; }
    /// Rows whose result this part writes: rows() less the one it shares with its predecessor. Owned rows of all parts
    /// are disjoint, in order, and cover the matrix.
    std::int64_t first_owned_row() const noexcept { return start_row + (start_flag ? 1 : 0); }
    std::int64_t owned_rows() const noexcept { return end_row - first_owned_row(); }
    bool operator==(const PartialCsr&) const = default;
};

/// How the cut points are chosen.
enum class PartitionStrategy {
    nonzeros,  ///< MSREP: equal weight of nonzeros
    rows,      ///< equal numbers of rows: the paper's baseline
};

/// Whether a cut may fall inside a row. But for `exact`, PartitionOptions::row_multiple says at which rows it is to be
/// where that costs next to nothing.
enum class RowAlignment {
    /// Cut at the nearest row boundary where that costs at most 0.5 % of an average part, inside the row elsewhere.
    automatic,
    exact,  ///< always at the exact nonzero (MSREP)
    row,    ///< always at a row boundary
};

struct PartitionOptions {
    PartitionStrategy strategy = PartitionStrategy::nonzeros;
    RowAlignment alignment = RowAlignment::automatic;
    /// Relative speed of each part; empty: all equal. Every weight is > 0.
    std::vector<double> weights{};
    /// NUMA node of each part, nondecreasing; empty: all on node 0. The first level cuts among nodes by the sum of
    /// their weights, the second inside each node. (MSREP, section 4.2, Figure 13)
    std::vector<int> nodes{};
    /// But for RowAlignment::exact, cuts fall on multiples of so many rows where that costs at most 0.05 % of an
    /// average part; 1: on any row. With 32, slices of vectors begin with a line of a GPU's caches.
    std::int64_t row_multiple = 32;
};

/// Share of one NUMA node: the first level of the split.
struct NodeShare {
    int node = 0;
    int first_part = 0;
    int end_part = 0;
    std::int64_t start_idx = 0;
    std::int64_t end_idx = 0;
    bool operator==(const NodeShare&) const = default;
};

/// The two-level split of one matrix. A value; check() proves that it covers each nonzero and each row exactly once.
struct Partition {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    std::vector<NodeShare> nodes;
    std::vector<PartialCsr> parts;

    /// Largest part over its fair share (by weight), minus one; 0 is perfect. 0 for an empty matrix.
    RMSP_API double imbalance(const std::vector<double>& weights = {}) const;
    /// \throws Error(internal) naming the part that breaks the cover
    RMSP_API void check() const;
};

/// MSREP's pCSC: a run of nonzeros of a CSC matrix, the transposed twin of PartialCsr. Its product with x is a partial
/// y of full length; the parts' products are added. (MSREP, section 3.2.2 and Algorithm 4)
struct PartialCsc {
    std::int64_t start_idx = 0;  ///< first nonzero
    std::int64_t end_idx = 0;    ///< one past the last nonzero
    std::int64_t start_col = 0;  ///< first column with a nonzero here, or the first empty column that belongs here
    std::int64_t end_col = 0;    ///< one past the last column
    bool start_flag = false;     ///< true: start_col began in an earlier part, which owns it

    std::int64_t nnz() const noexcept { return end_idx - start_idx; }
    std::int64_t cols() const noexcept { return end_col - start_col; }
    /// Columns that start here: disjoint, in order, and covering the matrix. They are what a part writes of A^T x.
    std::int64_t first_owned_col() const noexcept { return start_col + (start_flag ? 1 : 0); }
    std::int64_t owned_cols() const noexcept { return end_col - first_owned_col(); }
    bool operator==(const PartialCsc&) const = default;
};

/// MSREP's pCOO: a run of entries of a COO matrix. The range in the sorted direction is exact, as in PartialCsr or
/// PartialCsc; the range in the other direction, and both ranges of unsorted entries, are the whole matrix. (MSREP,
/// section 3.2.3 and Algorithm 6)
struct PartialCoo {
    std::int64_t start_idx = 0;
    std::int64_t end_idx = 0;
    std::int64_t start_row = 0;
    std::int64_t end_row = 0;
    std::int64_t start_col = 0;
    std::int64_t end_col = 0;
    bool start_flag =
        false;  ///< true: start_row (by_row) or start_col (by_column) began in an earlier part, which owns it

    std::int64_t nnz() const noexcept { return end_idx - start_idx; }
    std::int64_t rows() const noexcept { return end_row - start_row; }
    std::int64_t cols() const noexcept { return end_col - start_col; }
    bool operator==(const PartialCoo&) const = default;
};

/// The two-level split of a CSC matrix; a column takes the place of a row in everything that is said of Partition.
struct PartitionCsc {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    std::vector<NodeShare> nodes;
    std::vector<PartialCsc> parts;

    /// As Partition::imbalance().
    RMSP_API double imbalance(const std::vector<double>& weights = {}) const;
    /// \throws Error(internal) naming the part that breaks the cover of nonzeros or columns
    RMSP_API void check() const;
};

/// The two-level split of a COO matrix.
struct PartitionCoo {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    CooOrder order = CooOrder::by_row;
    std::vector<NodeShare> nodes;
    std::vector<PartialCoo> parts;

    /// As Partition::imbalance().
    RMSP_API double imbalance(const std::vector<double>& weights = {}) const;
    /// \throws Error(internal) naming the part that breaks the cover of entries, or of rows or columns where they are
    ///         sorted
    RMSP_API void check() const;
};

/// Splits a CSR matrix, O(parts log rows), in parallel over parts; the matrix's arrays are only searched.
/// \throws Error(usage) for no parts, weights that are not positive, or sizes that do not fit
RMSP_API Partition partition_csr(std::int64_t rows, std::int64_t cols, IndexView row_ptr, int parts,
                                 const PartitionOptions& options = {});

/// Splits a CSC matrix by the algorithm of partition_csr() on columns: PartitionStrategy::rows means equal numbers of
/// columns, RowAlignment the boundaries of columns.
/// \throws Error(usage) as partition_csr()
RMSP_API PartitionCsc partition_csc(std::int64_t rows, std::int64_t cols, IndexView col_ptr, int parts,
                                    const PartitionOptions& options = {});

/// What partition_coo() does with entries that are sorted neither by row nor by column.
enum class UnsortedCoo {
    refuse,  ///< throws; sort_by_row() of rmsp/convert.hpp sorts them once
    split,   ///< runs of equal length, each of which may touch every row and column
};

/// Splits a COO matrix, O(parts log nnz) once its order is known, which is found in one parallel pass. Entries by row
/// are split as partition_csr() splits rows, entries by column as partition_csc() splits columns; strategy and
/// alignment mean nothing for unsorted ones. The indices must be valid (validate()).
/// \throws Error(usage) as partition_csr(), and for unsorted entries as `unsorted` says, naming the first two out of
///         order
RMSP_API PartitionCoo partition_coo(std::int64_t rows, std::int64_t cols, std::int64_t nnz, IndexView row_idx,
                                    IndexView col_idx, int parts, const PartitionOptions& options = {},
                                    UnsortedCoo unsorted = UnsortedCoo::refuse);

/// Writes the rows() + 1 local row pointers of a part, in parallel: 0, ..., nnz(). (Algorithm 2, lines 12-14)
/// \throws Error(usage) if 32-bit pointers cannot hold the part's nnz
RMSP_API void local_row_ptr(IndexView row_ptr, const PartialCsr& part, std::int32_t* out);
RMSP_API void local_row_ptr(IndexView row_ptr, const PartialCsr& part, std::int64_t* out);

/// Writes the cols() + 1 local column pointers of a pCSC. (Algorithm 4, lines 11-13)
RMSP_API void local_col_ptr(IndexView col_ptr, const PartialCsc& part, std::int32_t* out);
RMSP_API void local_col_ptr(IndexView col_ptr, const PartialCsc& part, std::int64_t* out);

/// Writes nnz() local indices, indices[start_idx + i] - first, in parallel: the row indices of a pCOO with first =
/// start_row, its column indices with first = start_col.
/// \throws Error(usage) if `count`, the part's rows() or cols(), is more than 32-bit indices hold
RMSP_API void local_indices(IndexView indices, const PartialCoo& part, std::int64_t first, std::int64_t count,
                            std::int32_t* out);

/// Facts about a matrix that planning and kernel choice use. One parallel pass over the row pointers (of a CSC matrix:
/// over the column pointers; "row" then reads "column").
struct RowStatistics {
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
    std::int64_t empty_rows = 0;
    std::int64_t longest_row = 0;
    double mean = 0;       ///< nnz / rows
    double deviation = 0;  ///< standard deviation of the row lengths
};
RMSP_API RowStatistics row_statistics(std::int64_t rows, IndexView row_ptr);

}  // namespace rmsp
