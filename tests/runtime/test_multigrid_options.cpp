#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "multigrid_fixtures.hpp"

namespace rmsp::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class MultigridOption : public SolverTest {
protected:
    PreconditionerReport report_of(const CsrMatrix<double>& a, const char* name, const MultigridOptions& multigrid)
    {
        const auto matrix = runtime_->distribute(a.view());
        return make_preconditioner<double>(matrix, name, by(name, multigrid).preconditioner_options)->report();
    }
};

TEST_P(MultigridOption, AggressiveCoarseningTakesLessMemoryAndFewMoreIterations)
{
    const auto a = poisson<double>(14);
    const auto b = random_vector<double>(a.rows, 3);
    MultigridOptions aggressive = small();
    aggressive.aggressive_levels = 1;
    const auto before = report_of(a, "amg", small());
    const auto after = report_of(a, "amg", aggressive);
    EXPECT_LT(3 * after.levels[1].rows, before.levels[1].rows);
    EXPECT_LT(after.operator_complexity(), 1.5);
    EXPECT_GT(before.operator_complexity(), 2);
    const auto standard = solve(*runtime_, a, b, by("amg", small()));
    const auto fewer = solve(*runtime_, a, b, by("amg", aggressive));
    EXPECT_TRUE(fewer.converged()) << fewer.reason;
    EXPECT_LE(fewer.iterations, 2 * standard.iterations + 2);
}

TEST_P(MultigridOption, AggressiveCoarseningIsRenewed)
{
    auto a = poisson<double>(10);
    const auto b = random_vector<double>(a.rows, 3);
    MultigridOptions options = small();
    options.aggressive_levels = 2;
    auto matrix = runtime_->distribute(a.view());
    Solver<double> solver(matrix, by("amg", options));
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] *= 3;
            a.values[static_cast<std::size_t>(k)] += a.col_idx[k] == i ? 0.5 : 0;
        }
    }
    matrix.update_values(a.values.data());
    solver.renew();
    std::vector<double> x(b.size(), 0.0);
    const auto renewed = solver.solve(b.data(), x.data());
    EXPECT_TRUE(renewed.converged());
    EXPECT_EQ(renewed.iterations, solve(*runtime_, a, b, by("amg", options)).iterations);
}

TEST_P(MultigridOption, KCycleOfPlainAggregationHardlyGrows)
{
    // Plain aggregation needs it: with V cycles its iterations grow with the number of levels.
    std::vector<std::int64_t> k;
    std::vector<std::int64_t> v;
    for (const std::int64_t n : {8, 14}) {
        const auto a = poisson<double>(n);
        const auto b = random_vector<double>(a.rows, 3);
        MultigridOptions options;
        options.coarse_rows = 4;
        options.interpolation = "tentative";
        v.push_back(solve(*runtime_, a, b, by("sa-amg", options, "fcg")).iterations);
        options.cycle = "k";
        const auto result = solve(*runtime_, a, b, by("sa-amg", options, "fcg"));
        EXPECT_TRUE(result.converged()) << result.reason;
        k.push_back(result.iterations);
        // Alone, as iterative refinement.
        EXPECT_TRUE(solve(*runtime_, a, b, by("sa-amg", options, "ir")).converged());
    }
    EXPECT_LT(k[1], v[1]);
    EXPECT_LE(k[1], k[0] + 4);
}

TEST_P(MultigridOption, KCycleIsNotForMethodsThatWantTheSamePreconditioner)
{
    const auto a = poisson<double>(5);
    const auto matrix = runtime_->distribute(a.view());
    MultigridOptions options = small();
    options.cycle = "k";
    for (const SolverInfo& info : list_solvers()) {
        if (info.rectangular || info.transposed) {
            continue;
        }
        const auto make = [&] { Solver<double> solver(matrix, by("amg", options, std::string(info.name))); };
        if (info.flexible) {
            EXPECT_NO_THROW(make()) << info.name;
            continue;
        }
        try {
            make();
            ADD_FAILURE() << info.name;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            EXPECT_THAT(error.what(), AllOf(HasSubstr(std::string(info.name)), HasSubstr("\"fcg\" or \"ir\"")));
        }
    }
}

