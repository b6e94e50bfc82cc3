#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rmsp/io.hpp>

#include "tests/apps/program.hpp"

namespace {

using nlohmann::json;
using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::read_text;
using rmsp::test::Scratch;
using testing::HasSubstr;

/// A small Poisson matrix; later words count.
Outcome eigen(const std::vector<std::string>& more)
{
    std::vector<std::string> words{
        "eigen", "configs/solve.toml", "--devices", "host:2x1", "--set", "matrix.generate=stencil7 8 7 6"};
    words.insert(words.end(), more.begin(), more.end());
    return mspmv(words);
}

/// Of the Poisson matrix of a grid, by the numbers of half waves along its sides.
double poisson_eigenvalue(int i, int j, int k)
{
    const auto along = [](int waves, int points) { return 2 - 2 * std::cos(std::numbers::pi * waves / (points + 1)); };
    return along(i, 8) + along(j, 7) + along(k, 6);
}

TEST(Eigen, FindsWhatIsKnown)
{
    const std::vector<double> smallest{poisson_eigenvalue(1, 1, 1), poisson_eigenvalue(2, 1, 1),
                                       poisson_eigenvalue(1, 2, 1)};
    for (const std::string method : {"lobpcg", "lanczos"}) {
        const Outcome outcome = eigen({"--method", method, "--count", "3", "--json", "-"});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        const json run = json::parse(outcome.out).at("benchmarks").at(0);
        EXPECT_EQ(run.at("name"), "eigen/" + method + "/none/double");
        EXPECT_EQ(run.at("outcome"), "converged");
        for (std::size_t i = 0; i < smallest.size(); ++i) {
            EXPECT_NEAR(run.at("eigenvalues").at(i).get<double>(), smallest[i], 1e-6);
            EXPECT_LE(run.at("residuals").at(i).get<double>(), 1.1 * run.at("target_residual").get<double>());
        }
        EXPECT_THAT(outcome.err, HasSubstr("the 3 smallest"));
        EXPECT_THAT(outcome.err, HasSubstr("|A v - lambda v|"));
    }
    const Outcome largest = eigen({"--which", "largest", "--count", "1", "--json", "-", "--precision", "float",
                                   "--tolerance", "1e-4", "--method", "lanczos"});
    ASSERT_EQ(largest.exit_code, 0) << largest.err;
    EXPECT_NEAR(json::parse(largest.out).at("benchmarks").at(0).at("eigenvalues").at(0).get<double>(),
                poisson_eigenvalue(8, 7, 6), 1e-3);
}

TEST(Eigen, APreconditionerSavesIterations)
{
    const auto iterations = [](const std::string& preconditioner) {
        const Outcome outcome = eigen({"--preconditioner", preconditioner, "--json", "-"});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        return json::parse(outcome.out).at("benchmarks").at(0).at("solver_iterations").get<int>();
    };
    EXPECT_LT(iterations("schwarz-ic0"), iterations("none"));
}

TEST(Eigen, VectorsAreColumnsOfAFile)
{
    const Scratch scratch;
    ASSERT_EQ(eigen({"--count", "2", "-o", scratch / "v.mtx"}).exit_code, 0);
    EXPECT_THAT(read_text(scratch / "v.mtx"), testing::StartsWith("%%MatrixMarket matrix array real general\n336 2\n"));
    const auto v = rmsp::read_matrix<double>(scratch / "v.mtx");
    ASSERT_EQ(v.rows, 336);
    double product = 0;
    for (std::size_t row = 0; row < 336; ++row) {
        product += v.values[2 * row] * v.values[2 * row + 1];
    }
    EXPECT_NEAR(product, 0, 1e-6) << "eigenvectors of different eigenvalues are orthogonal";
    ASSERT_EQ(eigen({"--count", "2", "-o", scratch / "v.npy"}).exit_code, 0);
    EXPECT_THAT(read_text(scratch / "v.npy"), HasSubstr("'fortran_order': True, 'shape': (336, 2)"));
}

TEST(Eigen, VectorsAreInTheNumberingOfTheFile)
{
    const Scratch scratch;
    ASSERT_EQ(eigen({"--count", "1", "-o", scratch / "plain.npy"}).exit_code, 0);
    ASSERT_EQ(eigen({"--count", "1", "--set", "matrix.renumber=true", "-o", scratch / "renumbered.mtx"}).exit_code, 0);
    const std::string bytes = read_text(scratch / "plain.npy");
    std::vector<double> plain(336);
    ASSERT_EQ(bytes.size(), 128 + plain.size() * sizeof(double));
    std::memcpy(plain.data(), bytes.data() + 128, plain.size() * sizeof(double));
    const auto renumbered = rmsp::read_vector<double>(scratch / "renumbered.mtx");
    ASSERT_EQ(renumbered.size(), plain.size());
    const double sign = plain[0] * renumbered[0] > 0 ? 1 : -1;
    for (std::size_t i = 0; i < plain.size(); ++i) {
        EXPECT_NEAR(renumbered[i], sign * plain[i], 1e-5);
    }
}

TEST(Eigen, SaysWhatIsWrong)
{
    const auto expect_refused = [](int exit_code, const std::string& message, const std::vector<std::string>& more) {
        const Outcome outcome = eigen(more);
        EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(message));
    };
    expect_refused(2, "eigen.method is \"power\", but must be one of", {"--method", "power"});
    expect_refused(2, "eigen.count is 17", {"--count", "17"});
    expect_refused(2, "takes no preconditioner", {"--method", "lanczos", "--preconditioner", "jacobi"});
    expect_refused(2, "basis is 3", {"--method", "lanczos", "--set", "eigen.basis=3"});
    expect_refused(2, "square matrix; this one is 20 x 30",
                   {"--set", "matrix.generate=random 20 30 4", "--set", "matrix.values=random"});
    expect_refused(2, "eigen.output (\"v.txt\") does not end in one of .npy", {"-o", "v.txt"});
    expect_refused(2, "matrix.format is \"csc\"", {"--set", "matrix.format=csc"});
    const Outcome few = eigen({"--set", "eigen.max_iterations=3", "--json", "-"});
    EXPECT_EQ(few.exit_code, 6);
    EXPECT_EQ(json::parse(few.out).at("benchmarks").at(0).at("outcome"), "iterations");
    const Outcome skewed = eigen({"--set", "matrix.values=random", "--set", "eigen.max_iterations=5"});
    EXPECT_THAT(skewed.out, HasSubstr("the matrix is not symmetric"));
    EXPECT_EQ(eigen({"--dry-run"}).exit_code, 0);
}

}  // namespace
