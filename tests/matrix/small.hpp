#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <rmsp/matrix.hpp>

/// Small matrices to test algebra on.
namespace rmsp::test {

/// Of dense rows; zeros are not stored.
template <class T>
CsrMatrix<T> sparse(std::int64_t rows, std::int64_t cols, const std::vector<T>& dense)
{
    CsrMatrix<T> a;
    a.rows = rows;
    a.cols = cols;
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (std::int64_t i = 0; i < rows * cols; ++i) {
        if (dense[static_cast<std::size_t>(i)] != T{0}) {
            columns.push_back(static_cast<std::int32_t>(i % cols));
            a.values.push_back(dense[static_cast<std::size_t>(i)]);
        }
        if (i % cols == cols - 1) {
            a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
        }
    }
    a.col_idx = std::move(columns);
    return a;
}

/// Square, about `each` random entries a row with values in [-1, 1), some repeated, unsorted, and a dominant diagonal
/// that comes last in its row. Symmetric if asked for, and then positive definite.
template <class T>
CsrMatrix<T> random_dominant(std::int64_t n, int each, bool symmetric, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<std::vector<std::pair<std::int32_t, double>>> rows(static_cast<std::size_t>(n));
    for (std::int64_t row = 0; row < n; ++row) {
        for (int k = 0; k < each; ++k) {
            const auto column = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
            const double value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
            if (column != row) {
                rows[static_cast<std::size_t>(row)].emplace_back(column, value);
                if (symmetric) {
                    rows[static_cast<std::size_t>(column)].emplace_back(static_cast<std::int32_t>(row), value);
                }
            }
        }
    }
    CsrMatrix<T> a;
    a.rows = a.cols = n;
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (std::int64_t row = 0; row < n; ++row) {
        double sum = 1;
        for (const auto& [column, value] : rows[static_cast<std::size_t>(row)]) {
            columns.push_back(column);
            a.values.push_back(static_cast<T>(value));
            sum += std::fabs(value);
        }
        columns.push_back(static_cast<std::int32_t>(row));
        a.values.push_back(static_cast<T>(sum));
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = std::move(columns);
    return a;
}

/// Row-major product of two n x n matrices.
inline std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::size_t n)
{
    std::vector<double> c(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n; ++k) {
            for (std::size_t j = 0; j < n; ++j) {
                c[i * n + j] += a[i * n + k] * b[k * n + j];
            }
        }
    }
    return c;
}

/// Where a matrix has entries.
template <class T>
std::set<std::pair<std::int64_t, std::int64_t>> pattern_of(const CsrMatrix<T>& a)
{
    std::set<std::pair<std::int64_t, std::int64_t>> out;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(row)];
             k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            out.emplace(row, a.col_idx[k]);
        }
    }
    return out;
}

}  // namespace rmsp::test
