#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

/// Products of sparse matrices as a plain program computes them, to compare with.
namespace rmsp::kernels::test {

/// An entry of A B, added up in long double, with what the sum may be off by.
struct Entry {
    std::int32_t column = 0;
    long double sum = 0;
    long double magnitude = 0;
    std::int64_t products = 0;
};

/// The rows of A B, each in the order of its columns.
template <class T>
std::vector<std::vector<Entry>> expected_rows(const HostCsr<T>& a, const HostCsr<T>& b)
{
    std::vector<std::vector<Entry>> rows(static_cast<std::size_t>(a.rows));
    std::vector<long double> products;
    std::vector<std::uint64_t> order;  // column, then which one: pairs of them would be twice as long to sort
    for (std::size_t row = 0; row < rows.size(); ++row) {
        products.clear();
        order.clear();
        for (auto i = static_cast<std::size_t>(a.row_ptr[row]); i < static_cast<std::size_t>(a.row_ptr[row + 1]); ++i) {
            const auto k = static_cast<std::size_t>(a.col_idx[i]);
            for (auto j = static_cast<std::size_t>(b.row_ptr[k]); j < static_cast<std::size_t>(b.row_ptr[k + 1]); ++j) {
                order.push_back(static_cast<std::uint64_t>(b.col_idx[j]) << 32 | products.size());
                products.push_back(static_cast<long double>(a.values[i]) * b.values[j]);
            }
        }
        std::sort(order.data(), order.data() + order.size());  // pointers: builds with checks take far less time
        for (const std::uint64_t next : order) {
            const auto column = static_cast<std::int32_t>(next >> 32);
            const long double product = products[static_cast<std::uint32_t>(next)];
            if (rows[row].empty() || rows[row].back().column != column) {
                rows[row].push_back({column});
            }
            Entry& entry = rows[row].back();
            entry.sum += product;
            entry.magnitude += std::abs(product);
            ++entry.products;
        }
    }
    return rows;
}

template <class T>
void expect_rows(const HostCsr<T>& c, const std::vector<std::vector<Entry>>& rows, T alpha)
{
    ASSERT_EQ(c.row_ptr.front(), 0);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        ASSERT_EQ(c.row_ptr[row + 1] - c.row_ptr[row], static_cast<std::int64_t>(rows[row].size())) << "row " << row;
        auto i = static_cast<std::size_t>(c.row_ptr[row]);
        for (const Entry& entry : rows[row]) {
            const long double bound = static_cast<long double>(entry.products + 4) * std::numeric_limits<T>::epsilon() *
                                      entry.magnitude * std::abs(alpha);
            const long double error = std::abs(static_cast<long double>(c.values[i]) - alpha * entry.sum);
            // Assertions for each of millions of entries would take most of the time.
            if (c.col_idx[i] != entry.column || !(error <= bound)) {
                FAIL() << "row " << row << ", column " << entry.column << ": " << c.values[i] << " in column "
                       << c.col_idx[i] << ", off by " << error << " of at most " << bound;
            }
            ++i;
        }
    }
}

template <class T>
void expect_product(const HostCsr<T>& c, const HostCsr<T>& a, const HostCsr<T>& b, T alpha)
{
    expect_rows(c, expected_rows(a, b), alpha);
}

}  // namespace rmsp::kernels::test
