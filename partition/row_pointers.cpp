#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

#include "core/parallel.hpp"

namespace rmsp {
namespace {

// Pointers of `lines` rows or columns from `first` on, of which nonzeros [start, start + nnz) are in the part.
template <class Local>
void write_local_pointers(IndexView pointers, const char* line, std::int64_t first, std::int64_t lines,
                          std::int64_t start, std::int64_t nnz, Local* out)
{
    if (nnz > std::int64_t{std::numeric_limits<Local>::max()}) {
        throw Error(ErrorCode::usage,
                    fmt::format("a part of {} nonzeros ({}s [{}, {})) does not fit {}-bit {} pointers", nnz, line,
                                first, first + lines, 8 * sizeof(Local), line));
    }
    out[0] = 0;
    out[lines] = static_cast<Local>(nnz);
    // Both ends may lie inside a line; in between every pointer is inside the part.
    pointers.visit([&](const auto* global) {
#pragma omp parallel for schedule(static) if (lines > core::least_parallel)
        for (std::int64_t i = 1; i < lines; ++i) {
            out[i] = static_cast<Local>(global[first + i] - start);
        }
    });
}

}  // namespace

void local_row_ptr(IndexView row_ptr, const PartialCsr& part, std::int32_t* out)
{
    write_local_pointers(row_ptr, "row", part.start_row, part.rows(), part.start_idx, part.nnz(), out);
}

void local_row_ptr(IndexView row_ptr, const PartialCsr& part, std::int64_t* out)
{
    write_local_pointers(row_ptr, "row", part.start_row, part.rows(), part.start_idx, part.nnz(), out);
}

void local_col_ptr(IndexView col_ptr, const PartialCsc& part, std::int32_t* out)
{
    write_local_pointers(col_ptr, "column", part.start_col, part.cols(), part.start_idx, part.nnz(), out);
}

void local_col_ptr(IndexView col_ptr, const PartialCsc& part, std::int64_t* out)
{
    write_local_pointers(col_ptr, "column", part.start_col, part.cols(), part.start_idx, part.nnz(), out);
}

RowStatistics row_statistics(std::int64_t rows, IndexView row_ptr)
{
    if (rows < 0 || (rows > 0 && row_ptr.data() == nullptr)) {
        throw Error(ErrorCode::usage, fmt::format("no row statistics of {} rows: {}", rows,
                                                  rows < 0 ? "a negative size" : "the row pointers are null"));
    }
    RowStatistics result;
    result.rows = rows;
    if (rows == 0) {
        return result;
    }
    result.nnz = row_ptr[rows] - row_ptr[0];
    result.mean = static_cast<double>(result.nnz) / static_cast<double>(rows);
    std::int64_t empty = 0;
    std::int64_t longest = 0;
    double squares = 0;
    const double mean = result.mean;
    [[maybe_unused]] const bool shared = rows > core::least_parallel;
    row_ptr.visit([&](const auto* p) {
#pragma omp parallel for schedule(static) reduction(+ : empty, squares) reduction(max : longest) if (shared)
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t length = static_cast<std::int64_t>(p[i + 1]) - static_cast<std::int64_t>(p[i]);
            const double difference = static_cast<double>(length) - mean;
            empty += length == 0 ? 1 : 0;
            longest = length > longest ? length : longest;
            squares += difference * difference;
        }
    });
    result.empty_rows = empty;
    result.longest_row = longest;
    result.deviation = std::sqrt(squares / static_cast<double>(rows));
    return result;
}

}  // namespace rmsp
