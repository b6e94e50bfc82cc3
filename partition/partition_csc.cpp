#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

#include "partition/split.hpp"

namespace rmsp {
namespace {

void check_column_pointers(std::int64_t rows, std::int64_t cols, IndexView col_ptr, int parts)
{
    const auto fail = [&](const std::string& what) { partition::refuse(rows, cols, parts, what); };
    if (cols > 0 && col_ptr.data() == nullptr) {
        fail("the column pointers are null");
    }
    if (col_ptr.data() == nullptr) {
        return;
    }
    if (col_ptr[0] != 0) {
        fail(fmt::format("col_ptr[0] is {}, not 0", col_ptr[0]));
    }
    if (col_ptr[cols] < 0 || (col_ptr[cols] > 0 && (rows == 0 || cols == 0))) {
        fail(fmt::format("it cannot have {} nonzeros", col_ptr[cols]));
    }
}

std::vector<partition::Run> runs_of(const std::vector<PartialCsc>& parts)
{
    std::vector<partition::Run> runs;
    runs.reserve(parts.size());
    for (const PartialCsc& part : parts) {
        runs.push_back({part.start_idx, part.end_idx, part.start_col, part.end_col, part.start_flag});
    }
    return runs;
}

}  // namespace

// MSREP, Algorithm 4
PartitionCsc partition_csc(std::int64_t rows, std::int64_t cols, IndexView col_ptr, int parts,
                           const PartitionOptions& options)
{
    partition::check_arguments(rows, cols, parts, options);
    check_column_pointers(rows, cols, col_ptr, parts);
    const partition::CompressedLines lines(cols, col_ptr);
    partition::Split split = partition::split_lines(lines, parts, options);
    PartitionCsc result{rows, cols, lines.nnz(), std::move(split.nodes), {}};
    result.parts.reserve(split.runs.size());
    for (const partition::Run& run : split.runs) {
        result.parts.push_back({run.start_idx, run.end_idx, run.start_line, run.end_line, run.start_flag});
    }
    return result;
}

double PartitionCsc::imbalance(const std::vector<double>& weights) const
{
    return partition::imbalance(runs_of(parts), nnz, weights);
}

void PartitionCsc::check() const { partition::check_cover({rows, cols, nnz}, nodes, runs_of(parts), cols, "column"); }

}  // namespace rmsp
