#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

#include "partition/split.hpp"

namespace rmsp {
namespace {

void check_row_pointers(std::int64_t rows, std::int64_t cols, IndexView row_ptr, int parts)
{
    const auto fail = [&](const std::string& what) { partition::refuse(rows, cols, parts, what); };
    if (rows > 0 && row_ptr.data() == nullptr) {
        fail("the row pointers are null");
    }
    if (row_ptr.data() == nullptr) {
        return;
    }
    if (row_ptr[0] != 0) {
        fail(fmt::format("row_ptr[0] is {}, not 0", row_ptr[0]));
    }
    if (row_ptr[rows] < 0 || (row_ptr[rows] > 0 && (rows == 0 || cols == 0))) {
        fail(fmt::format("it cannot have {} nonzeros", row_ptr[rows]));
    }
}

std::vector<partition::Run> runs_of(const std::vector<PartialCsr>& parts)
{
    std::vector<partition::Run> runs;
    runs.reserve(parts.size());
    for (const PartialCsr& part : parts) {
        runs.push_back({part.start_idx, part.end_idx, part.start_row, part.end_row, part.start_flag});
    }
    return runs;
}

}  // namespace

// MSREP, Algorithm 2
Partition partition_csr(std::int64_t rows, std::int64_t cols, IndexView row_ptr, int parts,
                        const PartitionOptions& options)
{
    partition::check_arguments(rows, cols, parts, options);
    check_row_pointers(rows, cols, row_ptr, parts);
    const partition::CompressedLines lines(rows, row_ptr);
    partition::Split split = partition::split_lines(lines, parts, options);
    Partition result{rows, cols, lines.nnz(), std::move(split.nodes), {}};
    result.parts.reserve(split.runs.size());
    for (const partition::Run& run : split.runs) {
        result.parts.push_back({run.start_idx, run.end_idx, run.start_line, run.end_line, run.start_flag});
    }
    return result;
}

double Partition::imbalance(const std::vector<double>& weights) const
{
    return partition::imbalance(runs_of(parts), nnz, weights);
}

void Partition::check() const { partition::check_cover({rows, cols, nnz}, nodes, runs_of(parts), rows, "row"); }

}  // namespace rmsp
