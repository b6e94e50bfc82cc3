#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <core/subscript.hpp>
#include <kernels/spmv/sell_reordered/reorder.hpp>

#include "spmv_fixtures.hpp"

// The order that kernel "sell-reordered" makes, and what it does with it. All numbers are small integers, so that
// results are exact.
namespace rmsp::kernels::test {
namespace {

using Rows = std::vector<std::vector<std::int32_t>>;
using Order = std::vector<std::int32_t>;

using core::at;

/// A grid of size^dims points, each beside those that differ by at most 1 in each coordinate.
Rows grid(std::int32_t size, int dims)
{
    std::int32_t points = 1;
    for (int d = 0; d < dims; ++d) {
        points *= size;
    }
    Rows rows(at(points));
    for (std::int32_t p = 0; p < points; ++p) {
        std::vector<std::int32_t> near{0};
        for (std::int32_t d = 0, step = 1, rest = p; d < dims; ++d, step *= size, rest /= size) {
            std::vector<std::int32_t> next;
            for (const std::int32_t q : near) {
                for (const std::int32_t shift : {-1, 0, 1}) {
                    if (rest % size + shift >= 0 && rest % size + shift < size) {
                        next.push_back(q + shift * step);
                    }
                }
            }
            near = next;
        }
        for (const std::int32_t shift : near) {
            rows[at(p)].push_back(p + shift);
        }
        std::sort(rows[at(p)].begin(), rows[at(p)].end());
    }
    return rows;
}

/// Several unknowns for each point, each beside all those of the neighbours.
Rows unknowns(const Rows& points, std::int32_t each)
{
    Rows rows;
    for (const auto& point : points) {
        std::vector<std::int32_t> row;
        for (const std::int32_t p : point) {
            for (std::int32_t i = 0; i < each; ++i) {
                row.push_back(each * p + i);
            }
        }
        rows.insert(rows.end(), at(each), row);
    }
    return rows;
}

/// Rows and columns in random order; entries as they then come.
Rows shuffled(const Rows& rows, unsigned seed)
{
    Order name(rows.size());
    std::iota(name.begin(), name.end(), 0);
    std::shuffle(name.begin(), name.end(), std::mt19937(seed));
    Rows out(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (const std::int32_t c : rows[r]) {
            out[at(name[r])].push_back(name[at(c)]);
        }
    }
    return out;
}

std::int64_t bandwidth(const Rows& rows, const Order& place)
{
    std::int64_t widest = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (const std::int32_t c : rows[r]) {
            widest = std::max<std::int64_t>(widest, std::abs(place[r] - place[at(c)]));
        }
    }
    return widest;
}

/// The order, by one thread: row of each place. `most` is how many children are still sorted by weight.
Order serial_order(const Rows& rows, std::size_t most, const ReorderTuning& tuning = reorder_tuning)
{
    const auto n = static_cast<std::int32_t>(rows.size());
    std::vector<std::pair<std::size_t, std::uint32_t>> weight;
    for (const auto& row : rows) {
        std::uint32_t marks = 0;
        for (const std::int32_t c : row) {
            marks += column_mark(c);
        }
        weight.emplace_back(row.size(), marks);
    }
    const auto degree = [&](std::int32_t v) { return rows[at(v)].size(); };
    std::int32_t start = 0;
    for (std::int32_t v = 0; v < n; ++v) {
        start = degree(v) >= degree(start) ? v : start;
    }
    std::vector<bool> seen(rows.size());
    std::vector<std::int32_t> level{start};
    std::int64_t reached = 1;
    int levels = 0;
    seen[at(start)] = true;
    while (true) {
        std::vector<std::int32_t> next;
        for (const std::int32_t v : level) {
            for (const std::int32_t c : rows[at(v)]) {
                if (!seen[at(c)]) {
                    seen[at(c)] = true;
                    next.push_back(c);
                }
            }
        }
        ++levels;
        if (next.empty() || levels == tuning.searched_levels) {
            break;
        }
        level = next;
        reached += static_cast<std::int64_t>(level.size());
    }
    start = *std::min_element(level.begin(), level.end(), [&](std::int32_t a, std::int32_t b) {
        return degree(a) != degree(b) ? degree(a) < degree(b) : a < b;
    });

    Order order;
    seen.assign(rows.size(), false);
    const auto place = [&](std::int32_t v) {
        if (!seen[at(v)]) {
            seen[at(v)] = true;
            order.push_back(v);
        }
    };
    const std::int64_t first_starts = levels < tuning.searched_levels ? 1 : starts_at_once(n, reached);
    for (std::int64_t i = 0; i < first_starts; ++i) {
        place(first_starts == 1 ? start : static_cast<std::int32_t>(n * i / first_starts));
    }
    std::int64_t starts = tuning.more_starts;
    for (std::size_t next = 0; order.size() < rows.size(); ++next) {
        if (next == order.size()) {
            for (std::int32_t v = 0; v < n && order.size() < next + at(starts); ++v) {
                place(v);
            }
            starts *= tuning.more_starts;
        }
        const std::size_t first = order.size();
        for (const std::int32_t c : rows[at(order[next])]) {
            place(c);
        }
        if (order.size() - first <= most) {
            std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                             [&](std::int32_t a, std::int32_t b) { return weight[at(a)] < weight[at(b)]; });
        }
    }
    return order;
}

