// Algebraic multigrid: what a hierarchy costs (levels, complexities, bytes a row, set-up by phase), iterations and
// seconds of a solve, and time stepping: new values, a renewed hierarchy and a solve, again and again.
// bench/multigrid_peers.py takes what --matrices writes and adds what pyamg finds.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "multigrid_cases.hpp"
#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
    std::vector<std::string> cases;
    std::vector<std::string> devices = {"auto"};
    std::vector<std::string> preconditioners = {"amg", "sa-amg"};
    std::vector<std::string> sets;
    int steps = 20;
    int repeat = 3;
    double tolerance = 1e-8;
    std::string matrices;
    std::string json;
};

double median(std::vector<double> of)
{
    if (of.empty()) {
        return 0;
    }
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

double least(const std::vector<double>& of) { return of.empty() ? 0 : *std::min_element(of.begin(), of.end()); }

rmsp::SolverOptions solver_options(const Options& options, const MultigridCase& problem,
                                   const std::string& preconditioner)
{
    // A configuration has a matrix; this one is not used.
    std::vector<std::string> sets{fmt::format("solver.method={}", problem.symmetric ? "cg" : "gmres")};
    sets.insert(sets.end(), options.sets.begin(), options.sets.end());
    sets.emplace_back("matrix.generate=stencil7 1 1 1");
    rmsp::SolverOptions out = rmsp::solver_options(rmsp::parse_config("", "--set", sets));
    out.preconditioner = preconditioner;
    out.tolerance = options.tolerance;
    out.max_iterations = 1000;
    out.project_constants = problem.singular;
    rmsp::MultigridOptions& multigrid = out.preconditioner_options.multigrid;
    multigrid.unknowns = problem.unknowns;
    multigrid.near_nullspace = problem.near_nullspace;
    multigrid.near_null_vectors = problem.near_nullspace.empty() ? 0 : 6;
    return out;
}

Json hierarchy_json(const rmsp::PreconditionerReport& report, std::int64_t rows)
{
    Json levels = Json::array();
    for (const rmsp::MultigridLevel& level : report.levels) {
        levels.push_back({{"rows", level.rows}, {"nonzeros", level.nonzeros}, {"devices", level.devices}});
    }
    return {{"levels", std::move(levels)},
            {"operator_complexity", report.operator_complexity()},
            {"grid_complexity", report.grid_complexity()},
            {"bytes_a_row", static_cast<double>(report.device_bytes) / static_cast<double>(rows)},
            {"host_bytes_a_row", static_cast<double>(report.host_bytes) / static_cast<double>(rows)},
            {"notes", report.notes}};
}

Json phases_json(const rmsp::PreconditionerReport& report)
{
    Json phases = Json::object();
    for (const rmsp::PhaseTimes& phase : report.phases) {
        phases[phase.name] = phase.seconds.front();
    }
    return phases;
}

Json steps_json(const rmsp::PreconditionerReport& report)
{
    Json steps = Json::object();
    for (const rmsp::PhaseTimes& step : report.steps) {
        steps[step.name] = step.seconds.front();
    }
    return steps;
}

/// `steps` times: a larger diagonal, as of another time step, the hierarchy renewed, a solve from zero.
Json time_stepping(const Options& options, const MultigridCase& problem, rmsp::DistributedMatrix<double>& matrix,
                   rmsp::Preconditioner<double>& preconditioner, rmsp::Solver<double>& solver,
                   const rmsp::DistributedVector<double>& b, rmsp::DistributedVector<double>& x)
{
    rmsp::HostVector<double> values = problem.a.values;
    std::vector<double> updates;
    std::vector<double> renewals;
    std::vector<double> solves;
    std::vector<std::int64_t> iterations;
    double first_renewal = 0;
    for (int step = 0; step < options.steps; ++step) {
        // A singular matrix stays so: all of it is scaled.
        const double factor = 1 + 0.002 * (step + 1);
        for (std::int64_t i = 0; i < problem.a.rows; ++i) {
            for (auto k = static_cast<std::size_t>(problem.a.row_ptr[static_cast<std::size_t>(i)]);
                 k < static_cast<std::size_t>(problem.a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
                const bool changes = problem.singular || problem.a.col_idx[static_cast<std::int64_t>(k)] == i;
                values[k] = problem.a.values[k] * (changes ? factor : 1.0);
            }
        }
        auto began = Clock::now();
        matrix.update_values(values.data());
        updates.push_back(seconds_since(began));
        began = Clock::now();
        preconditioner.renew();
        (step == 0 ? first_renewal : renewals.emplace_back()) = seconds_since(began);
        x.fill(0.0);
        const rmsp::SolveResult result = solver.solve(b, x);
        solves.push_back(result.seconds);
        iterations.push_back(result.converged() ? result.iterations : -1);
    }
    return {{"steps", options.steps},
            {"update_seconds", median(updates)},
            {"first_renewal_seconds", first_renewal},
            {"renewal_seconds", {{"least", least(renewals)}, {"median", median(renewals)}}},
            {"renewal_phases", phases_json(preconditioner.report())},
            {"bytes_a_row",
             static_cast<double>(preconditioner.report().device_bytes) / static_cast<double>(problem.a.rows)},
            {"solve_seconds", {{"least", least(solves)}, {"median", median(solves)}}},
            {"iterations", iterations}};
}

Json measured(const Options& options, const MultigridCase& problem, const std::string& devices, const std::string& name)
{
    rmsp::RuntimeOptions runtime_options = rmsp::RuntimeOptions::from_environment({});
    runtime_options.devices = devices;
    rmsp::Runtime runtime(runtime_options);
    rmsp::DistributeOptions distribute;
    distribute.expected_applies = 1000;
    auto matrix = runtime.distribute(problem.a.view(), distribute);
    auto b = matrix.make_y();
    auto x = matrix.make_x(rmsp::Layout::rows);
    b.upload(problem.b.data());
    const rmsp::SolverOptions solver_options = ::solver_options(options, problem, name);

    std::vector<double> setups;
    std::shared_ptr<rmsp::Preconditioner<double>> preconditioner;
    for (int i = 0; i < options.repeat; ++i) {
        preconditioner.reset();
        runtime.synchronize();  // what the one before had is freed
        const auto began = Clock::now();
        preconditioner = rmsp::make_preconditioner<double>(matrix, name, solver_options.preconditioner_options);
        setups.push_back(seconds_since(began));
    }
    const rmsp::PreconditionerReport report = preconditioner->report();
    rmsp::Solver<double> solver(matrix, solver_options, preconditioner);
    std::vector<double> solves;
    rmsp::SolveResult result;
    for (int i = 0; i < options.repeat; ++i) {
        x.fill(0.0);
        result = solver.solve(b, x);
        solves.push_back(result.seconds);
    }
    say("{:16} {:8} {:7} {} levels, {:.2f}, set-up {:.3f} s, solve {:.3f} s, {} iterations, {}", problem.name, devices,
        name, report.levels.size(), report.operator_complexity(), least(setups), least(solves), result.iterations,
        to_string(result.outcome));
    std::int64_t peak_bytes = 0;
    for (const rmsp::DeviceMetrics& device : runtime.metrics().devices) {
        peak_bytes += device.peak_bytes;
    }
    Json out{{"name", fmt::format("{}/{}/{}", problem.name, name, devices)},
             {"case", problem.name},
             {"preconditioner", name},
             {"method", solver_options.method},
             {"settings", options.sets},
             {"tolerance", options.tolerance},
             {"rows", problem.a.rows},
             {"nonzeros", problem.a.nnz()},
             {"devices", device_names(runtime)},
             {"hierarchy", hierarchy_json(report, std::max<std::int64_t>(problem.a.rows, 1))},
             {"peak_bytes_a_row",
              static_cast<double>(peak_bytes) / static_cast<double>(std::max<std::int64_t>(problem.a.rows, 1))},
             {"setup_seconds", {{"least", least(setups)}, {"median", median(setups)}}},
             {"setup_phases", phases_json(report)},
             {"setup_steps", steps_json(report)},
             {"solve_seconds", {{"least", least(solves)}, {"median", median(solves)}}},
             {"solver_iterations", result.iterations},
             {"outcome", to_string(result.outcome)},
             {"relative_true_residual", result.true_residual / result.rhs_norm}};
    if (options.steps > 0) {
        out["time_stepping"] = time_stepping(options, problem, matrix, *preconditioner, solver, b, x);
    }
    return out;
}

/// What a peer needs: matrix, right-hand side, near-nullspace. \throws rmsp::Error(io)
void write_case(const std::string& folder, const MultigridCase& problem)
{
    std::filesystem::create_directories(folder);
    std::string stem = folder + "/" + problem.name;
    std::replace(stem.begin() + static_cast<std::ptrdiff_t>(folder.size()), stem.end(), ':', '-');
    rmsp::write_matrix<double>(stem + ".npz", problem.a.view());
    rmsp::write_vector<double>(stem + ".b.npy", problem.b);
    if (!problem.near_nullspace.empty()) {
        rmsp::write_vector<double>(stem + ".near.npy", problem.near_nullspace);
    }
}

int run(const Options& options, const char* executable)
{
    Json results = Json::array();
    for (const std::string& text : options.cases) {
        const MultigridCase problem = make_multigrid_case(text);
        if (!options.matrices.empty()) {
            write_case(options.matrices, problem);
        }
        for (const std::string& devices : options.devices) {
            for (const std::string& name : options.preconditioners) {
                results.push_back(measured(options, problem, devices, name));
            }
        }
    }
    write_results(options.json, run_context(executable), results);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app{"Measures algebraic multigrid: set-up, solve, and time stepping with new values."};
    app.add_option("cases", options.cases, multigrid_case_help)->required();
    app.add_option("--devices", options.devices, "sets of devices, as runtime.devices; several are taken in turn");
    app.add_option("--preconditioners", options.preconditioners, "names of preconditioners")->delimiter(',');
    app.add_option("--set", options.sets, "KEY=VALUE of the configuration's [solver]");
    app.add_option("--steps", options.steps, "time steps; 0: none");
    app.add_option("--repeat", options.repeat, "set-ups and solves, of which the fastest and the median are told");
    app.add_option("--tolerance", options.tolerance, "relative");
    app.add_option("--matrices", options.matrices, "folder to write the matrices and right-hand sides into");
    app.add_option("--json", options.json, "file; default: standard output");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options, argv[0]); });
}
