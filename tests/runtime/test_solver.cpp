#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/solver.hpp>

#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

class Solvers : public MachineTest {};

TEST_P(Solvers, ConjugateGradientsConverge)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(11);
    const auto b = random_vector<double>(a.rows, 4);
    auto matrix = runtime.distribute(a.view());
    SolverOptions options;
    options.tolerance = 1e-10;
    Solver<double> solver(matrix, options);
    std::vector<double> x(b.size(), 0.0);
    const SolveResult result = solver.solve(b.data(), x.data());
    EXPECT_EQ(result.outcome, Outcome::converged) << result.reason;
    EXPECT_GT(result.iterations, 10);
    EXPECT_LT(result.iterations, 80);
    EXPECT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations) + 1);
    EXPECT_NEAR(result.rhs_norm, norm_of(b), 1e-9);
    EXPECT_LE(result.true_residual, 1.01 * result.target);
    EXPECT_NEAR(result.true_residual, residual_of(a, b, x), 1e-3 * result.target);

    // Again, from the solution: nothing is left to do. And from zero: the same bits.
    const auto solution = x;
    const SolveResult again = solver.solve(b.data(), x.data());
    EXPECT_EQ(again.outcome, Outcome::converged);
    EXPECT_LE(again.iterations, 1);
    std::fill(x.begin(), x.end(), 0.0);
    const SolveResult same = solver.solve(b.data(), x.data());
    EXPECT_EQ(same.iterations, result.iterations);
    EXPECT_EQ(x, solution);

    auto b_vector = matrix.make_y();
    auto x_vector = matrix.make_x(Layout::rows);
    b_vector.upload(b.data());
    x_vector.fill(0.0);
    EXPECT_EQ(solver.solve(b_vector, x_vector).iterations, result.iterations);
    x_vector.download(x.data());
    EXPECT_EQ(x, solution);
}

TEST_P(Solvers, BytesOfAnIterationAreCounted)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(8);
    const auto b = random_vector<double>(a.rows, 4);
    auto matrix = runtime.distribute(a.view());
    SolverOptions options;
    options.max_iterations = 3;
    std::vector<double> x(b.size(), 0.0);
    const SolveResult result = Solver<double>(matrix, options).solve(b.data(), x.data());
    double product = 0;
    for (const ShardPlan& shard : matrix.plan().shards) {
        product += static_cast<double>(shard.apply_bytes);
    }
    // p and q of the inner product are not read again where the kernel leaves its sums.
    const double vectors = (result.iteration_bytes - product) / static_cast<double>(a.rows);
    const bool host = options_for(GetParam()).devices.starts_with("host");
    EXPECT_TRUE(vectors == 80 || (!host && vectors == 64)) << vectors;
}

TEST_P(Solvers, OutcomesAreNamed)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(8);
    const auto b = random_vector<double>(a.rows, 4);
    auto matrix = runtime.distribute(a.view());
    std::vector<double> x(b.size(), 0.0);
    {
        SolverOptions options;
        options.max_iterations = 7;
        Solver<double> solver(matrix, options);
        const auto result = solver.solve(b.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::iterations);
        EXPECT_EQ(result.iterations, 7);
        EXPECT_NEAR(result.true_residual, residual_of(a, b, x), 1e-6 * result.true_residual);
    }
    {
        SolverOptions options;
        options.tolerance = 0;
        options.max_iterations = 100000;
        options.callback = [](const SolverProgress& progress) { return progress.iteration < 5; };
        Solver<double> solver(matrix, options);
        std::fill(x.begin(), x.end(), 0.0);
        const auto result = solver.solve(b.data(), x.data());
        EXPECT_TRUE(result.outcome == Outcome::cancelled || result.outcome == Outcome::breakdown) << result.reason;
    }
    Solver<double> solver(matrix);
    {
        // b = 0: x = 0 is reached at once, from wherever.
        const std::vector<double> zeros(b.size(), 0.0);
        std::fill(x.begin(), x.end(), 0.0);
        const auto result = solver.solve(zeros.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::converged);
        EXPECT_EQ(result.iterations, 0);
    }
    {
        auto bad = b;
        bad[3] = std::numeric_limits<double>::quiet_NaN();
        EXPECT_EQ(solver.solve(bad.data(), x.data()).outcome, Outcome::not_finite);
    }
    {
        std::fill(x.begin(), x.end(), 0.0);
        EXPECT_EQ(solver.solve(b.data(), x.data()).outcome, Outcome::converged) << "usable after a failure";
    }
    {
        auto indefinite = poisson<double>(8);
        for (double& value : indefinite.values) {
            value = -value;
        }
        matrix.update_values(indefinite.values.data());
        EXPECT_EQ(solver.solve(b.data(), x.data()).outcome, Outcome::breakdown);
    }
    SolverOptions wrong;
    wrong.method = "gc";
    EXPECT_THROW(Solver<double>(matrix, wrong), Error);
}

INSTANTIATE_TEST_SUITE_P(All, Solvers, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