template <class T>
HostCsr<T> matrix(const Rows& rows, std::int64_t cols)
{
    return matrix_of_rows<T>(0, static_cast<std::int64_t>(rows.size()), cols,
                             [&](std::int64_t row) { return rows[at(row)]; });
}

class RowOrder : public DeviceTest<> {
protected:
    Order order_of(const Rows& rows, const ReorderTuning& tuning = reorder_tuning)
    {
        const DeviceCsr<double> d(*device_, matrix<double>(rows, static_cast<std::int64_t>(rows.size())), Offsets::i64);
        const Ordering ordering = order_rows(d.shard, device_->context(), tuning);
        const Order order = download(*device_, ordering.row.data(), ordering.row.size());
        const Order place = download(*device_, ordering.place.data(), ordering.place.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            EXPECT_EQ(place[at(order[i])], static_cast<std::int32_t>(i));
        }
        return order;
    }
    static std::size_t most_sorted(const Rows& rows)
    {
        std::size_t entries = 0;
        for (const auto& row : rows) {
            entries += row.size();
        }
        const std::size_t mean = entries / rows.size();
        return at(reorder_tuning.sorted_rounds) * (mean <= 8 ? 8 : mean <= 16 ? 16 : 32);
    }
    void expect_serial_order(const Rows& rows, const ReorderTuning& tuning = reorder_tuning)
    {
        const Order expected = serial_order(rows, most_sorted(rows), tuning);
        EXPECT_EQ(order_of(rows, tuning), expected);
        EXPECT_EQ(order_of(rows, tuning), expected);
    }
};

template <class T>
class SellReordered : public PrecisionTest<T> {
protected:
    /// Multiplies by a part of a matrix, whose rows belong to the columns from `diagonal` on, before and after new
    /// values.
    void multiply(const Rows& rows, std::int64_t cols, std::int64_t diagonal, bool reordered = true)
    {
        HostCsr<T> a = matrix<T>(rows, cols);
        for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
            renew_values(a, 3);
            DeviceCsr<T> d(*this->device_, a, offsets);
            d.shard.diagonal = diagonal;
            const auto op = prepare_named("sell-reordered", d.shard, statistics(a.row_ptr), this->device_->context());
            EXPECT_EQ(op->worthwhile(), reordered);
            EXPECT_TRUE(multiplies_exactly(*this->device_, *op, a, small_integers<T>(cols)));
            renew_values(a, 5);
            d.renew(*this->device_, a);
            op->update_values(this->device_->context());
            EXPECT_TRUE(multiplies_exactly(*this->device_, *op, a, small_integers<T>(cols)));
        }
    }
};
TYPED_TEST_SUITE(SellReordered, Precisions);

