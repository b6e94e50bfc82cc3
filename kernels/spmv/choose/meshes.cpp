#include <kernels/spmv/choose/meshes.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rmsp::kernels {
namespace {

constexpr int sampled_rows = 24;
/// Of one row: columns, and entries of the row of each, that are looked at.
constexpr std::int64_t most_columns = 16;
constexpr std::int64_t most_entries = 64;
/// Ways of fewer say nothing.
constexpr std::int64_t least_ways = 64;

std::vector<std::int64_t> columns_of(const IndexView& range, std::int64_t count)
{
    std::vector<std::int64_t> found;
    range.visit([&](const auto* first) { found.assign(first, first + count); });
    return found;
}

}  // namespace

double two_step_columns(const RowStatistics& rows, IndexView row_ptr, std::int64_t first_row, ColumnReader& columns)
{
    const auto entries_of = [&](std::int64_t row, std::int64_t most) {
        const std::int64_t first = row_ptr[row];
        return EntryRange{first, std::min(row_ptr[row + 1] - first, most)};
    };
    std::vector<EntryRange> starts;
    for (int i = 0; rows.rows > 0 && i < sampled_rows; ++i) {
        const EntryRange range = entries_of(rows.rows * i / sampled_rows, most_columns);
        if (range.count > 1) {
            starts.push_back(range);
        }
    }
    if (starts.empty()) {
        return 0;
    }
    // Ranges of one start, one behind the other.
    std::vector<EntryRange> steps;
    std::vector<std::size_t> ends;
    const std::vector<IndexView> there = columns.ranges(starts);
    for (std::size_t i = 0; i < starts.size(); ++i) {
        for (const std::int64_t column : columns_of(there[i], starts[i].count)) {
            const std::int64_t row = column - first_row;
            if (row >= 0 && row < rows.rows) {
                const EntryRange range = entries_of(row, most_entries);
                if (range.count > 0) {
                    steps.push_back(range);
                }
            }
        }
        ends.push_back(steps.size());
    }
    if (steps.empty()) {
        return 0;
    }
    const std::vector<IndexView> next = columns.ranges(steps);
    std::int64_t ways = 0;
    std::int64_t different = 0;
    std::vector<std::int64_t> reached;
    for (std::size_t i = 0, step = 0; i < ends.size(); ++i) {
        reached.clear();
        for (; step < ends[i]; ++step) {
            const auto more = columns_of(next[step], steps[step].count);
            reached.insert(reached.end(), more.begin(), more.end());
        }
        ways += static_cast<std::int64_t>(reached.size());
        std::sort(reached.begin(), reached.end());
        different += std::unique(reached.begin(), reached.end()) - reached.begin();
    }
    return ways >= least_ways ? static_cast<double>(different) / static_cast<double>(ways) : 0;
}

}  // namespace rmsp::kernels
