#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <rmsp/config.hpp>
#include <rmsp/solve_report.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/config_command.hpp"
#include "apps/mspmv/dry_run.hpp"
#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/metrics_server.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/precision.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/random_vector.hpp"
#include "apps/mspmv/signals.hpp"
#include "apps/mspmv/solve_advice.hpp"
#include "apps/mspmv/solving.hpp"
#include "apps/mspmv/vectors.hpp"

namespace rmsp::mspmv {
namespace {

struct SolveArguments : ConfigOptions {
    std::string method;
    std::string preconditioner;
    std::string rhs;
    std::string guess;
    std::string output;
    std::string precision;
    std::string tolerance;
};

constexpr const char* known_solution = "A*x";

/// How often a solve may be expected to multiply, for the choice of a kernel: most that converge do so by then.
constexpr std::int64_t iterations_of_solves = 1000;

/// What is solved: A x = b from a first x, and the solution where it is known.
template <class T>
struct System {
    HostVector<T> b;
    HostVector<T> x;
    HostVector<T> solution;
};

template <class T>
System<T> make_system(const Config& config, DistributedMatrix<T>& matrix, std::span<const std::int64_t> row_at)
{
    const std::string& rhs = config.solver.rhs;
    System<T> system;
    if (rhs == known_solution) {
        system.solution = random_vector<T>(matrix.cols(), config.matrix.seed, 1);
        system.b.resize(static_cast<std::size_t>(matrix.rows()));
        matrix.apply(T{1}, system.solution.data(), T{0}, system.b.data());
    } else if (rhs == "ones") {
        system.b.assign(static_cast<std::size_t>(matrix.rows()), T{1});
    } else if (rhs == "random") {
        system.b = random_vector<T>(matrix.rows(), config.matrix.seed, 2);
    } else {
        system.b = read_input<T>("solver.rhs", rhs, read_options(config), matrix.rows(), "rows", row_at);
    }
    if (config.solver.guess.empty()) {
        system.x.assign(static_cast<std::size_t>(matrix.cols()), T{0});
    } else {
        system.x =
            read_input<T>("solver.guess", config.solver.guess, read_options(config), matrix.cols(), "columns", row_at);
    }
    return system;
}

std::string describe_rhs(const Config& config)
{
    const std::string& rhs = config.solver.rhs;
    return rhs == known_solution ? fmt::format("A x* of a random x*, seed {}", config.matrix.seed)
           : rhs == "random"     ? fmt::format("random, seed {}", config.matrix.seed)
                                 : rhs;
}

template <class T>
double distance(const HostVector<T>& x, const HostVector<T>& from)
{
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        difference = std::hypot(difference, static_cast<double>(x[i]) - static_cast<double>(from[i]));
        norm = std::hypot(norm, static_cast<double>(from[i]));
    }
    return norm > 0 ? difference / norm : difference;
}

/// The preconditioner that the configuration names, with its matrix if that is another one.
template <class T>
std::shared_ptr<Preconditioner<T>> make_preconditioner_of(const Config& config, const CsrMatrix<T>& matrix,
                                                          Runtime& runtime, const DistributeOptions& options,
                                                          const DistributedMatrix<T>& distributed)
{
    const SolverOptions outer = solver_options(config);
    if constexpr (std::is_same_v<T, double>) {
        if (config.solver.inner != "none") {
            CsrMatrix<float> floats;
            floats.rows = matrix.rows;
            floats.cols = matrix.cols;
            floats.row_ptr = matrix.row_ptr;
            floats.col_idx = matrix.col_idx;
            floats.values.assign(matrix.values.begin(), matrix.values.end());
            const DistributedMatrix<float> inner_matrix = runtime.distribute(floats.view(), options);
            SolverOptions inner = outer;
            inner.method = config.solver.inner;
            inner.max_iterations = config.solver.inner_iterations;
            inner.tolerance = config.solver.inner_tolerance;
            inner.absolute_tolerance = 0;
            return inner_solver(
                inner_matrix, inner,
                make_preconditioner<float>(inner_matrix, inner.preconditioner, inner.preconditioner_options));
        }
    }
    return make_preconditioner<T>(distributed, outer.preconditioner, outer.preconditioner_options);
}

template <class T>
void solve(const Config& config, const NumberedMatrix<T>& loaded, Runtime& runtime, const DistributeOptions& options,
           const ProgressBar& bar, SolveReport& report)
{
    const CsrMatrix<T>& matrix = loaded.matrix;
    enter_stage("preparing");
    DistributedMatrix<T> distributed = runtime.distribute(matrix.view(), options);
    SolveReport planned = report;
    planned.plan = distributed.report().plan;
    print_plan(planned.to_text(), config.output.json);
    enter_stage("preparing");
    System<T> system = make_system(config, distributed, loaded.row_at);
    SolverOptions solver_keys = solver_options(config);
    solver_keys.callback = watched_by(bar);
    auto begin = std::chrono::steady_clock::now();
    const auto preconditioner = make_preconditioner_of<T>(config, matrix, runtime, options, distributed);
    if (preconditioner) {
        report.preconditioner = preconditioner->report();
        report.setup.push_back({"preconditioner", {seconds_since(begin)}, true});
    }
    begin = std::chrono::steady_clock::now();
    Solver<T> solver(distributed, solver_keys, preconditioner);
    report.setup.push_back({"solver", {seconds_since(begin)}, true});
    {
        const Cancellation cancellation;
        enter_stage("solving");
        report.choice = solver.choice();
        spdlog::info("solving by {}", report.choice.method);
        report.result = solver.solve(system.b.data(), system.x.data());
    }
    enter_stage("reporting");
    report.solved = true;
    take_report_of_matrix(report, distributed.report());
    if (!system.solution.empty()) {
        report.solution_error = distance(system.x, system.solution);
    }
    for (std::string& note : solve_advice<T>(matrix, std::span<const T>(system.b), solver_keys, report.result)) {
        report.notes.push_back(std::move(note));
    }
    write_result<T>(config.solver.output, system.x, loaded.row_at);
}

template <class T>
int run_solve(const Config& config, const ConfigOptions& given)
{
    const ProgressBar bar;
    DistributeOptions options = distribute_options(config);
    options.x_layout = Layout::rows;
    if (config.kernel.expected_applies == 0) {
        options.expected_applies = std::min(config.solver.max_iterations, iterations_of_solves);
    }
    options.progress = bar.callback();
    Runtime runtime(runtime_options(config));
    const MetricsServer metrics(runtime, given.dry_run ? "" : given.metrics);
    const auto begin = std::chrono::steady_clock::now();
    double load_seconds = 0;
    SolveReport report;
    report.matrix = describe(config.matrix);
    report.topology = topology_line(runtime.topology());
    report.context = run_context();
    if (given.dry_run) {
        enter_stage("planning");
        report.plan = dry_plan<T>(config, runtime, options, csr_planner<T>(runtime), report.notes, &report.choice);
        if (report.choice.method.empty()) {
            report.choice = choose_method(runtime, report.plan, solver_options(config), options.determinism);
        }
        load_seconds = seconds_since(begin);
    } else {
        const NumberedMatrix<T> loaded = load_numbered<T>(config.matrix, bar.callback());
        load_seconds = seconds_since(begin);
        solve(config, loaded, runtime, options, bar, report);
    }
    report.rhs = describe_rhs(config);
    report.method = report.choice.method;
    report.preconditioner.name =
        config.solver.inner == "none" ? config.solver.preconditioner : config.solver.inner + " in float";
    report.tolerance = config.solver.tolerance;
    report.absolute_tolerance = config.solver.absolute_tolerance;
    finish_report(report, config, given.dry_run, load_seconds);
    return 0;
}

/// What can be said before anything is read.
void check_solve(const Config& config)
{
    require_csr(config, "solve");
    if (config.solver.inner != "none") {
        if (config.solver.method != "ir" && config.solver.method != "fcg") {
            throw Error(ErrorCode::usage,
                        fmt::format("solver.inner is \"{}\", but {} needs a preconditioner that is the "
                                    "same in all iterations: solver.method has to be ir or fcg",
                                    config.solver.inner, config.solver.method));
        }
        if (config.matrix.precision != "double") {
            throw Error(ErrorCode::usage,
                        "solver.inner solves in float what matrix.precision = \"double\" refines; "
                        "matrix.precision is \"float\"");
        }
    }
    require_result_name("solver.output", config.solver.output, written_vector_endings());
}

int start(const SolveArguments& options)
{
    const Config config = configuration(options, "solve",
                                        {{"solver.method", options.method},
                                         {"solver.preconditioner", options.preconditioner},
                                         {"solver.rhs", options.rhs},
                                         {"solver.guess", options.guess},
                                         {"solver.output", options.output},
                                         {"solver.tolerance", options.tolerance},
                                         {"matrix.precision", options.precision}});
    check_solve(config);
    return with_precision(config.matrix.precision, [&]<class T>() { return run_solve<T>(config, options); });
}

}  // namespace

