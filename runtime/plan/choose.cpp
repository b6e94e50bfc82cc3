#include "runtime/plan/choose.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>

#include <fmt/format.h>

#include <kernels/spmv/choose/model.hpp>
#include <rmsp/version.hpp>

namespace rmsp::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Fewer applies do not repay that a second kernel is made ready.
constexpr std::int64_t least_raced_applies = 100;
// A kernel that is predicted to take longer than this, in times of the best, is not raced.
constexpr double most_predicted_ratio = 1.5;
// Nor is one that, if it loses, costs more than this share of the expected applies: its preparation, and the applies that it
// runs.
constexpr double most_race_share = 0.125;
// Reasons for a kernel.
constexpr const char* won = "won the race";
constexpr const char* won_in_order = "won the race with vectors in the kernel's order";

/// Of what the choice depends on: matrix, precision, how well values compress, device and build. Of the structure it takes a sample, since
/// a wrong kernel costs time, not correctness.
template <class T>
std::uint64_t structure_of(const ShardPlan& shard, const CsrView<T>& a, const kernels::Features& features)
{
    const std::string where = fmt::format("{} {} {} {} {} {} {} {} {:.1f} {:d} {:d}", version(), commit(),
                                          shard.device_name, a.rows, a.cols, shard.part.start_idx, shard.part.end_idx,
                                          sizeof(T), features.stored_value_bytes, features.floats, features.constant);
    std::uint64_t hash = engine::fingerprint(where);
    constexpr std::int64_t samples = 4096;
    const auto add = [&](IndexView indices, std::int64_t first, std::int64_t count) {
        const std::int64_t step = std::max<std::int64_t>(1, count / samples);
        for (std::int64_t i = 0; i < count; i += step) {
            const std::int64_t value = indices[first + i];
            hash = engine::fingerprint(std::span(&value, 1), hash);
        }
    };
    add(a.row_ptr, shard.part.start_row, shard.part.rows());
    add(a.col_idx, shard.part.start_idx, shard.part.nnz());
    return hash;
}

std::string cache_name(const ShardPlan& shard) { return fmt::format("kernel-{:016x}", shard.structure); }

KernelCandidate* find(std::vector<KernelCandidate>& candidates, const std::string& kernel)
{
    const auto it = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const KernelCandidate& c) { return c.kernel == kernel; });
    return it == candidates.end() ? nullptr : &*it;
}

/// Times of an earlier race, if there was one between candidates of now; its winner then comes first.
bool recall(ShardPlan& shard, const engine::Cache& cache)
{
    const auto text = cache.read(cache_name(shard));
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

/// Whether what the second candidate may gain is worth that it is made ready and raced.
template <class T>
bool worth_a_race(const std::vector<KernelCandidate>& candidates, std::int64_t applies)
{
    if (candidates.size() < 2 || applies < least_raced_applies) {
        return false;
    }
    const double favourite = candidates[0].predicted_seconds;
    const KernelCandidate& challenger = candidates[1];
    const double cost = challenger.prepare_seconds + detail::Race<T>::applies / 2 * challenger.predicted_seconds;
    return challenger.predicted_seconds < most_predicted_ratio * favourite &&
           cost <= most_race_share * static_cast<double>(applies) * favourite;
}

/// Applies after which the format of the chosen kernel has paid for itself; 0 where nothing was converted, or it never does.
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

}  // namespace

