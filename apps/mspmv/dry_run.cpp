#include "apps/mspmv/dry_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "apps/mspmv/generated_size.hpp"
#include "apps/mspmv/vectors.hpp"

namespace rmsp::mspmv {
namespace {

/// Nonzeros of what is planned as it is: part of a second of work.
constexpr double most_generated = 1 << 22;
constexpr double large_sample = 1 << 21;

/// From what two samples have to what the whole has.
class Extrapolation {
public:
    /// \param small, large, whole  nonzeros
    Extrapolation(double small, double large, double whole)
        : growth_(whole / large),
          beyond_((whole - large) / (large - small)),
          power_(std::log(whole / large) / std::log(large / small))
    {
    }

    /// What consists of a constant and a share that grows with the nonzeros: times, bytes.
    double line(double small, double large) const { return std::max(large, large + (large - small) * beyond_); }
    /// What grows with a power of them, as surfaces do.
    std::int64_t power(std::int64_t small, std::int64_t large) const
    {
        const bool grows = small > 0 && large > small;
        const double ratio = grows ? static_cast<double>(large) / static_cast<double>(small) : 1.0;
        return std::llround(static_cast<double>(large) * std::pow(ratio, power_));
    }
    void line(std::int64_t small, std::int64_t& large) const
    {
        large = std::llround(line(static_cast<double>(small), static_cast<double>(large)));
    }
    double growth() const { return growth_; }

private:
    double growth_;
    double beyond_;
    double power_;
};

/// Times of kernels at the size of the whole, and the one that is fastest then.
void choose_again(ShardPlan& shard, const ShardPlan& small, const Extrapolation& to_whole, std::int64_t applies)
{
    for (KernelCandidate& c : shard.candidates) {
        const auto same = std::find_if(small.candidates.begin(), small.candidates.end(),
                                       [&](const KernelCandidate& other) { return other.kernel == c.kernel; });
        const bool both = same != small.candidates.end();
        for (double KernelCandidate::*field :
             {&KernelCandidate::bytes, &KernelCandidate::predicted_seconds, &KernelCandidate::prepare_seconds}) {
            c.*field = both ? to_whole.line((*same).*field, c.*field) : c.*field * to_whole.growth();
        }
        c.measured_seconds = 0;
    }
    const auto cost = [&](const KernelCandidate& c) {
        return c.predicted_seconds + (applies > 0 ? c.prepare_seconds / static_cast<double>(applies) : 0);
    };
    std::stable_sort(shard.candidates.begin(), shard.candidates.end(),
                     [&](const KernelCandidate& a, const KernelCandidate& b) { return cost(a) < cost(b); });
    shard.kernel = shard.candidates.front().kernel;
    shard.kernel_reason = "predicted";
    shard.break_even_applies = 0;
}

/// Of the kernel alone, where it was weighed.
double kernel_seconds(const ShardPlan& shard)
{
    return shard.candidates.empty() ? shard.predicted_seconds - shard.exchange_seconds
                                    : shard.candidates.front().predicted_seconds;
}

void extrapolate(ShardPlan& shard, const ShardPlan& small, const Extrapolation& to_whole, std::int64_t applies)
{
    const bool overlaps = shard.predicted_seconds < 0.999 * (kernel_seconds(shard) + shard.exchange_seconds);
    const double kernel_before = kernel_seconds(shard);
    const bool weighed = !shard.candidates.empty();
    if (weighed) {
        choose_again(shard, small, to_whole, applies);
    }
    const double kernel = weighed ? kernel_seconds(shard) : to_whole.line(kernel_seconds(small), kernel_before);
    // An exchange has a fixed time and one for each entry.
    const auto entries = static_cast<double>(shard.halo_entries);
    const auto more = entries - static_cast<double>(small.halo_entries);
    const double each = more > 0 ? std::max(0.0, shard.exchange_seconds - small.exchange_seconds) / more : 0;
    const double fixed = shard.exchange_seconds - each * entries;
    shard.halo_entries = to_whole.power(small.halo_entries, shard.halo_entries);
    shard.exchange_seconds = fixed + each * static_cast<double>(shard.halo_entries);
    shard.predicted_seconds =
        shard.limit_gbs > 0 && shard.part.nnz() > 0
            ? (overlaps ? std::max(kernel + fixed, shard.exchange_seconds) : kernel + shard.exchange_seconds)
            : 0;
    to_whole.line(small.matrix_bytes, shard.matrix_bytes);
    to_whole.line(small.vector_bytes, shard.vector_bytes);
    to_whole.line(small.apply_bytes, shard.apply_bytes);
}

/// From the plans of two samples to that of the whole, whose parts have the same shares.
Plan extrapolated(Plan plan, const Plan& small, const GeneratedSize& whole)
{
    const Extrapolation to_whole(static_cast<double>(small.nnz), static_cast<double>(plan.nnz), whole.nonzeros);
    const double by_rows = whole.rows / static_cast<double>(plan.rows);
    const double by_cols = whole.cols / static_cast<double>(plan.cols);
    const bool by_column = plan.order == CooOrder::by_column;
    const auto scale = [](std::int64_t& position, double factor) {
        position = std::llround(static_cast<double>(position) * factor);
    };
    plan.rows = std::llround(whole.rows);
    plan.cols = std::llround(whole.cols);
    plan.nnz = std::llround(whole.nonzeros);
    to_whole.line(small.merge_bytes, plan.merge_bytes);
    plan.merge_seconds = to_whole.line(small.merge_seconds, plan.merge_seconds);
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        ShardPlan& shard = plan.shards[i];
        extrapolate(shard, small.shards[i], to_whole, plan.expected_applies);
        for (std::int64_t* position : {&shard.part.start_idx, &shard.part.end_idx}) {
            scale(*position, to_whole.growth());
        }
        for (std::int64_t* position : {&shard.part.start_row, &shard.part.end_row}) {
            scale(*position, by_column ? by_cols : by_rows);
        }
        for (std::int64_t* position : {&shard.first_row, &shard.end_row}) {
            scale(*position, by_rows);
        }
        for (std::int64_t* position : {&shard.first_column, &shard.end_column}) {
            scale(*position, by_cols);
        }
        plan.partition.parts[i] = shard.part;
    }
    return plan;
}

/// \param plan  for as many devices as its argument says; 0: as the options say
template <class F>
Plan with_predictions(const Runtime& runtime, const DistributeOptions& options, const F& plan)
{
    Plan result = plan(options.devices);
    const auto all = static_cast<int>(runtime.devices().size());
    if (options.mode == Mode::streamed || all == 1 || !(result.predicted_seconds() > 0)) {
        return result;
    }
    for (const int devices : {1, 2, 4, 8, 16}) {
        if (devices <= all) {
            const bool known = devices == result.devices;
            result.predictions.push_back({devices, (known ? result : plan(devices)).predicted_seconds()});
        }
    }
    return result;
}

}  // namespace

