#include "runtime/plan/sides.hpp"

#include <algorithm>

namespace rmsp::plan {
namespace {

using transport::Range;

/// Even slices among the devices that have a part.
std::vector<std::int64_t> slices_of_used(const Plan& plan, std::int64_t size)
{
    std::vector<std::int64_t> slices = even_slices(size, plan.devices);
    slices.resize(plan.partition.parts.size() + 1, size);
    return slices;
}

}  // namespace

std::vector<std::int64_t> row_slices(const Plan& plan)
{
    std::vector<std::int64_t> slices;
    for (const PartialCsr& part : plan.partition.parts) {
        slices.push_back(part.first_owned_row());
    }
    slices.push_back(plan.partition.rows);
    return plan.order == CooOrder::unsorted ? slices_of_used(plan, plan.partition.rows) : slices;
}

std::vector<std::int64_t> even_slices(std::int64_t size, int devices)
{
    const std::int64_t slice = whole_lines((size + devices - 1) / devices);
    std::vector<std::int64_t> slices;
    for (int i = 0; i <= devices; ++i) {
        slices.push_back(std::min(size, slice * i));
    }
    return slices;
}

std::vector<std::int64_t> column_slices(const Plan& plan)
{
    return plan.rows == plan.cols ? row_slices(plan) : slices_of_used(plan, plan.partition.cols);
}

namespace {

/// With what each shard touches of the rows or the columns of what is stored.
Side side_of(std::vector<std::int64_t> slices, const Plan& plan, bool of_rows)
{
    Side side;
    side.slices = std::move(slices);
    for (const ShardPlan& shard : plan.shards) {
        side.touched.push_back(of_rows ? Range{shard.first_row, shard.end_row}
                                       : Range{shard.first_column, shard.end_column});
    }
    return side;
}

}  // namespace

Side row_side(const Plan& plan) { return side_of(row_slices(plan), plan, !transposed(plan)); }

Side column_side(const Plan& plan) { return side_of(column_slices(plan), plan, transposed(plan)); }

bool shares_rows(const Partition& partition)
{
    return std::any_of(partition.parts.begin(), partition.parts.end(),
                       [](const auto& part) { return part.start_flag; });
}

}  // namespace rmsp::plan
