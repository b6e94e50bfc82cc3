#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/matrix_market.hpp"
#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

struct BadText {
    const char* text;
    const char* message;  ///< beginning of the message
};

class BadMatrixMarket : public ::testing::TestWithParam<BadText> {};

TEST_P(BadMatrixMarket, NamesLineAndColumn)
{
    // Also in chunks of a line each, where lines before a chunk have to be counted.
    for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
        core::ReadLimit limit("f", 0);
        const std::string message = message_of(ErrorCode::io, [&] {
            io::parse_matrix_market<double>({GetParam().text, "f"}, {}, limit, chunk);
        });
        EXPECT_TRUE(message.starts_with(GetParam().message)) << message;
    }
}

#define REAL "%%MatrixMarket matrix coordinate real general\n"
#define SYMMETRIC "%%MatrixMarket matrix coordinate real symmetric\n"
INSTANTIATE_TEST_SUITE_P(
    Texts, BadMatrixMarket,
    ::testing::Values(
        BadText{"", "f:1:1: the file is empty"},  //
        BadText{"1 1 1\n", "f:1:1: not a Matrix Market file"},
        BadText{"%%MatrixMarket vector coordinate real general\n",
                "f:1:16: expected the object \"matrix\", found \"vector\""},
        BadText{"%%MatrixMarket matrix dense real general\n",
                "f:1:23: expected the format (coordinate, array), found \"dense\""},
        BadText{"%%MatrixMarket matrix array\n",
                "f:1:28: expected the field (real, integer, pattern, complex), found the end of the line"},
        BadText{"%%MatrixMarket matrix coordinate complex general\n", "f:1:34: complex matrices are not supported"},
        BadText{"%%MatrixMarket matrix coordinate real Hermitian\n", "f:1:39: hermitian matrices are complex"},
        BadText{"%%MatrixMarket matrix array pattern general\n", "f:1:29: an array file cannot be a pattern"},
        BadText{"%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
                "f:1:42: a pattern cannot be skew-symmetric"},
        BadText{"%%MatrixMarket matrix coordinate real general x\n", "f:1:47: unexpected \"x\" after the banner"},
        BadText{REAL "% only\n\n", "f:4:1: the file ends before its size line"},
        BadText{REAL "2 2\n", "f:2:4: expected the number of entries, found the end of the line"},
        BadText{REAL "2 -2 1\n", "f:2:3: expected the number of columns, found \"-2\""},
        BadText{REAL "2 2 1 7\n1 1 1\n", "f:2:7: unexpected \"7\" after the size line"},
        BadText{REAL "2 2 99999999999999999999\n",
                "f:2:5: the number of entries \"99999999999999999999\" does not fit 64 bits"},
        BadText{REAL "9223372036854775807 1 0\n", "f:2:1: 9223372036854775807 rows are too many"},
        BadText{REAL "2 2 9000000000000000000\n1 1 1\n",
                "f:2:5: 9000000000000000000 entries cannot be in the 6 bytes that follow"},
        BadText{"%%MatrixMarket matrix array real general\n4000000000 4000000000\n1\n",
                "f:2:1: 1.6e+19 entries cannot be in the 2 bytes"},
        BadText{SYMMETRIC "2 3 0\n", "f:2:1: a symmetric matrix must be square, not 2 x 3"},
        BadText{REAL "2 2 2\n1 1 1.0\n", "f:2:5: 2 entries cannot be in the 8 bytes"},
        BadText{REAL "2 2 2\n1 1 1.000000\n", "f:4:1: the file ends after 1 of 2 entries"},
        BadText{REAL "2 2 1\n1 1 1\n\n 1 2 3\n2 2 2\n", "f:5:2: more than the 1 entries of the size line"},
        BadText{REAL "2 2 2\n1 1 1\n0 1 1\n", "f:4:1: row index 0: indices begin at 1"},
        BadText{REAL "2 2 2\n1 1 1\n1 3 1\n", "f:4:3: column index \"3\" is beyond the 2 columns"},
        BadText{REAL "2 2 2\n1 1 1\n-1 1 1\n", "f:4:1: expected a row index, found \"-1\""},
        BadText{REAL "2 2 2\n1 1 1\n1 2.0 1\n", "f:4:3: expected a column index, found \"2.0\""},
        BadText{REAL "2 2 2\n1 1 1\n  99999999999999999999999 1 1\n",
                "f:4:3: row index \"99999999999999999999999\" is beyond"},
        BadText{REAL "2 2 2\n1 1 1\n2 2\n1 1 1\n", "f:4:4: expected a value, found the end of the line"},
        BadText{REAL "2 2 2\n1 1 1\n2 2 1.5x\n", "f:4:5: expected a value, found \"1.5x\""},
        BadText{REAL "2 2 2\n1 1 1\n2 2 1.5 0.0\n", "f:4:9: unexpected \"0.0\" after the entry"},
        BadText{REAL "2 2 2\n1 1 1\n2 2 1e999\n", "f:4:5: value \"1e999\" is too large for double"},
        BadText{REAL "2 2 2\n1 1 1\n2 2 \x01\n", "f:4:5: expected a value, found \"\\x01\""},
        BadText{REAL "2 2 2\n1 1 1\n% no comments here\n2 2 1\n", "f:4:1: expected a row index, found \"%\""},
        BadText{REAL "2 2 2\r\n1 1 1\r\n2 2 oops\r\n", "f:4:5: expected a value, found \"oops\""},
        BadText{"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n",
                "f:3:5: expected an integer value, found \"1.5\""},
        BadText{SYMMETRIC "2 2 1\n1 2 5\n", "f:3:1: entry (1, 2) is above the diagonal"},
        BadText{"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 5\n", "f:3:5: diagonal entry (2, 2)"},
        BadText{"%%MatrixMarket matrix array real general\n1 2\n1\n2 3\n", "f:4:3: unexpected \"3\" after the entry"},
        BadText{"%%MatrixMarket matrix array real general\n1 2\n1\n2\n3\n", "f:5:1: more than the 2 entries"},
        BadText{"%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n",
                "f:3:5: unexpected \"1\" after the entry"}));

