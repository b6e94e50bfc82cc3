#include "apps/mspmv/dry_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rmsp/value_types.hpp>

#include "apps/mspmv/cluster_plan.hpp"
#include "apps/mspmv/generated_size.hpp"
#include "apps/mspmv/machine.hpp"
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

/// What one process of a cluster has: its own columns come first, then its ghosts, each once.
template <class T>
CsrMatrix<T> rows_of_node(const CsrMatrix<T>& a, const NodeCuts& cuts, int node)
{
    const std::vector<std::int64_t> ghosts = ghost_columns(a, cuts, node);
    const auto i = static_cast<std::size_t>(node);
    const std::int64_t first = cuts.cols[i];
    const std::int64_t own = cuts.cols[i + 1] - first;
    const auto begin = a.row_ptr.begin() + cuts.rows[i];
    const auto end = a.row_ptr.begin() + cuts.rows[i + 1] + 1;
    CsrMatrix<T> rows;
    rows.rows = cuts.rows[i + 1] - cuts.rows[i];
    rows.cols = own + static_cast<std::int64_t>(ghosts.size());
    rows.row_ptr.assign(begin, end);
    for (std::int64_t& at : rows.row_ptr) {
        at -= *begin;
    }
    rows.values.assign(a.values.begin() + *begin, a.values.begin() + *(end - 1));
    HostVector<std::int64_t> columns(rows.values.size());
    a.view().col_idx.visit([&](const auto* of) {
        std::transform(of + *begin, of + *(end - 1), columns.begin(), [&](std::int64_t column) {
            return column >= first && column < first + own
                       ? column - first
                       : own + (std::lower_bound(ghosts.begin(), ghosts.end(), column) - ghosts.begin());
        });
    });
    rows.col_idx = std::move(columns);
    return rows;
}

/// What mspmv-mpi does not do is not planned either.
void require_cluster(const Config& config, const Topology& topology)
{
    const std::string& machine = config.runtime.machine;
    if (topology.network.adapters == 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: the description of this machine has no [network] to join several by; a file with "
                                "one may be put beside it (docs/topology.md)",
                                machine));
    }
    const auto refuse = [&](const char* key, const std::string& value, const char* why) {
        throw Error(ErrorCode::usage, fmt::format("{}: {} is \"{}\", but a cluster {}", machine, key, value, why));
    };
    if (config.matrix.format != "csr" && config.matrix.format != "auto") {
        refuse("matrix.format", config.matrix.format, "multiplies csr");
    }
    if (config.run.mode != "resident") {
        refuse("run.mode", config.run.mode, "keeps matrices on the devices");
    }
    if (config.solver.inner != "none") {
        refuse("solver.inner", config.solver.inner, "has no inner solver");
    }
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

template <class T>
class Planning {
public:
    Planning(const Config& config, Runtime& runtime, const DistributeOptions& options, const PlannerOf<T>& planner,
             std::vector<std::string>& notes)
        : config_(config), runtime_(runtime), options_(options), planner_(planner), notes_(notes)
    {
    }

    Plan of_one() const
    {
        if (const auto whole = generated_size(config_.matrix); is_large(whole)) {
            return of_samples(load_samples(config_.matrix, *whole), *whole);
        }
        return of_matrix(load(config_.matrix).matrix);
    }

    /// \param method  not null: a step is an iteration, of which it is set; else a product
    Plan of_cluster(int nodes, MethodChoice* method) const
    {
        const auto whole = generated_size(config_.matrix);
        return is_large(whole) ? of_large_cluster(nodes, method, *whole) : of_counted_cluster(nodes, method);
    }

private:
    using Samples = std::array<NumberedMatrix<T>, 2>;

    static bool is_large(const std::optional<GeneratedSize>& whole)
    {
        return whole && whole->nonzeros > most_generated;
    }

    NumberedMatrix<T> load(const Config::Matrix& matrix) const { return load_numbered<T>(matrix, options_.progress); }

    Samples load_samples(const Config::Matrix& matrix, const GeneratedSize& whole) const
    {
        Samples samples{load(shrunk(matrix, large_sample / 2 / whole.nonzeros)),
                        load(shrunk(matrix, large_sample / whole.nonzeros))};
        if (samples[0].matrix.nnz() == samples[1].matrix.nnz()) {
            throw Error(ErrorCode::usage,
                        fmt::format("{}: no smaller matrices of this shape to plan by", matrix.generate));
        }
        return samples;
    }

    Plan on(const Planner& plan, int devices) const
    {
        DistributeOptions some = options_;
        some.devices = devices;
        return plan(some);
    }

    Plan of_matrix(const CsrMatrix<T>& matrix) const
    {
        const Planner plan = planner_(matrix);
        return with_predictions(runtime_, options_, [&](int devices) { return on(plan, devices); });
    }

    Plan of_samples(const Samples& samples, const GeneratedSize& whole) const
    {
        notes_.push_back(fmt::format(
            "planned from two samples of the same kind, of {} and {} nonzeros: what depends on the size of the matrix "
            "is extrapolated",
            samples[0].matrix.nnz(), samples[1].matrix.nnz()));
        const std::array<Planner, 2> plans{planner_(samples[0].matrix), planner_(samples[1].matrix)};
        const auto all = static_cast<int>(runtime_.devices().size());
        return with_predictions(runtime_, options_, [&](int devices) {
            // A small matrix may be faster on few devices; the whole is not small.
            const int used = devices > 0 ? devices : options_.mode == Mode::streamed ? 0 : all;
            return extrapolated(on(plans[1], used), on(plans[0], used), whole);
        });
    }