template <class T>
Plan dry_plan(const Config& config, Runtime& runtime, const DistributeOptions& options, const PlannerOf<T>& planner,
              std::vector<std::string>& notes)
{
    if (config.runtime.topology.empty() && options.mode == Mode::resident) {
        runtime.measure_limits();
    }
    const auto on = [&](const Planner& plan, int devices) {
        DistributeOptions some = options;
        some.devices = devices;
        return plan(some);
    };
    const auto whole = generated_size(config.matrix);
    if (!whole || whole->nonzeros <= most_generated) {
        const NumberedMatrix<T> loaded = load_numbered<T>(config.matrix, options.progress);
        const Planner plan = planner(loaded.matrix);
        return with_predictions(runtime, options, [&](int devices) { return on(plan, devices); });
    }
    std::array<NumberedMatrix<T>, 2> samples;
    std::array<Planner, 2> plans;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double nonzeros = i == 0 ? large_sample / 2 : large_sample;
        samples[i] = load_numbered<T>(shrunk(config.matrix, nonzeros / whole->nonzeros), options.progress);
        plans[i] = planner(samples[i].matrix);
    }
    if (samples[0].matrix.nnz() == samples[1].matrix.nnz()) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: no smaller matrices of this shape to plan by", config.matrix.generate));
    }
    notes.push_back(fmt::format(
        "planned from two samples of the same kind, of {} and {} nonzeros: what depends on the size of the matrix is "
        "extrapolated",
        samples[0].matrix.nnz(), samples[1].matrix.nnz()));
    const auto all = static_cast<int>(runtime.devices().size());
    return with_predictions(runtime, options, [&](int devices) {
        // A small matrix may be faster on few devices; the whole is not small.
        const int used = devices > 0 ? devices : options.mode == Mode::streamed ? 0 : all;
        return extrapolated(on(plans[1], used), on(plans[0], used), *whole);
    });
}

template Plan dry_plan(const Config&, Runtime&, const DistributeOptions&, const PlannerOf<float>&,
                       std::vector<std::string>&);
template Plan dry_plan(const Config&, Runtime&, const DistributeOptions&, const PlannerOf<double>&,
                       std::vector<std::string>&);

}  // namespace rmsp::mspmv
