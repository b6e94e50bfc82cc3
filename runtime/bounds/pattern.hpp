#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/characterize.hpp>
#include <rmsp/matrix.hpp>

/// The structure of a product, without values: what bounds are counted on.
namespace rmsp::bounds {

struct Pattern {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<std::int64_t> row_ptr;
    std::vector<std::int32_t> col_idx;

    std::int64_t nnz() const { return static_cast<std::int64_t>(col_idx.size()); }
    std::int64_t begin(std::int64_t row) const { return row_ptr[static_cast<std::size_t>(row)]; }
    std::int64_t end(std::int64_t row) const { return row_ptr[static_cast<std::size_t>(row) + 1]; }
    std::int64_t length(std::int64_t row) const { return end(row) - begin(row); }
    std::int32_t column(std::int64_t entry) const { return col_idx[static_cast<std::size_t>(entry)]; }
};

/// Of a view that validate() accepts. \throws Error(usage) for more than 2^31 - 1 rows or columns
template <class T>
Pattern pattern_of(const CsrView<T>& a);

/// y = A x or C = A B, and what a word of each takes.
struct Operation {
    const Pattern& a;
    const Pattern* b;  ///< null: y = A x
    std::int64_t value_bytes;

    std::int64_t entry_bytes() const { return 4 + value_bytes; }
    /// Rows of A whose entries are multiplied: in SpMV by one entry of x, else by those of a row of B.
    std::int64_t partners(std::int32_t column) const { return b == nullptr ? 1 : b->length(column); }
};

/// Multiplies, nonzeros of each row of C, and what of A and B takes part in a multiply.
struct Counts {
    std::int64_t multiplies = 0;
    std::int64_t a_used = 0;              ///< nonzeros of A
    std::int64_t b_used = 0;              ///< nonzeros of B, or entries of x
    std::int64_t c_nnz = 0;               ///< nonzeros of C, or entries of y
    std::int64_t c_used = 0;              ///< of these, what a multiply adds to: not the y of an empty row
    std::vector<std::int64_t> c_row_ptr;  ///< of C; empty for SpMV
};
Counts count(const Operation& op);

/// How often data are brought to the fast memory, in entries: one for each part that uses an entry.
struct Touches {
    std::int64_t a = 0;
    std::int64_t b = 0;
    std::int64_t c = 0;
};

/// Words and bytes for these: an entry of A or B is loaded, one of C is loaded and stored, but not loaded the first
/// time (section IV.B: two words for each of A and B, three of C less one for each entry of C).
Traffic traffic(const Operation& op, const Counts& counts, const Touches& touches);

/// What one part holds in the fast memory.
std::int64_t footprint_bytes(const Operation& op, const Touches& part);

/// Rows multiplied in the given order (null: their own), with a new part wherever the fast memory is full, and also
/// where `part_of` (null: one part) changes from a row to the next.
struct Cut {
    Touches touches;
    std::int64_t parts = 0;
};
Cut cut_rows(const Operation& op, std::int64_t fast_bytes, const std::vector<std::int64_t>* order,
             const std::vector<std::int32_t>* part_of);

/// The usual order with a cache of the least recently used lines.
SimulatedCache simulate(const Operation& op, const Counts& counts, std::int64_t fast_bytes, std::int64_t line_bytes);

/// Algorithm 3, and the parts of rows that Algorithm 4 makes of it.
struct Bound {
    UpperBound upper;
    std::vector<std::int32_t> part_of_row;
};
Bound upper_bound(const Operation& op, const Counts& counts, const CharacterizeOptions& options);

/// The hypergraph of section IV.B: a vertex for each multiply, in the order of rows; nets of A's, B's and C's entries
/// that are used, in this order. SpMV: B's are x's, C's are y's.
struct MultiplyGraph {
    Hypergraph graph;
    std::int64_t a_nets = 0;
    std::int64_t b_nets = 0;
    std::vector<std::int32_t> row;     ///< of each multiply
    std::vector<std::int32_t> column;  ///< of C; SpMV: of A
};
MultiplyGraph multiply_graph(const Operation& op, const Counts& counts);

/// Algorithm 4's votes: for each row the part that has most of the multiplies of that row and column; parts of lower
/// number win ties, rows without any go to part 0.
std::vector<std::int32_t> vote(const MultiplyGraph& multiplies, const std::vector<std::int32_t>& part_of,
                               std::int64_t rows);
/// Its numbering: rows by part, those of a part in their order.
HostVector<std::int64_t> order_by_part(const std::vector<std::int32_t>& part_of_row);
/// Longest rows first.
HostVector<std::int64_t> order_by_length(const Pattern& a);

}  // namespace rmsp::bounds
