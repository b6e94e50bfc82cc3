#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/solver.hpp>

#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

/// A small random matrix of a kind: what its rows hold decides whether it is regular, definite, symmetric.
enum class Kind : int {
    definite,
    symmetric,
    general,
    singular,
    zero_rows,
    zero,
    tiny,
    huge,
    not_a_number,
    skew,
    count
};

CsrMatrix<double> small_matrix(Kind kind, std::int64_t n, std::mt19937_64& random)
{
    std::uniform_real_distribution<double> value(-1, 1);
    const auto at = [n](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
    std::vector<double> dense(static_cast<std::size_t>(n * n));
    for (double& entry : dense) {
        entry = random() % 3 == 0 ? value(random) : 0.0;
    }
    const bool symmetric = kind == Kind::definite || kind == Kind::symmetric;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < i; ++j) {
            if (symmetric) {
                dense[at(i, j)] = dense[at(j, i)];
            } else if (kind == Kind::skew) {
                dense[at(i, j)] = -dense[at(j, i)];
            }
        }
        if (kind == Kind::definite) {
            dense[at(i, i)] = static_cast<double>(n) + value(random);
        } else if (kind == Kind::general) {
            dense[at(i, i)] += 2;
        } else if (kind == Kind::skew || (kind == Kind::zero_rows && i % 3 == 0)) {
            dense[at(i, i)] = 0;
        }
    }
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double& entry = dense[at(i, j)];
            if (kind == Kind::singular && i > 0 && i == n - 1) {
                entry = dense[at(0, j)];
            } else if ((kind == Kind::zero_rows && i % 3 == 0) || kind == Kind::zero) {
                entry = 0;
            } else if (kind == Kind::tiny) {
                entry *= 1e-200;
            } else if (kind == Kind::huge) {
                entry *= 1e200;
            }
        }
    }
    if (kind == Kind::not_a_number) {
        dense[random() % dense.size()] =
            random() % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    }
    CsrMatrix<double> a;
    a.rows = a.cols = n;
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            if (dense[at(i, j)] != 0) {
                columns.push_back(static_cast<std::int32_t>(j));
                a.values.push_back(dense[at(i, j)]);
            }
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = IndexArray(std::move(columns));
    return a;
}

/// Whether what a solver calls converged is: by a residual in which rounding errors are allowed for.
void check_converged(const CsrMatrix<double>& a, const std::vector<double>& b, const std::vector<double>& x,
                     const SolveResult& result, bool least_squares)
{
    const std::vector<double> r = residual_vector(a, b, x);
    const double residual = norm_of(r);
    const double rounding =
        1e-13 * (norm_of(std::vector<double>(a.values.begin(), a.values.end())) * norm_of(x) + norm_of(b));
    if (residual <= 1.02 * result.target + rounding) {
        return;
    }
    EXPECT_TRUE(least_squares) << residual << " where " << result.target << " was asked for";
    const double normal = norm_of(product_transposed(a, r));
    const double norm = norm_of(std::vector<double>(a.values.begin(), a.values.end()));
    EXPECT_LE(normal, 1.1e-8 * norm * residual + norm * rounding);
}

struct Machine {
    const char* name;
    const char* devices;
    int systems;  ///< of each kind and method
};

class RandomSystems : public testing::TestWithParam<Machine> {};

TEST_P(RandomSystems, NeverWronglyConverged)
{
    RuntimeOptions machine;
    machine.devices = GetParam().devices;
    Runtime runtime(machine);
    const int systems = GetParam().systems;
    constexpr std::int64_t most_iterations = 60;
    for (int kind = 0; kind < static_cast<int>(Kind::count); ++kind) {
        for (const SolverInfo& info : list_solvers()) {
            std::mt19937_64 random(static_cast<std::uint64_t>(kind) + 1);
            int converged = 0;
            for (int i = 0; i < systems; ++i) {
                const auto n = static_cast<std::int64_t>(1 + random() % 30);
                const auto a = small_matrix(static_cast<Kind>(kind), n, random);
                const auto b = random() % 20 == 0 ? std::vector<double>(static_cast<std::size_t>(n), 0.0)
                                                  : random_vector<double>(n, static_cast<unsigned>(random()));
                SCOPED_TRACE(std::string(info.name) + ", kind " + std::to_string(kind) + ", system " +
                             std::to_string(i) + " of " + std::to_string(n) + " rows");
                auto matrix = runtime.distribute(a.view());
                SolverOptions options;
                options.method = info.name;
                options.restart = 10;
                options.max_iterations = most_iterations;
                std::vector<double> x(b.size(), 0.0);
                const SolveResult result = Solver<double>(matrix, options).solve(b.data(), x.data());
                EXPECT_LE(result.iterations, most_iterations);
                EXPECT_EQ(result.reason.empty(), result.converged());
                if (result.converged()) {
                    ++converged;
                    check_converged(a, b, x, result, info.rectangular);
                }
                if (static_cast<Kind>(kind) == Kind::not_a_number && norm_of(b) > 0) {
                    EXPECT_FALSE(result.converged());
                }
            }
            // Diagonally dominant matrices are easy for all but Richardson's iteration.
            if (static_cast<Kind>(kind) == Kind::definite && info.name != "ir") {
                EXPECT_EQ(converged, systems) << info.name;
            }
        }
    }
}

// On two devices nearly all the time goes to hand-overs between their threads, the more the busier the machine is.
INSTANTIATE_TEST_SUITE_P(All, RandomSystems,
                         testing::Values(Machine{"host_1", "host:1", sanitized ? 3 : 70},
                                         Machine{"host_2", "host:2", sanitized ? 2 : 5}),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace rmsp::test
