#include "runtime/plan/plan_exchange.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

#include "core/parallel.hpp"
#include "core/value_names.hpp"
#include "core/value_types.hpp"
#include "runtime/plan/predict.hpp"
#include "runtime/plan/sides.hpp"
#include "runtime/transport/halo.hpp"

namespace rmsp::plan {
namespace {

/// Columns of the part outside [first, end), each once.
std::int64_t count_outside(IndexView col_idx, const PartialCsr& part, std::int64_t cols, std::int64_t first,
                           std::int64_t end)
{
    constexpr std::int64_t word_bits = 64;
    std::vector<std::uint64_t> met(static_cast<std::size_t>((cols + word_bits - 1) / word_bits));
    col_idx.visit([&](const auto* column) {
#pragma omp parallel for schedule(static) if (part.nnz() > core::least_parallel)
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

}  // namespace

std::int64_t largest_halo(const Plan& plan)
{
    std::int64_t largest = 0;
    for (const ShardPlan& shard : plan.shards) {
        largest = std::max(largest, shard.halo_entries);
    }
    return largest;
}

void set_ghosts(Plan& plan, const std::vector<std::int64_t>& slices, const std::vector<std::int64_t>& ghosts)
{
    const std::int64_t value_bytes = core::value_bytes(plan.precision);
    plan.exchange = "entries";
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        ShardPlan& shard = plan.shards[i];
        const auto touched = [&](std::int64_t columns) { return std::min(shard.part.nnz(), columns) * value_bytes; };
        shard.apply_bytes +=
            touched(slices[i + 1] - slices[i] + ghosts[i]) - touched(shard.end_column - shard.first_column);
        shard.halo_entries = ghosts[i];
    }
}

template <class T>
void plan_exchange(Plan& plan, const detail::RuntimeState& runtime, const Stored<T>& a,
                   const DistributeOptions& options)
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
    const std::vector<std::int64_t> slices = column_slices(plan, a);
    std::vector<std::int64_t> ghosts;
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        ghosts.push_back(count_outside(a.col_idx, plan.shards[i].part, a.cols, slices[i], slices[i + 1]));
    }
    if (wanted || transport::entries_pay(*std::max_element(ghosts.begin(), ghosts.end()), range, sizeof(T))) {
        set_ghosts(plan, slices, ghosts);
        predict(plan, runtime, options.x_layout);
    }
}

#define RMSP_INSTANTIATE(T) \
    template void plan_exchange(Plan&, const detail::RuntimeState&, const Stored<T>&, const DistributeOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::plan
