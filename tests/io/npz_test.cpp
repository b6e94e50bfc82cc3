#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <zlib.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/zip.hpp"
#include "tests/io/helpers.hpp"
#include "tests/io/parts.hpp"
#include "tests/paths.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

using Members = std::map<std::string, std::string>;

template <class V>
std::string npy(const std::string& descr, const std::vector<V>& values)
{
    std::string out = io::npy_header(descr, static_cast<std::int64_t>(values.size()));
    return out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(V));
}

/// The matrix [0 5 7; 0 0 0; 1 0 2] as SciPy stores it, its first row not sorted.
Members csr_members()
{
    return {{"format.npy", io::npy_header("|S3", -1) + "csr"},
            {"shape.npy", npy<std::int64_t>("<i8", {3, 3})},
            {"indptr.npy", npy<std::int32_t>("<i4", {0, 2, 2, 4})},
            {"indices.npy", npy<std::int32_t>("<i4", {2, 1, 0, 2})},
            {"data.npy", npy<double>("<f8", {7, 5, 1, 2})}};
}

const std::vector<double> small{0, 5, 7, 0, 0, 0, 1, 0, 2};

void write_stored(const std::string& path, const Members& members)
{
    io::OutputFile file(path);
    io::ZipWriter zip(file);
    for (const auto& [name, bytes] : members) {
        zip.add(name, {{bytes.data(), bytes.size()}});
    }
    zip.finish();
    file.commit();
}

template <class U>
void append(std::string& to, U value)
{
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_deflated(const std::string& path, const Members& members)
{
    std::string out;
    std::string directory;
    for (const auto& [name, bytes] : members) {
        std::string packed(compressBound(static_cast<uLong>(bytes.size())) + 64, '\0');
        z_stream stream{};
        deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        stream.avail_in = static_cast<uInt>(bytes.size());
        stream.next_out = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_out = static_cast<uInt>(packed.size());
        deflate(&stream, Z_FINISH);
        packed.resize(stream.total_out);
        deflateEnd(&stream);
        std::string common;
        append<std::uint16_t>(common, 20);
        append<std::uint16_t>(common, 0);
        append<std::uint16_t>(common, 8);
        append<std::uint32_t>(common, 0x00210000);
        append(common, static_cast<std::uint32_t>(
                           crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()))));
        append(common, static_cast<std::uint32_t>(packed.size()));
        append(common, static_cast<std::uint32_t>(bytes.size()));
        append(common, static_cast<std::uint32_t>(name.size()));
        directory += "PK\1\2";
        append<std::uint16_t>(directory, 20);
        directory += common + std::string(10, '\0');
        append(directory, static_cast<std::uint32_t>(out.size()));
        directory += name;
        out += "PK\3\4" + common + name + packed;
    }
    const auto at = static_cast<std::uint32_t>(out.size());
    out += directory + "PK\5\6" + std::string(4, '\0');
    append(out, static_cast<std::uint16_t>(members.size()));
    append(out, static_cast<std::uint16_t>(members.size()));
    append(out, static_cast<std::uint32_t>(directory.size()));
    append(out, at);
    append<std::uint16_t>(out, 0);
    write_bytes(path, out);
}

template <class T>
class Npz : public ::testing::Test {
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Npz, Reals);

TYPED_TEST(Npz, RoundTrip)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.npz");
    for (const char* what : {"stencil27 5 6 7", "random 0 0 0", "random 0 5 1", "random 5 0 1", "random 3 3000000000 2",
                             "banded 300000 2"}) {
        const auto a = generate<TypeParam>(what);
        write_matrix(path, a.view());
        expect_equal(read_matrix<TypeParam>(path), a);
        io::OutputFile file(path);
        io::write_npz(file, a.view(), {}, true);
        file.commit();
        expect_equal(read_matrix<TypeParam>(path), a);
    }
}

TEST(PackedNpz, AMemberUnpacksNoMoreThanTheLimit)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.npz");
    Members members = csr_members();
    members["indices.npy"] = npy("<i4", std::vector<std::int32_t>(1'000'000, 0));
    members["data.npy"] = npy("<f8", std::vector<double>(1'000'000, 0.0));
    write_deflated(path, members);
    ASSERT_LT(read_bytes(path).size(), 50'000U);
    ReadOptions options;
    options.max_bytes = 3'000'000;
    const std::string message = message_of(ErrorCode::io, [&] { read_matrix<double>(path, options); });
    EXPECT_TRUE(message.starts_with(path + ": what member 'indices.npy' unpacks would take 4000128 bytes")) << message;
    options.max_bytes = 30'000'000;
    EXPECT_EQ(read_matrix<double>(path, options).nnz(), 2);  // what is at the same place is added
}

