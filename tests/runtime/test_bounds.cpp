#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/characterize.hpp>
#include <rmsp/error.hpp>
#include <rmsp/io.hpp>
#include <rmsp/renumber.hpp>

#include "runtime/bounds/pattern.hpp"
#include "tests/matrix/small.hpp"

namespace {

using namespace rmsp::bounds;
using rmsp::Characterization;
using rmsp::characterize;
using rmsp::CharacterizeOptions;
using rmsp::CsrMatrix;
using rmsp::Traffic;
using rmsp::UpperBound;
using rmsp::test::sparse;
using testing::ElementsAre;
using testing::HasSubstr;

/// The factors of the paper's Figure 4.
CsrMatrix<float> figure_4_a() { return sparse<float>(2, 3, {1, 1, 0, 0, 0, 1}); }
CsrMatrix<float> figure_4_b() { return sparse<float>(3, 4, {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0}); }

/// Rows 0 and 2 meet columns 0 and 2 alone, rows 1 and 3 the others.
CsrMatrix<float> interleaved_blocks() { return sparse<float>(4, 4, {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1}); }

CharacterizeOptions with_fast_bytes(std::int64_t bytes)
{
    CharacterizeOptions options;
    options.fast_bytes = bytes;
    options.line_bytes = 8;
    return options;
}

struct Given {
    Pattern a;
    Pattern b;
    Operation op;
    Counts counts;
    explicit Given(const CsrMatrix<float>& a_matrix) : a(pattern_of(a_matrix.view())), op{a, nullptr, 4}
    {
        counts = count(op);
    }
    Given(const CsrMatrix<float>& a_matrix, const CsrMatrix<float>& b_matrix)
        : a(pattern_of(a_matrix.view())), b(pattern_of(b_matrix.view())), op{a, &b, 4}
    {
        counts = count(op);
    }
    Given(const Given&) = delete;
    Given& operator=(const Given&) = delete;
};

TEST(Characterize, CountsTheProductOfFigure4)
{
    const Characterization c = characterize(figure_4_a().view(), figure_4_b().view());
    EXPECT_TRUE(c.product);
    EXPECT_EQ(c.multiplies, 6);
    EXPECT_EQ(c.a_nnz, 3);
    EXPECT_EQ(c.b_nnz, 6);
    EXPECT_EQ(c.c_nnz, 5);
    EXPECT_DOUBLE_EQ(c.compression(), 6.0 / 5);
    EXPECT_EQ(c.footprint.words, 2 * (3 + 6 + 5));
    EXPECT_EQ(c.footprint.bytes, 4 * c.footprint.words);
    EXPECT_DOUBLE_EQ(c.intensity_per_word(), 12.0 / 28);
    EXPECT_EQ(c.upper.method, "one part");
    EXPECT_EQ(c.upper.moved.words, c.footprint.words);
    EXPECT_TRUE(c.orders.empty());
}

TEST(Characterize, HypergraphOfFigure4)
{
    const Given given(figure_4_a(), figure_4_b());
    const MultiplyGraph m = multiply_graph(given.op, given.counts);
    EXPECT_EQ(m.graph.vertices(), 6);
    EXPECT_EQ(m.a_nets, 3);
    EXPECT_EQ(m.b_nets, 6);
    EXPECT_EQ(m.graph.nets(), 3 + 6 + 5);
    EXPECT_THAT(m.row, ElementsAre(0, 0, 0, 0, 1, 1));
    EXPECT_THAT(m.column, ElementsAre(0, 3, 0, 1, 0, 2));
    // Of C, entry (0, 0) has two multiplies.
    EXPECT_THAT(std::vector<std::int32_t>(m.graph.pins.end() - 6, m.graph.pins.end()), ElementsAre(0, 2, 1, 3, 4, 5));
}

TEST(Characterize, WordsOfSmallFastMemories)
{
    const Given given(figure_4_a(), figure_4_b());
    // Three entries: a part for each multiply.
    Cut cut = cut_rows(given.op, 3 * 8, nullptr, nullptr);
    EXPECT_EQ(cut.parts, 6);
    EXPECT_EQ(traffic(given.op, given.counts, cut.touches).words, 2 * 6 + 2 * 6 + 3 * 6 - 5);
    EXPECT_EQ(traffic(given.op, given.counts, cut.touches).bytes, 8 * 12 + 12 * 6 - 4 * 5);
    // Five: one for each nonzero of A; C(0, 0) comes twice.
    cut = cut_rows(given.op, 5 * 8, nullptr, nullptr);
    EXPECT_EQ(cut.parts, 3);
    EXPECT_EQ(traffic(given.op, given.counts, cut.touches).words, 2 * 3 + 2 * 6 + 3 * 6 - 5);
    cut = cut_rows(given.op, 14 * 8, nullptr, nullptr);
    EXPECT_EQ(cut.parts, 1);
    EXPECT_EQ(traffic(given.op, given.counts, cut.touches).words, 28);

    const Characterization c = characterize(figure_4_a().view(), figure_4_b().view(), with_fast_bytes(3 * 8));
    EXPECT_EQ(c.upper.parts, 6);
    EXPECT_EQ(c.upper.moved.words, 37);
    EXPECT_EQ(c.upper.partitioner, "greedy growth");
    EXPECT_NEAR(c.multiply_bound_words, 1.72 * 6 / std::sqrt(6.0), 1e-12);
}

TEST(Characterize, VectorsCountOnce)
{
    // A row and a column are empty.
    const CsrMatrix<float> a = sparse<float>(3, 3, {1, 1, 0, 0, 0, 0, 1, 0, 0});
    const Characterization c = characterize(a.view());
    EXPECT_FALSE(c.product);
    EXPECT_EQ(c.multiplies, 3);
    EXPECT_EQ(c.footprint.words, 2 * 3 + 2 + 3);
    EXPECT_EQ(c.row_lengths.empty_rows, 1);
    EXPECT_EQ(c.row_lengths.longest_row, 2);
    EXPECT_THAT(c.row_histogram, ElementsAre(1, 1, 1));
    // Four words: a part for each multiply, so that y(0) is stored twice and loaded once.
    EXPECT_EQ(characterize(a.view(), with_fast_bytes(16)).upper.moved.words, 2 * 3 + 3 + (2 + 1) + 1 + 1);
}

TEST(Characterize, UnusedEntriesAreNotMoved)
{
    // The second row of B meets no entry of A; the third row of B is empty.
    const CsrMatrix<float> a = sparse<float>(1, 3, {1, 0, 1});
    const CsrMatrix<float> b = sparse<float>(3, 2, {1, 1, 1, 1, 0, 0});
    EXPECT_EQ(characterize(a.view(), b.view()).footprint.words, 2 * (1 + 2 + 2));
}

TEST(Characterize, SimulatedCacheByHand)
{
    const Given given(sparse<float>(1, 4, {1, 1, 1, 1}));
    // Two columns, two values and two entries of x share a line of 8 bytes; y has one.
    rmsp::SimulatedCache cache = simulate(given.op, given.counts, 3 * 8, 8);
    EXPECT_EQ(cache.read_bytes, 6 * 8);
    EXPECT_EQ(cache.written_bytes, 8);
    EXPECT_EQ(cache.compulsory_bytes, 7 * 8);
    EXPECT_EQ(cache.uncached_bytes, (12 + 2) * 8);
    // With two lines, what is needed again has always just left.
    cache = simulate(given.op, given.counts, 2 * 8, 8);
    EXPECT_EQ(cache.read_bytes, 12 * 8);
    EXPECT_EQ(cache.written_bytes, 8);
}

TEST(Characterize, AlgorithmFourPutsPartsTogether)
{
    // A block takes 4 nonzeros of 8 bytes and 4 entries of vectors: two parts that share nothing.
    const Characterization c = characterize(interleaved_blocks().view(), with_fast_bytes(4 * 8 + 4 * 4));
    EXPECT_EQ(c.upper.method, "multiplies");
    EXPECT_EQ(c.upper.parts, 2);
    EXPECT_EQ(c.upper.moved.words, c.footprint.words);
    ASSERT_EQ(c.orders.size(), 4u);
    EXPECT_EQ(c.orders[0].name, "none");
    EXPECT_EQ(c.orders[3].name, "partition");
    EXPECT_THAT(c.orders[3].row_at, ElementsAre(0, 2, 1, 3));
    EXPECT_EQ(c.orders[3].cut.words, c.footprint.words);
    EXPECT_GT(c.orders[0].cut.words, c.footprint.words);
}

TEST(Characterize, VotesGoToThePartWithMostMultiplies)
{
    const Given given(sparse<float>(3, 3, {1, 1, 0, 0, 1, 0, 0, 0, 0}));
    const MultiplyGraph m = multiply_graph(given.op, given.counts);
    // Row and column 0: parts 1, 1, 0; row and column 1: 0, 2, 2; the last has none.
    EXPECT_THAT(vote(m, {1, 0, 2}, 3), ElementsAre(1, 2, 0));
    EXPECT_THAT(order_by_part({1, 2, 0}), ElementsAre(2, 0, 1));
}

void expect_ordered(const Characterization& c)
{
    EXPECT_GE(c.upper.moved.words, c.footprint.words);
    EXPECT_GE(c.upper.moved.bytes, c.lower().bytes);
    for (const rmsp::OrderTraffic& order : c.orders) {
        EXPECT_GE(order.cut.bytes, c.footprint.bytes) << order.name;
        EXPECT_GE(order.cache.bytes(), order.cache.compulsory_bytes) << order.name;
        EXPECT_LE(order.cache.bytes(), order.cache.uncached_bytes) << order.name;
        EXPECT_GE(order.cache.compulsory_bytes, c.footprint.bytes) << order.name;
    }
}

TEST(Characterize, BoundsAreInOrder)
{
    const CsrMatrix<double> matrices[] = {rmsp::stencil7<double>(6, 5, 4), rmsp::rmat<double>(6, 4),
                                          rmsp::banded<double>(100, 4), rmsp::random_uniform<double>(60, 60, 5)};
    for (const CsrMatrix<double>& a : matrices) {
        for (const std::int64_t bytes : {std::int64_t{64}, std::int64_t{400}, std::int64_t{3000}}) {
            for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1000000}}) {
                CharacterizeOptions options = with_fast_bytes(bytes);
                options.fine_limit = limit;
                const Characterization v = characterize(a.view(), options);
                const Characterization c = characterize(a.view(), a.view(), options);
                EXPECT_EQ(v.orders.size(), 4u);
                EXPECT_EQ(c.orders.size(), 4u);
                expect_ordered(v);
                expect_ordered(c);
                EXPECT_THAT(c.upper.method,
                            testing::AnyOf(limit == 0 ? "rows" : "multiplies", "row order", "one part"));
            }
        }
    }
}

