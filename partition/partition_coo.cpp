#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

#include "core/enumerator.hpp"
#include "core/parallel.hpp"
#include "partition/split.hpp"

namespace rmsp {
namespace {

// Position of the first index smaller than the one before it; nnz if there is none.
std::int64_t first_falling(std::int64_t nnz, IndexView indices)
{
    std::int64_t first = nnz;
    indices.visit([&](const auto* p) {
#pragma omp parallel for schedule(static) reduction(min : first) if (nnz > core::least_parallel)
        for (std::int64_t i = 1; i < nnz; ++i) {
            if (p[i] < p[i - 1] && i < first) {
                first = i;
            }
        }
    });
    return first;
}

CooOrder order_of(std::int64_t nnz, std::int64_t row_falls, std::int64_t column_falls)
{
    return row_falls == nnz ? CooOrder::by_row : column_falls == nnz ? CooOrder::by_column : CooOrder::unsorted;
}

std::vector<partition::Run> runs_of(const PartitionCoo& p)
{
    std::vector<partition::Run> runs;
    runs.reserve(p.parts.size());
    for (const PartialCoo& part : p.parts) {
        const bool by_column = p.order == CooOrder::by_column;
        runs.push_back({part.start_idx, part.end_idx, by_column ? part.start_col : part.start_row,
                        by_column ? part.end_col : part.end_row, part.start_flag});
    }
    return runs;
}

}  // namespace

CooOrder coo_order(std::int64_t nnz, IndexView row_idx, IndexView col_idx)
{
    const std::int64_t row_falls = first_falling(nnz, row_idx);
    return order_of(nnz, row_falls, row_falls == nnz ? 0 : first_falling(nnz, col_idx));
}

// MSREP, Algorithm 6
PartitionCoo partition_coo(std::int64_t rows, std::int64_t cols, std::int64_t nnz, IndexView row_idx, IndexView col_idx,
                           int parts, const PartitionOptions& options, UnsortedCoo unsorted)
{
    core::require_enumerator("unsorted", unsorted, UnsortedCoo::split);
    partition::check_arguments(rows, cols, parts, options);
    if (nnz < 0 || (nnz > 0 && (rows == 0 || cols == 0))) {
        partition::refuse(rows, cols, parts, fmt::format("it cannot have {} nonzeros", nnz));
    }
    if (nnz > 0 && (row_idx.data() == nullptr || col_idx.data() == nullptr)) {
        partition::refuse(rows, cols, parts,
                          fmt::format("the {} indices are null", row_idx.data() == nullptr ? "row" : "column"));
    }
    const std::int64_t row_falls = first_falling(nnz, row_idx);
    const std::int64_t column_falls = row_falls == nnz ? 0 : first_falling(nnz, col_idx);
    PartitionCoo result{rows, cols, nnz, order_of(nnz, row_falls, column_falls), {}, {}};
    if (result.order == CooOrder::unsorted && unsorted == UnsortedCoo::refuse) {
        partition::refuse(
            rows, cols, parts,
            fmt::format("its {} entries are sorted neither by row (entry {} is in row {} after one in row {}) nor by "
                        "column (entry {} is in column {} after one in column {})",
                        nnz, row_falls, row_idx[row_falls], row_idx[row_falls - 1], column_falls, col_idx[column_falls],
                        col_idx[column_falls - 1]));
    }

    const bool by_column = result.order == CooOrder::by_column;
    partition::Split split = result.order == CooOrder::unsorted
                                 ? partition::split_entries(nnz, parts, options)
                                 : partition::split_lines(partition::CoordinateLines(by_column ? cols : rows, nnz,
                                                                                     by_column ? col_idx : row_idx),
                                                          parts, options);
    result.nodes = std::move(split.nodes);
    result.parts.reserve(split.runs.size());
    for (const partition::Run& run : split.runs) {
        PartialCoo part{run.start_idx, run.end_idx, 0, rows, 0, cols, run.start_flag};
        if (result.order == CooOrder::by_row) {
            part.start_row = run.start_line;
            part.end_row = run.end_line;
        } else if (by_column) {
            part.start_col = run.start_line;
            part.end_col = run.end_line;
        }
        result.parts.push_back(part);
    }
    return result;
}

double PartitionCoo::imbalance(const std::vector<double>& weights) const
{
    return partition::imbalance(runs_of(*this), nnz, weights);
}

void PartitionCoo::check() const
{
    const char* const line = order == CooOrder::by_row ? "row" : order == CooOrder::by_column ? "column" : nullptr;
    partition::check_cover({rows, cols, nnz}, nodes, runs_of(*this), order == CooOrder::by_column ? cols : rows, line);
}

void local_indices(IndexView indices, const PartialCoo& part, std::int64_t first, std::int64_t count, std::int32_t* out)
{
    if (count > std::int64_t{std::numeric_limits<std::int32_t>::max()}) {
        throw Error(ErrorCode::usage,
                    fmt::format("indices [{}, {}) of entries [{}, {}) do not fit 32-bit local indices", first,
                                first + count, part.start_idx, part.end_idx));
    }
    const std::int64_t n = part.nnz();
    indices.visit([&](const auto* global) {
#pragma omp parallel for schedule(static) if (n > core::least_parallel)
        for (std::int64_t i = 0; i < n; ++i) {
            out[i] = static_cast<std::int32_t>(global[part.start_idx + i] - first);
        }
    });
}

}  // namespace rmsp
