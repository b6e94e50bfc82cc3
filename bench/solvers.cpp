// Iterative solvers: milliseconds an iteration at a fixed number of iterations, beside the least that the bytes of an
// iteration allow, and solves to a tolerance. Matrices with random values become symmetric positive definite ones of
// the same structure: what is off the diagonal is random, alike on both sides, and what is on it outweighs the row.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "definite.hpp"
#include "matrix_argument.hpp"
#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::vector<std::string> matrices;
    std::vector<std::string> devices = {"auto"};
    std::vector<std::string> methods = {"cg"};
    std::vector<std::string> sets;
    std::int64_t iterations = 300;
    int repeat = 3;
    double tolerance = 0;
    std::string values = "random";
    std::string json;
};

Json measured(const Options& options, const std::string& devices, const NamedMatrix& named,
              const rmsp::CsrMatrix<double>& a, const std::string& method)
{
    rmsp::RuntimeOptions runtime_options = rmsp::RuntimeOptions::from_environment({});
    runtime_options.devices = devices;
    rmsp::Runtime runtime(runtime_options);
    // A configuration has a matrix; this one is not used.
    std::vector<std::string> sets = options.sets;
    sets.emplace_back("matrix.generate=stencil7 1 1 1");
    rmsp::DistributeOptions distribute = rmsp::distribute_options(rmsp::parse_config("", "--set", sets));
    distribute.expected_applies = 1000;
    auto matrix = runtime.distribute(a.view(), distribute);
    auto b = matrix.make_y();
    auto x = matrix.make_x(rmsp::Layout::rows);
    b.fill(1.0);
    rmsp::SolverOptions solver_options;
    solver_options.method = method;
    solver_options.tolerance = options.tolerance;
    solver_options.stagnation_window = 0;
    solver_options.divergence = 1e30;
    const auto solve = [&](std::int64_t iterations) {
        solver_options.max_iterations = iterations;
        rmsp::Solver<double> solver(matrix, solver_options);
        x.fill(0.0);
        rmsp::SolveResult best;
        for (int i = 0; i < options.repeat; ++i) {
            x.fill(0.0);
            const rmsp::SolveResult result = solver.solve(b, x);
            if (i == 0 || result.seconds < best.seconds) {
                best = result;
            }
        }
        return best;
    };
    const rmsp::SolveResult few = solve(std::max<std::int64_t>(options.iterations / 10, 1));
    const rmsp::SolveResult result = solve(options.iterations);
    // What a solve does besides is in both; where the tolerance ended both, only the mean of one is known.
    const double iteration =
        result.iterations > few.iterations
            ? (result.seconds - few.seconds) / static_cast<double>(result.iterations - few.iterations)
            : result.seconds / static_cast<double>(std::max<std::int64_t>(result.iterations, 1));
    double limit = 0;
    std::vector<std::string> kernels;
    for (const auto& shard : matrix.plan().shards) {
        kernels.push_back(shard.kernel);
    }
    for (const double gbs : runtime.measure_limits()) {
        limit += gbs * 1e9;
    }
    const double least = result.iteration_bytes / limit;
    say("{:24} {:10} {:6} {:9.4f} ms an iteration, {:5} iterations, {:.4f} s, {} ({:.3g}), {:.0f} % of the limit",
        named.name, devices, method, iteration * 1e3, result.iterations, result.seconds, to_string(result.outcome),
        result.true_residual / result.rhs_norm, 100 * least / iteration);
    return {{"name", fmt::format("{}/{}/{}", method, named.name, devices)},
            {"method", method},
            {"became", result.method},  // where it was "auto"
            {"matrix", describe(named)},
            {"rows", a.rows},
            {"nonzeros", a.nnz()},
            {"devices", devices},
            {"kernels", kernels},
            {"values", options.values},
            {"iteration_ms", iteration * 1e3},
            {"solver_iterations", result.iterations},
            {"seconds", result.seconds},
            {"outcome", to_string(result.outcome)},
            {"relative_true_residual", result.true_residual / result.rhs_norm},
            {"iteration_bytes", result.iteration_bytes},
            {"limit_bytes_per_second", limit},
            {"share_of_limit", least / iteration}};
}

int run(const Options& options, const char* executable)
{
    Json results = Json::array();
    for (const std::string& text : options.matrices) {
        const NamedMatrix named = parse_matrix(text);
        auto a = load<double>(named);
        if (options.values == "random") {
            make_definite(a);
        }
        for (const std::string& devices : options.devices) {
            for (const std::string& method : options.methods) {
                results.push_back(measured(options, devices, named, a, method));
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
    CLI::App app{"Times iterative solvers, beside what the bytes of an iteration allow."};
    app.add_option("matrices", options.matrices, matrix_argument_help)->required();
    app.add_option("--devices", options.devices, "sets of devices, as runtime.devices; several are timed in turn");
    app.add_option("--methods", options.methods, "names of solvers")->delimiter(',');
    app.add_option("--set", options.sets, "KEY=VALUE of the configuration, for how the matrix is distributed");
    app.add_option("--iterations", options.iterations, "at most so many");
    app.add_option("--repeat", options.repeat, "solves, of which the fastest counts");
    app.add_option("--tolerance", options.tolerance, "relative; 0: the fixed number of iterations");
    app.add_option("--values", options.values, "random: positive definite with random values; as-is: the matrix's")
        ->check(CLI::IsMember({"random", "as-is"}));
    app.add_option("--json", options.json, "file; default: standard output");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options, argv[0]); });
}
