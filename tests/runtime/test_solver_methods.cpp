#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/solver.hpp>

#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

class SolverMethods : public SolverTest {};

/// Solves with every method that is for such matrices.
template <class T>
void solve_with_all(Runtime& runtime, const CsrMatrix<T>& a, bool symmetric, bool definite, double tolerance)
{
    const auto b = random_vector<T>(a.rows, 4);
    auto matrix = runtime.distribute(a.view());
    for (const SolverInfo& info : list_solvers()) {
        const bool diverges = info.name == "ir" && symmetric && !definite;
        if ((info.symmetric && !symmetric) || (info.definite && !definite) || diverges) {
            continue;
        }
        SCOPED_TRACE(info.name);
        SolverOptions options;
        options.method = info.name;
        options.tolerance = tolerance;
        options.max_iterations = 2000;
        options.relaxation = 1.0 / 6;  // ir without a preconditioner
        Solver<T> solver(matrix, options);
        std::vector<T> x(b.size(), T{0});
        const SolveResult result = solver.solve(b.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::converged) << result.reason;
        const double residual = residual_of(a, b, x);
        EXPECT_NEAR(result.true_residual, residual, 0.05 * result.target);
        EXPECT_LE(residual, 1.1 * result.target);
        // From the solution there is nothing to do; from zero, the same bits, unless products with A^T add atomically.
        const auto solution = x;
        EXPECT_LE(solver.solve(b.data(), x.data()).iterations, 1);
        std::fill(x.begin(), x.end(), T{0});
        const SolveResult again = solver.solve(b.data(), x.data());
        EXPECT_EQ(again.outcome, Outcome::converged) << again.reason;
        if (!info.transposed) {
            EXPECT_EQ(again.iterations, result.iterations);
            EXPECT_EQ(x, solution);
        }
    }
}

TEST_P(SolverMethods, ConvergeForDefiniteMatrices)
{
    solve_with_all(*runtime_, poisson<double>(9), true, true, 1e-9);
    solve_with_all(*runtime_, poisson<float>(9), true, true, 1e-4);
}
TEST_P(SolverMethods, ConvergeForIndefiniteMatrices)
{
    solve_with_all(*runtime_, shifted_laplacian<double>(6), true, false, 1e-9);
}
TEST_P(SolverMethods, ConvergeForNonsymmetricMatrices)
{
    solve_with_all(*runtime_, convection_diffusion<double>(9), false, false, 1e-9);
}

/// Keeps a diagonal: z = D^-1 r.
class Diagonal : public Preconditioner<double> {
public:
    Diagonal(const DistributedMatrix<double>& matrix, const std::vector<double>& inverse) : inverse_(matrix.make_y())
    {
        inverse_.vector().upload(inverse.data());
    }
    void append(Sequence& sequence, const Vec<double>& z, const Vec<double>& r) override
    {
        sequence.pass(z = inverse_ * r);
    }
    void append_transposed(Sequence& sequence, const Vec<double>& z, const Vec<double>& r) override
    {
        append(sequence, z, r);
    }
    std::string name() const override { return "diagonal"; }

private:
    Vec<double> inverse_;
};

TEST_P(SolverMethods, PreconditionersHelpEachMethod)
{
    // D A D with entries of D that differ by 100: Jacobi undoes most of it.
    auto a = poisson<double>(7);
    std::vector<double> inverse(static_cast<std::size_t>(a.rows));
    const auto scale = [](std::int64_t i) { return 1.0 + 99.0 * static_cast<double>(i % 7) / 6.0; };
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1];
             ++k) {
            a.values[static_cast<std::size_t>(k)] *= scale(i) * scale(a.col_idx[k]);
        }
        inverse[static_cast<std::size_t>(i)] = 1.0 / (6.0 * scale(i) * scale(i));
    }
    const auto b = random_vector<double>(a.rows, 9);
    auto matrix = runtime_->distribute(a.view());
    auto diagonal = std::make_shared<Diagonal>(matrix, inverse);
    for (const SolverInfo& info : list_solvers()) {
        if (info.rectangular) {
            continue;
        }
        SCOPED_TRACE(info.name);
        SolverOptions options;
        options.method = info.name;
        options.tolerance = 1e-6;
        options.max_iterations = 300;
        std::vector<double> x(b.size(), 0.0);
        const SolveResult without = Solver<double>(matrix, options).solve(b.data(), x.data());
        std::fill(x.begin(), x.end(), 0.0);
        const SolveResult with = Solver<double>(matrix, options, diagonal).solve(b.data(), x.data());
        EXPECT_EQ(with.outcome, Outcome::converged) << with.reason;
        EXPECT_LE(residual_of(a, b, x), 1.1 * with.target);
        EXPECT_NEAR(with.residual, with.true_residual, 0.1 * with.target);
        EXPECT_TRUE(!without.converged() || 2 * with.iterations < without.iterations) << without.iterations;
    }
}