void add_solve(CLI::App& app, Action& action)
{
    auto options = std::make_shared<SolveArguments>();
    CLI::App* command = app.add_subcommand("solve", "Solve A x = b as a configuration file says, and report");
    options->add_inputs(*command);
    add_text(*command, "--method", options->method, "NAME", "a method of mspmv solvers");
    add_text(*command, "--preconditioner", options->preconditioner, "NAME", "a preconditioner of mspmv solvers");
    add_text(*command, "--rhs", options->rhs, "WHAT", "b: ones, random, A*x (of a random x), or a file");
    add_text(*command, "--guess", options->guess, "FILE", "where the method begins; else at zeros");
    add_text(*command, "--tolerance", options->tolerance, "NUMBER", "ends where |b - A x| is at most this times |b|");
    add_text(*command, "-o,--output", options->output, "FILE", "write the solution: .npy or .mtx");
    add_text(*command, "--precision", options->precision, "TYPE", "double or float");
    options->add_others(*command, false);
    options->add_metrics(*command);
    command->footer(
        "Exit code 6 if the solve did not converge; the report and the solution so far are written all the same.\n"
        "Examples:\n"
        "  mspmv solve configs/solve.toml\n"
        "  mspmv solve --matrix a.mtx.gz --rhs b.npy -o x.npy\n"
        "  mspmv solve configs/solve.toml --method cg --tolerance 1e-12 --json report.json\n"
        "  mspmv solve configs/solve.toml --dry-run\n"
        "  mspmv solve configs/solve.toml --dry-run --machine \"16 x dgx-h200\"");
    command->callback([&action, options] { action = [options] { return start(*options); }; });
}

}  // namespace rmsp::mspmv
