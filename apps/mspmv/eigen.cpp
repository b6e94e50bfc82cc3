#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <rmsp/config.hpp>
#include <rmsp/eigen_report.hpp>
#include <rmsp/renumber.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/config_command.hpp"
#include "apps/mspmv/dry_run.hpp"
#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/metrics_server.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/precision.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"
#include "apps/mspmv/solve_advice.hpp"
#include "apps/mspmv/solving.hpp"
#include "apps/mspmv/vectors.hpp"

namespace rmsp::mspmv {
namespace {

struct EigenArguments : ConfigOptions {
    std::string method;
    std::string which;
    std::string count;
    std::string preconditioner;
    std::string output;
    std::string precision;
    std::string tolerance;
};

/// How often a solve may be expected to multiply, for the choice of a kernel.
constexpr std::int64_t iterations_of_eigen = 1000;

template <class T>
HostVector<T> downloaded(std::vector<DistributedVector<T>>& vectors, std::int64_t rows,
                         std::span<const std::int64_t> row_at)
{
    const auto size = static_cast<std::size_t>(rows);
    HostVector<T> all(vectors.size() * size);
    HostVector<T> numbered(row_at.size());
    for (std::size_t k = 0; k < vectors.size(); ++k) {
        T* const column = all.data() + k * size;
        vectors[k].download(row_at.empty() ? column : numbered.data());
        if (!row_at.empty()) {
            restore(row_at, numbered.data(), column);
        }
    }
    return all;
}

template <class T>
void solve(const Config& config, const NumberedMatrix<T>& loaded, Runtime& runtime, const DistributeOptions& options,
           const ProgressBar& bar, EigenReport& report)
{
    const CsrMatrix<T>& matrix = loaded.matrix;
    enter_stage("preparing");
    DistributedMatrix<T> distributed = runtime.distribute(matrix.view(), options);
    EigenOptions eigen_keys = eigen_options(config);
    eigen_keys.callback = watched_by(bar);
    auto begin = std::chrono::steady_clock::now();
    const auto preconditioner =
        make_preconditioner<T>(distributed, config.eigen.preconditioner, solver_options(config).preconditioner_options);
    if (preconditioner) {
        report.preconditioner = preconditioner->report();
        report.setup.push_back({"preconditioner", {seconds_since(begin)}, true});
    }
    begin = std::chrono::steady_clock::now();
    EigenSolver<T> solver(distributed, eigen_keys, preconditioner);
    report.setup.push_back({"solver", {seconds_since(begin)}, true});
    EigenResult<T> result;
    {
        const Cancellation cancellation;
        enter_stage("solving");
        spdlog::info("eigenpairs by {}", config.eigen.method);
        result = solver.solve();
    }
    enter_stage("reporting");
    report.solved = true;
    report.result = result;
    take_report_of_matrix(report, distributed.report());
    if (!is_symmetric(matrix)) {
        report.notes.push_back("the matrix is not symmetric, as " + config.eigen.method +
                               " needs it: what was found is as good as its residuals say, but others may be missing");
    }
    if (!config.eigen.output.empty()) {
        const HostVector<T> vectors = downloaded<T>(result.vectors, matrix.rows, loaded.row_at);
        const PendingOutput pending(config.eigen.output);
        write_columns<T>(config.eigen.output, vectors, static_cast<std::int64_t>(result.vectors.size()));
    }
}

template <class T>
int run_eigen(const Config& config, const ConfigOptions& given)
{
    const ProgressBar bar;
    DistributeOptions options = distribute_options(config);
    options.x_layout = Layout::rows;
    if (config.kernel.expected_applies == 0) {
        options.expected_applies = std::min(config.eigen.max_iterations, iterations_of_eigen);
    }
    options.progress = bar.callback();
    Runtime runtime(runtime_options(config));
    const MetricsServer metrics(runtime, given.dry_run ? "" : given.metrics);
    const auto begin = std::chrono::steady_clock::now();
    double load_seconds = 0;
    EigenReport report;
    if (given.dry_run) {
        enter_stage("planning");
        report.plan = dry_plan<T>(config, runtime, options, csr_planner<T>(runtime), report.notes);
        load_seconds = seconds_since(begin);
    } else {
        const NumberedMatrix<T> loaded = load_numbered<T>(config.matrix, bar.callback());
        load_seconds = seconds_since(begin);
        solve(config, loaded, runtime, options, bar, report);
    }
    report.matrix = describe(config.matrix);
    report.topology = topology_line(runtime.topology());
    report.method = config.eigen.method;
    report.which = eigen_options(config).which;
    report.count = eigen_options(config).count;
    report.preconditioner.name = config.eigen.preconditioner;
    report.tolerance = config.eigen.tolerance;
    report.context = run_context();
    finish_report(report, config, given.dry_run, load_seconds);
    return 0;
}

/// What can be said before anything is read.
void check_eigen(const Config& config)
{
    require_csr(config, "eigen");
    require_result_name("eigen.output", config.eigen.output, written_vector_endings());
}

int start(const EigenArguments& options)
{
    const Config config = configuration(options, "eigen",
                                        {{"eigen.method", options.method},
                                         {"eigen.which", options.which},
                                         {"eigen.count", options.count},
                                         {"eigen.preconditioner", options.preconditioner},
                                         {"eigen.output", options.output},
                                         {"eigen.tolerance", options.tolerance},
                                         {"matrix.precision", options.precision}});
    check_eigen(config);
    return with_precision(config.matrix.precision, [&]<class T>() { return run_eigen<T>(config, options); });
}

}  // namespace

void add_eigen(CLI::App& app, Action& action)
{
    auto options = std::make_shared<EigenArguments>();
    CLI::App* command =
        app.add_subcommand("eigen", "Find a few extreme eigenpairs of a symmetric matrix as a configuration file says");
    options->add_inputs(*command);
    add_text(*command, "--method", options->method, "NAME", "lobpcg or lanczos");
    add_text(*command, "--which", options->which, "END", "smallest or largest eigenvalues");
    add_text(*command, "--count", options->count, "NUMBER", "how many, 1 to 16");
    add_text(*command, "--preconditioner", options->preconditioner, "NAME",
             "lobpcg: a preconditioner of mspmv solvers");
    add_text(*command, "--tolerance", options->tolerance, "NUMBER",
             "ends where |A v - lambda v| is at most this times |A|");
    add_text(*command, "-o,--output", options->output, "FILE", "write the vectors, a column each: .npy or .mtx");
    add_text(*command, "--precision", options->precision, "TYPE", "double or float");
    options->add_others(*command, false);
    options->add_metrics(*command);
    command->footer(
        "Exit code 6 if the solve did not converge; the report and the vectors so far are written all the same.\n"
        "Examples:\n"
        "  mspmv eigen configs/solve.toml --count 6\n"
        "  mspmv eigen --matrix a.mtx.gz --which largest --method lanczos -o v.npy --json report.json\n"
        "  mspmv eigen configs/solve.toml --preconditioner fsai --dry-run");
    command->callback([&action, options] { action = [options] { return start(*options); }; });
}

}  // namespace rmsp::mspmv
