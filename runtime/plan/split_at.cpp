#include "runtime/plan/split_at.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::plan {

Partition split_at(std::int64_t rows, std::int64_t cols, IndexView row_ptr, const std::vector<std::int64_t>& first_rows,
                   const std::vector<std::int64_t>& first_entries, const std::vector<int>& nodes)
{
    const std::int64_t nnz = first_entries.empty() ? row_ptr[rows] : first_entries.back();
    Partition split{rows, cols, nnz, {}, {}};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::int64_t begin = i == 0 ? 0 : split.parts.back().end_row;
        const std::int64_t end = i + 1 < nodes.size() ? first_rows.at(i + 1) : rows;
        if (first_rows.at(i) != begin || end < begin || end > rows) {
            throw Error(ErrorCode::usage, fmt::format("part {} of {} is to begin at row {} and to end at {}; {} comes "
                                                      "next, and the matrix has {} rows",
                                                      i, nodes.size(), first_rows.at(i), end, begin, rows));
        }
        const std::int64_t first = i == 0 ? 0 : split.parts.back().end_idx;
        const std::int64_t behind = i + 1 == nodes.size()   ? nnz
                                    : first_entries.empty() ? row_ptr[end]
                                                            : first_entries.at(i + 1);
        split.parts.push_back({first, behind, begin, end, false});
        if (split.nodes.empty() || split.nodes.back().node != nodes[i]) {
            const int part = static_cast<int>(i);
            split.nodes.push_back({nodes[i], part, part, first, first});
        }
        split.nodes.back().end_part = static_cast<int>(i) + 1;
        split.nodes.back().end_idx = behind;
    }
    return split;
}

Partition split_at_samples(std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& entries,
                           std::int64_t step, int devices, const PartitionOptions& options)
{
    PartitionOptions whole_rows = options;
    whole_rows.alignment = RowAlignment::row;
    whole_rows.row_multiple = std::max<std::int64_t>(1, options.row_multiple / step);
    const auto count = static_cast<std::int64_t>(entries.size()) - 1;
    Partition result = partition_csr(count, cols, IndexView(entries.data()), devices, whole_rows);
    result.rows = rows;
    for (PartialCsr& part : result.parts) {
        part.start_row = std::min(rows, part.start_row * step);
        part.end_row = std::min(rows, part.end_row * step);
    }
    return result;
}

}  // namespace rmsp::plan