TEST_P(MultigridOption, KCycleOfNothingIsNothing)
{
    const auto a = poisson<double>(8);
    MultigridOptions options;
    options.coarse_rows = 4;
    options.cycle = "k";
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto result =
            solve(*runtime_, a, std::vector<double>(static_cast<std::size_t>(a.rows), 0.0), by(name, options, "fcg"));
        EXPECT_TRUE(result.converged()) << result.reason;
        EXPECT_EQ(result.iterations, 0);
    }
}

TEST_P(MultigridOption, GaussSeidelSmoothsBetterThanJacobi)
{
    const auto a = poisson<double>(10);
    const auto b = random_vector<double>(a.rows, 3);
    for (const char* const name : {"amg", "sa-amg"}) {
        MultigridOptions options = small();
        const auto jacobi = solve(*runtime_, a, b, by(name, options));
        options.smoother = "gauss-seidel";
        const auto result = solve(*runtime_, a, b, by(name, options));
        EXPECT_TRUE(result.converged()) << result.reason;
        EXPECT_LT(result.iterations, jacobi.iterations) << name;
        // Alone it converges, too, on any number of devices.
        EXPECT_TRUE(solve(*runtime_, a, b, by(name, options, "ir")).converged());
    }
    EXPECT_TRUE(solve(*runtime_, a, b, by("gauss-seidel")).converged());
    const auto unsymmetric = convection_diffusion<double>(8);
    EXPECT_TRUE(
        solve(*runtime_, unsymmetric, random_vector<double>(unsymmetric.rows, 3), by("gauss-seidel", {}, "gmres"))
            .converged());
}

TEST_P(MultigridOption, RigidMotionsKeepElasticityFromGrowing)
{
    std::vector<std::int64_t> with;
    std::vector<std::int64_t> without;
    for (const char* const text : {"elasticity 5 3 3", "elasticity 10 7 7"}) {
        const auto a = generate<double>(text);
        const auto b = random_vector<double>(a.rows, 3);
        MultigridOptions options;
        options.coarse_rows = 60;
        options.unknowns = 3;
        without.push_back(solve(*runtime_, a, b, by("sa-amg", options)).iterations);
        options.near_nullspace = rigid_body_modes(3, generated_coordinates(text));
        options.near_null_vectors = 6;
        const auto result = solve(*runtime_, a, b, by("sa-amg", options));
        EXPECT_TRUE(result.converged()) << result.reason;
        with.push_back(result.iterations);
    }
    EXPECT_LT(1.3 * static_cast<double>(with[1]), static_cast<double>(without[1]));
    EXPECT_LE(static_cast<double>(with[1]), 1.5 * static_cast<double>(with[0]));
}

TEST_P(MultigridOption, ConstantsAreProjectedOutOfANeumannProblem)
{
    // b does not sum to zero: there is a solution only for what is left of it.
    const auto a = stencil7<double>(9, 8, 7, {.values = ValueKind::laplace});
    std::vector<double> b = random_vector<double>(a.rows, 3);
    for (double& entry : b) {
        entry += 0.5;
    }
    for (const char* const name : {"none", "amg", "sa-amg"}) {
        SolverOptions options = by(name, small());
        EXPECT_FALSE(solve(*runtime_, a, b, options).converged()) << name;
        options.project_constants = true;
        const auto matrix = runtime_->distribute(a.view());
        Solver<double> solver(matrix, options);
        std::vector<double> x(b.size(), 1.0);
        const auto result = solver.solve(b.data(), x.data());
        EXPECT_TRUE(result.converged()) << name << ": " << result.reason;
        EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()), 0, 1e-12);
        const double mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
        std::vector<double> projected = b;
        for (double& entry : projected) {
            entry -= mean;
        }
        EXPECT_LE(residual_of(a, projected, x), 1.1e-8 * norm_of(projected)) << name;
    }
}

