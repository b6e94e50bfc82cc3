#include "runtime/plan/planner.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/spmv.hpp>

#include "core/device_kind.hpp"
#include "core/enumerator.hpp"
#include "core/value_names.hpp"
#include "runtime/plan/device_count.hpp"
#include "runtime/plan/merge.hpp"
#include "runtime/plan/predict.hpp"
#include "runtime/plan/rank_kernels.hpp"
#include "runtime/plan/sides.hpp"
#include "runtime/plan/split_at.hpp"
#include "runtime/plan/streamed_kernels.hpp"

namespace rmsp::plan {
namespace {

using transport::Range;

Range extent(kernels::ColumnReader& indices, const PartialCsr& part)
{
    const kernels::IndexRange touched = indices.extent({part.start_idx, part.nnz()});
    return {touched.first, touched.end};
}

/// From the least to the largest of a part's columns: what it needs of x, exactly for a band, a bound otherwise.
template <class T>
Range touched_columns(const Stored<T>& a, kernels::ColumnReader& columns, const PartialCsr& part)
{
    if (a.only_on_device() || (a.columns_on_devices && part.nnz() == a.nnz)) {
        return part.nnz() > 0 ? Range{0, a.cols} : Range{};
    }
    return extent(columns, part);
}

template <class T>
RowStatistics part_statistics(const Stored<T>& a, const PartialCsr& part)
{
    if (part.owned_rows() == 0) {
        return {};
    }
    if (a.only_on_device()) {
        return a.device_rows;
    }
    const auto view = a.row_ptr.visit([&](const auto* p) { return IndexView(p + part.first_owned_row()); });
    return row_statistics(part.owned_rows(), view);
}

template <class T>
Partition split_stored(const Stored<T>& a, int devices, const PartitionOptions& options, UnsortedCoo unsorted)
{
    if (a.only_on_device()) {
        if (devices != 1) {
            throw Error(ErrorCode::usage,
                        fmt::format("a matrix that one device has cannot be split between {}", devices));
        }
        const int node = options.nodes.empty() ? 0 : options.nodes.front();
        return {a.rows, a.cols, a.nnz, {{node, 0, 1, 0, a.nnz}}, {{0, a.nnz, 0, a.rows, false}}};
    }
    if (!a.sampled_entries.empty()) {
        return split_at_samples(a.rows, a.cols, a.sampled_entries, a.sampled_rows, devices, options);
    }
    if (!a.first_rows.empty()) {
        return split_at(a.rows, a.cols, a.row_ptr, a.first_rows, a.first_entries, options.nodes);
    }
    if (!a.coordinates) {
        return partition_csr(a.rows, a.cols, a.row_ptr, devices, options);
    }
    PartitionCoo coo = partition_coo(a.rows, a.cols, a.nnz, a.row_idx, a.col_idx, devices, options, unsorted);
    Partition result{a.rows, a.cols, a.nnz, std::move(coo.nodes), {}};
    for (const PartialCoo& part : coo.parts) {
        result.parts.push_back({part.start_idx, part.end_idx, part.start_row, part.end_row, part.start_flag});
    }
    return result;
}

/// Whether columns, or coordinates that are not sorted by row, are sorted on the device when the matrix is distributed,
/// where a kernel sorts: a product takes half of the time then, in a fixed order, which has repaid the sort after 16 to
/// 47 applies (H200; R-MAT, stencil).
bool sorting_pays(const DistributeOptions& options)
{
    constexpr std::int64_t break_even = 50;
    return options.kernel == "auto" && options.mode == Mode::resident &&
           (options.expected_applies == 0 || options.expected_applies >= break_even);
}

/// The name of the kernel for one device's part where there is no ranking: of streamed rows, of columns and of
/// coordinates.
template <class T>
std::string kernel_name(DeviceKind kind, const Stored<T>& a, const RowStatistics& rows,
                        const DistributeOptions& options)
{
    if (!a.coordinates && a.transposed) {
        if (sorting_pays(options)) {
            const std::string sorting = kernels::first_that_sorts(kernels::spmv_csc_kernels<T>(), kind, true);
            return kernels::choose_spmv_csc<T>(kind, sorting, options.determinism).info.name;
        }
        return options.mode == Mode::streamed && !core::shares_host_memory(kind)
                   ? choose_streamed_csc<T>(kind, options.kernel, options.determinism).info.name
                   : kernels::choose_spmv_csc<T>(kind, options.kernel, options.determinism).info.name;
    }
    if (a.coordinates) {
        const bool in_place =
            core::shares_host_memory(kind) && a.row_idx.type() == IndexType::i32 && a.col_idx.type() == IndexType::i32;
        const CooOrder order = a.transposed ? CooOrder::by_column : a.order;
        if (order != CooOrder::by_row && sorting_pays(options)) {
            const std::string sorting = kernels::first_that_sorts(kernels::spmv_coo_kernels<T>(), kind, true);
            return kernels::choose_spmv_coo<T>(kind, sorting, options.determinism, order).info.name;
        }
        return options.mode == Mode::streamed && !in_place
                   ? choose_streamed_coo<T>(kind, options.kernel, options.determinism, order).info.name
                   : kernels::choose_spmv_coo<T>(kind, options.kernel, options.determinism, order).info.name;
    }
    return choose_streamed_spmv<T>(kind, options.kernel, options.determinism, rows, a.cols).info.name;
}

constexpr std::int64_t most_indices = std::numeric_limits<std::int32_t>::max();

void check_width(const char* what, std::int64_t size)
{
    if (size > most_indices) {
        throw Error(ErrorCode::usage, fmt::format("a matrix of {} {}: streamed, or in coordinates, it has at most {}",
                                                  size, what, most_indices));
    }
}

/// How the device counts the columns of its part of M: 64-bit ones, which are narrowed on the way, from about the first
/// that the part touches, so that the matrix may have more than fit in 32 bits.
template <class T>
void number_columns(ShardPlan& shard, const Stored<T>& a, const Range& touched, bool streamed)
{
    shard.index_base = 0;
    shard.indices = std::min(a.cols, most_indices);
    if (streamed || a.coordinates || a.columns_on_devices || a.col_idx.type() == IndexType::i32) {
        return;
    }
    // x begins there, aligned as it is.
    constexpr std::int64_t line = 32;
    shard.index_base = touched.first / line * line;
    shard.indices = touched.end - shard.index_base;
    const char* const what = a.transposed ? "rows" : "columns";
    if (shard.indices > most_indices) {
        throw Error(
            ErrorCode::usage,
            fmt::format("a matrix of {} {}: the part of device {} has entries in {} {} to {}, and a device numbers "
                        "at most {} of them",
                        a.cols, what, shard.device, what, touched.first, touched.end - 1, most_indices));
    }
    if (shard.part.owned_rows() > most_indices) {
        throw Error(
            ErrorCode::usage,
            fmt::format("a matrix of {} {}: the part of device {} has {} of them, and a device takes at most {}: "
                        "use more devices",
                        a.rows, a.transposed ? "columns" : "rows", shard.device, shard.part.owned_rows(),
                        most_indices));
    }
}

void require_enumerators(const DistributeOptions& options)
{
    using core::require_enumerator;
    require_enumerator("DistributeOptions::strategy", options.strategy, PartitionStrategy::rows);
    require_enumerator("DistributeOptions::alignment", options.alignment, RowAlignment::row);
    require_enumerator("DistributeOptions::balance", options.balance, Balance::time);
    require_enumerator("DistributeOptions::row_pointers", options.row_pointers, RowPointers::host);
    require_enumerator("DistributeOptions::values", options.values, StoredValues::floats);
    require_enumerator("DistributeOptions::unsorted", options.unsorted, Unsorted::split);
    require_enumerator("DistributeOptions::exchange", options.exchange, Exchange::entries);
    require_enumerator("DistributeOptions::x_layout", options.x_layout, Layout::replicated);
    require_enumerator("DistributeOptions::determinism", options.determinism, Determinism::device_count);
    require_enumerator("DistributeOptions::mode", options.mode, Mode::streamed);
    require_enumerator("DistributeOptions::encoding", options.encoding, StreamEncoding::automatic);
    require_enumerator("DistributeOptions::coordinates", options.coordinates, StreamCoordinates::indices);
    require_enumerator("DistributeOptions::placement", options.placement, StreamPlacement::keep);
}

/// \throws Error(usage) for options that are wrong, or do not fit the matrix
template <class T>
void check_options(const detail::RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options)
{
    require_enumerators(options);
    const bool streamed = options.mode == Mode::streamed;
    if (streamed && options.chunk_bytes != 0 && options.chunk_bytes < least_chunk_bytes) {
        throw Error(
            ErrorCode::usage,
            fmt::format("chunks of {} bytes: a matrix is streamed in chunks of at least {} bytes, or of 0, which "
                        "chooses",
                        options.chunk_bytes, least_chunk_bytes));
    }
    if (options.expected_applies < 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("kernel.expected_applies: {} is not at least 0", options.expected_applies));
    }
    if (options.device_bytes < 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("a streamed matrix may take {} bytes of each device's memory: at least 1, or 0 for all "
                                "there is",
                                options.device_bytes));
    }
    if (options.balance == Balance::time && !can_move_cuts(a.format, options)) {
        throw Error(ErrorCode::usage, "parts of equal time are for a resident matrix in CSR that is split by nonzeros");
    }
    if (options.balance == Balance::time && options.determinism == Determinism::run) {
        throw Error(ErrorCode::usage,
                    "parts of equal time may differ from one process to the next, and the bits of a result with them: "
                    "determinism \"run\" needs parts of equal nonzeros");
    }
    if (options.values == StoredValues::floats && (streamed || options.borrow || a.format != Format::csr)) {
        throw Error(ErrorCode::usage, fmt::format("values are rounded to floats on their way to the devices: resident "
                                                  "CSR that is not borrowed only, not {}",
                                                  streamed         ? "streamed"
                                                  : options.borrow ? "borrowed"
                                                                   : to_string(a.format)));
    }
    if (streamed && !a.coordinates && a.transposed && runtime.shared_memory() && a.col_idx.type() != IndexType::i32) {
        throw Error(ErrorCode::usage,
                    "streamed columns are multiplied in place by host devices, which takes 32-bit row indices");
    }
    if (options.exchange == Exchange::entries && a.cols > most_indices) {
        throw Error(ErrorCode::usage,
                    fmt::format("an x of {} entries is exchanged by ranges: by entries it has at most {}", a.cols,
                                most_indices));
    }
    if (streamed || a.coordinates) {
        check_width(a.transposed ? "rows" : "columns", a.cols);
    }
    if (a.coordinates) {
        check_width(a.transposed ? "columns" : "rows", a.rows);
    }
}

