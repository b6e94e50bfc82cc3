#include <rmsp/characterize.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/config.hpp>
#include <rmsp/renumber.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/config_command.hpp"
#include "apps/mspmv/hypergraph_partitioner.hpp"
#include "apps/mspmv/kept_peak.hpp"
#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/page/characterize_page.hpp"
#include "apps/mspmv/precision.hpp"
#include "apps/mspmv/progress.hpp"

namespace rmsp::mspmv {
namespace {

struct CharacterizeArguments : ConfigOptions {
    std::string b;
    bool square = false;
    std::string html;
    std::string partitioner = "auto";
    std::string order = "partition";
    std::string save_order;
    std::int64_t iterations = 5;
    double peak_gflops = 0;
    CharacterizeOptions limits;
};

constexpr std::int64_t warmup = 2;

/// Seconds of y = A x, the median.
template <class T>
double time_product(Runtime& runtime, const Config& config, const CsrView<T>& a, const CharacterizeArguments& options,
                    CharacterizeReport& report)
{
    DistributedMatrix<T> matrix = runtime.distribute(a, distribute_options(config));
    const HostVector<T> x(static_cast<std::size_t>(a.cols), T{1});
    const Measurement m = matrix.measure(DistributedMatrix<T>::Vectors::replicated, warmup, options.iterations, T{1},
                                         x.data(), T{0}, nullptr, nullptr);
    report.limit_gbs = m.limit_gbs;
    report.measured = fmt::format("{}, median of {}", m.name, m.iterations);
    return m.median_seconds;
}

/// Seconds of C = A B on the devices, structure and values; 0 where C does not stay there.
template <class T>
double time_product(Runtime& runtime, const Config& config, const CsrView<T>& a, const CsrView<T>& b,
                    const CharacterizeArguments& options, CharacterizeReport& report)
{
    SparseProduct<T> product(runtime, a, b, spgemm_options(config));
    product.compute();
    if (product.plan().chunked()) {
        report.notes.emplace_back("not timed: C does not fit beside A and B on the devices");
        return 0;
    }
    for (const Measurement& m : product.measure(warmup, options.iterations)) {
        if (m.name.ends_with("/whole")) {
            report.measured = fmt::format("{}, median of {}", m.name, m.iterations);
            return m.median_seconds;
        }
    }
    return 0;
}

/// Of an apply. Limits of a described machine are not known: then the model of the kernel alone says it.
double predicted_seconds(const ShardPlan& shard)
{
    return shard.predicted_seconds > 0 || shard.candidates.empty() ? shard.predicted_seconds
                                                                   : shard.candidates.front().predicted_seconds;
}

/// What the plan says of kernels on one device, and of more devices.
template <class T>
void predict(Runtime& runtime, const Config& config, const CsrView<T>& a, CharacterizeReport& report)
{
    DistributeOptions options = distribute_options(config);
    const auto devices = static_cast<int>(runtime.devices().size());
    if (!config.runtime.topology.empty()) {
        report.notes.emplace_back("a described machine: what is predicted for several devices leaves exchanges out");
    }
    for (int n = 1; n <= devices; ++n) {
        options.devices = n;
        const Plan plan = runtime.plan(a, options);
        double seconds = 0;
        for (const ShardPlan& shard : plan.shards) {
            seconds = std::max(seconds, predicted_seconds(shard));
        }
        seconds += plan.merge_seconds;
        if (seconds > 0) {
            report.devices.push_back({n, seconds});
        }
        if (n == 1 && !plan.shards.empty()) {
            const ShardPlan& shard = plan.shards.front();
            report.kernels = shard.candidates;
            if (report.kernels.empty() && shard.predicted_seconds > 0) {
                KernelCandidate only;
                only.kernel = shard.kernel;
                only.bytes = static_cast<double>(shard.apply_bytes);
                only.predicted_seconds = shard.predicted_seconds;
                report.kernels.push_back(std::move(only));
            }
            std::stable_sort(report.kernels.begin(), report.kernels.end(),
                             [](const auto& x, const auto& y) { return x.predicted_seconds < y.predicted_seconds; });
        }
        if (report.limit_gbs == 0 && n == devices) {
            for (const ShardPlan& shard : plan.shards) {
                report.limit_gbs += shard.limit_gbs;
            }
        }
    }
}

/// Times the product as it is, and in each of the orders.
template <class T>
void time_orders(Runtime& runtime, const Config& config, const CsrMatrix<T>& a, const CsrMatrix<T>& b,
                 const CharacterizeArguments& options, CharacterizeReport& report)
{
    const bool product = report.found.product;
    report.seconds =
        product ? time_product<T>(runtime, config, a.view(), options.square ? a.view() : b.view(), options, report)
                : time_product<T>(runtime, config, a.view(), options, report);
    for (OrderTraffic& order : report.found.orders) {
        if (order.row_at.empty()) {
            order.seconds = report.seconds;
            continue;
        }
        const CsrMatrix<T> other = renumbered<T>(a.view(), order.row_at);
        order.seconds = product ? time_product<T>(runtime, config, other.view(), other.view(), options, report)
                                : time_product<T>(runtime, config, other.view(), options, report);
    }
}

void save_order(const CharacterizeArguments& options, const CharacterizeReport& report)
{
    if (options.save_order.empty()) {
        return;
    }
    const auto order = std::find_if(report.found.orders.begin(), report.found.orders.end(),
                                    [&](const OrderTraffic& o) { return o.name == options.order; });
    if (order == report.found.orders.end()) {
        throw Error(ErrorCode::usage, fmt::format("--save-order {}: only one square matrix has orders, and this is {}",
                                                  options.save_order, report.b.empty() ? "not square" : "A B"));
    }
    write_order(options.save_order, order->row_at);
}

template <class T>
int characterize_with(const Config& config, const CharacterizeArguments& options)
{
    const ProgressBar bar;
    CharacterizeOptions limits = options.limits;
    limits.partitioner = hypergraph_partitioner(options.partitioner);
    limits.progress = bar.callback();
    Runtime runtime(runtime_options(config));
    const CsrMatrix<T> a = load_matrix<T>(config.matrix, bar.callback());
    CsrMatrix<T> b;
    CharacterizeReport report;
    report.a = describe(config.matrix);
    if (options.square) {
        report.b = report.a;
    } else if (!options.b.empty()) {
        Config::Matrix second;
        second.file = options.b;
        second.precision = config.matrix.precision;
        second.max_bytes = config.matrix.max_bytes;
        b = load_matrix<T>(second, bar.callback());
        report.b = describe(second);
    }
    enter_stage("counting");
    report.found = options.square      ? characterize<T>(a.view(), a.view(), limits)
                   : options.b.empty() ? characterize<T>(a.view(), limits)
                                       : characterize<T>(a.view(), b.view(), limits);
    save_order(options, report);
    report.topology = topology_line(runtime.topology());
    report.context = run_context();
    report.peak_gflops = options.peak_gflops;
    if (!(report.peak_gflops > 0)) {
        report.peak_gflops = kept_peak_gflops(runtime, config.matrix.precision, [](std::size_t) { return true; });
    }
    report.limit_gbs = config.runtime.limit_gbs * static_cast<double>(runtime.devices().size());
    if (!options.dry_run && options.iterations > 0) {
        enter_stage("timing");
        const std::vector<double> limits_gbs = runtime.measure_limits();
        report.limit_gbs = std::accumulate(limits_gbs.begin(), limits_gbs.end(), 0.0);
        time_orders(runtime, config, a, b, options, report);
    }
    if (!report.found.product) {
        predict<T>(runtime, config, a.view(), report);
    }
    clear_progress_line();
    if (!options.html.empty()) {
        write_text(options.html, characterize_page(report));
    }
    write_report(report.to_text(), report.to_json(), config.output.json);
    return 0;
}

int start(CharacterizeArguments options)
{
    if (options.square && !options.b.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("--b {} names a second matrix, which --square does not have", options.b));
    }
    const Config config = configuration(options, "characterize", {});
    require_writable(options.html);
    require_writable(options.save_order);
    if (!options.save_order.empty() && !options.save_order.ends_with(".npy")) {
        throw Error(ErrorCode::usage, fmt::format("--save-order \"{}\" does not end in .npy", options.save_order));
    }
    return with_precision(config.matrix.precision, [&]<class T>() { return characterize_with<T>(config, options); });
}

}  // namespace