TEST(BadMatrixMarketText, TheFirstErrorIsReportedOnAnyNumberOfThreads)
{
    std::string text = REAL "9 9 20000\n";
    for (int k = 0; k < 20000; ++k) {
        text += k == 4000 ? "1 1 bad\n" : k > 4000 && k % 100 == 0 ? "1 1 worse\n" : "1 1 1\n";
    }
    ReadOptions options;
    options.threads = 4;
    for (int repeat = 0; repeat < 10; ++repeat) {
        core::ReadLimit limit("f", 0);
        EXPECT_EQ(message_of(ErrorCode::io,
                             [&] {
                                 io::parse_matrix_market<double>({text, "f"}, options, limit, 100);
                             }),
                  "f:4003:5: expected a value, found \"bad\"");
    }
}

TEST(BadMatrixMarketText, RowsBeyondTheMachineAreRefusedBeforeAllocating)
{
    EXPECT_TRUE(message_of(ErrorCode::out_of_memory, [] {
                    parse_matrix_market<float>(REAL "1000000000000000 1 0\n", "f");
                }).starts_with("f: the row pointers of 1000000000000000 rows would take 8e+06 GB"));
}

TEST(BadMatrixMarketText, FloatOverflowIsNamed)
{
    EXPECT_EQ(message_of(ErrorCode::io, [] { parse_matrix_market<float>(REAL "1 1 1\n1 1 1e39\n", "f"); }),
              "f:3:5: value \"1e39\" is too large for float");
}

TEST(BadMatrixMarketText, NegativeThreads)
{
    ReadOptions options;
    options.threads = -1;
    message_of(ErrorCode::usage, [&] { parse_matrix_market<float>(REAL "0 0 0\n", "f", options); });
}

}  // namespace
