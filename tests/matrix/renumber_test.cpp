#include <rmsp/renumber.hpp>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>

namespace rmsp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Order = std::vector<std::int64_t>;

/// Rows of the given columns; entry i has value i + 1.
CsrMatrix<double> matrix_of(const std::vector<Order>& rows, std::int64_t cols, IndexType type = IndexType::i32)
{
    CsrMatrix<double> a;
    a.rows = static_cast<std::int64_t>(rows.size());
    a.cols = cols;
    a.row_ptr.push_back(0);
    Order columns;
    for (const Order& row : rows) {
        columns.insert(columns.end(), row.begin(), row.end());
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = IndexArray(type, columns.size());
    a.col_idx.visit([&](auto& to) {
        std::transform(columns.begin(), columns.end(), to.begin(),
                       [](std::int64_t c) { return static_cast<std::remove_cvref_t<decltype(to[0])>>(c); });
    });
    a.values.resize(columns.size());
    std::iota(a.values.begin(), a.values.end(), 1.0);
    return a;
}

/// A grid of size x size points and their neighbours, numbered at random, with so many unknowns at each point.
CsrMatrix<double> shuffled_grid(std::int64_t size, std::int64_t unknowns)
{
    const std::int64_t points = size * size;
    Order name(static_cast<std::size_t>(points * unknowns));
    std::iota(name.begin(), name.end(), 0);
    std::shuffle(name.begin(), name.end(), std::mt19937_64(5));
    std::vector<Order> rows(name.size());
    for (std::int64_t p = 0; p < points; ++p) {
        for (std::int64_t u = 0; u < unknowns; ++u) {
            Order& row = rows[static_cast<std::size_t>(name[static_cast<std::size_t>(p * unknowns + u)])];
            for (std::int64_t q = 0; q < points; ++q) {
                if (std::abs(p % size - q % size) <= 1 && std::abs(p / size - q / size) <= 1) {
                    for (std::int64_t v = 0; v < unknowns; ++v) {
                        row.push_back(name[static_cast<std::size_t>(q * unknowns + v)]);
                    }
                }
            }
        }
    }
    return matrix_of(rows, static_cast<std::int64_t>(rows.size()));
}

std::int64_t bandwidth(const CsrMatrix<double>& a)
{
    std::int64_t widest = 0;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto i = a.row_ptr[static_cast<std::size_t>(row)]; i < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++i) {
            widest = std::max(widest, std::abs(a.col_idx[i] - row));
        }
    }
    return widest;
}

std::vector<double> multiply(const CsrMatrix<double>& a, const std::vector<double>& x)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 0);
    for (std::size_t row = 0; row < y.size(); ++row) {
        for (auto i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            y[row] += a.values[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(a.col_idx[i])];
        }
    }
    return y;
}

void expect_each_once(const HostVector<std::int64_t>& order, std::int64_t rows)
{
    Order sorted(order.begin(), order.end());
    std::sort(sorted.begin(), sorted.end());
    Order all(static_cast<std::size_t>(rows));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
}

TEST(Renumber, EntriesMoveWithTheirRowsAndColumns)
{
    // 1 2 .      row_at 2 0 1      5 4 .
    // . . 3  ->                    . 1 2
    // . 4 5  (column 1 -> 2)       3 . .
    for (const IndexType type : {IndexType::i32, IndexType::i64}) {
        const auto a = matrix_of({{0, 1}, {2}, {1, 2}}, 3, type);
        const Order row_at{2, 0, 1};
        const auto b = renumbered(a.view(), row_at);
        EXPECT_THAT(b.row_ptr, ElementsAre(0, 2, 4, 5));
        EXPECT_EQ(b.col_idx.type(), type);
        EXPECT_THAT((Order{b.col_idx[0], b.col_idx[1], b.col_idx[2], b.col_idx[3], b.col_idx[4]}),
                    ElementsAre(0, 2, 1, 2, 0));
        EXPECT_THAT(b.values, ElementsAre(5, 4, 1, 2, 3));
    }
}

TEST(Renumber, ProductsAreTheSameInTheOtherNumbering)
{
    const auto a = shuffled_grid(13, 2);
    const auto row_at = mesh_order(a.view());
    expect_each_once(row_at, a.rows);
    std::vector<double> x(static_cast<std::size_t>(a.rows));
    std::iota(x.begin(), x.end(), -100.0);
    std::vector<double> new_x(x.size());
    renumber<double>(row_at, x.data(), new_x.data());
    EXPECT_EQ(new_x[3], x[static_cast<std::size_t>(row_at[3])]);
    const auto new_y = multiply(renumbered(a.view(), row_at), new_x);
    std::vector<double> y(x.size());
    restore<double>(row_at, new_y.data(), y.data());
    EXPECT_EQ(y, multiply(a, x));
}

TEST(Renumber, ABadlyNumberedMeshBecomesABand)
{
    for (const std::int64_t unknowns : {1, 3}) {
        const auto a = shuffled_grid(20, unknowns);
        EXPECT_GT(bandwidth(a), 300 * unknowns);
        const auto b = renumbered(a.view(), mesh_order(a.view()));
        // Two diagonals of the grid, seen from a corner or the middle of a side.
        EXPECT_LT(bandwidth(b), 2 * 2 * 20 * unknowns);
    }
}

TEST(Renumber, UnknownsOfANodeStayTogether)
{
    const auto a = shuffled_grid(15, 3);
    const auto b = renumbered(a.view(), mesh_order(a.view()));
    int together = 0;
    for (std::int64_t row = 0; row < b.rows; row += 3) {
        const auto columns = [&](std::int64_t r) {
            Order list;
            for (auto i = b.row_ptr[static_cast<std::size_t>(r)]; i < b.row_ptr[static_cast<std::size_t>(r) + 1]; ++i) {
                list.push_back(b.col_idx[i]);
            }
            return list;
        };
        together += columns(row) == columns(row + 1) && columns(row) == columns(row + 2) ? 1 : 0;
    }
    EXPECT_GT(together, 15 * 15 * 9 / 10);
}

TEST(Renumber, WhatIsNotReachedBeginsAnew)
{
    expect_each_once(mesh_order(matrix_of({}, 0).view()), 0);
    expect_each_once(mesh_order(matrix_of({{}, {}, {}}, 3).view()), 3);
    // Two pairs, a row without entries, and one that only others name.
    expect_each_once(mesh_order(matrix_of({{1}, {0}, {}, {4, 5}, {3}, {}}, 6).view()), 6);
}

TEST(Renumber, WhatIsNoNumberingIsRefused)
{
    const auto message = [](const auto& f) {
        try {
            f();
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage);
            return std::string(e.what());
        }
        return std::string("nothing thrown");
    };
    const auto wide = matrix_of({{0}, {2}}, 3);
    const auto a = matrix_of({{0}, {1}, {2}}, 3);
    EXPECT_THAT(message([&] { mesh_order(wide.view()); }), HasSubstr("2 x 3"));
    EXPECT_THAT(message([&] { renumbered(a.view(), Order{0, 1}); }), HasSubstr("3 rows has 2 places"));
    EXPECT_THAT(message([&] { renumbered(a.view(), Order{0, 2, 2}); }), HasSubstr("row 2 at place 2"));
    EXPECT_THAT(message([&] { renumbered(a.view(), Order{0, 1, 3}); }), HasSubstr("row 3 at place 2"));
    EXPECT_THAT(message([&] { renumbered(a.view(), Order{0, 1, -1}); }), HasSubstr("row -1 at place 2"));
}

}  // namespace
}  // namespace rmsp
