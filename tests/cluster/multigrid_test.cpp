#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <rmsp/io.hpp>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

Whole<double> whole_of(const CsrMatrix<double>& a)
{
    Whole<double> whole{a.rows, a.cols, {a.row_ptr.begin(), a.row_ptr.end()}, {}, {a.values.begin(), a.values.end()}};
    for (std::int64_t k = 0; k < a.nnz(); ++k) {
        whole.col_idx.push_back(a.col_idx[k]);
    }
    return whole;
}

SolverOptions with_levels(const std::string& preconditioner, std::int64_t coarse_rows = 40)
{
    SolverOptions options;
    options.method = "cg";
    options.preconditioner = preconditioner;
    options.preconditioner_options.multigrid.coarse_rows = coarse_rows;
    options.max_iterations = 200;
    return options;
}

template <class T>
T from_first(T value)
{
    MPI_Bcast(&value, sizeof(T), MPI_BYTE, 0, MPI_COMM_WORLD);
    return value;
}

struct SolvedByLevels {
    std::int64_t iterations = 0;
    std::int64_t alone = 0;  ///< of one process
    PreconditionerReport report;
    std::vector<MultigridLevel> levels_alone;
};

/// Solves with b = A ones on the cluster and on the first process alone.
SolvedByLevels solve_by_levels(Cluster& cluster, const Whole<double>& whole, const std::vector<std::int64_t>& offsets,
                               const SolverOptions& options)
{
    const auto part = part_of(whole, offsets, cluster.rank());
    const std::vector<double> b = whole.product(1, std::vector<double>(static_cast<std::size_t>(whole.cols), 1), 0,
                                                std::vector<double>(static_cast<std::size_t>(whole.rows)), false);
    const auto a = cluster.distribute(part.view, part.first);
    const auto preconditioner = make_preconditioner(a, options.preconditioner, options.preconditioner_options);
    ClusterSolver<double> solver(a, options, preconditioner);
    std::vector<double> x(static_cast<std::size_t>(part.end - part.first));
    const SolveResult result = solver.solve(slice(b, part.first, part.end).data(), x.data());
    EXPECT_TRUE(result.converged()) << result.reason;
    for (const double entry : x) {
        EXPECT_NEAR(entry, 1, 1e-4);
    }
    SolvedByLevels solved;
    solved.iterations = result.iterations;
    solved.report = preconditioner->report();
    if (cluster.rank() == 0) {
        auto all = cluster.runtime().distribute(whole.view());
        const auto own = make_preconditioner(all, options.preconditioner, options.preconditioner_options);
        std::vector<double> reference(b.size());
        solved.alone = Solver<double>(all, options, own).solve(b.data(), reference.data()).iterations;
        solved.levels_alone = own->report().levels;
    }
    solved.alone = from_first(solved.alone);
    return solved;
}

