// Time steps of u' = -L u by implicit Euler, (I + dt L) u_new = u, with coefficients that differ in each step: new
// values, a preconditioner that is renewed now and then, a solve. For each kernel what is prepared once, what a step
// takes, and after how many steps the preparation has paid for itself beside the first kernel. The case of the paper of
// `ehyb`: conjugate gradients with a sparse approximate inverse.

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
using Clock = std::chrono::steady_clock;

struct Options {
    std::vector<std::string> matrices;
    std::vector<std::string> kernels = {"auto"};
    std::vector<std::string> sets;
    std::string devices = "auto";
    std::string method = "cg";
    std::string preconditioner = "spai";
    std::int64_t steps = 100;
    std::int64_t renew = 10;
    double step_length = 100;
    double tolerance = 1e-8;
    std::string json;
};

/// I + dt L, where L, whose rows sum to zero nearly, has become a quarter stronger and weaker in turns.
void set_step(const rmsp::CsrMatrix<double>& l, std::int64_t step, double dt, rmsp::CsrMatrix<double>& a)
{
    const double strength = dt * (1 + 0.25 * std::sin(0.3 * static_cast<double>(step)));
    for (std::int64_t row = 0; row < l.rows; ++row) {
        for (auto k = l.row_ptr[static_cast<std::size_t>(row)]; k < l.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] =
                strength * l.values[static_cast<std::size_t>(k)] + (l.col_idx[k] == row ? 1.0 : 0.0);
        }
    }
}

Json measured(const Options& options, const std::string& kernel, const NamedMatrix& named,
              const rmsp::CsrMatrix<double>& l)
{
    rmsp::RuntimeOptions runtime_options = rmsp::RuntimeOptions::from_environment({});
    runtime_options.devices = options.devices;
    rmsp::Runtime runtime(runtime_options);
    std::vector<std::string> sets = options.sets;
    sets.emplace_back("kernel.spmv=" + kernel);
    sets.emplace_back("matrix.generate=stencil7 1 1 1");  // a configuration has a matrix; this one is not used
    const rmsp::Config config = rmsp::parse_config("", "--set", sets);
    rmsp::DistributeOptions distribute = rmsp::distribute_options(config);
    if (distribute.expected_applies == 0) {
        distribute.expected_applies = 100 * options.steps;
    }
    rmsp::SolverOptions solver_options = rmsp::solver_options(config);
    solver_options.method = options.method;
    solver_options.tolerance = options.tolerance;
    solver_options.history = false;

    rmsp::CsrMatrix<double> a = l;
    set_step(l, 0, options.step_length, a);
    auto began = Clock::now();
    auto matrix = runtime.distribute(a.view(), distribute);
    auto u = matrix.make_x(rmsp::Layout::rows);
    auto b = matrix.make_y();
    runtime.synchronize();
    const double distributed = seconds_since(began);
    began = Clock::now();
    const auto m = rmsp::make_preconditioner(matrix, options.preconditioner, solver_options.preconditioner_options);
    rmsp::Solver<double> solver(matrix, solver_options, m);
    const double prepared = seconds_since(began);

    std::vector<double> start(static_cast<std::size_t>(a.rows));
    for (std::int64_t i = 0; i < a.rows; ++i) {
        start[static_cast<std::size_t>(i)] = weight(i, 3);
    }
    u.upload(start.data());
    double update = 0;
    double renew = 0;
    double solve = 0;
    double iterate = 0;
    std::int64_t iterations = 0;
    std::int64_t done = 0;
    std::string outcome = "converged";
    for (; done < options.steps && outcome == "converged"; ++done) {
        if (done > 0) {
            set_step(l, done, options.step_length, a);
            began = Clock::now();
            matrix.update_values(a.values.data());
            update += seconds_since(began);
            if (options.renew > 0 && done % options.renew == 0) {
                began = Clock::now();
                solver.renew();
                renew += seconds_since(began);
            }
        }
        u.download(start.data());
        b.upload(start.data());
        const rmsp::SolveResult result = solver.solve(b, u);
        solve += result.seconds;
        iterate += result.phases.empty() ? result.seconds : result.phases.front().seconds.front();
        iterations += result.iterations;
        outcome = to_string(result.outcome);
    }
    std::string used;
    for (const auto& shard : matrix.plan().shards) {
        if (shard.part.nnz() > 0 && used.empty()) {
            used = shard.kernel;
        }
    }
    const auto steps = static_cast<double>(std::max<std::int64_t>(done, 1));
    const double set_up = distributed + prepared;
    const double a_step = (update + renew + solve) / steps;
    const double iteration = iterate / static_cast<double>(std::max<std::int64_t>(iterations, 1));
    say("{:20} {:18} set-up {:.3f} + {:.3f} s, a step {:.3f} ms ({:.1f} iterations of {:.4f} ms), {} steps {:.3f} s, "
        "{}",
        named.name, used, distributed, prepared, a_step * 1e3, static_cast<double>(iterations) / steps, iteration * 1e3,
        done, set_up + a_step * steps, outcome);
    return {{"name", fmt::format("{}/{}", named.name, kernel)},
            {"matrix", describe(named)},
            {"rows", a.rows},
            {"nonzeros", a.nnz()},
            {"kernel", used},
            {"method", options.method},
            {"preconditioner", options.preconditioner},
            {"steps", done},
            {"outcome", outcome},
            {"distribute_seconds", distributed},
            {"preconditioner_seconds", prepared},
            {"update_seconds", update},
            {"renew_seconds", renew},
            {"solve_seconds", solve},
            {"solver_iterations", iterations},
            {"iteration_ms", iteration * 1e3},
            {"step_seconds", a_step},
            {"total_seconds", set_up + a_step * steps}};
}

