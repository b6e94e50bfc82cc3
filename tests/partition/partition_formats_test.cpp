// pCSC and pCOO: what holds for pCSR has to hold for them, on columns or on sorted coordinates.
#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>

namespace rmsp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pointers = std::vector<std::int64_t>;

Pointers random_pointers(std::int64_t lines, int shape, std::mt19937& random)
{
    Pointers pointers{0};
    for (std::int64_t i = 0; i < lines; ++i) {
        const auto r = static_cast<std::int64_t>(random() % 10);
        const std::int64_t length = shape == 0   ? r
                                    : shape == 1 ? (r == 0 ? 7 : 0)
                                    : shape == 2 ? (i == lines / 3 ? 50 * lines : 1)
                                                 : (i < lines / 4 || i > 3 * lines / 4 ? 0 : 5);
        pointers.push_back(pointers.back() + length);
    }
    return pointers;
}

// The line of each nonzero, and an index in the other direction that never rises, so that it is not sorted by accident.
std::pair<std::vector<std::int32_t>, Pointers> coordinates(const Pointers& pointers)
{
    std::vector<std::int32_t> line;
    for (std::size_t i = 1; i < pointers.size(); ++i) {
        line.insert(line.end(), static_cast<std::size_t>(pointers[i] - pointers[i - 1]),
                    static_cast<std::int32_t>(i - 1));
    }
    Pointers other(line.size());
    for (std::size_t i = 0; i < other.size(); ++i) {
        other[i] = static_cast<std::int64_t>(other.size() - 1 - i);
    }
    return {line, other};
}

std::vector<PartitionOptions> variants(int parts)
{
    std::vector<PartitionOptions> all;
    for (int v = 0; v < 16; ++v) {
        PartitionOptions options;
        options.strategy = v % 4 == 3 ? PartitionStrategy::rows : PartitionStrategy::nonzeros;
        options.alignment = v % 4 == 0 ? RowAlignment::automatic : v % 4 == 1 ? RowAlignment::exact : RowAlignment::row;
        for (int k = 0; (v & 4) != 0 && k < parts; ++k) {
            options.weights.push_back(1.0 + k % 3);
        }
        for (int k = 0; (v & 8) != 0 && k < parts; ++k) {
            options.nodes.push_back(k * 2 / parts);
        }
        all.push_back(std::move(options));
    }
    return all;
}

// With the transpose of everything pCSR's tests prove for pCSR, equality with it is the property.
TEST(PartitionFormats, SplitAsTheCsrOfTheSameLines)
{
    std::mt19937 random(7);
    for (int shape = 0; shape < 4; ++shape) {
        for (const std::int64_t lines : {0, 1, 2, 3, 64, 401}) {
            const Pointers pointers = random_pointers(lines, shape, random);
            const std::int64_t nnz = pointers.back();
            const std::int64_t others = std::max<std::int64_t>(nnz, 1);
            const auto [line, other] = coordinates(pointers);
            for (const int parts : {1, 3, 8, 60}) {
                for (const PartitionOptions& options : variants(parts)) {
                    const Partition csr = partition_csr(lines, others, pointers.data(), parts, options);
                    const PartitionCsc csc = partition_csc(others, lines, pointers.data(), parts, options);
                    const PartitionCoo rows =
                        partition_coo(lines, others, nnz, line.data(), other.data(), parts, options);
                    const PartitionCoo cols =
                        partition_coo(others, lines, nnz, other.data(), line.data(), parts, options);
                    ASSERT_NO_THROW(csr.check());
                    ASSERT_NO_THROW(csc.check());
                    ASSERT_NO_THROW(rows.check());
                    ASSERT_NO_THROW(cols.check());
                    ASSERT_EQ(csc.nodes, csr.nodes);
                    ASSERT_EQ(rows.nodes, csr.nodes);
                    ASSERT_EQ(csc.imbalance(options.weights), csr.imbalance(options.weights));
                    ASSERT_EQ(cols.imbalance(options.weights), csr.imbalance(options.weights));
                    ASSERT_EQ(rows.order, CooOrder::by_row);
                    if (nnz > 1) {
                        ASSERT_EQ(cols.order, CooOrder::by_column);
                    }
                    for (std::size_t k = 0; k < csr.parts.size(); ++k) {
                        const PartialCsr& p = csr.parts[k];
                        const PartialCsc& q = csc.parts[k];
                        ASSERT_EQ(q, (PartialCsc{p.start_idx, p.end_idx, p.start_row, p.end_row, p.start_flag}));
                        ASSERT_EQ(q.first_owned_col(), p.first_owned_row());
                        ASSERT_EQ(q.owned_cols(), p.owned_rows());
                        ASSERT_EQ(rows.parts[k], (PartialCoo{p.start_idx, p.end_idx, p.start_row, p.end_row, 0, others,
                                                             p.start_flag}));
                        if (nnz > 1) {
                            ASSERT_EQ(cols.parts[k], (PartialCoo{p.start_idx, p.end_idx, 0, others, p.start_row,
                                                                 p.end_row, p.start_flag}));
                        }
                        Pointers expected(static_cast<std::size_t>(p.rows()) + 1);
                        Pointers local(expected);
                        std::vector<std::int32_t> narrow(expected.size());
                        local_row_ptr(pointers.data(), p, expected.data());
                        local_col_ptr(pointers.data(), q, local.data());
                        local_col_ptr(pointers.data(), q, narrow.data());
                        ASSERT_EQ(local, expected);
                        ASSERT_TRUE(std::equal(local.begin(), local.end(), narrow.begin()));
                    }
                }
            }
        }
    }
}

