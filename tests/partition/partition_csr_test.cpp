#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

namespace rmsp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Pointers = std::vector<std::int64_t>;

Partition split(const Pointers& row_ptr, int parts, const PartitionOptions& options = {})
{
    Partition result =
        partition_csr(static_cast<std::int64_t>(row_ptr.size()) - 1, 1000, row_ptr.data(), parts, options);
    result.check();
    return result;
}

PartitionOptions exact(std::vector<double> weights = {}, std::vector<int> nodes = {})
{
    return {PartitionStrategy::nonzeros, RowAlignment::exact, std::move(weights), std::move(nodes)};
}

// Rows of 2, 0, 4, 1 and 0 nonzeros; cuts at floor(7 / 3) = 2 and floor(14 / 3) = 4.
const Pointers by_hand{0, 2, 2, 6, 7, 7};

TEST(PartitionCsr, AgreesWithASplitByHand)
{
    const Partition p = split(by_hand, 3, exact());
    EXPECT_EQ(p.nnz, 7);
    EXPECT_THAT(p.parts, ElementsAre(PartialCsr{0, 2, 0, 1, false},
                                     PartialCsr{2, 4, 1, 3, false},   // the empty row 1 at the cut, and half of row 2
                                     PartialCsr{4, 7, 2, 5, true}));  // the other half, and the empty row at the end
    EXPECT_EQ(p.parts[2].first_owned_row(), 3);
    EXPECT_EQ(p.parts[2].owned_rows(), 2);
    EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 3, 0, 7}));
    EXPECT_NEAR(p.imbalance(), 3.0 / (7.0 / 3.0) - 1.0, 1e-15);
}

TEST(PartitionCsr, CutsAtTheNearestRowBoundary)
{
    // The cut at 4 is as far from 2 as from 6: the lower one wins.
    PartitionOptions options;
    options.alignment = RowAlignment::row;
    EXPECT_THAT(
        split(by_hand, 3, options).parts,
        ElementsAre(PartialCsr{0, 2, 0, 1, false}, PartialCsr{2, 2, 1, 1, false}, PartialCsr{2, 7, 1, 5, false}));
    EXPECT_THAT(split({0, 3, 8, 10}, 2, options).parts,
                ElementsAre(PartialCsr{0, 3, 0, 1, false}, PartialCsr{3, 10, 1, 3, false}));
    EXPECT_THAT(split({0, 3, 7, 10}, 2, options).parts,
                ElementsAre(PartialCsr{0, 3, 0, 1, false}, PartialCsr{3, 10, 1, 3, false}));
    EXPECT_THAT(split({0, 2, 6, 10}, 2, options).parts,
                ElementsAre(PartialCsr{0, 6, 0, 2, false}, PartialCsr{6, 10, 2, 3, false}));
}

TEST(PartitionCsr, MovesACutOnlyAsFarAsItIsCheap)
{
    // Two parts of 1000: a boundary 5 nonzeros (0.5 %) away is taken, one 6 away is not.
    EXPECT_THAT(split({0, 995, 2000}, 2).parts,
                ElementsAre(PartialCsr{0, 995, 0, 1, false}, PartialCsr{995, 2000, 1, 2, false}));
    EXPECT_THAT(split({0, 1005, 2000}, 2).parts,
                ElementsAre(PartialCsr{0, 1005, 0, 1, false}, PartialCsr{1005, 2000, 1, 2, false}));
    EXPECT_THAT(split({0, 994, 2000}, 2).parts,
                ElementsAre(PartialCsr{0, 1000, 0, 2, false}, PartialCsr{1000, 2000, 1, 2, true}));
    EXPECT_THAT(split({0, 995, 2000}, 2, exact()).parts,
                ElementsAre(PartialCsr{0, 1000, 0, 2, false}, PartialCsr{1000, 2000, 1, 2, true}));
}

