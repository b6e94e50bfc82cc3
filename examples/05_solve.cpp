// Solves A x = b by conjugate gradients on every device, and says how that went. RMSP_DEVICES=0,1 or
// RMSP_DEVICES=host:4 chooses the devices.
#include <cmath>
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    // The Poisson equation on a grid: symmetric positive definite. An application passes a CsrView of its own arrays.
    const auto a = rmsp::stencil7<double>(30, 30, 30, {.values = rmsp::ValueKind::poisson});
    std::vector<double> expected(static_cast<std::size_t>(a.rows));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = std::sin(static_cast<double>(i));
    }

    rmsp::Runtime runtime(rmsp::RuntimeOptions::from_environment({}));
    auto matrix = runtime.distribute(a.view());

    std::vector<double> b(expected.size());
    matrix.apply(1.0, expected.data(), 0.0, b.data());
    std::vector<double> x(expected.size(), 0.0);  // where the solve begins

    rmsp::SolverOptions options;
    options.method = "cg";  // rmsp::list_solvers() has all of them
    options.tolerance = 1e-10;
    options.max_iterations = 1000;
    options.callback = [](const rmsp::SolverProgress& progress) {
        return progress.seconds < 60;  // false cancels
    };
    rmsp::Solver<double> solver(matrix, options);
    const rmsp::SolveResult result = solver.solve(b.data(), x.data());

    // What fails numerically is an outcome, with a reason; only wrong use and broken devices throw.
    std::printf("%s after %lld iterations, |b - A x| = %.3g of %.3g asked for, %.3g ms\n",
                rmsp::to_string(result.outcome), static_cast<long long>(result.iterations), result.true_residual,
                result.target, 1e3 * result.seconds);
    if (!result.converged()) {
        std::printf("%s\n", result.reason.c_str());
        return 1;
    }
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        worst = std::fmax(worst, std::fabs(x[i] - expected[i]));
    }
    std::printf("largest error %.3g\n", worst);
    return worst < 1e-8 ? 0 : 1;
}
