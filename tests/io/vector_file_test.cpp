#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/npy.hpp"
#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

template <class T>
std::vector<T> values_of(const HostVector<T>& v)
{
    return {v.begin(), v.end()};
}

template <class T>
void expect_round_trips()
{
    const ScratchDirectory folder;
    for (const std::size_t size : {0, 1, 3, 1000}) {
        std::vector<T> values(size);
        for (std::size_t i = 0; i < size; ++i) {
            values[i] = std::sin(static_cast<T>(i)) / 3;
        }
        if (size > 2) {
            values[1] = std::numeric_limits<T>::denorm_min();
            values[2] = -std::numeric_limits<T>::max();
        }
        for (const std::string_view ending : written_vector_endings()) {
            const std::string path = folder.file("v" + std::string(ending));
            write_vector<T>(path, values);
            EXPECT_EQ(values_of(read_vector<T>(path)), values) << path;
        }
    }
}

TEST(VectorFiles, ComeBackTheSame)
{
    expect_round_trips<float>();
    expect_round_trips<double>();
}

TEST(VectorFiles, TakeSeveralColumns)
{
    const ScratchDirectory folder;
    const std::vector<double> columns{1, 2, 3, 4, 5, 6};
    write_columns<double>(folder.file("a.mtx"), columns, 2);
    const CsrMatrix<double> a = read_matrix<double>(folder.file("a.mtx"));
    EXPECT_EQ(a.rows, 3);
    EXPECT_EQ(values_of(a.values), (std::vector<double>{1, 4, 2, 5, 3, 6}));
    write_columns<float>(folder.file("none.mtx"), {}, 0);
    EXPECT_THROW(write_columns<double>(folder.file("b.npy"), columns, 4), Error);
    EXPECT_THROW(write_columns<double>(folder.file("b.npy"), columns, 0), Error);
    EXPECT_FALSE(std::filesystem::exists(folder.file("b.npy")));
}

TEST(VectorFiles, AreWhatOthersWrite)
{
    const ScratchDirectory folder;
    const std::vector<std::int32_t> integers{3, -1, 7};
    std::string npy = io::npy_header("<i4", 3);
    npy.append(reinterpret_cast<const char*>(integers.data()), 12);
    std::ofstream(folder.file("i.npy"), std::ios::binary) << npy;
    EXPECT_EQ(values_of(read_vector<double>(folder.file("i.npy"))), (std::vector<double>{3, -1, 7}));
    std::ofstream(folder.file("a.mtx")) << "%%MatrixMarket matrix array real general\n3 1\n1.5\n0\n-2\n";
    EXPECT_EQ(values_of(read_vector<double>(folder.file("a.mtx"))), (std::vector<double>{1.5, 0, -2}));
    std::ofstream(folder.file("c.mtx")) << "%%MatrixMarket matrix coordinate integer general\n3 1 1\n2 1 4\n";
    EXPECT_EQ(values_of(read_vector<float>(folder.file("c.mtx"))), (std::vector<float>{0, 4, 0}));
}

TEST(VectorFiles, SayWhatIsWrong)
{
    const ScratchDirectory folder;
    const auto message = [&](const char* name) {
        return message_of(ErrorCode::io, [&] { (void)read_vector<double>(folder.file(name)); });
    };
    std::ofstream(folder.file("text.npy")) << "1 2 3\n";
    EXPECT_NE(message("text.npy").find("text.npy: not an .npy file"), std::string::npos);
    std::ofstream(folder.file("short.npy"), std::ios::binary) << io::npy_header("<f8", 3) + "12345678";
    EXPECT_NE(message("short.npy").find("states 3 elements of 8 bytes, but has 8 bytes"), std::string::npos);
    std::ofstream(folder.file("nothing.npy"), std::ios::binary) << io::npy_header("|S0", std::int64_t{1} << 62);
    EXPECT_NE(message("nothing.npy").find("elements of 0 bytes"), std::string::npos);
    std::ofstream(folder.file("wide.mtx")) << "%%MatrixMarket matrix array real general\n1 2\n1\n2\n";
    EXPECT_NE(message("wide.mtx").find("one column; this is 1 x 2"), std::string::npos);
    std::ofstream(folder.file("bad.mtx")) << "%%MatrixMarket matrix array real general\n2 1\n1\nx\n";
    EXPECT_NE(message("bad.mtx").find("bad.mtx:4:1"), std::string::npos);
    EXPECT_NE(message("none.npy").find("none.npy"), std::string::npos);
    EXPECT_THROW(write_vector<double>(folder.file("v.txt"), std::vector<double>{1}), Error);
    EXPECT_FALSE(std::filesystem::exists(folder.file("v.txt")));
}

}  // namespace
