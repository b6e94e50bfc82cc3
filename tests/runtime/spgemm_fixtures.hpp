#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/spgemm.hpp>

#include "matrices.hpp"

/// What the tests of sparse products share.
namespace rmsp::test {

/// Row lengths that rise and fall, so that parts, chunks and columns differ.
inline std::vector<std::int64_t> waves(std::int64_t rows, std::int64_t most)
{
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < rows; ++i) {
        lengths.push_back((i * i) % (most + 1));
    }
    return lengths;
}

template <class T>
std::vector<std::int64_t> columns_of(const CsrMatrix<T>& a)
{
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < a.nnz(); ++i) {
        out.push_back(a.col_idx[i]);
    }
    return out;
}

template <class T>
void expect_product(const char* name, const CsrMatrix<T>& c, const CsrMatrix<T>& a, const CsrMatrix<T>& b, T alpha)
{
    ASSERT_EQ(c.rows, a.rows);
    ASSERT_EQ(c.cols, b.cols);
    const std::int64_t rows = sanitized ? std::min<std::int64_t>(c.rows, 64) : c.rows;
    const Verification v = verify_spgemm<T>(a.view(), b.view(), alpha, c.view(), rows);
    EXPECT_TRUE(v.passed) << name << ": row " << v.worst_row << ", error " << v.error << ", bound " << v.bound;
}

/// Small whole numbers: sums and products of them are exact, in whatever order.
template <class T>
void to_whole_numbers(CsrMatrix<T>& a)
{
    for (T& value : a.values) {
        value = std::round(8 * value);
    }
}

template <class T>
CsrMatrix<T> small(std::int64_t rows, std::int64_t cols, const std::vector<std::map<int, T>>& entries)
{
    CsrMatrix<T> a;
    a.rows = rows;
    a.cols = cols;
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (const auto& row : entries) {
        for (const auto& [column, value] : row) {
            columns.push_back(column);
            a.values.push_back(value);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = std::move(columns);
    return a;
}

}  // namespace rmsp::test
