#include "runtime/plan/predict.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <vector>

#include <kernels/spmv/choose/model.hpp>

#include "runtime/matrix/exchange.hpp"
#include "runtime/plan/device_count.hpp"
#include "runtime/transport/halo.hpp"

namespace rmsp::detail {
namespace {

/// Columns of the part outside [first, end), each once.
std::int64_t count_outside(IndexView col_idx, const PartialCsr& part, std::int64_t cols, std::int64_t first,
                           std::int64_t end)
{
    constexpr std::int64_t word_bits = 64;
    std::vector<std::uint64_t> met(static_cast<std::size_t>((cols + word_bits - 1) / word_bits));
    col_idx.visit([&](const auto* column) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = part.start_idx; i < part.end_idx; ++i) {
            const std::int64_t c = column[i];
            if (c < first || c >= end) {
                const std::uint64_t bit = std::uint64_t{1} << (c % word_bits);
                const std::atomic_ref<std::uint64_t> word(met[static_cast<std::size_t>(c / word_bits)]);
                if ((word.load(std::memory_order_relaxed) & bit) == 0) {
                    word.fetch_or(bit, std::memory_order_relaxed);
                }
            }
        }
    });
    std::int64_t count = 0;
    for (const std::uint64_t word : met) {
        count += std::popcount(word);
    }
    return count;
}

/// Of one device, by itself.
double kernel_seconds(const ShardPlan& shard)
{
    if (!(shard.limit_gbs > 0) || shard.part.rows() == 0) {
        return 0;
    }
    return !shard.candidates.empty() && shard.candidates.front().kernel == shard.kernel
               ? shard.candidates.front().predicted_seconds
               : static_cast<double>(shard.apply_bytes) / (shard.limit_gbs * 1e9);
}

}  // namespace

double exchange_latency(const RuntimeState& runtime)
{
    const bool peers = runtime.connection.name == "peer" || runtime.connection.name == "unknown";
    return peers ? plan::apply_costs.exchange_by_peers : plan::apply_costs.exchange_by_copies;
}

void predict(Plan& plan, const RuntimeState& runtime, Layout x_layout)
{
    const plan::ApplyCosts& costs = plan::apply_costs;
    const bool entries = plan.exchange == "entries";
    const bool exchanged =
        plan.mode == "resident" && x_layout == Layout::rows && (entries || plan.exchange == "ranges");
    const double value_bytes = plan.precision == "double" ? sizeof(double) : sizeof(float);
    for (ShardPlan& shard : plan.shards) {
        const double kernel = kernel_seconds(shard);
        shard.exchange_seconds = 0;
        shard.predicted_seconds = kernel;
        if (!exchanged || shard.part.nnz() == 0) {
            continue;
        }
        const double gbs = runtime.connection.name == "host" ? costs.host_gbs
                           : entries                         ? costs.packed_gbs
                                                             : costs.link_gbs;
        const double moved = static_cast<double>(shard.halo_entries) * value_bytes / (gbs * 1e9);
        const double fixed = exchange_latency(runtime);
        shard.exchange_seconds = fixed + moved;
        if (kernel <= 0) {
            continue;
        }
        const kernels::Beside beside = kernels::kernel_model(shard.kernel).beside;
        if (!entries && beside == kernels::Beside::rows) {
            // Most rows need none of it.
            shard.predicted_seconds = std::max(kernel, moved) + fixed;
        } else if (entries && beside == kernels::Beside::columns &&
                   transport::entries_worth_hiding(shard.halo_entries, static_cast<std::size_t>(value_bytes))) {
            const double first = costs.first_step * kernel;
            shard.predicted_seconds = std::max(first, shard.exchange_seconds) + costs.second_step * kernel - first;
        } else {
            shard.predicted_seconds = kernel + shard.exchange_seconds;
        }
    }
}

template <class T>
void plan_exchange(Plan& plan, const RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options)
{
    if (plan.exchange != "ranges" || !may_number_anew(a.format, options) ||
        a.cols > std::numeric_limits<std::int32_t>::max()) {
        return;
    }
    const bool wanted = options.exchange == Exchange::entries;
    const std::int64_t range = largest_halo(plan);
    if (!wanted && (options.exchange == Exchange::ranges || options.x_layout != Layout::rows ||
                    !transport::entries_pay(0, range, sizeof(T)))) {
        return;
    }
    const std::vector<std::int64_t> slices = column_slices(plan);
    std::vector<std::int64_t> ghosts;
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        ghosts.push_back(count_outside(a.col_idx, plan.shards[i].part, a.cols, slices[i], slices[i + 1]));
    }
    if (wanted || transport::entries_pay(*std::max_element(ghosts.begin(), ghosts.end()), range, sizeof(T))) {
        set_ghosts(plan, slices, ghosts);
        predict(plan, runtime, options.x_layout);
    }
}

template void plan_exchange(Plan&, const RuntimeState&, const Stored<float>&, const DistributeOptions&);
template void plan_exchange(Plan&, const RuntimeState&, const Stored<double>&, const DistributeOptions&);

}  // namespace rmsp::detail