void add_characterize(CLI::App& app, Action& action)
{
    auto options = std::make_shared<CharacterizeArguments>();
    CLI::App* command = app.add_subcommand(
        "characterize", "Say what bounds a product with a matrix, how far it is from that, and what would help");
    options->add_inputs(*command);
    add_text(*command, "--b", options->b, "FILE", "C = A B with this matrix, instead of y = A x");
    command->add_flag("--square", options->square, "C = A A instead of y = A x");
    add_text(*command, "--html", options->html, "FILE", "also write a page that shows it");
    command->add_option("--fast-memory", options->limits.fast_bytes, "the fast memory's capacity (an L2, a cache)")
        ->type_name("BYTES")
        ->take_last()
        ->capture_default_str();
    command->add_option("--line", options->limits.line_bytes, "the simulated cache's line")
        ->type_name("BYTES")
        ->take_last()
        ->capture_default_str();
    command
        ->add_option("--fine-limit", options->limits.fine_limit,
                     "most multiplies to partition one by one; more: by rows")
        ->type_name("N")
        ->take_last()
        ->capture_default_str();
    command->add_option("--simulate-limit", options->limits.simulate_limit, "most multiplies to simulate the cache for")
        ->type_name("N")
        ->take_last()
        ->capture_default_str();
    add_text(*command, "--partitioner", options->partitioner, "NAME",
             "of hypergraphs: zoltan, greedy (librmsp's own); auto: the first that was built");
    add_text(*command, "--save-order", options->save_order, "FILE",
             "write the order of --order as .npy, for matrix.permutation");
    command->add_option("--order", options->order, "which one: mesh, degree, partition")
        ->type_name("NAME")
        ->check(CLI::IsMember({"mesh", "degree", "partition"}))
        ->capture_default_str();
    command->add_option("--iterations", options->iterations, "products to time for each order; 0: none")
        ->type_name("N")
        ->take_last()
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command
        ->add_option("--peak-gflops", options->peak_gflops, "what the devices' arithmetic could do, for the roofline")
        ->type_name("NUMBER")
        ->take_last()
        ->check(CLI::NonNegativeNumber);
    options->add_others(*command, false);
    command->footer(
        "Examples:\n"
        "  mspmv characterize --matrix a.mtx.gz --html a.html\n"
        "  mspmv characterize --matrix a.mtx.gz --square --fast-memory 52428800\n"
        "  mspmv characterize --matrix a.mtx.gz --save-order order.npy\n"
        "  mspmv run --matrix a.mtx.gz --set matrix.permutation=order.npy");
    command->callback([&action, options] { action = [options] { return start(*options); }; });
}

}  // namespace rmsp::mspmv