template <class T>
void rank_kernels(ShardPlan& shard, const RuntimeState& runtime, const CsrView<T>& a, const DistributeOptions& options,
                  const RowStatistics& rows, std::int64_t first_row)
{
    const DeviceInfo& info = runtime.infos[static_cast<std::size_t>(shard.device)];
    if (options.kernel != "auto") {
        const auto& kernel =
            kernels::choose_spmv<T>(info.kind, options.kernel, options.determinism, rows, shard.indices);
        if (options.values == StoredValues::floats && !kernel.stores_floats) {
            throw Error(
                ErrorCode::usage,
                fmt::format(
                    "SpMV kernel \"{}\" keeps {}-byte values: those that keep floats for products in double precision "
                    "are sell, sell-blocks, sell-reordered, column-blocks and packed-tiles (GPUs), csr-openmp and "
                    "diagonals (host devices)",
                    options.kernel, sizeof(T)));
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
    const kernels::Features features = kernels::spmv_features(
        rows, row_ptr, shard.indices, shard.end_column - shard.first_column, a.col_idx, static_cast<int>(sizeof(T)),
        a.values == nullptr ? kernels::ValueAt{} : [&](std::int64_t i) {
            const T value = a.values[i];
            return static_cast<double>(floats ? static_cast<T>(static_cast<float>(value)) : value);
        });
    kernels::DeviceModel device;
    if (shard.limit_gbs > 0) {
        device.bytes_per_second = shard.limit_gbs * 1e9;
    }
    for (const auto* kernel : eligible) {
        if (!kernels::suits(kernel->info.name, features)) {
            continue;
        }
        const kernels::Prediction p =
            kernels::predict_spmv(kernel->info.name, features, static_cast<int>(sizeof(T)), device);
        shard.candidates.push_back(
            {kernel->info.name, !kernel->streams, p.bytes, p.seconds, 0, kernel->streams ? 0 : p.prepare_seconds});
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
        shard.structure = structure_of(shard, a, features);
        if (recall(shard, runtime.cache)) {
            shard.kernel_reason = "won a race before";
        }
    }
    shard.kernel = shard.candidates.front().kernel;
    shard.break_even_applies = break_even(shard.candidates, shard.kernel);
}

template <class T>
void prepare_kernel(ShardPlan& plan, Shard<T>& shard, engine::Worker& worker, const DistributeOptions& options,
                    const RowStatistics& rows)
{
    const DeviceKind kind = worker.device().info().kind;
    const auto prepare = [&](const kernels::SpmvKernel<T>& kernel) {
        return kernel.prepare(shard.owned, rows, worker.context());
    };
    const auto named = [&](const std::string& name) -> const kernels::SpmvKernel<T>& {
        return kernels::choose_spmv<T>(kind, name, options.determinism, rows, shard.owned.cols);
    };
    std::size_t next = 0;
    // The next candidate that there is room for and that suits the matrix; those that do not are dropped.
    const auto prepare_next = [&]() -> std::unique_ptr<kernels::SpmvOperator<T>> {
        while (next < plan.candidates.size()) {
            KernelCandidate& candidate = plan.candidates[next];
            try {
                worker.stream().synchronize();
                const auto begin = Clock::now();
                auto made = prepare(named(candidate.kernel));
                worker.stream().synchronize();
                if (made->worthwhile()) {
                    candidate.prepare_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                    ++next;
                    return made;
                }
            } catch (const Error& e) {
                if (e.code() != ErrorCode::out_of_memory) {
                    throw;
                }
            }
            plan.candidates.erase(plan.candidates.begin() + static_cast<std::ptrdiff_t>(next));
            plan.kernel_reason = "predicted";
        }
        return nullptr;
    };

    const std::int64_t csr_bytes = plan.matrix_bytes;
    const std::int64_t csr_apply_bytes = plan.apply_bytes;
    const auto apply_bytes = [&](const kernels::SpmvOperator<T>& made) {
        return made.format_bytes() < 0 ? csr_apply_bytes : csr_apply_bytes + made.format_bytes() - csr_bytes;
    };
    if (plan.candidates.empty()) {
        shard.owned_operator = prepare(named(plan.kernel));
    } else {
        shard.owned_operator = prepare_next();
        if (!shard.owned_operator) {
            // Without room for any format, one that needs none.
            const auto* const last =
                &choose_streamed_spmv<T>(kind, "auto", options.determinism, rows, shard.owned.cols);
            plan.kernel = last->info.name;
            plan.kernel_reason = "needs no memory of its own";
            shard.owned_operator = prepare(*last);
        } else {
            plan.kernel = plan.candidates.front().kernel;
        }
        plan.apply_bytes = apply_bytes(*shard.owned_operator);
        const bool raced = options.determinism == Determinism::none && plan.kernel_reason == "predicted" && next == 1 &&
                           worth_a_race<T>(plan.candidates, options.expected_applies);
        if (raced) {
            if (auto challenger = prepare_next()) {
                shard.race =
                    RaceRecord{std::make_shared<detail::RaceOutcome>(), {plan.apply_bytes, apply_bytes(*challenger)}};
                shard.owned_operator = std::make_unique<detail::Race<T>>(worker, std::move(shard.owned_operator),
                                                                         std::move(challenger), shard.race->outcome);
            }
        }
        plan.break_even_applies = break_even(plan.candidates, plan.kernel);
    }
    plan.apply_bytes = shard.race ? shard.race->apply_bytes[0] : apply_bytes(*shard.owned_operator);
    plan.matrix_bytes += shard.owned_operator->workspace_bytes();
}

template <class T>
void end_race_in_order(Shard<T>& shard)
{
    if (shard.race) {
        static_cast<detail::Race<T>&>(*shard.owned_operator).decide_in_order(shard.owned.rows);
    }
}

template <class T>
Plan current_plan(const MatrixState<T>& matrix)
{
    Plan plan = matrix.plan;
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        ShardPlan& shard = plan.shards[i];
        const auto* const race = matrix.shards[i] && matrix.shards[i]->race ? &*matrix.shards[i]->race : nullptr;
        const int winner = race != nullptr ? race->outcome->winner.load(std::memory_order_acquire) : -1;
        if (winner >= 0) {
            for (std::size_t runner : {0, 1}) {
                shard.candidates[runner].measured_seconds = race->outcome->seconds[runner];
            }
            std::rotate(shard.candidates.begin(), shard.candidates.begin() + winner,
                        shard.candidates.begin() + winner + 1);
            shard.kernel = shard.candidates.front().kernel;
            shard.kernel_reason = race->outcome->in_order ? won_in_order : won;
            shard.apply_bytes = race->apply_bytes[static_cast<std::size_t>(winner)];
            shard.break_even_applies = break_even(shard.candidates, shard.kernel);
        }
        if (matrix.shards[i]) {
            shard.apply_bytes += matrix.shards[i]->more_read;
            shard.matrix_bytes += matrix.shards[i]->more_kept;
        }
    }
    return plan;
}

template <class T>
void remember_races(const MatrixState<T>& matrix)
{
    const Plan plan = current_plan(matrix);
    for (const ShardPlan& shard : plan.shards) {
        if (shard.kernel_reason == won) {
            std::string text;
            for (const KernelCandidate& candidate : shard.candidates) {
                if (candidate.measured_seconds > 0) {
                    text += fmt::format("{} {}\n", candidate.kernel, candidate.measured_seconds);
                }
            }
            matrix.runtime->cache.write(cache_name(shard), text);
        }
    }
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template void rank_kernels(ShardPlan&, const RuntimeState&, const CsrView<T>&, const DistributeOptions&, \
                               const RowStatistics&, std::int64_t);                                          \
    template void prepare_kernel(ShardPlan&, Shard<T>&, engine::Worker&, const DistributeOptions&,           \
                                 const RowStatistics&);                                                      \
    template void end_race_in_order(Shard<T>&);                                                              \
    template Plan current_plan(const MatrixState<T>&);                                                       \
    template void remember_races(const MatrixState<T>&);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail
