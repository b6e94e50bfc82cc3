#include "runtime/plan/rank_kernels.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include <kernels/spmv/choose/meshes.hpp>
#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/version.hpp>

namespace rmsp::plan {
namespace {

/// Of what the choice depends on: matrix, precision, how well values compress, device and build. Of the structure it
/// takes a sample, since a wrong kernel costs time, not correctness.
template <class T>
std::uint64_t structure_of(const ShardPlan& shard, const CsrView<T>& a, kernels::ColumnReader& columns,
                           const kernels::Features& features)
{
    const std::string where = fmt::format("{} {} {} {} {} {} {} {} {:.1f} {:d} {:d}", version(), commit(),
                                          shard.device_name, a.rows, a.cols, shard.part.start_idx, shard.part.end_idx,
                                          sizeof(T), features.stored_value_bytes, features.floats, features.constant);
    std::uint64_t hash = engine::fingerprint(where);
    // By words: byte by byte, as fingerprint() goes, thousands of them take longer than the choice.
    const auto add = [&hash](std::int64_t word) {
        constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
        hash = (hash ^ static_cast<std::uint64_t>(word)) * golden;
        hash ^= hash >> 32U;
    };
    const std::int64_t samples = columns.sample().entries / 2;  // each of row pointers and columns
    const auto step_of = [&](std::int64_t count) { return std::max<std::int64_t>(1, count / samples); };
    const std::int64_t row_step = step_of(shard.part.rows());
    for (std::int64_t i = 0; i < shard.part.rows(); i += row_step) {
        add(a.row_ptr[shard.part.start_row + i]);
    }
    const std::int64_t step = step_of(shard.part.nnz());
    for (const std::int64_t column : columns.spread(shard.part.start_idx, step, (shard.part.nnz() + step - 1) / step)) {
        add(column);
    }
    return hash;
}

KernelCandidate* find(std::vector<KernelCandidate>& candidates, const std::string& kernel)
{
    const auto it = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const KernelCandidate& c) { return c.kernel == kernel; });
    return it == candidates.end() ? nullptr : &*it;
}

/// Times of an earlier race, if there was one between candidates of now; its winner then comes first.
bool recall(ShardPlan& shard, const engine::Cache& cache)
{
    const auto text = cache.read(race_cache_name(shard));
    if (!text) {
        return false;
    }
    std::istringstream words(*text);
    std::vector<KernelCandidate> timed;
    std::string kernel;
    double seconds = 0;
    while (words >> kernel >> seconds) {
        const KernelCandidate* known = find(shard.candidates, kernel);
        if (known == nullptr || !(seconds > 0)) {
            return false;
        }
        timed.push_back(*known);
        timed.back().measured_seconds = seconds;
    }
    if (timed.empty()) {
        return false;
    }
    for (const KernelCandidate& candidate : shard.candidates) {
        if (find(timed, candidate.kernel) == nullptr) {
            timed.push_back(candidate);
        }
    }
    shard.candidates = std::move(timed);
    return true;
}

/// What a thread of a server reads, while the limit of its device has not been measured.
constexpr double host_thread_bytes_per_second = 1e10;

/// Names of the kernels that read 4 bytes a value of such matrices of doubles.
std::string that_keep_floats(DeviceKind kind)
{
    std::string names;
    for (const auto& kernel : kernels::spmv_kernels<double>()) {
        if (kernel.info.device == kind && kernel.info.keeps_floats) {
            names += (names.empty() ? "" : ", ") + kernel.info.name;
        }
    }
    return names;
}

}  // namespace

double break_even(std::vector<KernelCandidate> candidates, const std::string& kernel)
{
    const KernelCandidate* const chosen = find(candidates, kernel);
    if (chosen == nullptr || !chosen->own_format) {
        return 0;
    }
    const KernelCandidate* other = nullptr;
    for (const KernelCandidate& c : candidates) {
        if (!c.own_format && (other == nullptr || c.predicted_seconds < other->predicted_seconds)) {
            other = &c;
        }
    }
    if (other == nullptr) {
        return 0;
    }
    const bool measured = chosen->measured_seconds > 0 && other->measured_seconds > 0;
    const double gain = measured ? other->measured_seconds - chosen->measured_seconds
                                 : other->predicted_seconds - chosen->predicted_seconds;
    return gain > 0 ? chosen->prepare_seconds / gain : 0;
}

