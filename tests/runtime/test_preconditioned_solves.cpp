#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "preconditioner_fixtures.hpp"
#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

class PreconditionedSolves : public SolverTest {};

template <class T>
SolveResult solve(const DistributedMatrix<T>& matrix, const std::vector<T>& b, const char* method,
                  const std::string& preconditioner, int degree = 4)
{
    SolverOptions options;
    options.method = method;
    options.tolerance = sizeof(T) == 8 ? 1e-9 : 1e-4;
    options.preconditioner = preconditioner;
    options.preconditioner_options.degree = degree;
    Solver<T> solver(matrix, options);
    std::vector<T> x(b.size(), T{0});
    return solver.solve(b.data(), x.data());
}

template <class T>
void expect_few_iterations(Runtime& runtime)
{
    const auto a = lopsided<T>(10);
    DistributeOptions options;
    options.transposed = true;
    const auto matrix = runtime.distribute(a.view(), options);
    const auto b = random_vector<T>(a.rows, 4);
    for (const char* const method : {"bicgstab", "gmres", "idr", "bicg"}) {
        const SolveResult without = solve(matrix, b, method, "none");
        for (const char* const name :
             {"jacobi", "block-jacobi", "spai-0", "spai", "isai", "polynomial", "schwarz-ilu0", "schwarz-iluk"}) {
            const std::string preconditioner = name;
            if (std::string(method) == "bicg" &&
                (preconditioner == "block-jacobi" || preconditioner.starts_with("schwarz"))) {
                continue;  // no transpose
            }
            const SolveResult with = solve(matrix, b, method, preconditioner);
            EXPECT_TRUE(with.converged()) << method << ", " << name << ": " << with.reason;
            EXPECT_LT(with.iterations, without.iterations) << method << ", " << name;
        }
    }
}

TEST_P(PreconditionedSolves, OfNonsymmetricMatricesTakeFewerIterations)
{
    expect_few_iterations<double>(*runtime_);
    expect_few_iterations<float>(*runtime_);
}

/// What factors without fill do not help with.
TEST_P(PreconditionedSolves, OfFlowsConvergeWithFill)
{
    const auto a = oseen<double>(sanitized ? 16 : 24, 0.01, 0.1);
    const auto matrix = runtime_->distribute(a.view());
    const auto b = random_vector<double>(a.rows, 4);
    std::map<std::string, std::int64_t> iterations;
    for (const char* const method : {"gmres", "bicgstab", "idr", "cgs"}) {
        const SolveResult result = solve(matrix, b, method, "schwarz-iluk");
        EXPECT_TRUE(result.converged()) << method << ": " << result.reason;
        iterations[method] = result.iterations;
    }
    EXPECT_LT(2 * iterations["gmres"], solve(matrix, b, "gmres", "schwarz-ilu0").iterations);
}

TEST_P(PreconditionedSolves, TakePolynomialsOfTheHighestDegree)
{
    const auto a = definite<double>(8);
    const auto matrix = runtime_->distribute(a.view());
    const auto b = random_vector<double>(a.rows, 4);
    for (const char* const method : {"cg", "bicgstab", "gmres"}) {
        const SolveResult result = solve(matrix, b, method, "polynomial", 64);
        EXPECT_TRUE(result.converged()) << method << ": " << result.reason;
        EXPECT_LT(result.iterations, 10) << method;
    }
}

INSTANTIATE_TEST_SUITE_P(All, PreconditionedSolves, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
