#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/transport/transport.hpp"

/// How vectors lie along the rows and the columns of a split matrix.
namespace rmsp::plan {

/// Rounds up to whole 256-byte lines of the smallest entries, so that what follows starts aligned for the widest loads.
constexpr std::int64_t whole_lines(std::int64_t n)
{
    constexpr std::int64_t line = 256 / static_cast<std::int64_t>(sizeof(std::int32_t));
    return (n + line - 1) / line * line;
}

/// One side of M, its rows or its columns, as vectors see it.
struct Side {
    std::vector<std::int64_t> slices;       ///< of a vector by rows: first entry of each device, the size at the end
    std::vector<transport::Range> touched;  ///< entries that have to do with each device's part
    std::int64_t size() const { return slices.back(); }
};
/// Slices of whole 256-byte lines; equal ones, which a collective moves fastest, unless the last devices run out of
/// entries.
std::vector<std::int64_t> even_slices(std::int64_t size, int devices);
/// First owned row of M of each device, and the rows at the end; of unsorted entries even slices.
std::vector<std::int64_t> row_slices(const Plan& plan);
/// Slices along M's columns: the rows' if the matrix is square, so that y may be the next x, else even ones.
std::vector<std::int64_t> column_slices(const Plan& plan);
Side row_side(const Plan& plan);
Side column_side(const Plan& plan);
/// Whether M, which plan.partition splits, is the transpose of the plan's matrix.
inline bool transposed(const Plan& plan) { return plan.order == CooOrder::by_column; }
/// Whether A x, or A^T x, is M x computed by rows, each of which belongs to one device; else partial results are added.
inline bool multiplies_by_rows(const Plan& plan, bool of_transpose)
{
    return plan.order != CooOrder::unsorted && of_transpose == transposed(plan);
}

/// Whether some device has the rest of a row that begins on another.
bool shares_rows(const Partition& partition);

}  // namespace rmsp::plan
