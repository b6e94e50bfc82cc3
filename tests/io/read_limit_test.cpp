#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <rmsp/renumber.hpp>

#include "io/codec.hpp"
#include "io/npy.hpp"
#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

constexpr const char* banner = "%%MatrixMarket matrix coordinate real general\n";

ReadOptions at_most(std::int64_t bytes)
{
    ReadOptions options;
    options.max_bytes = bytes;
    options.threads = 2;
    return options;
}

class Bombs : public ::testing::TestWithParam<io::Codec> {};

TEST_P(Bombs, UnpackNoMoreThanTheLimit)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.mtx.packed");
    // Members behind each other are one text: 40 MB of comments here, in a few kB.
    const std::string member = io::compress_member(GetParam(), '%' + std::string(10'000'000, ' ') + '\n');
    std::string bytes = io::compress_member(GetParam(), banner);
    for (int i = 0; i < 4; ++i) {
        bytes += member;
    }
    write_bytes(path, bytes + io::compress_member(GetParam(), "1 1 1\n1 1 5\n"));
    ASSERT_LT(bytes.size(), 200'000U);
    EXPECT_EQ(read_matrix<double>(path).nnz(), 1);
    const std::string message = message_of(ErrorCode::io, [&] { read_matrix<double>(path, at_most(12'000'000)); });
    EXPECT_TRUE(message.starts_with(path + ": what it unpacks would take ")) << message;
    EXPECT_TRUE(message.ends_with("; io.max_bytes is 12000000")) << message;
    EXPECT_EQ(read_matrix<double>(path, at_most(41'000'000)).nnz(), 1);
}

INSTANTIATE_TEST_SUITE_P(Codecs, Bombs, ::testing::Values(io::Codec::gzip, io::Codec::xz, io::Codec::zstd));

TEST(ReadLimit, RowsThatAreOnlyClaimed)
{
    const std::string text = std::string(banner) + "1000000000 1 0\n";
    EXPECT_EQ(message_of(ErrorCode::io, [&] { parse_matrix_market<double>(text, "claims", at_most(1 << 20)); }),
              "claims: the row pointers of 1000000000 rows would take 8000000008 bytes beside 0 that reading it holds; "
              "io.max_bytes is 1048576");
    const std::string most = std::string(banner) + "9223372036854775806 1 0\n";
    EXPECT_TRUE(message_of(ErrorCode::io, [&] {
                    parse_matrix_market<double>(most, "claims", at_most(INT64_MAX));
                }).starts_with("claims: the row pointers of 9223372036854775806 rows would take more than"));
}

TEST(ReadLimit, BlankLinesAreNoEntries)
{
    // Each chunk has room for as many entries as it has lines, and no more than the file has.
    const std::string text = std::string(banner) + "1 1 1\n" + std::string(50'000'000, '\n') + "1 1 5\n";
    EXPECT_EQ(parse_matrix_market<double>(text, "blank", at_most(100'000)).nnz(), 1);
}

TEST(ReadLimit, APipeBringsNoMore)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("pipe");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    // A writer that is not stopped by the end of its reader would be an error of its own.
    const std::string command = fmt::format("{{ printf '%%{}'; yes '% comment'; }} 2>/dev/null > '{}' &",
                                            std::string(banner, 44) + "\\n", path);
    ASSERT_EQ(std::system(command.c_str()), 0);
    const std::string message = message_of(ErrorCode::io, [&] { read_matrix<double>(path, at_most(3'000'000)); });
    EXPECT_TRUE(message.starts_with(path + ": what comes through it would take ")) << message;
}

/// Whatever the limit, a file gives the same as without one, or an error that names the file and the limit; from some
/// limit on it is read.
template <class Read>
std::int64_t expect_whole_or_named(const std::string& path, const Read& read)
{
    const auto whole = read(at_most(0));
    std::int64_t least = 0;
    for (std::int64_t limit = 1; limit < 1'000'000; limit += limit / 16 + 1) {
        try {
            EXPECT_TRUE(read(at_most(limit)) == whole) << path << ' ' << limit;
            least = least == 0 ? limit : least;
        } catch (const Error& e) {
            EXPECT_EQ(least, 0) << path << ": refused at " << limit;
            EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
            EXPECT_TRUE(std::string(e.what()).starts_with(path + ": ")) << e.what();
            EXPECT_TRUE(std::string(e.what()).ends_with(fmt::format("io.max_bytes is {}", limit))) << e.what();
        }
    }
    EXPECT_GT(least, 0) << path;
    return least;
}

TEST(ReadLimit, AFileIsReadWholeOrRefused)
{
    const ScratchDirectory scratch;
    const CsrMatrix<double> a = random_uniform<double>(300, 200, 5);
    const std::int64_t arrays = 301 * 8 + 1500 * 12;
    for (const char* ending : {"a.mtx", "a.mtx.gz", "a.npz"}) {
        const std::string path = scratch.file(ending);
        write_matrix(path, a.view());
        const std::int64_t least = expect_whole_or_named(path, [&](const ReadOptions& options) {
            const CsrMatrix<double> got = read_matrix<double>(path, options);
            EXPECT_EQ(got.row_ptr, a.row_ptr);
            return got.values;
        });
        EXPECT_GE(least, arrays) << path;
        EXPECT_LE(least, 150'000) << path;
    }
    // Repeated entries are added into new arrays.
    const std::string repeated = scratch.file("repeated.mtx");
    write_bytes(repeated, std::string(banner) + "1000 1 2\n1 1 1\n1 1 2\n");
    EXPECT_GE(expect_whole_or_named(
                  repeated, [&](const ReadOptions& options) { return read_matrix<double>(repeated, options).values; }),
              2 * 1001 * 8);
}

TEST(ReadLimit, VectorsAndNumberings)
{
    const ScratchDirectory scratch;
    const std::vector<double> x(1000, 2.5);
    for (const char* name : {"x.npy", "x.mtx", "x.mtx.zst"}) {
        const std::string path = scratch.file(name);
        write_vector<double>(path, x);
        EXPECT_GE(
            expect_whole_or_named(path, [&](const ReadOptions& options) { return read_vector<double>(path, options); }),
            8000);
    }
    const std::vector<std::int64_t> order(1000, 7);
    const std::string path = scratch.file("order.npy");
    write_order(path, order);
    EXPECT_GE(expect_whole_or_named(path, [&](const ReadOptions& options) { return read_order(path, options); }), 8000);
}

TEST(ReadLimit, NegativeIsAnErrorOfTheCaller)
{
    EXPECT_EQ(message_of(ErrorCode::usage, [] { parse_matrix_market<double>("", "f", at_most(-1)); }),
              "f: ReadOptions::max_bytes is -1, it must be at least 0");
}

}  // namespace
