#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <rmsp/config.hpp>
#include <rmsp/spgemm.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/config_command.hpp"
#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/metrics_server.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/precision.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/second_matrix.hpp"
#include "apps/mspmv/signals.hpp"
#include "apps/mspmv/vectors.hpp"

namespace rmsp::mspmv {
namespace {

struct SpgemmArguments : ConfigOptions {
    std::string b;
    std::string product;
    std::string memory_limit;
    std::string output;
};

/// The two factors. B is `other` where that is a matrix of its own.
template <class T>
struct Factors {
    CsrMatrix<T> a;
    CsrMatrix<T> other;
    bool a_is_other = false;  ///< A^T A: the transpose comes first
    bool b_is_other = false;
    std::string a_name;
    std::string b_name;

    CsrView<T> left() const { return a_is_other ? other.view() : a.view(); }
    CsrView<T> right() const { return b_is_other ? other.view() : a.view(); }
};

template <class T>
Factors<T> load(const Config& config, const Progress& progress)
{
    Factors<T> factors;
    factors.a = load_matrix<T>(config.matrix, progress);
    factors.a_name = describe(config.matrix);
    factors.b_name = factors.a_name;
    const std::string& product = config.spgemm.product;
    if (product == "ab") {
        const Config::Matrix b = second_matrix(config);
        factors.other = load_matrix<T>(b, progress);
        factors.b_is_other = true;
        factors.b_name = describe(b);
    } else if (product == "aat" || product == "ata") {
        factors.other = transposed<T>(factors.a.view());
        factors.b_is_other = product == "aat";
        factors.a_is_other = product == "ata";
        (product == "aat" ? factors.b_name : factors.a_name) += ", transposed";
    }
    return factors;
}

/// Writes C, without what spgemm.prune_below leaves out, where the configuration asks for it; one that failed the
/// comparison is not written.
template <class T>
void save(const Config& config, const CsrMatrix<T>& c, SpgemmReport& report)
{
    const bool prunes = config.spgemm.prune_below > 0;
    const CsrMatrix<T> left = prunes ? pruned<T>(c.view(), config.spgemm.prune_below) : CsrMatrix<T>();
    if (prunes) {
        report.notes.push_back(
            fmt::format("{} of {} entries are not below {}", left.nnz(), c.nnz(), config.spgemm.prune_below));
    }
    const std::string& path = config.spgemm.output;
    if (!path.empty() && (!report.verification.done || report.verification.passed)) {
        const PendingOutput pending(path);
        write_matrix<T>(path, prunes ? left.view() : c.view());
    }
}

/// One kernel: the call from host to host, the comparison, then the timed rounds on the devices.
template <class T>
void multiply_with(Runtime& runtime, const Config& config, const Factors<T>& factors, const SpgemmOptions& options,
                   const std::string& suffix, SpgemmReport& report)
{
    const T alpha = static_cast<T>(config.run.alpha);
    enter_stage("preparing" + suffix);
    const auto begin = std::chrono::steady_clock::now();
    SparseProduct<T> product(runtime, factors.left(), factors.right(), options);
    if (suffix.empty()) {
        report.plan = product.plan();
        print_plan(report.to_text(), config.output.json);
    }
    enter_stage("products");
    product.compute(alpha);
    const CsrMatrix<T> c = product.download();
    Measurement call;
    call.name = fmt::format("spgemm/{}/call", product.plan().precision);
    call.layout = "host -> host";
    call.iterations = 1;
    call.median_seconds = seconds_since(begin);
    call.min_seconds = call.median_seconds;
    call.max_seconds = call.median_seconds;
    call.wall_seconds = call.median_seconds;
    call.flops = 2 * static_cast<double>(product.plan().products);
    call.phases = product.phases();
    for (PhaseTimes& phase : call.phases) {
        phase.once = false;
    }
    if (config.run.verify) {
        enter_stage("verifying");
        combine(report.verification,
                verify_spgemm<T>(factors.left(), factors.right(), alpha, c.view(), config.spgemm.sampled_rows));
    }
    std::vector<Measurement> measured{call};
    if (product.plan().chunked()) {
        report.notes.push_back("computed in runs of rows, which go to the host: only the whole call was timed");
    } else {
        enter_stage("timing");
        const auto rounds = product.measure(config.spgemm.warmup, config.spgemm.iterations, alpha);
        measured.insert(measured.end(), rounds.begin(), rounds.end());
    }
    for (Measurement& m : measured) {
        m.name += suffix;
        report.measurements.push_back(std::move(m));
    }
    if (suffix.empty()) {
        report.plan = product.plan();
        save(config, c, report);
    }
}

template <class T>
void multiply(Runtime& runtime, const Config& config, const Factors<T>& factors, SpgemmOptions options,
              SpgemmReport& report)
{
    multiply_with(runtime, config, factors, options, "", report);
    if (config.run.compare_vendor) {
        compare_with_vendor(runtime, "spgemm", report.notes, [&](const std::string& kernel) {
            options.kernel = kernel;
            options.accumulator = "auto";
            options.determinism = Determinism::none;
            multiply_with(runtime, config, factors, options, '/' + kernel, report);
        });
    }
}

template <class T>
int run_spgemm(const Config& config, const ConfigOptions& given)
{
    const ProgressBar bar;
    SpgemmOptions options = spgemm_options(config);
    Runtime runtime(runtime_options(config));
    const MetricsServer metrics(runtime, given.dry_run ? "" : given.metrics);
    const auto begin = std::chrono::steady_clock::now();
    const Factors<T> factors = load<T>(config, bar.callback());
    const double load_seconds = seconds_since(begin);
    SpgemmReport report;
    report.a = factors.a_name;
    report.b = factors.b_name;
    report.topology = topology_line(runtime.topology());
    report.context = run_context();
    if (given.dry_run) {
        report.plan = SparseProduct<T>::plan(runtime, factors.left(), factors.right(), options);
    } else {
        multiply<T>(runtime, config, factors, options, report);
    }
    report.phases.insert(report.phases.begin(), PhaseTimes{"load", {load_seconds}, true});
    clear_progress_line();
    write_report(report.to_text(), report.to_json(), config.output.json);
    require_verified(report.verification);
    return 0;
}

int start(const SpgemmArguments& options)
{
    const bool other_b = options.product.empty() && !options.b.empty();
    if (!options.b.empty() && !options.product.empty() && options.product != "ab") {
        throw Error(ErrorCode::usage, fmt::format("--b {} names a second matrix, which --product {} does not have",
                                                  options.b, options.product));
    }
    const Config config = configuration(options, "spgemm",
                                        {{"spgemm.file", options.b},
                                         {"spgemm.product", other_b ? "ab" : options.product},
                                         {"spgemm.memory_limit", options.memory_limit},
                                         {"spgemm.output", options.output}});
    require_result_name("spgemm.output", config.spgemm.output, written_endings());
    if (!config.spgemm.output.empty() && (config.matrix.renumber || !config.matrix.permutation.empty())) {
        throw Error(ErrorCode::usage,
                    fmt::format("spgemm.output (\"{}\") would be in another numbering than A's: matrix.{} is set",
                                config.spgemm.output, config.matrix.renumber ? "renumber" : "permutation"));
    }
    return with_precision(config.matrix.precision, [&]<class T>() { return run_spgemm<T>(config, options); });
}

}  // namespace

void add_spgemm(CLI::App& app, Action& action)
{
    auto options = std::make_shared<SpgemmArguments>();
    CLI::App* command =
        app.add_subcommand("spgemm", "Multiply two sparse matrices as a configuration file says, verify and report");
    options->add_inputs(*command);
    add_text(*command, "--b", options->b, "FILE", "multiply by this matrix: C = A B");
    add_text(*command, "--product", options->product, "NAME", "aa, aat, ata or ab: A A, A A^T, A^T A, A B");
    add_text(*command, "--memory-limit", options->memory_limit, "NUMBER",
             "memory of each device to use: up to 1 a share of what is free, above it bytes");
    add_text(*command, "-o,--output", options->output, "FILE", "write C: .npz or .mtx");
    options->add_others(*command);
    options->add_metrics(*command);
    command->footer(
        "Examples:\n"
        "  mspmv spgemm configs/spgemm.toml\n"
        "  mspmv spgemm --matrix a.mtx.gz --product ata --json report.json\n"
        "  mspmv spgemm --matrix a.npz --b b.npz --memory-limit 20e9\n"
        "  mspmv spgemm --matrix a.npz --product aat -o c.npz\n"
        "  mspmv spgemm configs/spgemm.toml --dry-run");
    command->callback([&action, options] { action = [options] { return start(*options); }; });
}

}  // namespace rmsp::mspmv