    /// The rows of the node that receives most are planned.
    Plan of_counted_cluster(int nodes, MethodChoice* method) const
    {
        const NumberedMatrix<T> loaded = load(config_.matrix);
        const CsrMatrix<T>& a = loaded.matrix;
        const std::vector<NodeExchange> exchanges = count_exchange(a, nodes);
        const auto busiest = std::max_element(
            exchanges.begin(), exchanges.end(),
            [](const NodeExchange& one, const NodeExchange& other) { return one.ghosts < other.ghosts; });
        Plan plan = of_matrix(rows_of_node(a, cut_for_nodes(a, nodes), static_cast<int>(busiest - exchanges.begin())));
        plan.cluster =
            cluster_of(nodes, {static_cast<double>(a.rows), static_cast<double>(a.cols), static_cast<double>(a.nnz())});
        plan.cluster.most_nonzeros = a.nnz();
        plan.cluster.counted = "counted in the matrix; with more rows as with these";
        predict(plan, counted_exchange(a, nodes), method);
        return plan;
    }

    Plan of_large_cluster(int nodes, MethodChoice* method, const GeneratedSize& whole) const
    {
        const auto share = static_cast<double>(nodes);
        const GeneratedSize part{whole.rows / share, whole.cols / share, whole.nonzeros / share};
        const Config::Matrix block = block_of_rows(config_.matrix, nodes);
        Plan plan;
        std::int64_t most = 0;
        if (is_large(part)) {
            const Samples samples = load_samples(block, part);
            plan = of_samples(samples, part);
            most = samples[1].matrix.nnz();
        } else {
            const NumberedMatrix<T> loaded = load(block);
            plan = of_matrix(loaded.matrix);
            most = loaded.matrix.nnz();
        }
        plan.cluster = cluster_of(nodes, whole);
        if (const auto shifted = shifted_exchange(config_.matrix)) {
            plan.cluster.most_nonzeros = most;
            plan.cluster.counted = "found by shifting a node's rows by the offsets of their columns";
            predict(plan, *shifted, method);
            return plan;
        }
        const Samples samples = load_samples(config_.matrix, whole);
        plan.cluster.most_nonzeros = std::max(most, samples[1].matrix.nnz());
        plan.cluster.counted = fmt::format(
            "counted in two samples of {} and {} rows, and more by the power of the rows that leads from one to the "
            "other",
            samples[0].matrix.rows, samples[1].matrix.rows);
        predict(plan, sampled_exchange(samples[0].matrix, samples[1].matrix), method);
        return plan;
    }

    ClusterPlan cluster_of(int nodes, const GeneratedSize& whole) const
    {
        ClusterPlan cluster;
        cluster.nodes = nodes;
        cluster.network = runtime_.topology().network;
        cluster.rows = whole.rows;
        cluster.cols = whole.cols;
        cluster.nnz = whole.nonzeros;
        return cluster;
    }

    void predict(Plan& plan, const ExchangeModel& exchange, MethodChoice* method) const
    {
        if (method == nullptr) {
            plan.cluster.step = "product";
            predict_steps(plan, exchange, {});
        } else if (config_.solver.method == "auto") {
            *method = choose(plan, exchange);
        } else {
            method->method = config_.solver.method;
            predict_method(plan, exchange, method->method);
        }
    }

    void predict_method(Plan& plan, const ExchangeModel& exchange, const std::string& method) const
    {
        ClusterPlan& cluster = plan.cluster;
        cluster.step = "iteration of " + method;
        predict_steps(plan, exchange, count_steps(config_, method, cluster.nnz / std::max(1.0, cluster.rows)));
    }

    /// The variant of conjugate gradients that the nodes asked for are to take.
    MethodChoice choose(Plan& plan, const ExchangeModel& exchange) const
    {
        std::vector<MethodCandidate> candidates;
        std::vector<Plan> plans;
        for (const SolverInfo& info : list_solvers()) {
            if (info.automatic) {
                plans.push_back(plan);
                predict_method(plans.back(), exchange, std::string(info.name));
                candidates.emplace_back();
                candidates.back().method = info.name;
                candidates.back().seconds = plans.back().cluster.planned.seconds;
            }
        }
        MethodChoice choice = choose_method(std::move(candidates));
        const auto chosen = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                         [&](const MethodCandidate& c) { return c.method == choice.method; });
        plan = std::move(plans[static_cast<std::size_t>(chosen - choice.candidates.begin())]);
        return choice;
    }

    static void predict_steps(Plan& plan, const ExchangeModel& exchange, const StepCounts& counts)
    {
        ClusterPlan& cluster = plan.cluster;
        cluster.products = counts.products;
        cluster.sums = counts.sums;
        cluster.sums_beside = counts.sums_beside;
        cluster.vector_bytes = counts.vector_bytes;
        predict_cluster(plan, exchange);
    }

    const Config& config_;
    Runtime& runtime_;
    const DistributeOptions& options_;
    const PlannerOf<T>& planner_;
    std::vector<std::string>& notes_;
};

}  // namespace

template <class T>
Plan dry_plan(const Config& config, Runtime& runtime, DistributeOptions options, const PlannerOf<T>& planner,
              std::vector<std::string>& notes, MethodChoice* method)
{
    if (config.runtime.topology.empty() && options.mode == Mode::resident) {
        runtime.measure_limits();
    }
    const std::optional<int> nodes = machine_named(config.runtime.machine).nodes;
    if (nodes) {
        require_cluster(config, runtime.topology());
        // As the processes of a cluster have it.
        options.x_layout = Layout::rows;
        options.alignment = RowAlignment::row;
    }
    const Planning<T> planning(config, runtime, options, planner, notes);
    return nodes ? planning.of_cluster(*nodes, method) : planning.of_one();
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template Plan dry_plan(const Config&, Runtime&, DistributeOptions, const PlannerOf<T>&, std::vector<std::string>&, \
                           MethodChoice*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::mspmv