/// How many devices get a part, with the reason where they are not all.
template <class T>
std::pair<int, std::string> used_devices(const detail::RuntimeState& runtime, const Stored<T>& a,
                                         const DistributeOptions& options)
{
    const int all = runtime.devices();
    if (options.devices < 0 || options.devices > all) {
        throw Error(ErrorCode::usage,
                    fmt::format("partition.devices: parts for {} devices; the runtime has {}", options.devices, all));
    }
    if (options.mode == Mode::streamed) {
        return {all, ""};
    }
    if (options.devices > 0) {
        return {options.devices, options.devices < all ? "as asked for" : ""};
    }
    const std::string& named = runtime.options.devices;  // "shared:" is for trying what happens between many
    const bool all_get_a_part = a.on_what_pays ? named.starts_with("shared:") : named != "auto";
    if (a.coordinates || a.transposed || all_get_a_part || runtime.shared_memory() || all == 1) {
        return {all, ""};
    }
    const double bytes = static_cast<double>(a.nnz) * (sizeof(T) + sizeof(std::int32_t)) +
                         static_cast<double>(a.rows) * (sizeof(std::int32_t) + 2 * sizeof(T));
    const double gbs = runtime.limits(options.mode).front();
    const double exchange = options.x_layout == Layout::replicated ? 0.0 : exchange_latency(runtime);
    const int fastest = plan::fastest_device_count(bytes, all, gbs, exchange);
    const auto micros = [&](int devices) { return 1e6 * plan::apply_seconds(bytes, devices, gbs, exchange); };
    return {fastest, fastest < all ? fmt::format("an apply with x {} would take {:.1f} us more on {} than on {}",
                                                 options.x_layout == Layout::replicated ? "replicated" : "by rows",
                                                 micros(all) - micros(fastest), all, fastest)
                                   : ""};
}

