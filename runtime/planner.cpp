#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/choose.hpp"
#include "runtime/device_count.hpp"
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

/// How many devices get a part, with the reason where they are not all.
template <class T>
std::pair<int, std::string> used_devices(const RuntimeState& runtime, const CsrView<T>& a,
                                         const DistributeOptions& options)
{
    const int all = runtime.devices();
    if (options.devices < 0 || options.devices > all) {
        throw Error(ErrorCode::usage, fmt::format("parts for {} devices; the runtime has {}", options.devices, all));
    }
    if (options.mode == Mode::streamed) {
        return {all, ""};
    }
    if (options.devices > 0) {
        return {options.devices, options.devices < all ? "as asked for" : ""};
    }
    if (runtime.options.devices != "auto" || runtime.shared_memory() || all == 1) {
        return {all, ""};
    }
    const double bytes = static_cast<double>(a.nnz) * (sizeof(T) + sizeof(std::int32_t)) +
                         static_cast<double>(a.rows) * (sizeof(std::int32_t) + 2 * sizeof(T));
    const double gbs = runtime.limits(options.mode).front();
    const bool peers = runtime.connection.name == "peer" || runtime.connection.name == "unknown";
    const double exchange = options.x_layout == Layout::replicated ? 0.0
                            : peers                                ? runtime::apply_costs.exchange_by_peers
                                                                   : runtime::apply_costs.exchange_by_copies;
    const int fastest = runtime::fastest_device_count(bytes, all, gbs, exchange);
    const auto micros = [&](int devices) { return 1e6 * runtime::apply_seconds(bytes, devices, gbs, exchange); };
    return {fastest, fastest < all ? fmt::format("an apply with x {} would take {:.1f} us more on {} than on {}",
                                                 options.x_layout == Layout::replicated ? "replicated" : "by rows",
                                                 micros(all) - micros(fastest), all, fastest)
                                   : ""};
}

/// Empty parts for the devices behind the used ones.
void add_empty_parts(Partition& partition, const std::vector<int>& nodes)
{
    for (std::size_t i = partition.parts.size(); i < nodes.size(); ++i) {
        partition.parts.push_back({partition.nnz, partition.nnz, partition.rows, partition.rows, false});
        if (partition.nodes.back().node != nodes[i]) {
            const int part = static_cast<int>(i);
            partition.nodes.push_back({nodes[i], part, part, partition.nnz, partition.nnz});
        }
        partition.nodes.back().end_part = static_cast<int>(i) + 1;
    }
}

/// The links carry row pointers as well as nonzeros: parts of equal bytes, by weights that make up for how they differ. Few rounds
/// do, as a part's bytes a nonzero change little when its ends move.
template <class T>
Partition balance_bytes(Partition partition, const CsrView<T>& a, PartitionOptions split)
{
    constexpr int rounds = 4;
    const std::size_t devices = partition.parts.size();
    const std::vector<double> shares = split.weights.empty() ? std::vector<double>(devices, 1.0) : split.weights;
    split.weights = shares;
    const auto pointer_bytes = static_cast<double>(a.row_ptr.element_bytes());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < devices; ++i) {
            const PartialCsr& part = partition.parts[i];
            const double entries = static_cast<double>(part.nnz()) * (sizeof(T) + sizeof(std::int32_t));
            const double bytes = entries + static_cast<double>(part.rows()) * pointer_bytes;
            split.weights[i] = entries > 0 ? shares[i] * entries / bytes : shares[i];
        }
        partition = partition_csr(a.rows, a.cols, a.row_ptr, static_cast<int>(devices), split);
    }
    return partition;
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
    if (plan.rows == plan.cols) {
        return row_slices(plan);
    }
    std::vector<std::int64_t> slices = even_slices(plan.cols, plan.devices);
    slices.resize(plan.partition.parts.size() + 1, plan.cols);
    return slices;
}

template <class T>
Plan make_plan(const RuntimeState& runtime, const CsrView<T>& a, const DistributeOptions& options,
               double* split_seconds)
{
    const bool streamed = options.mode == Mode::streamed;
    if (streamed && options.chunk_bytes < least_chunk_bytes) {
        throw Error(ErrorCode::usage,
                    fmt::format("chunks of {} bytes: a matrix is streamed in chunks of at least {} bytes",
                                options.chunk_bytes, least_chunk_bytes));
    }
    if (options.device_bytes < 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("a streamed matrix may take {} bytes of each device's memory: at least 1, or 0 for all "
                                "there is",
                                options.device_bytes));
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
    std::vector<int> nodes;
    for (const auto& info : runtime.infos) {
        nodes.push_back(std::max(0, info.placement.node));
    }

    Plan plan;
    std::tie(plan.devices, plan.devices_reason) = used_devices(runtime, a, options);
    split.nodes.assign(nodes.begin(), nodes.begin() + plan.devices);
    split.weights.resize(split.weights.empty() ? 0 : static_cast<std::size_t>(plan.devices));
    plan.rows = a.rows;
    plan.cols = a.cols;
    plan.nnz = a.nnz;
    plan.precision = sizeof(T) == 8 ? "double" : "float";
    plan.mode = streamed ? "streamed" : "resident";
    plan.transport = runtime.connection.name;
    plan.transport_reason = runtime.connection.reason;
    const auto begin = std::chrono::steady_clock::now();
    plan.partition = partition_csr(a.rows, a.cols, a.row_ptr, plan.devices, split);
    if (streamed && !runtime.shared_memory() && options.strategy == PartitionStrategy::nonzeros) {
        plan.partition = balance_bytes(std::move(plan.partition), a, split);
    }
    if (split_seconds != nullptr) {
        *split_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    plan.nonzero_imbalance = plan.partition.imbalance(split.weights);
    add_empty_parts(plan.partition, nodes);
    const std::vector<double> limits = runtime.limits(options.mode);
    const std::vector<std::int64_t> slices = x_slices(plan);
    const bool shared = runtime.shared_memory() || plan.devices == 1;
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
        if (streamed) {
            shard.kernel =
                choose_streamed_spmv<T>(info.kind, options.kernel, options.determinism, rows, a.cols).info.name;
        } else {
            rank_kernels(shard, runtime, a, options, rows, part.first_owned_row());
        }
        plan.shards.push_back(std::move(shard));
    }
    return plan;
}

template Plan make_plan(const RuntimeState&, const CsrView<float>&, const DistributeOptions&, double*);
template Plan make_plan(const RuntimeState&, const CsrView<double>&, const DistributeOptions&, double*);

}  // namespace rmsp::detail