TEST_P(SolverMethods, RefinementReachesDoublePrecision)
{
    const auto a = convection_diffusion<double>(8);
    CsrMatrix<float> rounded = convection_diffusion<float>(8);
    const auto b = random_vector<double>(a.rows, 5);
    auto matrix = runtime_->distribute(a.view());
    auto floats = runtime_->distribute(rounded.view());
    SolverOptions options;
    options.method = "ir";
    options.tolerance = 1e-12;
    for (const char* const method : {"gmres", "bicgstab", "idr"}) {
        SCOPED_TRACE(method);
        SolverOptions inner;
        inner.method = method;
        inner.tolerance = 1e-3;
        inner.max_iterations = 40;
        Solver<double> solver(matrix, options, inner_solver(floats, inner));
        std::vector<double> x(b.size(), 0.0);
        const SolveResult result = solver.solve(b.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::converged) << result.reason;
        EXPECT_LE(result.iterations, 6);
        EXPECT_LE(residual_of(a, b, x), 1.1 * result.target);
        const auto solution = x;
        std::fill(x.begin(), x.end(), 0.0);
        EXPECT_EQ(solver.solve(b.data(), x.data()).iterations, result.iterations);
        EXPECT_EQ(x, solution);
    }
    // Flexible CG around CG in floats.
    const auto definite = poisson<double>(8);
    auto outer = runtime_->distribute(definite.view());
    auto lower = runtime_->distribute(poisson<float>(8).view());
    options.method = "fcg";
    SolverOptions inner;
    inner.tolerance = 1e-2;
    inner.max_iterations = 30;
    std::vector<double> x(b.size(), 0.0);
    const SolveResult result = Solver<double>(outer, options, inner_solver(lower, inner)).solve(b.data(), x.data());
    EXPECT_EQ(result.outcome, Outcome::converged) << result.reason;
    EXPECT_LE(result.iterations, 10);
    inner.max_iterations = 0;
    EXPECT_THROW(static_cast<void>(inner_solver(lower, inner)), Error);
}

/// Each method's largest error of a residual that a recurrence gives, where it stops within a cycle.
TEST_P(SolverMethods, StopsWithinACycle)
{
    const auto a = convection_diffusion<double>(6);
    const auto b = random_vector<double>(a.rows, 3);
    auto matrix = runtime_->distribute(a.view());
    for (const char* const method : {"gmres", "idr", "bicgstab", "minres"}) {
        for (const int iterations : {0, 1, 2, 3, 4, 5, 6, 11}) {
            SCOPED_TRACE(std::string(method) + " " + std::to_string(iterations));
            SolverOptions options;
            options.method = method;
            options.restart = 4;
            options.max_iterations = iterations;
            options.tolerance = 1e-14;
            std::vector<double> x(b.size(), 0.0);
            const SolveResult result = Solver<double>(matrix, options).solve(b.data(), x.data());
            EXPECT_EQ(result.iterations, iterations);
            EXPECT_EQ(result.outcome, Outcome::iterations);
            EXPECT_NEAR(result.true_residual, residual_of(a, b, x), 1e-10);
            if (std::string(method) != "minres") {  // whose recurrence needs a symmetric matrix
                EXPECT_NEAR(result.residual, result.true_residual, 1e-10);
            }
        }
    }
}

TEST_P(SolverMethods, LeastSquares)
{
    for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{300, 40}, {40, 300}, {97, 97}}) {
        SCOPED_TRACE(rows);
        const auto a = with_row_lengths<double>(std::vector<std::int64_t>(static_cast<std::size_t>(rows), 9), cols);
        const auto b = random_vector<double>(rows, 3);
        auto matrix = runtime_->distribute(a.view());
        SolverOptions options;
        options.method = "lsqr";
        options.tolerance = 1e-10;
        options.normal_tolerance = 1e-9;
        std::vector<double> x(static_cast<std::size_t>(cols), 0.0);
        Solver<double> solver(matrix, options);
        const SolveResult result = solver.solve(b.data(), x.data());
        ASSERT_EQ(result.outcome, Outcome::converged) << result.reason;
        const std::vector<double> r = residual_vector(a, b, x);
        EXPECT_NEAR(result.true_residual, norm_of(r), 1e-10);
        const double normal = norm_of(product_transposed(a, r));
        EXPECT_NEAR(result.normal_residual, normal, 1e-10);
        EXPECT_TRUE(norm_of(r) <= 1.1 * result.target ||
                    normal <= 1.1e-9 * norm_of(std::vector<double>(a.values.begin(), a.values.end())) * norm_of(r));
        EXPECT_EQ(rows > cols, result.true_residual > result.target);
        EXPECT_LE(solver.solve(b.data(), x.data()).iterations, 2);
    }
    // Nothing depends on x: any x is a solution.
    auto zeros = with_row_lengths<double>(std::vector<std::int64_t>(20, 1), 6);
    std::fill(zeros.values.begin(), zeros.values.end(), 0.0);
    auto matrix = runtime_->distribute(zeros.view());
    SolverOptions options;
    options.method = "lsqr";
    const auto b = random_vector<double>(20, 3);
    std::vector<double> x(6, 0.0);
    EXPECT_EQ(Solver<double>(matrix, options).solve(b.data(), x.data()).outcome, Outcome::converged);
    options.method = "gmres";
    EXPECT_THROW(Solver<double>(matrix, options), Error);
}

INSTANTIATE_TEST_SUITE_P(All, SolverMethods, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
