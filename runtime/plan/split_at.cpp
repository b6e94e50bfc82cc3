#include "runtime/plan/split_at.hpp"

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::plan {

Partition split_at(std::int64_t rows, std::int64_t cols, IndexView row_ptr, const std::vector<std::int64_t>& first_rows,
                   const std::vector<int>& nodes)
{
    Partition split{rows, cols, row_ptr[rows], {}, {}};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::int64_t begin = i == 0 ? 0 : split.parts.back().end_row;
        const std::int64_t end = i + 1 < nodes.size() ? first_rows.at(i + 1) : rows;
        if (first_rows.at(i) != begin || end < begin || end > rows) {
            throw Error(ErrorCode::usage, fmt::format("part {} of {} is to begin at row {} and to end at {}; {} comes "
                                                      "next, and the matrix has {} rows",
                                                      i, nodes.size(), first_rows.at(i), end, begin, rows));
        }
        split.parts.push_back({row_ptr[begin], row_ptr[end], begin, end, false});
        if (split.nodes.empty() || split.nodes.back().node != nodes[i]) {
            const int part = static_cast<int>(i);
            split.nodes.push_back({nodes[i], part, part, row_ptr[begin], row_ptr[begin]});
        }
        split.nodes.back().end_part = static_cast<int>(i) + 1;
        split.nodes.back().end_idx = row_ptr[end];
    }
    return split;
}

}  // namespace rmsp::plan