/// Whether kernels are ranked by what rows and columns are; else kernel_name() says which one it is.
template <class T>
bool ranks_kernels(const Plan& plan, const Stored<T>& a)
{
    return plan.mode == "resident" && multiplies_by_rows(plan, false) && !a.coordinates && !a.only_on_device() &&
           !a.by_lengths;
}

/// Each kernel sums a row in its own order: for the same bits on any number of devices all parts have the one that
/// suits the whole matrix.
template <class T>
void choose_by_all_rows(Plan& plan, const detail::RuntimeState& runtime, const Stored<T>& a,
                        const DistributeOptions& options)
{
    const RowStatistics all = row_statistics(a.rows, a.row_ptr);
    for (ShardPlan& shard : plan.shards) {
        const DeviceKind kind = runtime.infos[static_cast<std::size_t>(shard.device)].kind;
        shard.kernel = kernels::choose_spmv<T>(kind, options.kernel, options.determinism, all, a.cols).info.name;
        shard.kernel_reason = "suits all rows, on any number of devices";
    }
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

/// The links carry row pointers as well as nonzeros: parts of equal bytes, by weights that make up for how they differ.
/// Few rounds do, as a part's bytes a nonzero change little when its ends move.
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

/// What is known of device i's part before anything is looked at.
ShardPlan begin_shard(const detail::RuntimeState& runtime, const PartialCsr& part, std::int64_t cols, double limit_gbs,
                      int i)
{
    const DeviceInfo& info = runtime.infos[static_cast<std::size_t>(i)];
    ShardPlan shard;
    shard.device = i;
    shard.device_name = engine::label_of(info);
    shard.placement = info.placement;
    shard.part = part;
    shard.indices = std::min(cols, most_indices);
    shard.limit_gbs = limit_gbs;
    return shard;
}

}  // namespace

