#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <rmsp/config.hpp>
#include <rmsp/convert.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/config_command.hpp"
#include "apps/mspmv/dry_run.hpp"
#include "apps/mspmv/kept_peak.hpp"
#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/metrics_server.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/precision.hpp"
#include "apps/mspmv/print.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/random_vector.hpp"
#include "apps/mspmv/vectors.hpp"

namespace rmsp::mspmv {
namespace {

struct RunArguments : ConfigOptions {
    std::string format;
    std::string merge;
    std::string encoding;
    std::string x;
    std::string y;
    bool help_config = false;
    bool markdown = false;
};

/// Completes what the runtime said about a run with what only the program knows.
void describe_run(Report& report, const Config& config, const Runtime& runtime,
                  const std::pair<const char*, double>& first_phase)
{
    report.matrix = describe(config.matrix);
    report.topology = topology_line(runtime.topology());
    report.setup.insert(report.setup.begin(), PhaseTimes{first_phase.first, {first_phase.second}, true});
    report.context.merge(run_context());
    if (!report.measurements.empty()) {
        const std::vector<ShardPlan>& shards = report.plan.shards;
        report.peak_gflops = kept_peak_gflops(runtime, config.matrix.precision, [&](std::size_t device) {
            return std::any_of(shards.begin(), shards.end(), [&](const ShardPlan& shard) {
                return shard.part.nnz() > 0 && static_cast<std::size_t>(shard.device) == device;
            });
        });
    }
}

/// Brings the entries into an order that the seed decides.
template <class T>
void shuffle(CooMatrix<T>& a, std::int64_t seed)
{
    std::vector<std::size_t> from(static_cast<std::size_t>(a.nnz()));
    std::iota(from.begin(), from.end(), std::size_t{0});
    std::shuffle(from.begin(), from.end(), std::mt19937_64(static_cast<std::uint64_t>(seed)));
    const auto reorder = [&](auto& entries) {
        std::decay_t<decltype(entries)> out(entries.size());
        std::transform(from.begin(), from.end(), out.begin(), [&](std::size_t i) { return entries[i]; });
        entries = std::move(out);
    };
    a.row_idx.visit(reorder);
    a.col_idx.visit(reorder);
    reorder(a.values);
}

/// The matrix in the format that the configuration names. The CSR one stays, to verify with.
template <class T>
class Formatted {
public:
    Formatted(const CsrMatrix<T>& matrix, const Config::Matrix& config) : matrix_(matrix)
    {
        if (config.format == "csc") {
            other_ = to_csc(matrix.view());
        } else if (config.format == "coo") {
            CooMatrix<T> coo = to_coo(matrix.view());
            if (config.order == "column") {
                coo = sort_by_column(coo.view());
            } else if (config.order == "none") {
                shuffle(coo, config.seed);
            }
            other_ = std::move(coo);
        }
    }

    DistributedMatrix<T> distribute(Runtime& runtime, const DistributeOptions& options) const
    {
        return visit([&](const auto& view) { return runtime.distribute(view, options); });
    }
    Plan plan(const Runtime& runtime, const DistributeOptions& options) const
    {
        return visit([&](const auto& view) { return runtime.plan(view, options); });
    }

private:
    template <class F>
    auto visit(const F& f) const
    {
        if (const auto* csc = std::get_if<CscMatrix<T>>(&other_)) {
            return f(csc->view());
        }
        if (const auto* coo = std::get_if<CooMatrix<T>>(&other_)) {
            return f(coo->view());
        }
        return f(matrix_.view());
    }

    const CsrMatrix<T>& matrix_;
    std::variant<std::monostate, CscMatrix<T>, CooMatrix<T>> other_;
};

/// The matrix, the vectors and the options of one run; multiplies and compares with any kernel.
template <class T>
class Multiplication {
public:
    Multiplication(const Config& config, const NumberedMatrix<T>& loaded)
        : config_(config),
          matrix_(loaded.matrix),
          row_at_(loaded.row_at),
          alpha_(static_cast<T>(config.run.alpha)),
          beta_(static_cast<T>(config.run.beta)),
          x_(config.run.x.empty()
                 ? random_vector<T>(matrix_.cols, config.matrix.seed, 1)
                 : read_input<T>("run.x", config.run.x, read_options(config), matrix_.cols, "columns", row_at_)),
          y_(static_cast<std::size_t>(matrix_.rows))
    {
        if (beta_ != T{0}) {
            y_in_ = config.run.y_in.empty() ? random_vector<T>(matrix_.rows, config.matrix.seed, 2)
                                            : read_input<T>("run.y_in", config.run.y_in, read_options(config),
                                                            matrix_.rows, "rows", row_at_);
        }
    }

