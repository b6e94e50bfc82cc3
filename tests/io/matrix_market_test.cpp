#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/matrix_market.hpp"
#include "io/random.hpp"
#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

template <class T = double>
CsrMatrix<T> parse(const std::string& text, const ReadOptions& options = {})
{
    return parse_matrix_market<T>(text, "t.mtx", options);
}

template <class T>
class MatrixMarket : public ::testing::Test {
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(MatrixMarket, Reals);

TYPED_TEST(MatrixMarket, CoordinateRealGeneral)
{
    const auto a = parse<TypeParam>(
        "%%MatrixMarket matrix coordinate real general\n% one\n%two\n\n  % three\n3 4 5\n3 4 -2.5\n1 2 1e-3\n1 1 +4\n2 "
        "3 0\n3 1 1D+5\n");
    expect_canonical(a);
    EXPECT_EQ(a.nnz(), 5);  // the explicit zero is kept
    EXPECT_EQ(dense(a), (std::vector<TypeParam>{4, TypeParam(1e-3), 0, 0, 0, 0, 0, 0, 100000, 0, 0, -2.5}));
}

TYPED_TEST(MatrixMarket, IntegerPatternAndSymmetries)
{
    EXPECT_EQ(dense(parse<TypeParam>("%%MatrixMarket MATRIX Coordinate INTEGER Symmetric\n2 2 2\n1 1 -7\n2 1 +3\n")),
              (std::vector<TypeParam>{-7, 3, 3, 0}));
    EXPECT_EQ(dense(parse<TypeParam>("%%matrixmarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n")),
              (std::vector<TypeParam>{1, 1, 1, 0}));
    EXPECT_EQ(dense(parse<TypeParam>("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 3\n2 2 0.0\n")),
              (std::vector<TypeParam>{0, -3, 3, 0}));
    ReadOptions options;
    options.pattern_value = 0.5;
    EXPECT_EQ(dense(parse<TypeParam>("%%MatrixMarket matrix coordinate pattern general\n1 2 1\n1 2\n", options)),
              (std::vector<TypeParam>{0, 0.5}));
}

TYPED_TEST(MatrixMarket, Array)
{
    const auto a = parse<TypeParam>("%%MatrixMarket matrix array real general\n2 3\n1\n0\n\n3\n4\n-0.0\n6\n");
    expect_canonical(a);
    EXPECT_EQ(a.nnz(), 4);  // zeros of an array are not stored
    EXPECT_EQ(dense(a), (std::vector<TypeParam>{1, 3, 0, 0, 4, 6}));
    EXPECT_EQ(dense(parse<TypeParam>("%%MatrixMarket matrix array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n")),
              (std::vector<TypeParam>{1, 2, 3, 2, 4, 5, 3, 5, 6}));
    EXPECT_EQ(dense(parse<TypeParam>("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n")),
              (std::vector<TypeParam>{0, -1, -2, 1, 0, -3, 2, 3, 0}));
    EXPECT_EQ(parse<TypeParam>("%%MatrixMarket matrix array real skew-symmetric\n1 1\n").nnz(), 0);
    EXPECT_EQ(parse<TypeParam>("%%MatrixMarket matrix array real general\n0 1000000000000\n").cols, 1000000000000);
}

TEST(MatrixMarketText, LineEndingsBlanksAndMissingLastLineFeed)
{
    const auto a =
        parse("%%MatrixMarket matrix coordinate real general\r\n%c\r\n\r\n 2\t2  2 \r\n\r\n 1 1 5\r\n\n\t2 2 6 ");
    EXPECT_EQ(dense(a), (std::vector<double>{5, 0, 0, 6}));
}

TEST(MatrixMarketText, Duplicates)
{
    const std::string text =
        "%%MatrixMarket matrix coordinate real general\n2 2 5\n2 2 1\n1 2 10\n2 2 2\n2 1 5\n2 2 4\n";
    const auto summed = parse(text);
    expect_canonical(summed);
    EXPECT_EQ(summed.nnz(), 3);
    EXPECT_EQ(dense(summed), (std::vector<double>{0, 10, 5, 7}));
    ReadOptions keep;
    keep.sum_duplicates = false;
    const auto kept = parse(text, keep);
    expect_canonical(kept, false);
    ASSERT_EQ(kept.nnz(), 5);
    EXPECT_EQ(kept.values[2], 1);  // in the order of the file
    EXPECT_EQ(kept.values[3], 2);
    EXPECT_EQ(kept.values[4], 4);
}

TEST(MatrixMarketText, SizesZeroAndOne)
{
    for (const char* size : {"0 0 0", "0 5 0", "5 0 0", "1 1 0"}) {
        const auto a = parse(fmt::format("%%MatrixMarket matrix coordinate real general\n{}", size));
        expect_canonical(a);
        EXPECT_EQ(a.nnz(), 0) << size;
    }
    EXPECT_EQ(dense(parse("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 9")), std::vector<double>{9});
}

TEST(MatrixMarketText, SizesBeyond32Bits)
{
    const auto a =
        parse("%%MatrixMarket matrix coordinate real general\n2 3000000000 3\n1 3000000000 1\n2 7 2\n1 1 3\n");
    EXPECT_EQ(a.col_idx.type(), IndexType::i64);
    expect_canonical(a);
    EXPECT_EQ(a.col_idx[1], 2999999999);
}

TEST(MatrixMarketText, ValuesAtTheLimits)
{
    const auto a = parse(
        "%%MatrixMarket matrix coordinate real general\n1 6 6\n1 1 1e-300\n1 2 inf\n1 3 -Infinity\n1 4 nan\n1 5 "
        "1e-999\n1 6 9007199254740993\n");
    EXPECT_EQ(a.values[0], 1e-300);
    EXPECT_EQ(a.values[1], std::numeric_limits<double>::infinity());
    EXPECT_EQ(a.values[2], -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(a.values[3]));
    EXPECT_EQ(a.values[4], 0);
    EXPECT_EQ(a.values[5], 9007199254740992.0);
    const auto i =
        parse("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 -123456789012345678901234567890\n");
    EXPECT_EQ(i.values[0], -123456789012345678901234567890.0);
    // One rounding: through double this would be 1 + 2^-23.
    const auto f = parse<float>("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1.00000005960464477540\n");
    EXPECT_EQ(f.values[0], 1.0F + 0x1p-23F);
}

/// Lines of a matrix with long and empty rows, in scattered order.
std::string scattered_text(std::int64_t n, std::int64_t entries)
{
    const io::RandomStream random(7);
    std::string text = fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", n, n, entries);
    for (std::int64_t k = 0; k < entries; ++k) {
        const auto i = static_cast<std::uint64_t>(3 * k);
        const std::int64_t row = k % 3 == 0 ? n / 2 : random.below(i, n);
        text += fmt::format("{} {} {}\n", row + 1, random.below(i + 1, n) + 1, random.signed_unit<double>(i + 2));
    }
    return text;
}

CsrMatrix<double> parse(const std::string& text, const ReadOptions& options, std::size_t chunk_bytes)
{
    core::ReadLimit limit("t", 0);
    return io::parse_matrix_market<double>({text, "t"}, options, limit, chunk_bytes);
}

TEST(MatrixMarketText, ChunksAndThreadsDoNotChangeTheMatrix)
{
    const std::string text = scattered_text(5000, 20000);
    ReadOptions one;
    one.threads = 1;
    const auto expected = parse(text, one, std::size_t{1} << 30);
    expect_canonical(expected);
    for (const int threads : {1, 2, 5}) {
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{100}, std::size_t{4096}}) {
            ReadOptions options;
            options.threads = threads;
            expect_equal(parse(text, options, chunk), expected);
        }
    }
}

TEST(MatrixMarketText, ChunkedArraysKeepTheirPlaces)
{
    for (const char* symmetry : {"general", "symmetric", "skew-symmetric"}) {
        const std::string kind = symmetry;
        const int n = 13;
        const int count = kind == "general" ? n * n : kind == "symmetric" ? n * (n + 1) / 2 : n * (n - 1) / 2;
        std::string text = fmt::format("%%MatrixMarket matrix array real {}\n{} {}\n", kind, n, n);
        for (int k = 1; k <= count; ++k) {
            text += fmt::format("{}\n{}", k, k % 5 == 0 ? "\n" : "");
        }
        expect_equal(parse(text, {}, 7), parse(text, {}, 100000));
    }
}

TEST(MatrixMarketText, ProgressEndsAtOne)
{
    double read = 0;
    double sort = 0;
    ReadOptions options;
    options.progress = [&](std::string_view phase, double done) { (phase == "read" ? read : sort) = done; };
    parse(scattered_text(100, 500), options);
    EXPECT_EQ(read, 1);
    EXPECT_EQ(sort, 1);
}

}  // namespace