template <class T>
void plan_shard(ShardPlan& shard, const Plan& plan, const detail::RuntimeState& runtime, const Stored<T>& a,
                const DistributeOptions& options, kernels::ColumnReader& indices, const RowStatistics* lengths)
{
    const auto at = static_cast<std::size_t>(shard.device);
    const bool streamed = options.mode == Mode::streamed;
    const DeviceInfo& info = runtime.infos[at];
    const PartialCsr& part = plan.partition.parts[at];
    const std::vector<std::int64_t> slices = column_slices(plan, a);
    Range rows{part.start_row, part.end_row};
    if (part.nnz() == 0) {
        rows = {};
    } else if (a.order == CooOrder::unsorted) {
        kernels::HostColumns of_rows(a.row_idx);
        rows = extent(of_rows, part);
    }
    const Range columns = touched_columns(a, indices, part);
    shard.first_column = a.transposed ? rows.first : columns.first;
    shard.end_column = a.transposed ? rows.end : columns.end;
    shard.first_row = a.transposed ? columns.first : rows.first;
    shard.end_row = a.transposed ? columns.end : rows.end;
    number_columns(shard, a, columns, streamed);
    if (multiplies_by_rows(plan, false)) {
        const std::int64_t own_first = std::max(columns.first, slices[at]);
        const std::int64_t own_end = std::min(columns.end, slices[at + 1]);
        shard.halo_entries = columns.end - columns.first - std::max<std::int64_t>(0, own_end - own_first);
    }
    const std::int64_t pointer_bytes = part.nnz() > std::numeric_limits<std::int32_t>::max() ? 8 : 4;
    const std::int64_t value_bytes = sizeof(T);
    shard.matrix_bytes = part.nnz() * (value_bytes + 4) +
                         (a.coordinates ? part.nnz() * std::int64_t{4} : (part.rows() + 1) * pointer_bytes);
    shard.vector_bytes = (a.cols + part.rows()) * value_bytes;
    shard.apply_bytes =
        shard.matrix_bytes + (std::min(part.nnz(), columns.end - columns.first) + part.rows()) * value_bytes;
    if (streamed && !core::shares_host_memory(info.kind)) {
        // Over the link: columns narrowed on the way, row pointers as they are.
        if (!a.coordinates) {
            const auto caller_bytes = static_cast<std::int64_t>(a.row_ptr.element_bytes());
            shard.matrix_bytes = part.nnz() * (value_bytes + 4) + (part.rows() + 1) * caller_bytes;
        }
        shard.apply_bytes = shard.matrix_bytes;
    }
    const RowStatistics row_lengths = lengths != nullptr              ? *lengths
                                      : a.coordinates || a.transposed ? RowStatistics{}
                                                                      : part_statistics(a, part);
    if (!ranks_kernels(plan, a)) {
        shard.kernel = kernel_name(info.kind, a, row_lengths, options);
    } else if (shard.kernel.empty()) {
        rank_kernels(shard, runtime, a, indices, options, row_lengths, part.first_owned_row());
    }
}