    /// Adds the comparison to `verification` where the configuration asks for one.
    Measurement measure(DistributedMatrix<T>& distributed, StoredValues values, Verification& verification)
    {
        using Vectors = typename DistributedMatrix<T>::Vectors;
        using Caches = typename DistributedMatrix<T>::Caches;
        const Vectors vectors = config_.run.vectors == "host"   ? Vectors::host
                                : config_.run.vectors == "rows" ? Vectors::rows
                                                                : Vectors::replicated;
        const T* y_in = beta_ != T{0} ? y_in_.data() : nullptr;
        enter_stage("timing");
        Measurement measurement =
            distributed.measure(vectors, config_.run.warmup, config_.run.iterations, alpha_, x_.data(), beta_, y_in,
                                y_.data(), config_.run.cache == "cold" ? Caches::cold : Caches::warm);
        if (config_.run.verify) {
            enter_stage("verifying");
            const auto begin = std::chrono::steady_clock::now();
            combine(verification, verify_spmv<T>(matrix_.view(), alpha_, x_.data(), beta_, y_in, y_.data(), values));
            spdlog::info("verified {} in {:.3f} s", measurement.name, seconds_since(begin));
        }
        return measurement;
    }

    /// Writes the last y where the configuration asks for it; one that failed the comparison is not written.
    void save(const Verification& verification) const
    {
        if (!verification.done || verification.passed) {
            write_result<T>(config_.run.y, y_, row_at_);
        }
    }

private:
    const Config& config_;
    const CsrMatrix<T>& matrix_;
    std::span<const std::int64_t> row_at_;
    T alpha_;
    T beta_;
    HostVector<T> x_;
    HostVector<T> y_in_;
    HostVector<T> y_;
};

template <class T>
Report multiply(const Config& config, const NumberedMatrix<T>& loaded, Runtime& runtime, DistributeOptions options)
{
    Verification verification;
    const CsrMatrix<T>& matrix = loaded.matrix;
    Multiplication<T> multiplication(config, loaded);
    Report report;
    {
        // A streamed matrix is used where it is.
        const Formatted<T> formatted(matrix, config.matrix);
        enter_stage("preparing");
        DistributedMatrix<T> distributed = formatted.distribute(runtime, options);
        Report planned = distributed.report();
        describe_run(planned, config, runtime, {"", 0});
        print_plan(planned.to_text(), config.output.json);
        multiplication.measure(distributed, options.values, verification);
        multiplication.save(verification);
        report = distributed.report();
    }
    if (config.run.compare_vendor && options.mode == Mode::streamed) {
        report.notes.emplace_back("run.compare_vendor: a streamed matrix has no vendor's kernel to compare with");
    } else if (config.run.compare_vendor) {
        compare_with_vendor(runtime, "spmv", report.notes, [&](const std::string& kernel) {
            // The vendor's multiply CSR, whatever the format of the run, and doubles as they are.
            options.kernel = kernel;
            options.determinism = Determinism::none;
            options.values = StoredValues::exact;
            enter_stage("preparing " + kernel);
            DistributedMatrix<T> distributed = runtime.distribute(matrix.view(), options);
            Measurement measurement = multiplication.measure(distributed, options.values, verification);
            measurement.name += '/' + kernel;
            report.measurements.push_back(std::move(measurement));
        });
    }
    report.verification = verification;
    return report;
}

template <class T>
int run_product(const Config& config, const ConfigOptions& given)
{
    const ProgressBar bar;
    // Refused options should not cost the time of reading.
    DistributeOptions options = distribute_options(config);
    options.progress = bar.callback();
    const RuntimeOptions of_runtime = runtime_options(config);

    // The runtime first: it binds and opens devices before the large arrays are touched.
    Runtime runtime(of_runtime);
    const MetricsServer metrics(runtime, given.dry_run ? "" : given.metrics);
    const auto begin = std::chrono::steady_clock::now();
    if (given.dry_run) {
        Report report;
        enter_stage("planning");
        report.plan = dry_plan<T>(
            config, runtime, options,
            [&](const CsrMatrix<T>& matrix) -> Planner {
                auto formatted = std::make_shared<const Formatted<T>>(matrix, config.matrix);
                return [&runtime, formatted](const DistributeOptions& o) { return formatted->plan(runtime, o); };
            },
            report.notes);
        describe_run(report, config, runtime, {"plan", seconds_since(begin)});
        clear_progress_line();
        write_report(report.to_text(), report.to_json(), config.output.json);
        return 0;
    }
    const NumberedMatrix<T> loaded = load_numbered<T>(config.matrix, bar.callback());
    const double load_seconds = seconds_since(begin);
    spdlog::info("{}: {} in {:.3f} s", config.matrix.file.empty() ? config.matrix.generate : config.matrix.file,
                 size_text(loaded.matrix), load_seconds);

    Report report = multiply<T>(config, loaded, runtime, options);
    describe_run(report, config, runtime, {config.matrix.file.empty() ? "generate" : "read", load_seconds});
    clear_progress_line();
    write_report(report.to_text(), report.to_json(), config.output.json);
    require_verified(report.verification);
    return 0;
}

/// The keys as the Markdown table of docs/configuration.md.
std::string key_table()
{
    std::string text = "| key | type | default | meaning |\n|---|---|---|---|\n";
    for (const ConfigKey& key : config_keys()) {
        text += fmt::format("| `{}` | {} | `{}` | {} |\n", key.name, table_cell(key.type), table_cell(key.fallback),
                            table_cell(key.meaning));
    }
    return text;
}

/// The keys for people: section by section.
std::string key_list()
{
    std::string text;
    std::string section;
    for (const ConfigKey& key : config_keys()) {
        const auto dot = key.name.find('.');
        if (key.name.substr(0, dot) != section) {
            text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", key.name.substr(0, dot));
            section = key.name.substr(0, dot);
        }
        text +=
            fmt::format("  {} = {}  ({})\n      {}\n", key.name.substr(dot + 1), key.fallback, key.type, key.meaning);
    }
    return text;
}

int start(const RunArguments& options)
{
    if (options.help_config) {
        if (options.markdown) {
            print(key_table());
        } else {
            print_fitted(key_list());
        }
        return 0;
    }
    const Config config = configuration(options, "run",
                                        {{"matrix.format", options.format},
                                         {"run.merge", options.merge},
                                         {"stream.encoding", options.encoding},
                                         {"run.x", options.x},
                                         {"run.y", options.y}});
    require_result_name("run.y", config.run.y, written_vector_endings());
    return with_precision(config.matrix.precision, [&]<class T>() { return run_product<T>(config, options); });
}

}  // namespace

void add_run(CLI::App& app, Action& action)
{
    auto options = std::make_shared<RunArguments>();
    CLI::App* command =
        app.add_subcommand("run", "Multiply a matrix as a configuration file says, verify the result and report");
    options->add_inputs(*command);
    add_text(*command, "--format", options->format, "NAME", "multiply in csr, csc or coo; auto: csr");
    add_text(*command, "--merge", options->merge, "NAME", "add partial results (csc) by peer, nccl, host or auto");
    add_text(*command, "--encoding", options->encoding, "NAME",
             "auto: of a streamed matrix, columns and values cross the links encoded; none: as they are");
    add_text(*command, "--x", options->x, "FILE", "x: .npy, or .mtx of one column; else random");
    add_text(*command, "--y", options->y, "FILE", "write y = alpha A x + beta y: .npy or .mtx");
    options->add_others(*command);
    options->add_metrics(*command);
    CLI::Option* keys = command->add_flag("--help-config", options->help_config, "list every configuration key");
    command->add_flag("--markdown", options->markdown, "list them as a Markdown table")->needs(keys);
    command->footer(
        "Precedence: command line > RMSP_DEVICES, RMSP_BIND, RMSP_TRANSPORT, RMSP_CACHE_DIR, RMSP_IO_MAX_BYTES >\n"
        "file > default.\n"
        "Examples:\n"
        "  mspmv run configs/quickstart.toml\n"
        "  mspmv run configs/quickstart.toml --matrix matrix.mtx.gz --devices 0,1\n"
        "  mspmv run --matrix matrix.npz --set run.iterations=200 --json report.json\n"
        "  mspmv run --matrix matrix.npz --x x.npy --y y.npy\n"
        "  mspmv run configs/summit.toml --dry-run\n"
        "  mspmv run configs/dgx.toml --dry-run --machine \"16 x dgx-h200\"");
    command->callback([&action, options] { action = [options] { return start(*options); }; });
}

}  // namespace rmsp::mspmv
