#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "runtime/state.hpp"

namespace rmsp::detail {
namespace {

struct ColumnRange {
    std::int64_t first = 0;
    std::int64_t end = 0;
};

/// From the first to the last column that a part touches: what it needs of x, exactly for a band, a bound otherwise.
template <class T>
ColumnRange column_range(const CsrView<T>& a, const PartialCsr& part)
{
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = -1;
    a.col_idx.visit([&](const auto* col) {
#pragma omp parallel for reduction(min : first) reduction(max : last) schedule(static)
        for (std::int64_t i = part.start_idx; i < part.end_idx; ++i) {
            const std::int64_t c = col[i];
            first = std::min(first, c);
            last = std::max(last, c);
        }
    });
    return last < first ? ColumnRange{} : ColumnRange{first, last + 1};
}

RowStatistics part_statistics(IndexView row_ptr, const PartialCsr& part)
{
    if (part.owned_rows() == 0) {
        return {};
    }
    const auto view = row_ptr.visit([&](const auto* p) { return IndexView(p + part.first_owned_row()); });
    return row_statistics(part.owned_rows(), view);
}

}  // namespace

std::vector<std::int64_t> row_slices(const Plan& plan)
{
    std::vector<std::int64_t> slices;
    for (const PartialCsr& part : plan.partition.parts) {
        slices.push_back(part.first_owned_row());
    }
    slices.push_back(plan.rows);
    return slices;
}

std::vector<std::int64_t> even_slices(std::int64_t entries, int devices)
{
    constexpr std::int64_t line = 256 / static_cast<std::int64_t>(sizeof(std::int32_t));
    const std::int64_t slice = ((entries + devices - 1) / devices + line - 1) / line * line;
    std::vector<std::int64_t> slices;
    for (int i = 0; i <= devices; ++i) {
        slices.push_back(std::min(entries, slice * i));
    }
    return slices;
}

std::vector<std::int64_t> x_slices(const Plan& plan)
{
    return plan.rows == plan.cols ? row_slices(plan)
                                  : even_slices(plan.cols, static_cast<int>(plan.partition.parts.size()));
}

template <class T>
Plan make_plan(const RuntimeState& runtime, const CsrView<T>& a, const DistributeOptions& options)
{
    const bool streamed = options.mode == Mode::streamed;
    constexpr std::int64_t least_chunk = 1024;
    if (streamed && options.chunk_bytes < least_chunk) {
        throw Error(ErrorCode::usage,
                    fmt::format("chunks of {} bytes: a matrix is streamed in chunks of at least {} bytes",
                                options.chunk_bytes, least_chunk));
    }
    if (a.cols > std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage,
                    fmt::format("a matrix of {} columns: a device indexes at most {} columns in this version", a.cols,
                                std::numeric_limits<std::int32_t>::max()));
    }
    PartitionOptions split;
    split.strategy = options.strategy;
    // A row that is cut between devices is summed in another order than a whole one.
    split.alignment = options.determinism == Determinism::device_count ? RowAlignment::row : options.alignment;
    split.weights = runtime.options.weights;
    for (const auto& info : runtime.infos) {
        split.nodes.push_back(std::max(0, info.placement.node));
    }

    Plan plan;
    plan.rows = a.rows;
    plan.cols = a.cols;
    plan.nnz = a.nnz;
    plan.precision = sizeof(T) == 8 ? "double" : "float";
    plan.mode = streamed ? "streamed" : "resident";
    plan.transport = runtime.connection.name;
    plan.transport_reason = runtime.connection.reason;
    plan.partition = partition_csr(a.rows, a.cols, a.row_ptr, runtime.devices(), split);
    plan.nonzero_imbalance = plan.partition.imbalance(split.weights);
    const std::vector<double> limits = runtime.limits(options.mode);
    const std::vector<std::int64_t> slices = x_slices(plan);
    const bool shared = runtime.shared_memory() || runtime.devices() == 1;
    plan.exchange = "none";

    for (int i = 0; i < runtime.devices(); ++i) {
        const DeviceInfo& info = runtime.infos[static_cast<std::size_t>(i)];
        const PartialCsr& part = plan.partition.parts[static_cast<std::size_t>(i)];
        ShardPlan shard;
        shard.device = i;
        shard.device_name = fmt::format("{}:{} {}", to_string(info.kind), info.index, info.name);
        shard.placement = info.placement;
        shard.part = part;
        const RowStatistics rows = part_statistics(a.row_ptr, part);
        const kernels::SpmvKernel<T>& kernel =
            streamed ? choose_streamed_spmv<T>(info.kind, options.kernel, options.determinism, rows, a.cols)
                     : kernels::choose_spmv<T>(info.kind, options.kernel, options.determinism, rows, a.cols);
        shard.kernel = kernel.info.name;
        const ColumnRange columns = column_range(a, part);
        shard.first_column = columns.first;
        shard.end_column = columns.end;
        const std::int64_t own_first = std::max(columns.first, slices[static_cast<std::size_t>(i)]);
        const std::int64_t own_end = std::min(columns.end, slices[static_cast<std::size_t>(i) + 1]);
        shard.halo_entries = columns.end - columns.first - std::max<std::int64_t>(0, own_end - own_first);
        if (shard.halo_entries > 0 && !shared) {
            plan.exchange = "ranges";
        }
        const std::int64_t pointer_bytes = part.nnz() > std::numeric_limits<std::int32_t>::max() ? 8 : 4;
        const std::int64_t value_bytes = sizeof(T);
        shard.matrix_bytes = part.nnz() * (value_bytes + 4) + (part.rows() + 1) * pointer_bytes;
        shard.vector_bytes = (a.cols + part.rows()) * value_bytes;
        shard.apply_bytes =
            shard.matrix_bytes + (std::min(part.nnz(), columns.end - columns.first) + part.rows()) * value_bytes;
        if (streamed && info.kind == DeviceKind::cuda) {
            // Over the link: columns narrowed on the way, row pointers as they are.
            const auto caller_bytes = static_cast<std::int64_t>(a.row_ptr.element_bytes());
            shard.matrix_bytes = part.nnz() * (value_bytes + 4) + (part.rows() + 1) * caller_bytes;
            shard.apply_bytes = shard.matrix_bytes;
        }
        shard.limit_gbs = limits[static_cast<std::size_t>(i)];
        shard.predicted_seconds =
            shard.limit_gbs > 0 ? static_cast<double>(shard.apply_bytes) / (shard.limit_gbs * 1e9) : 0;
        plan.shards.push_back(std::move(shard));
    }
    return plan;
}

template Plan make_plan(const RuntimeState&, const CsrView<float>&, const DistributeOptions&);
template Plan make_plan(const RuntimeState&, const CsrView<double>&, const DistributeOptions&);

}  // namespace rmsp::detail