TEST(PartitionCsc, ByHand)
{
    const std::vector<std::int32_t> col_ptr{0, 3, 3, 10, 12};
    const PartitionCsc p =
        partition_csc(20, 4, col_ptr.data(), 3, {PartitionStrategy::nonzeros, RowAlignment::exact, {}, {}});
    EXPECT_THAT(p.parts, ElementsAre(PartialCsc{0, 4, 0, 3, false}, PartialCsc{4, 8, 2, 3, true},
                                     PartialCsc{8, 12, 2, 4, true}));
    const PartitionCsc columns =
        partition_csc(20, 4, col_ptr.data(), 2, {PartitionStrategy::rows, RowAlignment::automatic, {}, {}});
    EXPECT_THAT(columns.parts, ElementsAre(PartialCsc{0, 3, 0, 2, false}, PartialCsc{3, 12, 2, 4, false}));
}

TEST(PartitionCoo, ByHand)
{
    //                                   | part 1      | part 2
    const std::vector<std::int32_t> row{1, 1, 1, 4, 4, 4, 4, 4, 6};
    const std::vector<std::int32_t> col{5, 0, 2, 2, 2, 1, 0, 3, 3};
    const PartitionCoo p =
        partition_coo(9, 6, 9, row.data(), col.data(), 3, {PartitionStrategy::nonzeros, RowAlignment::exact, {}, {}});
    EXPECT_THAT(p.parts, ElementsAre(PartialCoo{0, 3, 0, 2, 0, 6, false}, PartialCoo{3, 6, 2, 5, 0, 6, false},
                                     PartialCoo{6, 9, 4, 9, 0, 6, true}));
    std::vector<std::int32_t> local(3, -1);
    local_indices(row.data(), p.parts[2], p.parts[2].start_row, p.parts[2].rows(), local.data());
    EXPECT_THAT(local, ElementsAre(0, 0, 2));
}

TEST(PartitionCoo, OfUnsortedEntries)
{
    const std::vector<std::int64_t> row{1, 5, 2, 4, 4};
    const std::vector<std::int64_t> col{5, 6, 6, 2, 2};
    const auto split = [&](UnsortedCoo unsorted) {
        return partition_coo(9, 7, 5, row.data(), col.data(), 2, {}, unsorted);
    };
    try {
        split(UnsortedCoo::refuse);
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_THAT(error.what(),
                    HasSubstr("9 x 7 matrix into 2 parts: its 5 entries are sorted neither by row (entry 2 is "
                              "in row 2 after one in row 5) nor by column (entry 3 is in column 2 after "
                              "one in column 6)"));
    }
    const PartitionCoo p = split(UnsortedCoo::split);
    EXPECT_EQ(p.order, CooOrder::unsorted);
    EXPECT_THAT(p.parts, ElementsAre(PartialCoo{0, 2, 0, 9, 0, 7, false}, PartialCoo{2, 5, 0, 9, 0, 7, false}));
    EXPECT_NO_THROW(p.check());
    EXPECT_DOUBLE_EQ(p.imbalance(), 0.2);
    EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 2, 0, 5}));
}

template <class F>
std::string complaint(const F& f)
{
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

TEST(PartitionFormats, RefuseBadArguments)
{
    const std::vector<std::int32_t> pointers{1, 2};
    const std::vector<std::int32_t> none{0};
    EXPECT_THAT(complaint([&] { partition_csc(2, 1, pointers.data(), 2); }), HasSubstr("col_ptr[0] is 1, not 0"));
    EXPECT_THAT(complaint([&] { partition_csc(2, 1, IndexView(), 2); }), HasSubstr("the column pointers are null"));
    EXPECT_THAT(complaint([&] { partition_csc(2, 0, none.data(), 0); }), HasSubstr("at least one part"));
    EXPECT_THAT(complaint([&] { partition_coo(2, 0, 3, none.data(), none.data(), 1); }),
                HasSubstr("it cannot have 3 nonzeros"));
    EXPECT_THAT(complaint([&] { partition_coo(2, 2, 1, IndexView(), none.data(), 1); }),
                HasSubstr("the row indices are null"));
    EXPECT_THAT(complaint([&] { partition_coo(2, 2, 1, none.data(), IndexView(), 1); }),
                HasSubstr("the column indices are null"));
    EXPECT_THAT(complaint([&] { partition_coo(-1, 2, 0, none.data(), none.data(), 1); }), HasSubstr("negative"));
    EXPECT_THAT(complaint([&] { local_indices(none.data(), {}, 0, std::int64_t{1} << 31, nullptr); }),
                HasSubstr("do not fit 32-bit"));
    PartitionCsc broken = partition_csc(2, 1, std::vector<std::int32_t>{0, 2}.data(), 2);
    broken.parts[1].end_col = 0;
    EXPECT_THAT(complaint([&] { broken.check(); }), HasSubstr("column"));
}

}  // namespace
}  // namespace rmsp