TEST(PartitionCsr, SplitsOneDenseRowOverAllParts)
{
    const Partition p = split({0, 0, 8, 8}, 4);
    EXPECT_THAT(p.parts, ElementsAre(PartialCsr{0, 2, 0, 2, false}, PartialCsr{2, 4, 1, 2, true},
                                     PartialCsr{4, 6, 1, 2, true}, PartialCsr{6, 8, 1, 3, true}));
    EXPECT_EQ(p.parts[1].owned_rows(), 0);
    EXPECT_EQ(p.parts[3].owned_rows(), 1) << "the empty row at the end";
    EXPECT_EQ(p.imbalance(), 0.0);
}

TEST(PartitionCsr, LeavesPartsEmptyWhenThereIsTooLittle)
{
    const Partition p = split({0, 1, 2}, 5, exact());
    // Cuts at 0, 0, 0, 1, 1, 2
    EXPECT_THAT(p.parts,
                ElementsAre(PartialCsr{0, 0, 0, 0, false}, PartialCsr{0, 0, 0, 0, false}, PartialCsr{0, 1, 0, 1, false},
                            PartialCsr{1, 1, 1, 1, false}, PartialCsr{1, 2, 1, 2, false}));
    const Partition inside = split({0, 3}, 7, exact());
    EXPECT_EQ(inside.parts.back(), (PartialCsr{2, 3, 0, 1, true}));
    EXPECT_EQ(inside.parts[3], (PartialCsr{1, 1, 1, 1, false})) << "nothing to carry, so no shared row";
}

TEST(PartitionCsr, SplitsRowsEvenlyWithoutNonzeros)
{
    const Pointers zeros(8, 0);
    EXPECT_THAT(split(zeros, 3).parts, ElementsAre(PartialCsr{0, 0, 0, 2, false}, PartialCsr{0, 0, 2, 4, false},
                                                   PartialCsr{0, 0, 4, 7, false}));
    EXPECT_EQ(split(zeros, 3).imbalance(), 0.0);
    EXPECT_EQ(split(zeros, 2, exact({1, 6})).parts[0].end_row, 1);

    const Partition none = partition_csr(0, 0, IndexView(), 2);
    none.check();
    EXPECT_THAT(none.parts, ElementsAre(PartialCsr{}, PartialCsr{}));
    partition_csr(0, 5, zeros.data(), 3).check();
    const Partition no_columns = partition_csr(7, 0, zeros.data(), 2);
    no_columns.check();
    EXPECT_EQ(no_columns.parts[1], (PartialCsr{0, 0, 3, 7, false}));
}

TEST(PartitionCsr, CanSplitByRows)
{
    PartitionOptions options;
    options.strategy = PartitionStrategy::rows;
    const Partition p = split({0, 100, 100, 101, 102}, 2, options);
    EXPECT_THAT(p.parts, ElementsAre(PartialCsr{0, 100, 0, 2, false}, PartialCsr{100, 102, 2, 4, false}));
    EXPECT_NEAR(p.imbalance(), 100.0 / 51.0 - 1.0, 1e-15);
    options.weights = {3, 1};
    EXPECT_EQ(split({0, 100, 100, 101, 102}, 2, options).parts[0].end_row, 3);
    EXPECT_EQ(split({0}, 3, options = {PartitionStrategy::rows, RowAlignment::row, {}, {}}).parts.size(), 3u);
}

TEST(PartitionCsr, FollowsWeights)
{
    Pointers row_ptr(101);
    for (std::size_t i = 0; i < row_ptr.size(); ++i) {
        row_ptr[i] = static_cast<std::int64_t>(10 * i);
    }
    const Partition p = split(row_ptr, 3, exact({1, 3, 4}));
    EXPECT_EQ(p.parts[0].nnz(), 125);
    EXPECT_EQ(p.parts[1].nnz(), 375);
    EXPECT_EQ(p.parts[2].nnz(), 500);
    EXPECT_NEAR(p.imbalance({1, 3, 4}), 0.0, 1e-15);
    EXPECT_NEAR(p.imbalance(), 0.5, 1e-12);
    EXPECT_EQ(split(row_ptr, 3, exact({2.5, 2.5, 2.5})).parts, split(row_ptr, 3, exact()).parts);
    EXPECT_THROW(p.imbalance({1, 2}), Error);
}