TEST(Characterize, IdentityChangesNothing)
{
    const CsrMatrix<double> a = rmsp::rmat<double>(7, 4);
    std::vector<std::int64_t> identity(static_cast<std::size_t>(a.rows));
    std::iota(identity.begin(), identity.end(), std::int64_t{0});
    const CsrMatrix<double> same = rmsp::renumbered(a.view(), identity);
    const Characterization before = characterize(a.view(), with_fast_bytes(2000));
    const Characterization after = characterize(same.view(), with_fast_bytes(2000));
    EXPECT_EQ(before.upper.moved.bytes, after.upper.moved.bytes);
    for (std::size_t i = 0; i < before.orders.size(); ++i) {
        EXPECT_EQ(before.orders[i].cache.bytes(), after.orders[i].cache.bytes());
        EXPECT_EQ(before.orders[i].cut.bytes, after.orders[i].cut.bytes);
        EXPECT_EQ(before.orders[i].row_at, after.orders[i].row_at);
    }
}

TEST(Characterize, LargeProductsAreNotSimulated)
{
    CharacterizeOptions options = with_fast_bytes(2000);
    options.simulate_limit = 10;
    const Characterization c = characterize(rmsp::banded<double>(50, 3).view(), options);
    EXPECT_FALSE(c.cache.done);
    EXPECT_EQ(c.cache.bytes(), 0);
}

