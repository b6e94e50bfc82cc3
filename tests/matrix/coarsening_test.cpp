#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>
#include <rmsp/spgemm.hpp>

#include "matrix/coarsening.hpp"
#include "matrix/strength.hpp"
#include "tests/matrix/small.hpp"

namespace rmsp::matrix {
namespace {

using test::random_dominant;
using test::sparse;
using testing::ElementsAre;

TEST(Strength, ByHand)
{
    const auto a = sparse<double>(4, 4,
                                  {4, -1, -0.2, 0.5,  //
                                   -1, 4, 2, 0,       //
                                   -0.2, 2, -4, 1,    //
                                   0.5, 0, 1, 0});
    // Row 0: a quarter of 1; row 1: 2 has the diagonal's sign; row 2: the diagonal is negative, so 2 and 1 count; row
    // 3: so does nothing, as 0 counts as positive.
    EXPECT_THAT(strong_entries(a.view(), Strength::classical, 0.25),
                ElementsAre(0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0));
    // A quarter of sqrt(4 * 4), and nothing but 0 beside a diagonal that is 0.
    EXPECT_THAT(strong_entries(a.view(), Strength::symmetric, 0.25),
                ElementsAre(0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1));
}

TEST(Strength, OfLargeEntriesBesideALargerDiagonal)
{
    const auto a = sparse<double>(3, 3,
                                  {100, -1, 0,        //
                                   -1, 10000, -1000,  //
                                   0, -1000, 10000});
    // None reaches half of the diagonals. 1000 is the largest of both its rows; 1 is the largest of row 0 alone.
    const auto marks = strong_entries(a.view(), Strength::symmetric, 0.5);
    EXPECT_THAT(marks, ElementsAre(0, mark::one_sided, 0, 0, mark::strong, mark::strong, 0));
    EXPECT_THAT(strong_graph(a.view(), marks).row_ptr, ElementsAre(0, 0, 1, 2));
}

TEST(Strength, RefusesBadMatricesAndThresholds)
{
    EXPECT_THROW(strong_entries(sparse<double>(1, 2, {1, 1}).view(), Strength::classical, 0.25), Error);
    const auto a = sparse<double>(1, 1, {1});
    EXPECT_THROW(strong_entries(a.view(), Strength::classical, -0.1), Error);
    EXPECT_THROW(strong_entries(a.view(), Strength::classical, std::nan("")), Error);
}

/// Rows of a line, each strongly connected with those beside it.
Graph line_graph(std::int64_t n)
{
    const auto a = stencil7<double>(n, 1, 1, {.values = ValueKind::laplace});
    return strong_graph(a.view(), strong_entries(a.view(), Strength::classical, 0.25));
}

TEST(CoarserPmis, ByHand)
{
    // Coarse points 1, 3 and 4 of six rows depend on each other in a line; the middle one is that on which most do.
    const Coarsening coarser = coarser_pmis(line_graph(6), {{-1, 0, -1, 1, 2, -1}, 3});
    EXPECT_EQ(coarser.count, 1);
    EXPECT_THAT(coarser.number, ElementsAre(-1, -1, -1, 0, -1, -1));
    // Those that are more than two steps apart stay.
    const Coarsening apart = coarser_pmis(line_graph(6), {{0, -1, -1, 1, -1, -1}, 2});
    EXPECT_THAT(apart.number, ElementsAre(0, -1, -1, 1, -1, -1));
    // 0 depends on 1 through a row between, and 1 on nothing: it stays, and 0 has it.
    const auto a = sparse<double>(3, 3, {1, -1, 0, 0, 1, -1, 0, 0, 1});
    const Graph one_way = strong_graph(a.view(), strong_entries(a.view(), Strength::classical, 0.5));
    EXPECT_THAT(coarser_pmis(one_way, {{0, -1, 1}, 2}).number, ElementsAre(-1, -1, 0));
    EXPECT_EQ(coarser_pmis(line_graph(3), {{-1, -1, -1}, 0}).count, 0);
}

TEST(CoarserPmis, LeavesEveryCoarsePointWithOneThatStays)
{
    const auto a = stencil7<double>(9, 8, 7, {.values = ValueKind::laplace});
    const Graph depends = strong_graph(a.view(), strong_entries(a.view(), Strength::classical, 0.25));
    const Coarsening first = pmis(depends);
    const Coarsening last = coarser_pmis(depends, first);
    EXPECT_LT(3 * last.count, first.count);
    const auto stays = [&](std::int32_t row) { return last.number[static_cast<std::size_t>(row)] >= 0; };
    for (std::int64_t row = 0; row < a.rows; ++row) {
        if (first.number[static_cast<std::size_t>(row)] < 0) {
            EXPECT_LT(last.number[static_cast<std::size_t>(row)], 0);
            continue;
        }
        bool found = stays(static_cast<std::int32_t>(row));
        for (const std::int32_t between : depends.neighbours(row)) {
            found = found || stays(between);
            for (const std::int32_t other : depends.neighbours(between)) {
                found = found || stays(other);
            }
        }
        EXPECT_TRUE(found) << row;
    }
}

TEST(Strength, OfBlocks)
{
    // Two nodes of two unknowns; the block beside the diagonal has the norm 5.
    const auto a = sparse<double>(4, 4,
                                  {1, 2, 3, 0,  //
                                   2, 1, 0, 4,  //
                                   0, 0, 1, 0,  //
                                   0, 0, 0, 1});
    const auto norms = block_norms(a.view(), 2);
    EXPECT_THAT(norms.values, ElementsAre(std::sqrt(10.0), 5, std::sqrt(2.0)));
    const HostVector<std::uint8_t> of_nodes{0, 1, 0};
    EXPECT_THAT(of_blocks(a.view(), 2, norms.view(), of_nodes), ElementsAre(0, 1, 1, 1, 0, 1, 0, 0));
    EXPECT_THROW(block_norms(a.view(), 3), Error);
}

TEST(Strength, GraphsAreSymmetrised)
{
    const auto a = sparse<double>(3, 3, {1, -1, 0, 0, 1, -1, 0, 0, 1});
    const Graph graph = strong_graph(a.view(), strong_entries(a.view(), Strength::classical, 0.5));
    EXPECT_THAT(graph.row_ptr, ElementsAre(0, 1, 2, 2));
    EXPECT_THAT(in_degrees(graph), ElementsAre(0, 1, 1));
    const Graph both = symmetrised(graph);
    EXPECT_THAT(both.row_ptr, ElementsAre(0, 1, 3, 4));
    EXPECT_THAT(both.col_idx, ElementsAre(1, 0, 2, 1));
    EXPECT_TRUE(is_canonical(a.view()));
}

/// A hub and what is connected with it, and a row by itself.
Graph star()
{
    const auto a = sparse<double>(5, 5, {2,  -1, -1, -1, 0,  //
                                         -1, 2,  0,  0,  0,  //
                                         -1, 0,  2,  0,  0,  //
                                         -1, 0,  0,  2,  0,  //
                                         0,  0,  0,  0,  2});
    return strong_graph(a.view(), strong_entries(a.view(), Strength::classical, 0.25));
}

TEST(Coarsening, OfAStarByHand)
{
    const Coarsening points = pmis(star());
    EXPECT_EQ(points.count, 1);
    EXPECT_THAT(points.number, ElementsAre(0, -1, -1, -1, -1));
    // All are within two steps of each other.
    const Coarsening groups = aggregates(star());
    EXPECT_EQ(groups.count, 1);
    EXPECT_THAT(groups.number, ElementsAre(0, 0, 0, 0, -1));
}

TEST(Coarsening, OfALineByHand)
{
    const Coarsening groups = aggregates(line_graph(8));
    EXPECT_EQ(groups.count, 3);
    EXPECT_THAT(groups.number, ElementsAre(0, 0, 1, 1, 1, 2, 2, 2));
}

TEST(Coarsening, OfNothing)
{
    const auto a = sparse<double>(0, 0, {});
    Graph empty = strong_graph(a.view(), {});
    EXPECT_EQ(pmis(empty).count, 0);
    EXPECT_EQ(aggregates(empty).count, 0);
}

TEST(Coarsening, PointsAreIndependentAndReachEveryRow)
{
    for (const bool symmetric : {false, true}) {
        const auto random = random_dominant<double>(3000, 4, false, 7);
        const auto m = symmetric ? stencil7<double>(15, 14, 13, {.values = ValueKind::poisson})
                                 : add(1.0, random.view(), 0.0, random.view());
        const Graph graph = strong_graph(m.view(), strong_entries(m.view(), Strength::classical, 0.25));
        const Coarsening points = pmis(graph);
        const auto needed = in_degrees(graph);
        ASSERT_GT(points.count, 0);
        for (std::int64_t row = 0; row < m.rows; ++row) {
            bool on = false;
            for (const auto other : graph.neighbours(row)) {
                on = on || points.number[static_cast<std::size_t>(other)] >= 0;
            }
            if (points.number[static_cast<std::size_t>(row)] < 0) {
                EXPECT_TRUE(on || needed[static_cast<std::size_t>(row)] == 0) << row;
            } else if (symmetric) {
                EXPECT_FALSE(on) << row;
            }
        }
    }
}

TEST(Coarsening, AggregatesAreConnectedAndHaveEveryRow)
{
    const auto a = stencil7<double>(15, 14, 13, {.values = ValueKind::poisson});
    const Graph graph = symmetrised(strong_graph(a.view(), strong_entries(a.view(), Strength::symmetric, 0.08)));
    const Coarsening groups = aggregates(graph);
    std::vector<int> sizes(static_cast<std::size_t>(groups.count));
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const std::int32_t own = groups.number[static_cast<std::size_t>(row)];
        ASSERT_GE(own, 0);
        ++sizes[static_cast<std::size_t>(own)];
        bool beside = false;
        for (const auto other : graph.neighbours(row)) {
            beside = beside || groups.number[static_cast<std::size_t>(other)] == own;
        }
        EXPECT_TRUE(beside) << row;
    }
    // A root has its six neighbours, fewer at the boundary; none is farther than two steps.
    EXPECT_THAT(sizes, testing::Each(testing::AllOf(testing::Ge(4), testing::Le(25))));
}

}  // namespace
}  // namespace rmsp::matrix