TEST(PartitionCsr, CutsAtMultiplesOfRowsWhereThatCostsLittle)
{
    Pointers row_ptr{0};
    for (std::int64_t row = 0; row < 100'000; ++row) {
        row_ptr.push_back(row_ptr.back() + 3);
    }
    PartitionOptions options;
    // Cuts at rows 33333 and 66666; 16 rows of 33333 are 0.05 %.
    for (const RowAlignment alignment : {RowAlignment::automatic, RowAlignment::row}) {
        options.alignment = alignment;
        options.row_multiple = 32;
        EXPECT_EQ(split(row_ptr, 3, options).parts[1].start_row, 33344);
        EXPECT_EQ(split(row_ptr, 3, options).parts[2].start_row, 66656);
        // The nearest ones of row 33333 are 333 and 667 rows away.
        options.row_multiple = 1000;
        EXPECT_EQ(split(row_ptr, 3, options).parts[1].start_row, 33333);
        options.row_multiple = 1;
        EXPECT_EQ(split(row_ptr, 3, options).parts[1].start_row, 33333);
    }
    options.row_multiple = 32;
    options.alignment = RowAlignment::exact;
    EXPECT_EQ(split(row_ptr, 3, options).parts[1].start_idx, 100'000);
    options.row_multiple = 0;
    EXPECT_THROW((void)split(row_ptr, 3, options), Error);
}

TEST(PartitionCsr, SplitsAmongNodesFirst)
{
    // Six parts like Summit's. The first level cuts 120 nonzeros at 60, which is a row boundary.
    const Pointers row_ptr{0, 60, 61, 120};
    PartitionOptions options;
    options.nodes = {0, 0, 0, 1, 1, 1};
    options.alignment = RowAlignment::exact;
    const Partition p = split(row_ptr, 6, options);
    EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 3, 0, 60}, NodeShare{1, 3, 6, 60, 120}));
    for (const PartialCsr& part : p.parts) {
        EXPECT_EQ(part.nnz(), 20);
    }
    // An unequal node: its three parts weigh as much as the two of the other.
    const Partition q = split(row_ptr, 5, exact({2, 2, 2, 3, 3}, {1, 1, 1, 7, 7}));
    EXPECT_THAT(q.nodes, ElementsAre(NodeShare{1, 0, 3, 0, 60}, NodeShare{7, 3, 5, 60, 120}));
    EXPECT_EQ(q.parts[0].nnz(), 20);
    EXPECT_EQ(q.parts[4].nnz(), 30);
    // By rows, the second level divides what the first one gave.
    options.alignment = RowAlignment::row;
    const Partition r = split({0, 50, 120}, 4, {PartitionStrategy::nonzeros, RowAlignment::row, {}, {0, 0, 1, 1}});
    EXPECT_EQ(r.nodes[0].end_idx, 50);
    EXPECT_EQ(r.nodes[1].start_idx, 50);
}

TEST(PartitionCsr, CountsBeyond32Bits)
{
    constexpr std::int64_t big = std::int64_t{1} << 40;
    const Partition p = split({0, big, big + 1, big + 1, 4 * big + 3}, 4, exact());
    EXPECT_EQ(p.parts[1].start_idx, big);
    EXPECT_EQ(p.parts[1], (PartialCsr{big, 2 * big + 1, 1, 4, false}));
    EXPECT_EQ(p.parts[3], (PartialCsr{3 * big + 2, 4 * big + 3, 3, 4, true}));

    constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
    const Partition equal = split({0, huge}, 8, exact());
    EXPECT_EQ(equal.parts[7].nnz(), huge - huge / 8 * 7 - huge % 8 * 7 / 8);
    const Partition weighted = split({0, huge}, 3, exact({1, 1e-9, 1}));
    EXPECT_NEAR(weighted.imbalance({1, 1e-9, 1}), 0.0, 1e-6);
}