std::string race_cache_name(const ShardPlan& shard) { return fmt::format("kernel-{:016x}", shard.structure); }

template <class T>
void rank_kernels(ShardPlan& shard, const detail::RuntimeState& runtime, const CsrView<T>& a,
                  kernels::ColumnReader& columns, const DistributeOptions& options, const RowStatistics& rows,
                  std::int64_t first_row)
{
    const DeviceInfo& info = runtime.infos[static_cast<std::size_t>(shard.device)];
    if (options.kernel != "auto") {
        const auto& kernel =
            kernels::choose_spmv<T>(info.kind, options.kernel, options.determinism, rows, shard.indices);
        if (options.values == StoredValues::floats && !kernel.info.keeps_floats) {
            throw Error(ErrorCode::usage,
                        fmt::format("SpMV kernel \"{}\" keeps {}-byte values: those of {} devices that keep floats for "
                                    "products in double precision are {}",
                                    options.kernel, sizeof(T), to_string(info.kind), that_keep_floats(info.kind)));
        }
        shard.kernel = kernel.info.name;
        shard.kernel_reason = "asked for";
        return;
    }
    const auto eligible = kernels::automatic_spmv<T>(info.kind, options.determinism, rows, shard.indices);
    if (eligible.size() == 1 || rows.nnz == 0) {
        shard.kernel = eligible.front()->info.name;
        shard.kernel_reason = "nothing else suits";
        return;
    }
    const auto row_ptr = a.row_ptr.visit([&](const auto* p) { return IndexView(p + first_row); });
    const bool floats = options.values == StoredValues::floats;
    kernels::Features features = kernels::spmv_features(
        rows, row_ptr, shard.indices, shard.end_column - shard.first_column, columns, static_cast<int>(sizeof(T)),
        a.values == nullptr ? kernels::ValueAt{} : [&](std::int64_t i) {
            const T value = a.values[i];
            return static_cast<double>(floats ? static_cast<T>(static_cast<float>(value)) : value);
        },
        columns.sample());
    if (kernels::numbered_badly(features) || kernels::blocks_numbered_badly(features, sizeof(T))) {
        features.two_step_columns = kernels::two_step_columns(rows, row_ptr, first_row, columns);
    }
    kernels::DeviceModel device;
    if (shard.limit_gbs > 0) {
        device.bytes_per_second = shard.limit_gbs * 1e9;
    } else if (info.kind == DeviceKind::host) {
        device.bytes_per_second = host_thread_bytes_per_second * std::max(1, info.compute_units);
    }
    for (const auto* kernel : eligible) {
        if (!kernel->suits(features)) {
            continue;
        }
        constexpr int value_bytes = sizeof(T);
        const kernels::Prediction p =
            kernels::predict(kernel->work(features, value_bytes), features, value_bytes, device);
        const bool own_format = !kernel->info.streams;
        shard.candidates.push_back(
            {kernel->info.name, own_format, p.bytes, p.seconds, 0, own_format ? p.prepare_seconds : 0});
    }
    const auto cost = [&](const KernelCandidate& c) {
        const auto applies = static_cast<double>(options.expected_applies);
        return c.predicted_seconds + (applies > 0 ? c.prepare_seconds / applies : 0);
    };
    std::stable_sort(shard.candidates.begin(), shard.candidates.end(),
                     [&](const auto& first, const auto& second) { return cost(first) < cost(second); });
    shard.kernel_reason = "predicted";
    // A remembered winner could differ from one process to the next, and its bits with it.
    if (options.determinism == Determinism::none) {
        shard.structure = structure_of(shard, a, columns, features);
        if (recall(shard, runtime.cache)) {
            shard.kernel_reason = "won a race before";
        }
    }
    shard.kernel = shard.candidates.front().kernel;
    shard.break_even_applies = break_even(shard.candidates, shard.kernel);
}

#define RMSP_INSTANTIATE(T)                                                                                        \
    template void rank_kernels(ShardPlan&, const detail::RuntimeState&, const CsrView<T>&, kernels::ColumnReader&, \
                               const DistributeOptions&, const RowStatistics&, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::plan