/// After how many steps a kernel has made up for what its preparation takes longer than the first one's: 0, or null
/// where it never does.
void add_break_even(Json& of, const Json& first)
{
    const auto set_up = [](const Json& row) {
        return row["distribute_seconds"].get<double>() + row["preconditioner_seconds"].get<double>();
    };
    const double longer = set_up(of) - set_up(first);
    const double won = first["step_seconds"].get<double>() - of["step_seconds"].get<double>();
    of["break_even_steps"] = longer <= 0 ? Json(0) : won > 0 ? Json(std::ceil(longer / won)) : Json();
}

int run(const Options& options, const char* executable)
{
    Json results = Json::array();
    for (const std::string& text : options.matrices) {
        const NamedMatrix named = parse_matrix(text);
        auto l = load<double>(named);
        make_definite(l);
        const std::size_t first = results.size();
        for (const std::string& kernel : options.kernels) {
            results.push_back(measured(options, kernel, named, l));
            add_break_even(results.back(), results[first]);
        }
    }
    write_results(options.json, run_context(executable), results);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app{"Times steps with new values: a format's preparation, and what it saves in each step."};
    app.add_option("matrices", options.matrices, matrix_argument_help)->required();
    app.add_option("--kernels", options.kernels,
                   "kernels of the product with the matrix, one after the other; the "
                   "others are compared with the first one")
        ->delimiter(',');
    app.add_option("--devices", options.devices, "as runtime.devices");
    app.add_option("--method", options.method, "name of a solver");
    app.add_option("--preconditioner", options.preconditioner, "name of a preconditioner");
    app.add_option("--steps", options.steps, "time steps")->check(CLI::PositiveNumber);
    app.add_option("--renew", options.renew, "the preconditioner is made anew every N steps; 0: never")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--step-length", options.step_length, "dt: longer steps take more iterations");
    app.add_option("--tolerance", options.tolerance, "relative");
    app.add_option("--set", options.sets, "KEY=VALUE of the configuration, of kernels and solver");
    app.add_option("--json", options.json, "file; default: standard output");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options, argv[0]); });
}