TEST(Characterize, NothingIsNoTraffic)
{
    const CsrMatrix<double> a = rmsp::random_uniform<double>(0, 0, 0);
    EXPECT_EQ(characterize(a.view()).upper.moved.bytes, 0);
    EXPECT_EQ(characterize(a.view(), a.view()).upper.moved.words, 0);
}

TEST(Characterize, BadInputIsNamed)
{
    const CsrMatrix<double> a = rmsp::banded<double>(50, 3);
    const auto message = [&](auto&& change) -> std::string {
        CharacterizeOptions options = with_fast_bytes(2000);
        change(options);
        try {
            characterize(a.view(), options);
        } catch (const rmsp::Error& e) {
            EXPECT_EQ(e.code(), rmsp::ErrorCode::usage);
            return e.what();
        }
        return "";
    };
    EXPECT_THAT(message([](auto& o) { o.fast_bytes = 27; }), HasSubstr("27 bytes does not hold"));
    EXPECT_THAT(message([](auto& o) { o.line_bytes = 12; }), HasSubstr("12 bytes is no power of two"));
    EXPECT_THAT(message([](auto& o) { o.fine_limit = -1; }), HasSubstr("at least 0, not -1"));
    EXPECT_THAT(message([](auto& o) {
                    o.partitioner = {"bad", [](const rmsp::Hypergraph& g, std::int32_t parts) {
                                         return std::vector<std::int32_t>(static_cast<std::size_t>(g.vertices()),
                                                                          parts);
                                     }};
                }),
                HasSubstr("partitioner \"bad\""));
    try {
        characterize(a.view(), rmsp::banded<double>(40, 3).view());
        ADD_FAILURE() << "sizes that do not fit";
    } catch (const rmsp::Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("A is 50 x 50 and B 40 x 40"));
    }
}

TEST(GreedyPartitioner, GrowsEvenParts)
{
    // A path: nets join neighbours.
    rmsp::Hypergraph path;
    path.vertex_weight.assign(12, 1);
    path.net_ptr = {0};
    for (std::int32_t v = 0; v + 1 < 12; ++v) {
        path.pins.push_back(v);
        path.pins.push_back(v + 1);
        path.net_ptr.push_back(static_cast<std::int64_t>(path.pins.size()));
    }
    EXPECT_THAT(rmsp::greedy_partitioner().partition(path, 3), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2));
    EXPECT_THAT(rmsp::greedy_partitioner().partition(path, 1), testing::Each(0));
}

}  // namespace
