#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/cluster/bits.hpp"
#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

/// Solves on the cluster, and on the first process alone. Returns both, after the solutions were compared.
struct Solved {
    SolveResult cluster;
    std::int64_t iterations_alone = 0;
};

Solved solve(Cluster& cluster, const Whole<double>& whole, const SolverOptions& options)
{
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    const auto b = entries<double>(whole.rows, 3);
    Solved solved;
    std::vector<double> x(static_cast<std::size_t>(part.end - part.first));
    const auto a = cluster.distribute(part.view, part.first);
    ClusterSolver<double> solver(a, options);
    solved.cluster = solver.solve(slice(b, part.first, part.end).data(), x.data());

    std::vector<double> reference(static_cast<std::size_t>(whole.rows));
    if (cluster.rank() == 0) {
        auto all = cluster.runtime().distribute(whole.view());
        const SolveResult alone = Solver<double>(all, options).solve(b.data(), reference.data());
        EXPECT_TRUE(alone.converged()) << alone.reason;
        solved.iterations_alone = alone.iterations;
    }
    MPI_Bcast(reference.data(), static_cast<int>(reference.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&solved.iterations_alone, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(x[i], reference[static_cast<std::size_t>(part.first) + i], 1e-6) << i;
    }
    return solved;
}

TEST(ClusterSolvers, EveryMethodSolvesAsOneProcessDoes)
{
    Cluster cluster = make_cluster();
    const auto symmetric = grid<double>(8, 9);
    const auto skewed = grid<double>(8, 9, 0.4);
    for (const SolverInfo& info : list_solvers()) {
        SCOPED_TRACE(info.name);
        SolverOptions options;
        options.method = info.name;
        options.tolerance = 1e-9;
        options.preconditioner = info.name == "ir" ? "jacobi" : "none";
        const bool is_symmetric = info.symmetric || info.name == "ir";
        const Solved solved = solve(cluster, is_symmetric ? symmetric : skewed, options);
        EXPECT_TRUE(solved.cluster.converged()) << solved.cluster.reason;
        // The same recurrences: only the order of sums differs, which some methods make more of.
        EXPECT_NEAR(static_cast<double>(solved.cluster.iterations), static_cast<double>(solved.iterations_alone),
                    2 + 0.05 * static_cast<double>(solved.iterations_alone));
    }
}

TEST(ClusterSolvers, AutomaticMethodIsTheSameOnAllProcesses)
{
    Cluster cluster = make_cluster();
    const auto whole = grid<double>(8, 9);
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    const auto a = cluster.distribute(part.view, part.first);
    SolverOptions options;
    options.method = "auto";
    const ClusterSolver<double> solver(a, options);
    const MethodChoice& choice = solver.choice();
    ASSERT_EQ(choice.candidates.size(), 3u);
    double own = 0;
    for (std::size_t i = 0; i < choice.candidates.size(); ++i) {
        own = choice.candidates[i].method == choice.method ? static_cast<double>(i) : own;
    }
    double first = own;
    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    EXPECT_EQ(own, first);
    EXPECT_NE(choice.reason.find("is expected to take"), std::string::npos);
}

TEST(ClusterSolvers, EigenpairsAreThoseOfOneProcess)
{
    Cluster cluster = make_cluster();
    const auto whole = grid<double>(9, 10);
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    const auto a = cluster.distribute(part.view, part.first);
    for (const char* const method : {"lobpcg", "lanczos"}) {
        SCOPED_TRACE(method);
        EigenOptions options;
        options.method = method;
        options.which = options.method == "lanczos" ? Spectrum::largest : Spectrum::smallest;
        options.count = 3;
        const EigenResult<double> found = ClusterEigenSolver<double>(a, options).solve();
        EXPECT_TRUE(found.converged()) << found.reason;
        ASSERT_EQ(found.values.size(), 3u);
        std::vector<double> alone(3);
        if (cluster.rank() == 0) {
            auto all = cluster.runtime().distribute(whole.view());
            alone = EigenSolver<double>(all, options).solve().values;
        }
        MPI_Bcast(alone.data(), 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (std::size_t k = 0; k < alone.size(); ++k) {
            EXPECT_NEAR(found.values[k], alone[k], 1e-6 * std::abs(alone[k]));
            EXPECT_LE(found.residuals[k], 1.1 * found.target);
            EXPECT_NEAR(cluster.norm2(found.vectors[k]), 1, 1e-8);
        }
    }
    EigenOptions options;
    options.count = 1 + cluster.rank();
    if (cluster.size() > 1) {
        EXPECT_THROW(ClusterEigenSolver<double>(a, options), Error);
    }
}

TEST(ClusterSolvers, EveryPreconditionerIsOneOfBlocksOfProcesses)
{
    Cluster cluster = make_cluster();
    const auto whole = grid<double>(9, 10);
    SolverOptions options;
    options.tolerance = 1e-9;
    options.max_iterations = 500;
    for (const PreconditionerInfo& info : list_preconditioners()) {
        SCOPED_TRACE(info.name);
        options.preconditioner = info.name;
        options.method = info.definite ? "cg" : "bicgstab";
        const Solved solved = solve(cluster, whole, options);
        EXPECT_TRUE(solved.cluster.converged()) << solved.cluster.reason;
    }
}

TEST(ClusterSolvers, SolveTheSameAgainAfterNewValues)
{
    Cluster cluster = make_cluster("host:1");
    auto whole = grid<double>(10, 10);
    const auto part = part_of(whole, uneven(100, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    SolverOptions options;
    options.preconditioner = "schwarz-ic0";
    ClusterSolver<double> solver(a, options);
    auto x = a.make_x();
    auto b = a.make_y();
    b.fill(1);
    x.fill(0);
    const SolveResult first = solver.solve(b, x);
    EXPECT_TRUE(first.converged());
    const double norm = cluster.norm2(x);
    for (double& value : whole.values) {
        value *= 2;
    }
    a.update_values(part.view.values);
    solver.renew();
    x.fill(0);
    const SolveResult second = solver.solve(b, x);
    EXPECT_TRUE(second.converged());
    EXPECT_EQ(first.iterations, second.iterations);
    EXPECT_NEAR(cluster.norm2(x), norm / 2, 1e-6 * norm);
}

TEST(ClusterSolvers, GiveAllProcessesTheSameResult)
{
    Cluster cluster = make_cluster();
    const auto whole = grid<double>(20, 20);
    const auto part = part_of(whole, uneven(400, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    SolverOptions options;
    options.max_iterations = 9;
    // What the callback of another process says does not count.
    options.callback = [&](const SolverProgress&) { return cluster.rank() == 0; };
    ClusterSolver<double> solver(a, options);
    auto x = a.make_x();
    auto b = a.make_y();
    b.fill(1);
    x.fill(0);
    const SolveResult result = solver.solve(b, x);
    EXPECT_EQ(result.outcome, Outcome::iterations);
    double numbers[2] = {result.true_residual, static_cast<double>(result.iterations)};
    cluster.sum(numbers);
    EXPECT_EQ(numbers[0], result.true_residual * cluster.size());
    EXPECT_EQ(numbers[1], 9.0 * cluster.size());
}

TEST(ClusterSolvers, DeviceCountGivesTheBitsOfOneProcessAndDevice)
{
    const auto whole = uneven_values();
    for (const char* const method : {"cg", "cg_single", "cg_pipelined", "bicgstab"}) {
        for (const char* const preconditioner : {"none", "jacobi"}) {
            SCOPED_TRACE(std::string(method) + ", " + preconditioner);
            SolverOptions options;
            options.method = method;
            options.preconditioner = preconditioner;
            options.tolerance = 1e-10;
            Cluster one(MPI_COMM_SELF, {.devices = "host:1x1", .bind = BindPolicy::none});
            const Bits alone = solve_on(one, whole, options);
            EXPECT_TRUE(alone.result.converged()) << alone.result.reason;
            EXPECT_GT(alone.result.history.size(), 3u);
            for (const char* const devices : {"host:1x1", "host:3x1", "host:1x2"}) {
                SCOPED_TRACE(devices);
                Cluster cluster = make_cluster(devices);
                const Bits found = solve_on(cluster, whole, options);
                expect_same_bits(found, alone,
                                 uneven(whole.rows, cluster.size())[static_cast<std::size_t>(cluster.rank())]);
            }
        }
    }
}

/// The same of a matrix without ghosts.
TEST(ClusterSolvers, DeviceCountGivesTheSameBitsOnAnyDevicesOfANode)
{
    const auto whole = uneven_values();
    const auto b = entries<double>(whole.rows, 3);
    SolverOptions options;
    options.preconditioner = "jacobi";
    std::optional<Bits> alone;
    std::string kernel = "auto";
    for (const char* const devices : {"host:1x1", "host:2x1", "host:4x1"}) {
        SCOPED_TRACE(devices);
        Runtime runtime({.devices = devices, .bind = BindPolicy::none});
        DistributeOptions distribute = of_any_count();
        distribute.kernel = kernel;
        const auto a = runtime.distribute(whole.view(), distribute);
        kernel = a.plan().shards.front().kernel;
        Bits found;
        found.x.resize(b.size());
        found.result = Solver<double>(a, options).solve(b.data(), found.x.data());
        EXPECT_TRUE(found.result.converged());
        alone = alone ? alone : found;
        expect_same_bits(found, *alone, 0);
    }
}

/// Preconditioners see the rows that are not split as well.
TEST(ClusterSolvers, DeviceCountHasPreconditionersOfEachProcess)
{
    const auto whole = uneven_values();
    Cluster one(MPI_COMM_SELF, {.devices = "host:1x1", .bind = BindPolicy::none});
    Cluster cluster = make_cluster("host:2x1");
    for (const char* const preconditioner : {"schwarz-ic0", "polynomial", "block-jacobi"}) {
        SCOPED_TRACE(preconditioner);
        SolverOptions options;
        options.preconditioner = preconditioner;
        const Bits alone = solve_on(one, whole, options);
        const Bits found = solve_on(cluster, whole, options);
        EXPECT_TRUE(found.result.converged()) << found.result.reason;
        EXPECT_LE(found.result.iterations, alone.result.iterations + 12);
        const auto first = uneven(whole.rows, cluster.size())[static_cast<std::size_t>(cluster.rank())];
        for (std::size_t i = 0; i < found.x.size(); ++i) {
            EXPECT_NEAR(found.x[i], alone.x[static_cast<std::size_t>(first) + i], 1e-6);
        }
    }
    if (cluster.size() > 1) {
        SolverOptions options;
        options.preconditioner = "amg";
        std::string text;
        try {
            (void)solve_on(cluster, whole, options);
        } catch (const Error& error) {
            text = error.what();
        }
        EXPECT_NE(text.find("multigrid over several processes does not keep determinism"), std::string::npos) << text;
    }
}

TEST(ClusterSolvers, DeviceCountHasNoProductsWithTheTransposed)
{
    Cluster one(MPI_COMM_SELF, {.devices = "host:1x1", .bind = BindPolicy::none});
    Cluster cluster = make_cluster("host:2x1");
    const auto whole = random<double>(83, 83, 7);
    expect_same_entries(multiply_on(cluster, whole), multiply_on(one, whole),
                        uneven(whole.rows, cluster.size())[static_cast<std::size_t>(cluster.rank())]);
}

/// Products of new values, of rows that are not split.
TEST(ClusterSolvers, DeviceCountMultipliesAsOneProcessDoes)
{
    Cluster cluster = make_cluster("host:2x1");
    auto whole = random<double>(83, 83, 7);
    const auto offsets = uneven(whole.rows, cluster.size());
    const auto first = static_cast<std::size_t>(offsets[static_cast<std::size_t>(cluster.rank())]);
    Cluster one(MPI_COMM_SELF, {.devices = "host:1x1", .bind = BindPolicy::none});
    auto a = cluster.distribute(part_of(whole, offsets, cluster.rank()).view, static_cast<std::int64_t>(first),
                                of_any_count());
    auto all = one.distribute(whole.view(), 0, of_any_count());
    const auto x = entries<double>(whole.cols, 1);
    for (int turn = 0; turn < 2; ++turn) {
        std::vector<double> y(static_cast<std::size_t>(offsets[static_cast<std::size_t>(cluster.rank()) + 1]) - first);
        std::vector<double> expected(static_cast<std::size_t>(whole.rows));
        a.apply(1, x.data() + first, 0, y.data());
        all.apply(1, x.data(), 0, expected.data());
        for (std::size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(y[i], expected[first + i]) << i;
        }
        for (double& value : whole.values) {
            value = 0.3 - value;
        }
        a.update_values(part_of(whole, offsets, cluster.rank()).view.values);
        all.update_values(whole.values.data());
    }
}

}  // namespace
}  // namespace rmsp::test
