#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/eigen.hpp>

#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

class Eigenpairs : public SolverTest {};

/// The eigenvalues of poisson(n) in increasing order: sums of 2 - 2 cos(pi i / (n + 1)) over the three directions.
std::vector<double> poisson_eigenvalues(int n)
{
    std::vector<double> one;
    for (int i = 1; i <= n; ++i) {
        one.push_back(2 - 2 * std::cos(M_PI * i / (n + 1)));
    }
    std::vector<double> all;
    for (const double x : one) {
        for (const double y : one) {
            for (const double z : one) {
                all.push_back(x + y + z);
            }
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

template <class T>
void check_pairs(const CsrMatrix<T>& a, EigenResult<T>& result, const std::vector<double>& expected, double tolerance)
{
    ASSERT_EQ(result.outcome, Outcome::converged) << result.reason;
    ASSERT_EQ(result.values.size(), result.vectors.size());
    std::vector<std::vector<double>> found;
    for (std::size_t k = 0; k < result.values.size(); ++k) {
        EXPECT_NEAR(result.values[k], expected[k], tolerance * std::abs(expected.back()));
        std::vector<T> v(static_cast<std::size_t>(a.rows));
        result.vectors[k].download(v.data());
        const std::vector<double> x(v.begin(), v.end());
        EXPECT_NEAR(norm_of(x), 1, tolerance);
        auto r = product(a, x);
        for (std::size_t i = 0; i < r.size(); ++i) {
            r[i] -= result.values[k] * x[i];
        }
        EXPECT_LE(norm_of(r), 1.2 * result.target);
        EXPECT_NEAR(norm_of(r), result.residuals[k], 0.2 * result.target);
        for (const auto& other : found) {
            double inner = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                inner += x[i] * other[i];
            }
            EXPECT_NEAR(inner, 0, 100 * tolerance);
        }
        found.push_back(x);
    }
}

TEST_P(Eigenpairs, OfPoisson)
{
    const auto a = poisson<double>(7);
    auto all = poisson_eigenvalues(7);
    auto matrix = runtime_->distribute(a.view());
    for (const char* const method : {"lobpcg", "lanczos"}) {
        for (const Spectrum which : {Spectrum::smallest, Spectrum::largest}) {
            SCOPED_TRACE(std::string(method) + (which == Spectrum::smallest ? " smallest" : " largest"));
            EigenOptions options;
            options.method = method;
            options.which = which;
            options.count = 5;  // with an eigenvalue of multiplicity 3
            options.tolerance = 1e-8;
            EigenSolver<double> solver(matrix, options);
            auto result = solver.solve();
            auto expected = all;
            if (which == Spectrum::largest) {
                std::reverse(expected.begin(), expected.end());
            }
            expected.resize(5);
            expected.push_back(12.0);
            check_pairs(a, result, expected, 1e-8);
            const auto values = result.values;
            EXPECT_EQ(solver.solve().values, values) << "again, the same bits";
        }
    }
}

TEST_P(Eigenpairs, OfFloats)
{
    const auto a = poisson<float>(6);
    auto matrix = runtime_->distribute(a.view());
    auto expected = poisson_eigenvalues(6);
    expected.resize(3);
    expected.push_back(12.0);
    for (const char* const method : {"lobpcg", "lanczos"}) {
        SCOPED_TRACE(method);
        EigenOptions options;
        options.method = method;
        options.count = 3;
        options.tolerance = 1e-5;
        auto result = EigenSolver<float>(matrix, options).solve();
        check_pairs(a, result, expected, 1e-4);
    }
}

TEST_P(Eigenpairs, OfSmallAndMultipleOnes)
{
    for (const std::int64_t n : {1, 2, 3, 5, 30, 64}) {
        // diag(1, 1, ..., 1, 2): the space that Lanczos vectors span ends at once.
        CsrMatrix<double> a = with_row_lengths<double>(std::vector<std::int64_t>(static_cast<std::size_t>(n), 1), n);
        HostVector<std::int32_t> columns;
        for (std::int64_t i = 0; i < n; ++i) {
            columns.push_back(static_cast<std::int32_t>(i));
            a.values[static_cast<std::size_t>(i)] = i + 1 < n ? 1.0 : 2.0;
        }
        a.col_idx = IndexArray(std::move(columns));
        auto matrix = runtime_->distribute(a.view());
        for (const char* const method : {"lobpcg", "lanczos"}) {
            SCOPED_TRACE(std::string(method) + " " + std::to_string(n));
            EigenOptions options;
            options.method = method;
            options.count = static_cast<int>(std::min<std::int64_t>(n, 3));
            std::vector<double> expected(static_cast<std::size_t>(options.count), 1.0);
            if (n <= 3) {
                expected.back() = 2.0;
            }
            auto result = EigenSolver<double>(matrix, options).solve();
            check_pairs(a, result, expected, 1e-8);
        }
    }
}

TEST_P(Eigenpairs, FailuresAreNamed)
{
    auto a = poisson<double>(5);
    auto matrix = runtime_->distribute(a.view());
    for (const char* const method : {"lobpcg", "lanczos"}) {
        EigenOptions options;
        options.method = method;
        options.max_iterations = 2;
        options.tolerance = 1e-12;
        const auto result = EigenSolver<double>(matrix, options).solve();
        EXPECT_EQ(result.outcome, Outcome::iterations);
        EXPECT_EQ(result.vectors.size(), 4U);
        EXPECT_FALSE(result.reason.empty());
    }
    a.values[17] = std::numeric_limits<double>::quiet_NaN();
    matrix.update_values(a.values.data());
    for (const char* const method : {"lobpcg", "lanczos"}) {
        EigenOptions options;
        options.method = method;
        EXPECT_EQ(EigenSolver<double>(matrix, options).solve().outcome, Outcome::not_finite);
    }
    EigenOptions options;
    options.method = "lancos";
    EXPECT_THROW(EigenSolver<double>(matrix, options), Error);
    options = {};
    options.count = 17;
    EXPECT_THROW(EigenSolver<double>(matrix, options), Error);
}

INSTANTIATE_TEST_SUITE_P(All, Eigenpairs, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
