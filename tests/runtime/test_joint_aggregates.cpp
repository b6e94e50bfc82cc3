#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "multigrid_fixtures.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/multigrid/joint_aggregates.hpp"

namespace rmsp::test {
namespace {

class Aggregates : public SolverTest {};

TEST_P(Aggregates, ThatAllGpusFindTogetherAreThoseOfOne)
{
    using multigrid::JointAggregates;
    const auto a = poisson<double>(14);
    const auto b = random_vector<double>(a.rows, 3);
    const auto matrix = runtime_->distribute(a.view());
    SolverOptions options = by("sa-amg", small());
    options.tolerance = 1e-10;
    const auto solution = [&] {
        std::vector<double> x(b.size(), 0.0);
        Solver<double> solver(matrix, options);
        EXPECT_TRUE(solver.solve(b.data(), x.data()).converged());
        return x;
    };
    const std::vector<double> alone = solution();
    const std::int64_t least = std::exchange(JointAggregates::least_rows, 0);
    const bool together =
        JointAggregates::pays(*detail::MatrixAccess::state(matrix)->runtime, std::numeric_limits<std::int64_t>::max());
    const std::vector<double> all = solution();
    JointAggregates::least_rows = least;
    if (!together) {
        GTEST_SKIP() << "not several GPUs that reach each other's memory";
    }
    EXPECT_THAT(all, testing::Pointwise(testing::DoubleNear(1e-9), alone));
}

INSTANTIATE_TEST_SUITE_P(All, Aggregates, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
