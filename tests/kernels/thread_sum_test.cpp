#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/coarsening/thread_sum.hpp>
#include <rmsp/io.hpp>

#include "matrix/coarsening.hpp"
#include "matrix/interpolation.hpp"
#include "matrix/interpolation_row.hpp"
#include "matrix/strength.hpp"

namespace rmsp::kernels::test {
namespace {

/// A sum with room for no more entries than it may have, each three places from the next.
struct Room {
    explicit Room(std::int64_t most)
        : columns(static_cast<std::size_t>(3 * most) + 1, -7),
          values(columns.size()),
          sum(columns.data(), values.data(), 3)
    {
    }
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    ThreadSum sum;
};

/// What a thread of a GPU does, on the host.
TEST(ThreadSum, InterpolatesAsTheHost)
{
    const auto a = stencil7<double>(9, 6, 8, {.values = ValueKind::random});
    const auto strong = matrix::strong_entries(a.view(), matrix::Strength::classical, 0.25);
    const matrix::Coarsening points = matrix::pmis(matrix::strong_graph(a.view(), strong));
    std::vector<double> diagonal;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        diagonal.push_back(0);
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(row)];
             k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            diagonal.back() = a.col_idx[k] == row ? a.values[static_cast<std::size_t>(k)] : diagonal.back();
        }
    }
    const matrix::InterpolationSource<double, IndexView, IndexView> source{
        a.view().row_ptr, a.view().col_idx, a.values.data(), strong.data(), points.number.data(), diagonal.data()};
    for (const bool direct : {false, true}) {
        for (const std::int64_t most : {0, 1, 3}) {
            for (const double truncation : {0.0, 0.3}) {
                const auto p = matrix::interpolation(
                    a.view(), strong, points,
                    {direct ? matrix::Interpolation::direct : matrix::Interpolation::extended, truncation, most});
                for (std::int64_t row = 0; row < a.rows; ++row) {
                    const std::int64_t bound = matrix::most_entries(source, direct, row);
                    Room room(bound);
                    matrix::interpolate_row(source, direct, row, room.sum);
                    ASSERT_LE(room.sum.size(), bound);
                    matrix::truncate(room.sum, truncation, most);
                    matrix::sort_by_column(room.sum);
                    const auto begin = p.row_ptr[static_cast<std::size_t>(row)];
                    ASSERT_EQ(begin + room.sum.size(), p.row_ptr[static_cast<std::size_t>(row) + 1]) << row;
                    for (std::int64_t i = 0; i < room.sum.size(); ++i) {
                        ASSERT_EQ(room.sum.column(i), p.col_idx[begin + i]) << row;
                        ASSERT_EQ(room.sum.entry(i), p.values[static_cast<std::size_t>(begin + i)]) << row;
                    }
                }
            }
        }
    }
}

TEST(ThreadSum, SortsAnyNumberOfEntries)
{
    for (std::int32_t n = 0; n < 40; ++n) {
        for (std::int32_t front = 0; front <= n; ++front) {
            Room room(n);
            for (std::int32_t i = 0; i < n; ++i) {
                room.sum.add(i * 17 % 41, i);
            }
            matrix::bring_to_front(room.sum, front, [&](std::int64_t i, std::int64_t j) {
                return room.sum.column(i) > room.sum.column(j);
            });
            std::vector<std::int32_t> columns;
            for (std::int32_t i = 0; i < n; ++i) {
                columns.push_back(room.sum.column(i));
                EXPECT_EQ(static_cast<std::int32_t>(room.sum.entry(i)) * 17 % 41, columns.back());
            }
            std::vector<std::int32_t> sorted = columns;
            std::sort(sorted.rbegin(), sorted.rend());
            EXPECT_TRUE(std::equal(columns.begin(), columns.begin() + front, sorted.begin())) << n << ' ' << front;
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