TYPED_TEST(Npz, CsrCscCooAndOtherTypes)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.npz");
    const std::vector<TypeParam> expected(small.begin(), small.end());
    const auto check = [&](const Members& members) {
        write_stored(path, members);
        const auto a = read_matrix<TypeParam>(path);
        expect_canonical(a);
        EXPECT_EQ(dense(a), expected);
        for (const int parts : {1, 2, 3, 9}) {
            expect_equal(read_in_parts<TypeParam>(path, parts), a);
        }
        write_deflated(path, members);
        EXPECT_EQ(dense(read_matrix<TypeParam>(path)), expected);
        const MatrixFile file = MatrixPart<TypeParam>(path, 0, 2).file();
        EXPECT_FALSE(file.in_parts);
        EXPECT_NE(file.reason.find(".npy' is compressed"), std::string::npos) << file.reason;
    };
    Members members = csr_members();
    check(members);
    members["indices.npy"] = npy<std::int64_t>("<i8", {2, 1, 0, 2, 1});  // spare room, as SciPy leaves it
    members["data.npy"] = npy<std::int16_t>("<i2", {7, 5, 1, 2, 99});
    members["shape.npy"] = npy<std::int32_t>("<i4", {3, 3});
    check(members);
    members = csr_members();
    members["format.npy"] = io::npy_header("<U3", -1) + std::string("c\0\0\0s\0\0\0c\0\0\0", 12);
    members["indptr.npy"] = npy<std::int64_t>("<i8", {0, 1, 2, 4});
    members["indices.npy"] = npy<std::int32_t>("<i4", {2, 0, 2, 0});
    members["data.npy"] = npy<float>("<f4", {1, 5, 2, 7});
    check(members);
    members["format.npy"] = io::npy_header("|S3", -1) + "coo";
    members["row.npy"] = npy<std::int32_t>("<i4", {2, 0, 2, 0, 0});
    members["col.npy"] = npy<std::int32_t>("<i4", {0, 1, 2, 2, 1});
    members["data.npy"] = npy<std::uint8_t>("|u1", {1, 2, 2, 7, 3});  // a repeated entry
    check(members);
}

struct BadMember {
    const char* name;
    std::string bytes;
    const char* message;
};

TEST(BadNpz, MembersAreChecked)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.npz");
    const std::string text = io::npy_header("|S3", -1);
    const std::vector<BadMember> cases{
        {"format.npy", text + "bsr", "sparse format 'bsr' is not supported (csr, csc and coo are)"},
        {"format.npy", npy<double>("<f8", {1}), "member 'format.npy' is not a text"},
        {"shape.npy", npy<std::int64_t>("<i8", {3}), "member 'shape.npy' has 1 entries; a matrix has 2"},
        {"shape.npy", npy<std::int64_t>("<i8", {-3, 3}), "-3 x 3 is not the shape of a matrix"},
        {"shape.npy", npy<std::int64_t>("<i8", {4, 3}), "member 'indptr.npy' has 4 entries, but shape asks for 4 + 1"},
        {"shape.npy", npy<std::int64_t>("<i8", {3, 2}), "member 'indices.npy': entry 0 is 2, outside of [0, 2)"},
        {"shape.npy", npy<std::int64_t>("<i8", {INT64_MAX, 2}), "is not the shape of a matrix"},
        {"indptr.npy", npy<std::int32_t>("<i4", {1, 2, 2, 4}), "entry 0 is 1"},
        {"indptr.npy", npy<std::int32_t>("<i4", {0, 3, 2, 4}), "entry 2 is 2, after 3"},
        {"indptr.npy", npy<std::int32_t>("<i4", {0, 2, 2, 5}), "ends at 5, but 4 entries are stored"},
        {"indptr.npy", npy<double>("<f8", {0, 2, 2, 4}), "holds elements of kind 'f' and 8 bytes, not indices"},
        {"indices.npy", npy<std::int32_t>("<i4", {2, -1, 0, 2}), "entry 1 is -1, outside of [0, 3)"},
        {"indices.npy", npy<std::int64_t>("<i8", {2, 4294967296, 0, 2}),
         "entry 1 is 4294967296, outside of the matrix"},
        {"indices.npy", npy<std::int32_t>("<i4", {2, 1, 0}), "has 3 entries, but"},
        {"data.npy", npy<double>(">f8", {1, 2, 3, 4}), "has big-endian elements ('>f8')"},
        {"data.npy", npy<double>("<c16", {1, 2}), "holds complex values ('<c16')"},
        {"data.npy", npy<double>("<f8", {1, 2, 3, 4}) + "x", "states 4 elements of 8 bytes, but has 33 bytes"},
        {"data.npy", npy<double>("|O", {}), "unsupported element type '|O'"},
        {"data.npy", npy<double>("<x8", {}), "unsupported element type '<x8'"},
        {"data.npy", "", "ends at byte 0"},
        {"data.npy", "\x93NUMPY\x09\x00\x00\x00", "is not a NumPy array"},
        {"data.npy", std::string("\x93NUMPY\x01\x00\xff\xff{}", 12), "has a header of 65535 bytes in 12"},
        {"data.npy", std::string("\x93NUMPY\x01\x00\x02\x00{}", 12), "has no plain element type"},
        {"data.npy", std::string("\x93NUMPY\x01\x00\x2d\x00{'descr': '<f8', 'shape': (99999999999999999999,)}", 60),
         "states"}};
    for (const BadMember& bad : cases) {
        Members members = csr_members();
        members[bad.name] = bad.bytes;
        for (const bool deflated : {false, true}) {
            (deflated ? write_deflated : write_stored)(path, members);
            const std::string message = message_of(ErrorCode::io, [&] { read_matrix<double>(path); });
            EXPECT_TRUE(message.starts_with(path)) << message;
            if (std::string(bad.message) != "states" && std::string(bad.message) != "is not a NumPy array") {
                EXPECT_NE(message.find(bad.message), std::string::npos) << message;
            }
            if (!deflated) {
                // Indices are read as 64-bit ones there.
                const bool wide = message.find("outside of the matrix") != std::string::npos;
                EXPECT_EQ(message_of(ErrorCode::io, [&] { read_in_parts<double>(path, 3); }),
                          wide ? message.substr(0, message.find("outside")) + "outside of [0, 3)" : message);
            }
        }
    }
    for (const auto& [name, bytes] : csr_members()) {
        Members members = csr_members();
        members.erase(name);
        write_stored(path, members);
        EXPECT_NE(message_of(ErrorCode::io, [&] { read_matrix<double>(path); }).find("'" + name + "' is missing"),
                  std::string::npos);
    }
}

