#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rmsp/io.hpp>
#include <rmsp/matrix_part.hpp>

#include "io/codec.hpp"
#include "tests/io/helpers.hpp"
#include "tests/io/parts.hpp"

namespace rmsp::test {
namespace {

template <class T>
void check_parts(const std::string& path, const ReadOptions& options = {})
{
    const auto expected = read_matrix<T>(path, options);
    for (const int parts : {1, 2, 3, 11}) {
        SCOPED_TRACE(fmt::format("{} in {} parts", path, parts));
        expect_equal(read_in_parts<T>(path, parts, options), expected);
    }
}

struct Compressed {
    const char* ending;
    io::Codec codec;
};
constexpr Compressed compressed[] = {{".gz", io::Codec::gzip}, {".xz", io::Codec::xz}, {".zst", io::Codec::zstd}};

std::string text_of(const char* banner, const char* body)
{
    return fmt::format("%%MatrixMarket matrix {}\n{}", banner, body);
}

TEST(MatrixParts, OfMatrixMarketGiveTheSameBits)
{
    const ScratchDirectory scratch;
    const auto check = [&](const char* banner, const char* body) {
        const std::string path = scratch.file("a.mtx");
        write_bytes(path, text_of(banner, body));
        check_parts<double>(path);
        check_parts<float>(path);
        for (const auto& [ending, codec] : compressed) {
            write_bytes(path + ending, io::compress_member(codec, text_of(banner, body)));
            check_parts<double>(path + ending);
        }
        ReadOptions keep;
        keep.sum_duplicates = false;
        keep.pattern_value = 0.25;
        check_parts<double>(path, keep);
    };
    check("coordinate real general", "% a comment\n4 5 6\n1 1 0.1\n\n4 5 1e-3\n2 2 3\n1 1 0.2\n1 1 0.3\n3 1 7");
    check("coordinate real symmetric", "4 4 5\n1 1 0.1\n4 1 0.2\n3 3 1\n4 1 0.7\n3 2 5\n");
    check("coordinate integer skew-symmetric", "4 4 3\n2 1 5\n4 3 -7\n\n  4 1 2  \n\n");
    check("coordinate pattern symmetric", "3 3 3\n1 1\n3 1\n2 2\n");
    check("coordinate real general", "3 3 0\n");
    check("coordinate real general", "0 0 0\n");
    check("array real general", "3 2\n1\n0\n0.5\n\n-2\n0\n8\n");
    check("array real symmetric", "3 3\n1\n0.1\n0.5\n-2\n0\n8\n");
    check("array integer skew-symmetric", "3 3\n1\n-2\n8\n");
}

TEST(MatrixParts, OfLargerFilesAreShares)
{
    const ScratchDirectory scratch;
    const auto a = random_uniform<double>(900, 700, 9);
    write_matrix(scratch.file("a.mtx"), a.view());
    write_matrix(scratch.file("a.npz"), a.view());
    write_matrix(scratch.file("a.mtx.gz"), a.view());
    write_matrix(scratch.file("a.mtx.xz"), a.view());
    for (const char* name : {"a.mtx", "a.npz", "a.mtx.gz", "a.mtx.xz"}) {
        check_parts<double>(scratch.file(name));
        check_parts<float>(scratch.file(name));
        std::size_t most = 0;
        read_in_parts<double>(scratch.file(name), 4, {}, &most);
        // Of compressed files a part is as near to an even share of the bytes as a piece lets it be.
        const std::size_t most_beyond = std::string(name).ends_with("z") && name != std::string("a.npz") ? 500 : 100;
        EXPECT_LE(most, static_cast<std::size_t>(a.nnz()) / 4 + most_beyond) << name;
    }
}

TEST(MatrixParts, OfCompressedFilesOfSeveralMembers)
{
    const ScratchDirectory scratch;
    std::string text = text_of("coordinate real general", "% long\n500 400 4000\n");
    for (int i = 0; i < 4000; ++i) {
        text += fmt::format("{} {} {}\n", 1 + i % 500, 1 + i * 7 % 400, 0.1 * i + 1e-9);
    }
    for (const auto& [ending, codec] : compressed) {
        // Cut anywhere, inside the size line and inside others.
        std::string bytes;
        for (std::size_t at = 0; at < text.size(); at += 777) {
            bytes += io::compress_member(codec, text.substr(at, 777));
        }
        const std::string path = scratch.file("several.mtx") + ending;
        write_bytes(path, bytes);
        check_parts<double>(path);
        std::size_t most = 0;
        read_in_parts<double>(path, 4, {}, &most);
        EXPECT_LE(most, 1100u) << path;

        // Where it is cut off, or damaged, in any part.
        for (const std::size_t left : {bytes.size() - 5, bytes.size() / 2 - 3, std::size_t{300}}) {
            SCOPED_TRACE(left);
            write_bytes(path, bytes.substr(0, left));
            const std::string found = message_of(ErrorCode::io, [&] { read_in_parts<double>(path, 3); });
            EXPECT_EQ(found, message_of(ErrorCode::io, [&] { read_matrix<double>(path); }));
            EXPECT_NE(found.find("several.mtx"), std::string::npos) << found;
        }
        std::string damaged = bytes;
        damaged[bytes.size() * 2 / 3] = static_cast<char>(damaged[bytes.size() * 2 / 3] ^ 0x55);
        write_bytes(path, damaged);
        message_of(ErrorCode::io, [&] { read_in_parts<double>(path, 3); });
    }
    write_bytes(scratch.file("other.mtx.gz"), io::compress_member(io::Codec::gzip, "no matrix"));
    EXPECT_NE(message_of(ErrorCode::io, [&] { read_in_parts<double>(scratch.file("other.mtx.gz"), 2); })
                  .find("does not begin with %%MatrixMarket"),
              std::string::npos);
}

TEST(MatrixParts, OfCompressedFilesTakeTheMemoryOfAPart)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.mtx.gz");
    const auto a = random_uniform<double>(9000, 7000, 9);
    write_matrix(path, a.view());
    // The entries of all alone would take 24 bytes each, and about as many of text.
    ReadOptions options;
    options.max_bytes = a.nnz() * 20;
    message_of(ErrorCode::io, [&] { read_matrix<double>(path, options); });
    constexpr int parts = 4;
    auto readers = open_parts<double>(path, parts, options);
    std::vector<std::int64_t> numbers;
    for (MatrixPart<double>& reader : readers) {
        const auto own = reader.read();
        numbers.insert(numbers.end(), own.begin(), own.end());
    }
    std::size_t entries = 0;
    for (MatrixPart<double>& reader : readers) {
        for (const auto& run : reader.finish(numbers)) {
            entries += run.size();
        }
    }
    EXPECT_EQ(entries, static_cast<std::size_t>(a.nnz()));
}

TEST(MatrixParts, ErrorsNameTheLine)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("bad.mtx");
    const auto message = [&](const std::string& text) {
        write_bytes(path, text);
        return message_of(ErrorCode::io, [&] { read_in_parts<double>(path, 3); });
    };
    const auto expect_same = [&](const std::string& text) {
        const std::string found = message(text);
        EXPECT_EQ(found, message_of(ErrorCode::io, [&] { read_matrix<double>(path); }));
        EXPECT_NE(found.find("bad.mtx:"), std::string::npos) << found;
        for (const auto& [ending, codec] : compressed) {
            write_bytes(path + ending, io::compress_member(codec, text));
            EXPECT_EQ(message_of(ErrorCode::io, [&] { read_in_parts<double>(path + ending, 3); }),
                      message_of(ErrorCode::io, [&] { read_matrix<double>(path + ending); }));
        }
    };
    const char* const coordinate = "coordinate real general";
    expect_same(text_of(coordinate, "9 9 6\n1 1 1\n2 2 2\n3 3 3\n4 4 4\n5 5 5\n6 6 x\n"));
    expect_same(text_of(coordinate, "9 9 6\n1 1 1\n2 2 2\n3 10 3\n4 4 4\n5 5 5\n6 6 6\n"));
    expect_same(text_of(coordinate, "9 9 6\n1 1 1\n2 2 2\n3 3 3\n4 4 4\n5 5 5.00000000\n"));
    expect_same(text_of(coordinate, "9 9 5\n1 1 1\n2 2 2\n3 3 3\n4 4 4\n5 5 5\n6 6 6\n7 7 7\n8 8 8\n9 9 9\n"));
    expect_same(text_of("array real general", "2 3\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    expect_same(text_of("array real general", "2 3\n1.00000\n2\n3\n4\n5.000\n"));
    expect_same(text_of("coordinate complex general", "1 1 1\n1 1 1 0\n"));
    write_bytes(path, text_of(coordinate, "1000000000000000000 9 1\n1 1 1\n"));
    EXPECT_NE(message_of(ErrorCode::out_of_memory, [&] { read_in_parts<double>(path, 3); }).find("row pointers"),
              std::string::npos);
}

TEST(MatrixParts, OtherFilesAreForOneReader)
{
    const ScratchDirectory scratch;
    MatrixPart<double> part("/dev/null", 0, 2);
    EXPECT_FALSE(part.file().in_parts);
    EXPECT_NE(message_of(ErrorCode::usage, [&] { part.read(); }).find("cannot be read in parts: it is not a regular"),
              std::string::npos);
    EXPECT_FALSE(MatrixPart<double>(scratch.file("none.mtx"), 0, 2).file().in_parts);
    message_of(ErrorCode::usage, [&] { MatrixPart<double>(scratch.file("none.mtx"), 2, 2); });
}

TEST(MatrixParts, EntriesElsewhereAreRefused)
{
    std::vector<HostVector<MatrixEntry<double>>> runs(1);
    runs[0] = {{5, 1, 1.0}, {9, 1, 1.0}};
    EXPECT_EQ(message_of(ErrorCode::usage, [&] { rows_of_entries(runs, 5, 4, 3); }),
              "entry (9, 1) is not in rows [5, 9) of 3 columns");
}

}  // namespace
}  // namespace rmsp::test
