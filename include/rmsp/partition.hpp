#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/matrix.hpp>

namespace rmsp {

/// MSREP's pCSR: a run of nonzeros of a CSR matrix. No values are copied; the local row pointers are made where they are used
/// (local_row_ptr() on the host, a kernel on a GPU). Ranges are half open, unlike the paper's.
/// (MSREP, section 3.2.1 and Algorithm 2)
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

/// Whether a cut may fall inside a row.
enum class RowAlignment {
    automatic,  ///< cut at the nearest row boundary where that costs at most 0.5 % of an average part, inside the row elsewhere
    exact,      ///< always at the exact nonzero (MSREP)
    row,        ///< always at a row boundary
};

struct PartitionOptions {
    PartitionStrategy strategy = PartitionStrategy::nonzeros;
    RowAlignment alignment = RowAlignment::automatic;
    /// Relative speed of each part; empty: all equal. Every weight is > 0.
    std::vector<double> weights{};
    /// NUMA node of each part, nondecreasing; empty: all on node 0. The first level cuts among nodes by the sum of their
    /// weights, the second inside each node. (MSREP, section 4.2, Figure 13)
    std::vector<int> nodes{};
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
    double imbalance(const std::vector<double>& weights = {}) const;
    /// \throws Error(internal) naming the part that breaks the cover
    void check() const;
};

/// Splits a CSR matrix, O(parts log rows), in parallel over parts; the matrix's arrays are only searched.
/// \throws Error(usage) for no parts, weights that are not positive, or sizes that do not fit
Partition partition_csr(std::int64_t rows, std::int64_t cols, IndexView row_ptr, int parts,
                        const PartitionOptions& options = {});

/// Writes the rows() + 1 local row pointers of a part, in parallel: 0, ..., nnz(). (Algorithm 2, lines 12-14)
/// \throws Error(usage) if 32-bit pointers cannot hold the part's nnz
void local_row_ptr(IndexView row_ptr, const PartialCsr& part, std::int32_t* out);
void local_row_ptr(IndexView row_ptr, const PartialCsr& part, std::int64_t* out);

/// Facts about a matrix that planning and kernel choice use. One parallel pass over the row pointers.
struct RowStatistics {
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
    std::int64_t empty_rows = 0;
    std::int64_t longest_row = 0;
    double mean = 0;       ///< nnz / rows
    double deviation = 0;  ///< standard deviation of the row lengths
};
RowStatistics row_statistics(std::int64_t rows, IndexView row_ptr);

}  // namespace rmsp