TEST_P(MultigridOption, ProjectingConstantsOutOfOtherMatricesIsAnOutcome)
{
    const auto a = poisson<double>(6);
    SolverOptions options = by("amg", small());
    options.project_constants = true;
    const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), options);
    EXPECT_EQ(result.outcome, Outcome::stagnation) << to_string(result.outcome);
    const auto wide = random_uniform<double>(4, 6, 2);
    const auto matrix = runtime_->distribute(wide.view());
    options.method = "lsqr";
    options.preconditioner = "none";
    EXPECT_THROW(Solver<double>(matrix, options), Error);
}

TEST_P(MultigridOption, OfAnIndefiniteMatrixSaysThatItIsNotForIt)
{
    const auto a = shifted_laplacian<double>(10);
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto notes = report_of(a, name, small()).notes;
        EXPECT_THAT(notes, Contains(AllOf(HasSubstr("indefinite"), HasSubstr("minres")))) << name;
        const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), by(name, small()));
        EXPECT_EQ(result.outcome, Outcome::breakdown) << name << ": " << to_string(result.outcome);
    }
}

TEST_P(MultigridOption, OfBadDiagonalsHasANamedOutcome)
{
    const auto with_diagonal = [](double bad) {
        auto a = poisson<double>(9);
        for (std::int64_t i = 0; i < a.rows; i += 50) {
            for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
                if (a.col_idx[k] == i) {
                    a.values[static_cast<std::size_t>(k)] = bad;
                }
            }
        }
        return a;
    };
    for (const char* const name : {"amg", "sa-amg"}) {
        for (const double bad : {0.0, -6.0}) {
            const auto a = with_diagonal(bad);
            const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), by(name, small()));
            EXPECT_EQ(result.outcome, Outcome::breakdown) << name << ' ' << bad << ": " << to_string(result.outcome);
            EXPECT_THAT(result.reason, HasSubstr("not positive definite"));
        }
    }
}

TEST_P(MultigridOption, EntriesThatAreAlikeAreStrongWhateverTheDiagonal)
{
    // 1 / 26 of the diagonal each, less than the threshold.
    const auto a = stencil27<double>(9, 9, 9, {.values = ValueKind::poisson});
    MultigridOptions options = small();
    for (const double threshold : {-1.0, 0.08}) {
        options.threshold = threshold;
        EXPECT_GT(report_of(a, "sa-amg", options).levels.size(), 1U);
        const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), by("sa-amg", options));
        EXPECT_TRUE(result.converged()) << result.reason;
        EXPECT_LE(result.iterations, 20);
    }
}

TEST_P(MultigridOption, RefusesBadOnes)
{
    const auto a = poisson<double>(4);
    const auto matrix = runtime_->distribute(a.view());
    const auto refusal = [&](const char* name, const auto& change) -> std::string {
        PreconditionerOptions options;
        change(options.multigrid);
        try {
            (void)make_preconditioner<double>(matrix, name, options);
        } catch (const Error& error) {
            return error.what();
        }
        return "taken";
    };
    EXPECT_THAT(refusal("amg", [](auto& o) { o.aggressive_levels = -1; }), HasSubstr("aggressive_levels is -1"));
    EXPECT_THAT(refusal("sa-amg", [](auto& o) { o.aggressive_levels = 1; }), HasSubstr("aggressive_levels is 1"));
    EXPECT_THAT(refusal("amg",
                        [](auto& o) {
                            o.aggressive_levels = 1;
                            o.interpolation = "direct";
                        }),
                HasSubstr("extended"));
    EXPECT_THAT(refusal("amg", [](auto& o) { o.cycle = "x"; }), HasSubstr("v, w, f or k"));
}

INSTANTIATE_TEST_SUITE_P(All, MultigridOption, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