TEST_F(RowOrder, IsTheSerialOne)
{
    for (const auto& [size, dims] : {std::pair{1, 1}, {2, 1}, {100, 1}, {33, 2}, {70, 2}, {9, 3}, {23, 3}}) {
        SCOPED_TRACE(std::to_string(size) + "^" + std::to_string(dims));
        expect_serial_order(shuffled(grid(size, dims), 5));
    }
}

TEST_F(RowOrder, BandShrinksBack)
{
    const Rows mesh = shuffled(grid(24, 3), 3);
    Order as_is(mesh.size());
    std::iota(as_is.begin(), as_is.end(), 0);
    EXPECT_GT(bandwidth(mesh, as_is), 13000);
    const Order order = order_of(mesh);
    Order place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[at(order[i])] = static_cast<std::int32_t>(i);
    }
    // Two levels of 24^3 seen from a corner.
    EXPECT_LT(bandwidth(mesh, place), 2 * 3 * 24 * 24);
}

TEST_F(RowOrder, SeveralComponentsAndEmptyRows)
{
    Rows rows = grid(12, 2);
    const auto one = static_cast<std::int32_t>(rows.size());
    for (int copy = 1; copy < 40; ++copy) {
        for (std::int32_t r = 0; r < one; ++r) {
            rows.emplace_back();
            for (const std::int32_t c : rows[at(r)]) {
                rows.back().push_back(c + copy * one);
            }
        }
    }
    expect_serial_order(shuffled(rows, 7));
    rows.resize(rows.size() + 3000);
    expect_serial_order(shuffled(rows, 7));
    expect_serial_order(Rows(5));
}

/// Unsymmetric, neither sorted nor without repeated columns, with a row and a column of many entries.
Rows wild_rows()
{
    std::mt19937 random(11);
    Rows rows(3000);
    for (auto& row : rows) {
        for (std::uint32_t k = random() % 12; k > 0; --k) {
            row.push_back(static_cast<std::int32_t>(random() % rows.size()));
            row.insert(row.end(), random() % 3, row.front());
        }
    }
    rows[17].assign(1500, 40);
    for (std::int32_t c = 0; c < 1500; ++c) {
        rows[18].push_back(2 * c);
    }
    return rows;
}

TEST_F(RowOrder, UnsymmetricUnsortedAndRepeatedColumns) { expect_serial_order(wild_rows()); }

TEST_F(RowOrder, ManyLevelsBeginAtManyPlaces)
{
    ReorderTuning tuning;
    tuning.searched_levels = 8;
    expect_serial_order(shuffled(grid(3000, 1), 4), tuning);
    expect_serial_order(shuffled(grid(80, 2), 4), tuning);
}

TEST_F(RowOrder, TwinsStayTogether)
{
    const Rows nodes = grid(9, 3);
    Rows mixed = shuffled(unknowns(nodes, 3), 6);
    for (auto& row : mixed) {
        std::sort(row.begin(), row.end());
    }
    const Order order = order_of(mixed);
    std::size_t together = 0;
    for (std::size_t i = 0; i + 2 < order.size(); i += 3) {
        together += mixed[at(order[i])] == mixed[at(order[i + 1])] && mixed[at(order[i])] == mixed[at(order[i + 2])];
    }
    EXPECT_GT(together, nodes.size() * 9 / 10);
    expect_serial_order(mixed);
}

TEST_F(RowOrder, WhatLiesBehindTheLevelsKeepsItsOrder)
{
    ReorderTuning tuning;
    tuning.most_levels = 5;
    const Order order = order_of(shuffled(grid(30, 2), 2), tuning);
    Order sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        ASSERT_EQ(sorted[i], static_cast<std::int32_t>(i));
    }
    // A corner and five levels around it.
    EXPECT_FALSE(std::is_sorted(order.begin(), order.begin() + 36));
    EXPECT_TRUE(std::is_sorted(order.begin() + 36, order.end()));
}