template <class T>
Plan begin_plan(const detail::RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options,
                const std::vector<double>& weights, double* split_seconds)
{
    check_options(runtime, a, options);
    const bool streamed = options.mode == Mode::streamed;
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
    const std::vector<double> fair = split.weights;
    if (!weights.empty()) {
        split.weights = weights;
    }
    plan.rows = a.transposed ? a.cols : a.rows;
    plan.cols = a.transposed ? a.rows : a.cols;
    plan.nnz = a.nnz;
    plan.format = a.format;
    plan.order = a.transposed ? CooOrder::by_column : a.order;
    plan.precision = core::value_name<T>;
    plan.expected_applies = options.expected_applies;
    plan.mode = streamed ? "streamed" : "resident";
    plan.transport = runtime.transport_name();
    plan.transport_reason = runtime.transport_reason();
    plan.links = runtime.links;
    const auto begin = std::chrono::steady_clock::now();
    plan.partition = split_stored(a, plan.devices, split,
                                  options.unsorted == Unsorted::split ? UnsortedCoo::split : UnsortedCoo::refuse);
    if (streamed && !a.coordinates && !runtime.shared_memory() && options.strategy == PartitionStrategy::nonzeros) {
        plan.partition = balance_bytes(std::move(plan.partition), a, split);
    }
    if (split_seconds != nullptr) {
        *split_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    plan.nonzero_imbalance = plan.partition.imbalance(fair);
    add_empty_parts(plan.partition, nodes);
    const std::vector<double> limits = runtime.limits(options.mode);
    for (int i = 0; i < runtime.devices(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        plan.shards.push_back(begin_shard(runtime, plan.partition.parts[at], a.cols, limits[at], i));
    }
    if (options.determinism == Determinism::device_count && options.kernel == "auto" && ranks_kernels(plan, a)) {
        choose_by_all_rows(plan, runtime, a, options);
    }
    return plan;
}

template <class T>
void finish_plan(Plan& plan, const detail::RuntimeState& runtime, const DistributeOptions& options)
{
    const bool shared = runtime.shared_memory() || plan.devices == 1;
    const bool gets = std::any_of(plan.shards.begin(), plan.shards.end(),
                                  [](const ShardPlan& shard) { return shard.halo_entries > 0; });
    plan.exchange = gets && !shared ? "ranges" : "none";
    const MergePlan merge =
        plan_merge(runtime, options, transposed(plan) ? column_side(plan) : row_side(plan), sizeof(T));
    if (!multiplies_by_rows(plan, false)) {
        plan.merge = merge.name;
        plan.merge_bytes = merge.bytes;
        plan.merge_seconds = merge.seconds;
    }
    predict(plan, runtime, options.x_layout);
}

template <class T>
Plan make_plan(const detail::RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options,
               const std::vector<double>& weights, double* split_seconds)
{
    Plan plan = begin_plan(runtime, a, options, weights, split_seconds);
    kernels::HostColumns columns(a.col_idx);
    for (ShardPlan& shard : plan.shards) {
        plan_shard(shard, plan, runtime, a, options, columns, nullptr);
    }
    finish_plan<T>(plan, runtime, options);
    return plan;
}

#define RMSP_INSTANTIATE(T)                                                                           \
    template Plan begin_plan(const detail::RuntimeState&, const Stored<T>&, const DistributeOptions&, \
                             const std::vector<double>&, double*);                                    \
    template void plan_shard(ShardPlan&, const Plan&, const detail::RuntimeState&, const Stored<T>&,  \
                             const DistributeOptions&, kernels::ColumnReader&, const RowStatistics*); \
    template void finish_plan<T>(Plan&, const detail::RuntimeState&, const DistributeOptions&);       \
    template Plan make_plan(const detail::RuntimeState&, const Stored<T>&, const DistributeOptions&,  \
                            const std::vector<double>&, double*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::plan