TEST(PartitionCsr, TakesPointersOfEitherWidth)
{
    const std::vector<std::int32_t> narrow(by_hand.begin(), by_hand.end());
    for (int parts = 1; parts < 9; ++parts) {
        EXPECT_EQ(partition_csr(5, 9, narrow.data(), parts).parts, partition_csr(5, 9, by_hand.data(), parts).parts);
    }
}

TEST(PartitionCsr, NamesWhatDoesNotFit)
{
    const auto message = [](const auto& run) -> std::string {
        try {
            run();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            return error.what();
        }
        return "no exception";
    };
    const auto with = [&](int parts, const PartitionOptions& options) {
        return message([&] { partition_csr(5, 9, by_hand.data(), parts, options); });
    };
    EXPECT_THAT(with(0, {}), HasSubstr("5 x 9 matrix into 0 parts: at least one"));
    EXPECT_THAT(with(2, exact({1})), HasSubstr("there are 1 weights"));
    EXPECT_THAT(with(2, exact({1, 0})), HasSubstr("the weight of part 1 is 0"));
    EXPECT_THAT(with(1, exact({std::numeric_limits<double>::quiet_NaN()})), HasSubstr("the weight of part 0 is nan"));
    EXPECT_THAT(with(1, exact({std::numeric_limits<double>::infinity()})), HasSubstr("the weight of part 0 is inf"));
    EXPECT_THAT(with(2, exact({1e308, 1e308})), HasSubstr("sum of the weights"));
    EXPECT_THAT(with(2, exact({}, {0})), HasSubstr("NUMA nodes for 1 parts"));
    EXPECT_THAT(with(3, exact({}, {0, 1, 0})), HasSubstr("part 2 is on node 0 after one on node 1"));
    EXPECT_THAT(message([] { partition_csr(-1, 9, by_hand.data(), 1); }), HasSubstr("negative"));
    EXPECT_THAT(message([] { partition_csr(5, 9, IndexView(), 1); }), HasSubstr("null"));
    EXPECT_THAT(message([] { partition_csr(5, 0, by_hand.data(), 1); }), HasSubstr("cannot have 7 nonzeros"));
    EXPECT_THAT(message([] { partition_csr(4, 9, by_hand.data() + 1, 1); }), HasSubstr("row_ptr[0] is 2"));
}

TEST(PartitionCheck, FindsWhatBreaksTheCover)
{
    const Partition good = split(by_hand, 3, exact());
    const auto broken = [&](const auto& change) {
        Partition bad = good;
        change(bad);
        try {
            bad.check();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::internal);
            return std::string(error.what());
        }
        return std::string("no exception");
    };
    EXPECT_THAT(broken([](Partition& p) { p.parts[1].start_idx = 3; }), HasSubstr("part 1 of 3"));
    EXPECT_THAT(broken([](Partition& p) { p.parts[2].end_idx = 6; }), HasSubstr("ends at nonzero 6"));
    EXPECT_THAT(broken([](Partition& p) { p.parts[2].end_row = 4; }), HasSubstr("ends at row 4"));
    EXPECT_THAT(broken([](Partition& p) { p.parts[2].start_flag = false; }), HasSubstr("owns rows [2, 5)"));
    EXPECT_THAT(broken([](Partition& p) { p.parts[0] = {0, 2, -1, 1, true}; }), HasSubstr("shares row -1"));
    EXPECT_THAT(broken([](Partition& p) { p.parts[0].end_row = 0; }), HasSubstr("no row"));
    EXPECT_THAT(broken([](Partition& p) { p.nodes[0].end_part = 2; }), HasSubstr("part 0"));
    EXPECT_THAT(broken([](Partition& p) { p.nodes.clear(); }), HasSubstr("is on no node"));
    EXPECT_THAT(broken([](Partition& p) { p.parts.clear(); }), HasSubstr("without parts"));
}

}  // namespace
}  // namespace rmsp