std::string message_of(const std::function<void()>& f)
{
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(ClusterMultigrid, TakesTheIterationsOfOneProcess)
{
    Cluster cluster = make_cluster();
    const auto small = whole_of(stencil7<double>(8, 9, 10, {.values = ValueKind::poisson}));
    const auto large = whole_of(stencil27<double>(7, 8, 9, {.values = ValueKind::poisson}));
    struct Case {
        const Whole<double>* whole;
        const char* name;
        const char* cycle;
        int aggressive_levels = 0;
    };
    for (const Case& c : {Case{&small, "amg", "w"},
                          {&large, "amg", "v"},
                          {&small, "amg", "k"},
                          {&small, "amg", "v", 1},
                          {&large, "amg", "v", 1},
                          {&small, "amg", "w", 2},
                          {&small, "sa-amg", "f"},
                          {&large, "sa-amg", "v"},
                          {&large, "sa-amg", "k"}}) {
        SCOPED_TRACE(fmt::format("{} {}, {} aggressive levels", c.name, c.cycle, c.aggressive_levels));
        // Few coarse rows, so that aggressive levels are cut by processes too.
        SolverOptions options = with_levels(c.name, c.aggressive_levels > 0 ? 8 : 40);
        options.preconditioner_options.multigrid.cycle = c.cycle;
        options.preconditioner_options.multigrid.aggressive_levels = c.aggressive_levels;
        options.method = c.cycle == std::string("f") ? "bicgstab" : c.cycle == std::string("k") ? "fcg" : "cg";
        const SolvedByLevels solved =
            solve_by_levels(cluster, *c.whole, uneven(c.whole->rows, cluster.size()), options);
        if (c.name == std::string("amg")) {
            // The same levels: what differs is the order of sums.
            EXPECT_NEAR(static_cast<double>(solved.iterations), static_cast<double>(solved.alone), 1);
            ASSERT_EQ(solved.report.levels.size(), from_first(solved.levels_alone.size()));
            for (std::size_t i = 0; i < solved.levels_alone.size(); ++i) {
                EXPECT_EQ(solved.report.levels[i].rows, solved.levels_alone[i].rows);
                EXPECT_EQ(solved.report.levels[i].interpolation_nonzeros,
                          solved.levels_alone[i].interpolation_nonzeros);
            }
        } else {
            EXPECT_LE(solved.iterations, solved.alone + 3);
        }
        const auto on_one = [](const std::string& note) { return note.ends_with(", 1"); };
        EXPECT_EQ(cluster.size() > 1, std::any_of(solved.report.notes.begin(), solved.report.notes.end(), on_one));
    }
}

TEST(ClusterMultigrid, TakesFewerIterationsThanBlocksOfProcesses)
{
    Cluster cluster = make_cluster("host:1");
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    const auto whole = whole_of(stencil7<double>(7, 7, 12, {.values = ValueKind::poisson}));
    std::vector<std::int64_t> offsets;
    for (int p = 0; p <= cluster.size(); ++p) {
        offsets.push_back(whole.rows * p / cluster.size());
    }
    const auto part = part_of(whole, offsets, cluster.rank());
    const auto a = cluster.distribute(part.view, part.first);
    SolverOptions options = with_levels("amg");
    const auto iterations = [&](std::shared_ptr<Preconditioner<double>> preconditioner) {
        auto b = a.make_y();
        auto x = a.make_x();
        b.fill(1);
        x.fill(0);
        return ClusterSolver<double>(a, options, std::move(preconditioner)).solve(b, x).iterations;
    };
    const std::int64_t of_all = iterations(nullptr);
    const std::int64_t of_blocks =
        iterations(make_preconditioner(a.local().own(), "amg", options.preconditioner_options));
    EXPECT_LT(of_all, of_blocks);
}

TEST(ClusterMultigrid, SmoothsByPreconditionersOfEachProcess)
{
    Cluster cluster = make_cluster("host:1");
    const auto whole = whole_of(stencil7<double>(6, 6, 6, {.values = ValueKind::poisson}));
    for (const char* const smoother : {"gauss-seidel", "polynomial"}) {
        SCOPED_TRACE(smoother);
        SolverOptions options = with_levels("amg");
        options.preconditioner_options.multigrid.smoother = smoother;
        const SolvedByLevels solved = solve_by_levels(cluster, whole, uneven(whole.rows, cluster.size()), options);
        EXPECT_LE(solved.iterations, solved.alone + 5);
    }
}

TEST(ClusterMultigrid, OfNodesOfSeveralUnknowns)
{
    Cluster cluster = make_cluster("host:1");
    const auto whole = whole_of(generate<double>("elasticity 3 3 5"));
    std::vector<std::int64_t> offsets = uneven(whole.rows / 3, cluster.size());
    for (std::int64_t& offset : offsets) {
        offset *= 3;
    }
    SolverOptions options = with_levels("sa-amg");
    options.preconditioner_options.multigrid.unknowns = 3;
    const SolvedByLevels solved = solve_by_levels(cluster, whole, offsets, options);
    EXPECT_LE(solved.iterations, solved.alone + solved.alone / 4 + 3);
    if (cluster.size() > 1) {
        offsets[static_cast<std::size_t>(cluster.size()) - 1] += 1;
        const auto part = part_of(whole, offsets, cluster.rank());
        const auto a = cluster.distribute(part.view, part.first);
        const std::string text =
            message_of([&] { (void)make_preconditioner(a, options.preconditioner, options.preconditioner_options); });
        EXPECT_NE(text.find("which cuts a node"), std::string::npos) << text;
    }
}

TEST(ClusterMultigrid, OfMatricesThatDoNotCoarsenOrHaveNoRows)
{
    Cluster cluster = make_cluster("host:1");
    // No row depends on another: nothing is left to coarsen.
    Whole<double> diagonal{300, 300, {0}, {}, {}};
    for (std::int64_t i = 0; i < 300; ++i) {
        diagonal.col_idx.push_back(i);
        diagonal.values.push_back(2);
        diagonal.row_ptr.push_back(i + 1);
    }
    for (const char* const name : {"amg", "sa-amg"}) {
        SCOPED_TRACE(name);
        EXPECT_LE(solve_by_levels(cluster, diagonal, uneven(300, cluster.size()), with_levels(name)).iterations, 2);
        const Whole<double> none{0, 0, {0}, {}, {}};
        EXPECT_EQ(solve_by_levels(cluster, none, uneven(0, cluster.size()), with_levels(name)).iterations, 0);
    }
    // An entry without its mirror image: not all edges to a row are known where it is.
    auto one_way = grid<double>(12, 12, 0.3);
    for (std::size_t k = 0; k < one_way.values.size(); ++k) {
        const bool is_diagonal = one_way.values[k] > 4;
        one_way.values[k] = is_diagonal ? 5 : one_way.values[k];
        one_way.col_idx[k] = is_diagonal || k % 7 != 0 ? one_way.col_idx[k] : (one_way.col_idx[k] * 31 + 17) % 144;
    }
    SolverOptions options = with_levels("amg");
    options.method = "gmres";
    for (const int aggressive_levels : {0, 1}) {
        options.preconditioner_options.multigrid.aggressive_levels = aggressive_levels;
        solve_by_levels(cluster, one_way, uneven(144, cluster.size()), options);
    }
}

/// Of a renewed preconditioner and of one that is made for the same values.
TEST(ClusterMultigrid, IsRenewedForNewValues)
{
    Cluster cluster = make_cluster();
    const auto original = whole_of(stencil7<double>(8, 9, 10, {.values = ValueKind::poisson}));
    const auto offsets = uneven(original.rows, cluster.size());
    struct Case {
        const char* name;
        int aggressive_levels;
    };
    for (const auto& [name, aggressive_levels] : {Case{"amg", 0}, Case{"amg", 1}, Case{"sa-amg", 0}}) {
        for (const char* const smoother : {"l1-jacobi", "gauss-seidel"}) {
            for (const bool keep : {false, true}) {
                SCOPED_TRACE(fmt::format("{}, {} aggressive levels, {}{}", name, aggressive_levels, smoother,
                                         keep ? ", P is kept" : ""));
                auto whole = original;
                auto a = cluster.distribute(part_of(whole, offsets, cluster.rank()).view,
                                            offsets[static_cast<std::size_t>(cluster.rank())]);
                SolverOptions options = with_levels(name);
                options.preconditioner_options.multigrid.smoother = smoother;
                options.preconditioner_options.multigrid.keep_interpolation = keep;
                options.preconditioner_options.multigrid.aggressive_levels = aggressive_levels;
                const auto preconditioner = make_preconditioner(a, name, options.preconditioner_options);
                const std::int64_t generation = preconditioner->generation();
                const PreconditionerReport made = preconditioner->report();
                ClusterSolver<double> solver(a, options, preconditioner);
                auto x = a.make_x();
                auto b = a.make_y();
                b.fill(1);
                const auto solve = [&](ClusterSolver<double>& by) {
                    x.fill(0);
                    const SolveResult result = by.solve(b, x);
                    EXPECT_TRUE(result.converged()) << result.reason;
                    return result.iterations;
                };
                solve(solver);
                // Twice: the first renewal makes what later ones take up. The values change a little, not all alike,
                // and the matrix stays symmetric.
                for (int turn = 1; turn <= 2; ++turn) {
                    for (std::int64_t row = 0; row < whole.rows; ++row) {
                        for (std::int64_t k = whole.row_ptr[static_cast<std::size_t>(row)];
                             k < whole.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
                            const std::int64_t column = whole.col_idx[static_cast<std::size_t>(k)];
                            whole.values[static_cast<std::size_t>(k)] *=
                                column == row ? 3.1 : 3 + 0.02 * static_cast<double>((row + column) % 3);
                        }
                    }
                    a.update_values(part_of(whole, offsets, cluster.rank()).view.values);
                    solver.renew();
                    const std::int64_t renewed = solve(solver);
                    const double norm = cluster.norm2(x);
                    ClusterSolver<double> anew(a, options);
                    EXPECT_NEAR(static_cast<double>(renewed), static_cast<double>(solve(anew)), keep ? 2 : 1);
                    EXPECT_NEAR(cluster.norm2(x), norm, 1e-6 * norm);
                }
                if (cluster.size() > 1) {
                    // The levels are those that there were.
                    EXPECT_EQ(preconditioner->generation(), generation);
                }
                const PreconditionerReport renewed = preconditioner->report();
                ASSERT_EQ(renewed.levels.size(), made.levels.size());
                for (std::size_t i = 0; i < made.levels.size(); ++i) {
                    EXPECT_EQ(renewed.levels[i].rows, made.levels[i].rows);
                    EXPECT_EQ(renewed.levels[i].nonzeros, made.levels[i].nonzeros);
                    EXPECT_EQ(renewed.levels[i].interpolation_nonzeros, made.levels[i].interpolation_nonzeros);
                }
                EXPECT_EQ(renewed.notes, made.notes);
            }
        }
    }
}

TEST(ClusterMultigrid, IsMadeAnewWhereSolvesTakeMoreIterations)
{
    Cluster cluster = make_cluster("host:1x1");
    auto whole = whole_of(stencil7<double>(8, 8, 8, {.values = ValueKind::poisson}));
    const auto offsets = uneven(whole.rows, cluster.size());
    auto a = cluster.distribute(part_of(whole, offsets, cluster.rank()).view,
                                offsets[static_cast<std::size_t>(cluster.rank())]);
    SolverOptions options = with_levels("amg");
    options.preconditioner_options.multigrid.rebuild_factor = 1.2;
    const auto preconditioner = make_preconditioner(a, "amg", options.preconditioner_options);
    const std::int64_t generation = preconditioner->generation();
    ClusterSolver<double> solver(a, options, preconditioner);
    auto x = a.make_x();
    auto b = a.make_y();
    b.fill(1);
    x.fill(0);
    const std::int64_t first = solver.solve(b, x).iterations;
    // Strong in one direction only: coarse points that were chosen for all directions do not fit.
    for (std::int64_t row = 0; row < whole.rows; ++row) {
        double sum = 0;
        std::size_t diagonal = 0;
        for (std::int64_t k = whole.row_ptr[static_cast<std::size_t>(row)];
             k < whole.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const std::int64_t step = std::abs(whole.col_idx[at] - row);
            diagonal = step == 0 ? at : diagonal;
            whole.values[at] = step == 64 ? -1 : -1e-3;
            sum += step == 0 ? 0 : -whole.values[at];
        }
        whole.values[diagonal] = sum + 1e-3;
    }
    a.update_values(part_of(whole, offsets, cluster.rank()).view.values);
    solver.renew();
    x.fill(0);
    const std::int64_t kept = solver.solve(b, x).iterations;
    solver.renew();
    x.fill(0);
    const std::int64_t after = solver.solve(b, x).iterations;
    const bool decayed = static_cast<double>(kept) > 1.2 * static_cast<double>(std::max<std::int64_t>(first, 5));
    EXPECT_TRUE(decayed) << first << " iterations, then " << kept;
    EXPECT_EQ(preconditioner->generation(), generation + (decayed ? 1 : 0));
    EXPECT_LT(after, kept);
}

TEST(ClusterMultigrid, RefusesWhatItDoesNotHave)
{
    Cluster cluster = make_cluster("host:1");
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    const auto whole = grid<double>(10, 10);
    const auto part = part_of(whole, uneven(100, cluster.size()), cluster.rank());
    const auto a = cluster.distribute(part.view, part.first);
    const bool last = cluster.rank() == cluster.size() - 1;
    const auto expect_error = [&](const char* text, const auto& set) {
        SolverOptions options = with_levels("amg");
        set(options);
        const std::string error = message_of([&] { ClusterSolver<double> solver(a, options); });
        EXPECT_NE(error.find(text), std::string::npos) << error;
    };
    expect_error("differs from one iteration to the next",
                 [](SolverOptions& o) { o.preconditioner_options.multigrid.cycle = "k"; });
    expect_error("aggressive_levels is -1",
                 [](SolverOptions& o) { o.preconditioner_options.multigrid.aggressive_levels = -1; });
    expect_error("smooths by any preconditioner but",
                 [](SolverOptions& o) { o.preconditioner_options.multigrid.smoother = "amg"; });
    expect_error("coarse_rows is 0", [](SolverOptions& o) { o.preconditioner_options.multigrid.coarse_rows = 0; });
    expect_error("or the caller's) differs", [&](SolverOptions& o) { o.preconditioner = last ? "jacobi" : "amg"; });
    expect_error("preconditioner differs", [&](SolverOptions& o) { o.preconditioner = last ? "sa-amg" : "amg"; });
    expect_error("smoother or sweeps differs",
                 [&](SolverOptions& o) { o.preconditioner_options.multigrid.sweeps = last ? 2 : 1; });
    expect_error("near-nullspace of 1 numbers", [&](SolverOptions& o) {
        o.preconditioner = "sa-amg";
        o.preconditioner_options.multigrid.near_null_vectors = 1;
        o.preconditioner_options.multigrid.near_nullspace.assign(
            last ? 1 : static_cast<std::size_t>(part.end - part.first), 1.0);
    });
    // The cluster is usable still.
    SolverOptions options = with_levels("amg", 20);
    ClusterSolver<double> solver(a, options);
    auto b = a.make_y();
    auto x = a.make_x();
    b.fill(1);
    x.fill(0);
    EXPECT_TRUE(solver.solve(b, x).converged());
}

}  // namespace
}  // namespace rmsp::test