TEST(BadNpz, EveryTruncationAndFlippedByteIsAnErrorOrAMatrix)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.npz");
    ReadOptions options;
    options.threads = 1;
    for (const bool deflated : {false, true}) {
        (deflated ? write_deflated : write_stored)(path, csr_members());
        const std::string whole = read_bytes(path);
        for (std::size_t n = 0; n < whole.size(); n += 7) {
            write_bytes(path, whole.substr(0, n));
            message_of(ErrorCode::io, [&] { read_matrix<double>(path, options); });
        }
        for (std::size_t at = 0; at < whole.size(); at += 2) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ (at % 4 == 0 ? 0xff : 0x11));
            write_bytes(path, damaged);
            try {
                EXPECT_EQ(dense(read_matrix<double>(path, options)), small) << "byte " << at;
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
            }
        }
    }
}

TEST(BadNpz, DamagedValuesAreNoticed)
{
    const ScratchDirectory scratch;
    const std::string path = scratch.file("a.npz");
    write_matrix(path, banded<double>(1000, 2).view());
    std::string bytes = read_bytes(path);
    const std::size_t at = bytes.find("data.npy") + 2000;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_bytes(path, bytes);
    for (const int parts : {1, 3}) {
        EXPECT_NE(
            message_of(ErrorCode::io, [&] { read_in_parts<double>(path, parts); }).find("member 'data.npy': checksum"),
            std::string::npos);
    }
    EXPECT_NE(message_of(ErrorCode::io, [&] { read_matrix<double>(path); }).find("member 'data.npy': checksum"),
              std::string::npos);
    write_bytes(path, "neither zip nor text");
    EXPECT_NE(message_of(ErrorCode::io, [&] { read_matrix<double>(path); }).find("not an .npz file"),
              std::string::npos);
}

TEST(Scipy, ReadsOurFilesAndWeReadIts)
{
#ifdef RMSP_PYTHON
    const ScratchDirectory scratch;
    GenerateOptions options;
    options.seed = 11;
    const auto a = random_uniform<double>(200, 90, 5, options);
    write_matrix(scratch.file("expected.mtx"), a.view());
    write_matrix(scratch.file("rmsp.mtx.gz"), a.view());
    write_matrix(scratch.file("rmsp.npz"), a.view());
    {
        io::OutputFile file(scratch.file("rmsp64.npz"));
        io::write_npz(file, a.view(), {}, true);
        file.commit();
    }
    const std::string command =
        fmt::format("'{}' '{}' '{}'", RMSP_PYTHON, source_path("tests/io/scipy_exchange.py"), scratch.file("."));
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        GTEST_SKIP() << "this Python has no SciPy";
    }
    ASSERT_EQ(WEXITSTATUS(status), 0);
    for (const char* format : {"csr", "csc", "coo"}) {
        for (const int compressed : {0, 1}) {
            expect_equal(read_matrix<double>(scratch.file(fmt::format("scipy-{}-{}.npz", format, compressed))), a);
        }
    }
    for (const char* kind : {"int8", "uint16", "int64", "bool", "float32"}) {
        EXPECT_EQ(dense(read_matrix<double>(scratch.file(fmt::format("scipy-{}.npz", kind)))),
                  (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1}));
    }
    EXPECT_NE(message_of(ErrorCode::io, [&] { read_matrix<double>(scratch.file("scipy-bsr.npz")); }).find("'bsr'"),
              std::string::npos);
    EXPECT_NE(
        message_of(ErrorCode::io, [&] { read_matrix<double>(scratch.file("scipy-complex.npz")); }).find("complex"),
        std::string::npos);
#else
    GTEST_SKIP() << "no Python was found when the tests were configured";
#endif
}

}  // namespace
