#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/codec.hpp"
#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

class TextFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(TextFiles, RoundTrip)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file(GetParam());
    GenerateOptions random;
    random.seed = 5;
    WriteOptions options;
    options.comment = "two\nlines";
    const auto a = random_uniform<double>(301, 77, 9, random);
    write_matrix(path, a.view(), options);
    expect_equal(read_matrix<double>(path), a);
    const auto f = random_uniform<float>(10, 20, 3, random);
    write_matrix(path, f.view());
    expect_equal(read_matrix<float>(path), f);
    const CsrMatrix<double> empty = random_uniform<double>(0, 0, 3);
    write_matrix(path, empty.view());
    expect_equal(read_matrix<double>(path), empty);
    EXPECT_EQ(scratch.file_count(), 1U);  // no temporary file is left
}

INSTANTIATE_TEST_SUITE_P(Endings, TextFiles, ::testing::Values("a.mtx", "a.mtx.gz", "a.mtx.xz", "a.mtx.zst"));

TEST(WrittenText, IsWhatTheFormatSays)
{
    const ScratchDirectory scratch;
    const auto a = parse_matrix_market<double>(
        "%%MatrixMarket matrix coordinate real general\n3 2 3\n3 1 0.1\n1 2 -inf\n1 1 1e300\n", "t");
    WriteOptions options;
    options.comment = "by hand";
    write_matrix(scratch.file("a.mtx"), a.view(), options);
    EXPECT_EQ(read_bytes(scratch.file("a.mtx")),
              "%%MatrixMarket matrix coordinate real general\n% by hand\n3 2 3\n1 1 1e+300\n1 2 -inf\n3 1 0.1\n");
}

TEST(WrittenText, ManyPiecesCompressed)
{
    const ScratchDirectory scratch;
    const auto a = banded<float>(100000, 4);
    write_matrix(scratch.file("a.mtx.zst"), a.view());
    expect_equal(read_matrix<float>(scratch.file("a.mtx.zst")), a);
}

class Compressed : public ::testing::TestWithParam<io::Codec> {};

TEST_P(Compressed, SeveralMembersTruncationAndDamage)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("content decides, not this name");
    std::string entries;
    for (int i = 1; i <= 1000; ++i) {
        entries += std::to_string(i) + " 1 " + std::to_string(i * 7919 % 1000) + "\n";
    }
    const std::string whole =
        io::compress_member(GetParam(), "%%MatrixMarket matrix coordinate real general\n1000 1 1000\n") +
        io::compress_member(GetParam(), entries);
    write_bytes(path, whole);
    EXPECT_EQ(read_matrix<double>(path).nnz(), 1000);
    write_bytes(path, whole.substr(0, whole.size() - 20));
    const std::string truncated = message_of(ErrorCode::io, [&] { read_matrix<double>(path); });
    EXPECT_TRUE(truncated.starts_with(path + ": truncated")) << truncated;
    for (const std::size_t at : {whole.size() / 3, whole.size() / 2, whole.size() - 9}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
        write_bytes(path, damaged);
        EXPECT_TRUE(message_of(ErrorCode::io, [&] { read_matrix<double>(path); }).starts_with(path)) << at;
    }
    write_bytes(path, io::compress_member(GetParam(), ""));
    EXPECT_EQ(message_of(ErrorCode::io, [&] { read_matrix<double>(path); }), path + ":1:1: the file is empty");
}

INSTANTIATE_TEST_SUITE_P(Codecs, Compressed, ::testing::Values(io::Codec::gzip, io::Codec::xz, io::Codec::zstd));

