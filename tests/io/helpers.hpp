#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

namespace rmsp::test {

/// Row-major entries of a small matrix, zeros where nothing is stored; repeated entries add up.
template <class T>
std::vector<T> dense(const CsrMatrix<T>& a)
{
    std::vector<T> out(static_cast<std::size_t>(a.rows * a.cols), T{0});
    for (std::int64_t r = 0; r < a.rows; ++r) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(r)]; k < a.row_ptr[static_cast<std::size_t>(r) + 1];
             ++k) {
            out[static_cast<std::size_t>(r * a.cols + a.col_idx[k])] += a.values[static_cast<std::size_t>(k)];
        }
    }
    return out;
}

/// Sizes, pointers and ranges hold, and the columns of each row increase (`strictly`: without repetition).
template <class T>
void expect_canonical(const CsrMatrix<T>& a, bool strictly = true)
{
    ASSERT_EQ(static_cast<std::int64_t>(a.row_ptr.size()), a.rows + 1);
    ASSERT_EQ(a.col_idx.size(), a.values.size());
    ASSERT_EQ(a.col_idx.type(), index_type_for(a.cols));
    ASSERT_EQ(a.row_ptr.front(), 0);
    ASSERT_EQ(a.row_ptr.back(), a.nnz());
    for (std::int64_t r = 0; r < a.rows; ++r) {
        ASSERT_LE(a.row_ptr[static_cast<std::size_t>(r)], a.row_ptr[static_cast<std::size_t>(r) + 1]) << "row " << r;
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(r)]; k < a.row_ptr[static_cast<std::size_t>(r) + 1];
             ++k) {
            ASSERT_GE(a.col_idx[k], 0);
            ASSERT_LT(a.col_idx[k], a.cols);
            if (k > a.row_ptr[static_cast<std::size_t>(r)]) {
                ASSERT_LE(a.col_idx[k - 1] + (strictly ? 1 : 0), a.col_idx[k]) << "row " << r;
            }
        }
    }
}

template <class T>
void expect_equal(const CsrMatrix<T>& a, const CsrMatrix<T>& b)
{
    ASSERT_EQ(a.rows, b.rows);
    ASSERT_EQ(a.cols, b.cols);
    ASSERT_EQ(a.nnz(), b.nnz());
    EXPECT_EQ(a.row_ptr, b.row_ptr);
    EXPECT_EQ(a.values, b.values);
    ASSERT_EQ(a.col_idx.type(), b.col_idx.type());
    for (std::int64_t k = 0; k < a.nnz(); ++k) {
        ASSERT_EQ(a.col_idx[k], b.col_idx[k]) << "entry " << k;
    }
}

/// The message of the Error of this code that f() throws.
template <class F>
std::string message_of(ErrorCode code, F&& f)
{
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

/// An empty directory in the working directory, removed at the end.
class ScratchDirectory {
public:
    ScratchDirectory()
    {
        const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
        path_ = std::filesystem::current_path() / (std::string("scratch-") + test->test_suite_name() + "-" +
                                                   test->name() + "-" + std::to_string(::getpid()));
        std::filesystem::create_directories(path_);
    }
    ~ScratchDirectory()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::size_t file_count() const
    {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
    }

private:
    std::filesystem::path path_;
};

inline std::string read_bytes(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes)
{
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace rmsp::test