TEST_F(RowOrder, WideLevelsAreNotOrdered)
{
    ReorderTuning tuning;
    tuning.small_rows = 100;
    Rows star(1000);
    for (std::int32_t c = 0; c < 1000; ++c) {
        star[0].push_back(c);
        star[at(c)].push_back(0);
    }
    EXPECT_TRUE(order_of(star, tuning).empty());
    EXPECT_EQ(order_of(shuffled(grid(32, 2), 1), tuning).size(), 1024U);
}

TEST_F(RowOrder, ColumnsOfAPartComeWhereTheyAreNeeded)
{
    const Rows whole = shuffled(grid(20, 2), 4);
    constexpr std::int64_t diagonal = 100;
    Rows rows(whole.begin() + diagonal, whole.begin() + 260);
    rows[3].clear();
    DeviceCsr<double> d(*device_, matrix<double>(rows, 400), Offsets::i32);
    d.shard.diagonal = diagonal;
    const Ordering order = order_rows(d.shard, device_->context());
    const ColumnNumbers numbers = number_columns(d.shard, order, device_->context());
    const Order place = download(*device_, order.place.data(), order.place.size());
    // Place and column of what has entries.
    std::map<std::int32_t, std::int32_t> first;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (const std::int32_t c : rows[r]) {
            const std::int64_t own = c - diagonal;
            const bool is_own = own >= 0 && own < static_cast<std::int64_t>(rows.size());
            const std::int32_t at_least = is_own ? place[at(own)] : place[r];
            const auto [entry, is_new] = first.emplace(c, at_least);
            entry->second = std::min(entry->second, at_least);
        }
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> expected;
    for (const auto& [column, at_least] : first) {
        expected.emplace_back(at_least, column);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(numbers.touched, static_cast<std::int64_t>(expected.size()));
    const Order column = download(*device_, numbers.column.data(), at(numbers.touched));
    const Order number = download(*device_, numbers.number.data(), numbers.number.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(column[i], expected[i].second);
        EXPECT_EQ(number[at(expected[i].second)], static_cast<std::int32_t>(i));
    }
}

TYPED_TEST(SellReordered, Products)
{
    for (const auto& [size, dims] : {std::pair{1, 1}, {31, 1}, {1025, 1}, {40, 2}, {16, 3}}) {
        SCOPED_TRACE(std::to_string(size) + "^" + std::to_string(dims));
        const Rows rows = shuffled(grid(size, dims), 5);
        this->multiply(rows, static_cast<std::int64_t>(rows.size()), 0);
    }
    this->multiply(wild_rows(), 3000, 0);
    this->multiply(Rows(70), 90, 20);
    this->multiply({}, 5, 0, false);
}

TYPED_TEST(SellReordered, SeveralUnknownsANode)
{
    const Rows rows = shuffled(unknowns(grid(11, 3), 3), 6);
    this->multiply(rows, static_cast<std::int64_t>(rows.size()), 0);
}

TYPED_TEST(SellReordered, PartOfAMatrix)
{
    const Rows whole = shuffled(grid(16, 3), 9);
    for (const auto& [first, end] : {std::pair{0, 1000}, {1000, 3000}, {3000, 4096}}) {
        SCOPED_TRACE(first);
        this->multiply(Rows(whole.begin() + first, whole.begin() + end), 4096, first);
    }
}

TYPED_TEST(SellReordered, WithoutAColumnForEachRowItIsAsItComes)
{
    const Rows whole = grid(10, 2);
    this->multiply(whole, 100, 1, false);
    this->multiply(Rows(whole.begin(), whole.begin() + 50), 60, -20, false);
}

}  // namespace
}  // namespace rmsp::kernels::test