TEST(Files, MissingDirectoryAndEmpty)
{
    const ScratchDirectory scratch;
    EXPECT_EQ(message_of(ErrorCode::io, [&] { read_matrix<double>(scratch.file("none.mtx")); }),
              scratch.file("none.mtx") + ": cannot open: No such file or directory");
    EXPECT_EQ(message_of(ErrorCode::io, [&] { read_matrix<double>(scratch.file("")); }),
              scratch.file("") + ": cannot read: Is a directory");
    write_bytes(scratch.file("empty.mtx"), "");
    EXPECT_EQ(message_of(ErrorCode::io, [&] { read_matrix<double>(scratch.file("empty.mtx")); }),
              scratch.file("empty.mtx") + ":1:1: the file is empty");
}

TEST(Files, Pipe)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("pipe");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::string command =
        "printf '%%%%MatrixMarket matrix coordinate pattern general\\n1 1 1\\n1 1\\n' > '" + path + "' &";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read_matrix<double>(path).nnz(), 1);
}

TEST(Files, WhatHasNoEndIsNotReadToTheEnd)
{
    if (!std::filesystem::exists("/dev/zero")) {
        GTEST_SKIP() << "no /dev/zero";
    }
    const std::string message = message_of(ErrorCode::io, [] { read_matrix<double>("/dev/zero"); });
    EXPECT_EQ(message.substr(0, 14), "/dev/zero:1:1:") << message;
}

TEST(Files, FullDiskIsNoticedAndNothingIsLeft)
{
    if (!std::filesystem::exists("/dev/full")) {
        GTEST_SKIP() << "no /dev/full";
    }
    const ScratchDirectory scratch;
    for (const char* name : {"a.mtx", "a.npz"}) {
        std::filesystem::create_symlink("/dev/full", scratch.file(name));
        const std::string message =
            message_of(ErrorCode::io, [&] { write_matrix(scratch.file(name), banded<double>(100, 1).view()); });
        EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
    }
    EXPECT_EQ(scratch.file_count(), 2U);
}

TEST(Files, WritingReplacesOnlyWhenWhole)
{
    const ScratchDirectory scratch;
    write_bytes(scratch.file("old.mtx"), "old");
    std::filesystem::create_symlink(scratch.file("old.mtx"), scratch.file("link.mtx"));
    WriteOptions fails;
    fails.progress = [](std::string_view, double) { throw std::runtime_error("stop"); };
    EXPECT_THROW(write_matrix(scratch.file("link.mtx"), banded<double>(10, 1).view(), fails), std::runtime_error);
    EXPECT_EQ(read_bytes(scratch.file("old.mtx")), "old");
    EXPECT_EQ(scratch.file_count(), 2U);
    write_matrix(scratch.file("link.mtx"), banded<double>(10, 1).view());
    EXPECT_TRUE(std::filesystem::is_symlink(scratch.file("link.mtx")));
    EXPECT_EQ(read_matrix<double>(scratch.file("old.mtx")).nnz(), 28);
}

TEST(Files, BadNamesToWrite)
{
    for (const char* name : {"a.txt", "a.npz.gz", "a", ".gz"}) {
        EXPECT_TRUE(message_of(ErrorCode::io, [&] {
                        write_matrix(name, banded<double>(1, 0).view());
                    }).starts_with(std::string(name) + ": cannot tell the format"));
    }
    message_of(ErrorCode::io, [] { write_matrix("no/such/directory/a.mtx", banded<double>(1, 0).view()); });
}

TEST(Files, BadMatricesAreNotWritten)
{
    const ScratchDirectory scratch;
    const CsrMatrix<double> good = banded<double>(3, 1);
    CsrView<double> bad = good.view();
    bad.cols = 2;
    for (const char* name : {"a.mtx", "a.npz"}) {
        EXPECT_NE(message_of(ErrorCode::usage, [&] { write_matrix(scratch.file(name), bad); }).find("has column 2"),
                  std::string::npos);
    }
    EXPECT_EQ(scratch.file_count(), 0U);
    bad = good.view();
    bad.row_ptr = IndexView();
    message_of(ErrorCode::usage, [&] { plus_identity(bad); });
    message_of(ErrorCode::usage, [&] { kronecker_ones(bad, 2); });
}

}  // namespace
