#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kernels/spmv/ehyb/graph_parts.hpp>
#include <kernels/spmv/ehyb/host_layout.hpp>
#include <kernels/spmv/ehyb/host_pool.hpp>
#include <kernels/spmv/ehyb/layout.hpp>
#include <kernels/spmv/ehyb/mesh_parts.hpp>
#include <rmsp/error.hpp>

#include "matrices.hpp"

// What kernels "ehyb", "ehyb-ghosts", "ehyb-metis" and "ehyb-natural" store: made in host memory, as GPUs make it.
namespace rmsp::kernels::test {
namespace {

using namespace ehyb;

template <class T>
Pattern pattern_of(const HostCsr<T>& a, std::int64_t diagonal = 0)
{
    return {a.rows, a.cols, diagonal, IndexView(a.row_ptr.data()), a.col_idx.data()};
}

HostCsr<double> matrix_of(const std::vector<std::vector<std::int32_t>>& rows, std::int64_t cols)
{
    HostCsr<double> a;
    a.rows = static_cast<std::int64_t>(rows.size());
    a.cols = cols;
    for (const auto& row : rows) {
        a.col_idx.insert(a.col_idx.end(), row.begin(), row.end());
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.resize(a.col_idx.size());
    return a;
}

HostVector<std::int32_t> runs(std::int64_t rows, std::int64_t parts)
{
    return parts_of_rows({rows, rows, 0, IndexView(static_cast<const std::int64_t*>(nullptr)), nullptr}, parts,
                         EhybOrder::natural, 1);
}

struct Stored {
    std::int64_t inside = 0;
    std::int64_t er = 0;
};

/// Each entry is stored once, in its row, with its column; everything else is padding that reads nothing.
Stored expect_whole(const Pattern& a, const Layout& layout, std::span<const std::int32_t> part, int vector,
                    const EhybTuning& tuning)
{
    std::vector<int> stored(static_cast<std::size_t>(a.nnz()), 0);
    std::vector<std::int64_t> row_of(stored.size());
    for (std::int64_t row = 0; row < a.rows; ++row) {
        std::fill(row_of.begin() + a.row_ptr[row], row_of.begin() + a.row_ptr[row + 1], row);
    }
    const auto visit = [&](const auto& sliced, std::size_t slice, auto&& f) {
        const Slice begin = sliced.slices[slice];
        const int width = static_cast<int>(sliced.slices[slice + 1].entries - begin.entries);
        EXPECT_EQ(sliced.slices[slice + 1].groups - begin.groups, static_cast<unsigned>((width + group - 1) / group));
        EXPECT_LE(width, tuning.longest_row);
        for (int lane = 0; lane < slice_rows; ++lane) {
            for (int k = 0; k < width; ++k) {
                f(lane,
                  sliced.entry[static_cast<std::size_t>(begin.entries * std::int64_t{slice_rows} +
                                                        value_place(k, lane, width, vector))],
                  sliced.columns[static_cast<std::size_t>(begin.groups * std::int64_t{slice_rows} * group +
                                                          column_place(k, lane))]);
            }
        }
    };
    Stored count;
    std::int64_t wrong = 0;  // counted: an assertion for each of a million slots takes long
    for (std::size_t p = 0; p + 1 < layout.first_row.size(); ++p) {
        const std::int32_t columns = layout.first_column[p + 1] - layout.first_column[p];
        const auto kept = layout.columns.begin() + layout.first_column[p];
        const auto own = std::partition_point(kept, kept + columns, [&](std::int32_t column) {
            const std::int64_t row = column - a.diagonal;
            return row >= 0 && row < a.rows && part[static_cast<std::size_t>(row)] == static_cast<std::int32_t>(p);
        });
        EXPECT_TRUE(std::is_sorted(kept, own) && std::is_sorted(own, kept + columns));
        std::vector<std::int32_t> met;
        for (auto i = layout.first_row[p]; i < layout.first_row[p + 1]; ++i) {
            const std::int64_t row = layout.order[static_cast<std::size_t>(i)];
            wrong += part[static_cast<std::size_t>(row)] == static_cast<std::int32_t>(p) ? 0 : 1;
            met.insert(met.end(), a.col_idx + a.row_ptr[row], a.col_idx + a.row_ptr[row + 1]);
        }
        std::sort(met.begin(), met.end());
        EXPECT_TRUE(std::includes(met.begin(), met.end(), kept, own) &&
                    std::includes(met.begin(), met.end(), own, kept + columns))
            << "part " << p << " keeps columns in which it has no entries";
        for (auto slice = layout.first_slice[p]; slice < layout.first_slice[p + 1]; ++slice) {
            visit(layout.inside, static_cast<std::size_t>(slice),
                  [&](int lane, std::uint32_t entry, std::uint16_t column) {
                      const auto i = layout.first_row[p] + (slice - layout.first_slice[p]) * slice_rows + lane;
                      if (entry == no_entry) {
                          wrong += column == columns ? 0 : 1;
                      } else if (i >= layout.first_row[p + 1] || column >= columns) {
                          ++wrong;
                      } else {
                          const bool right = row_of[entry] == layout.order[static_cast<std::size_t>(i)] &&
                                             kept[column] == a.col_idx[entry];
                          wrong += right ? 0 : 1;
                          ++stored[entry];
                          ++count.inside;
                      }
                  });
        }
    }
    std::vector<std::int32_t> row_of_piece;
    for (std::size_t i = 0; i < layout.er_row.size(); ++i) {
        row_of_piece.resize(static_cast<std::size_t>(layout.er_first[i + 1]), layout.er_row[i]);
    }
    EXPECT_EQ(row_of_piece.size(), layout.er_piece.size());
    for (std::size_t slice = 0; slice + 1 < layout.er.slices.size(); ++slice) {
        visit(layout.er, slice, [&](int lane, std::uint32_t entry, std::int32_t column) {
            const std::size_t place = slice * slice_rows + static_cast<std::size_t>(lane);
            if (entry == no_entry) {
                wrong += column == no_column ? 0 : 1;
            } else if (place >= layout.er_piece.size()) {
                ++wrong;
            } else {
                const bool right = row_of_piece[static_cast<std::size_t>(layout.er_piece[place])] == row_of[entry] &&
                                   column == a.col_idx[entry];
                wrong += right ? 0 : 1;
                ++stored[entry];
                ++count.er;
            }
        });
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(std::count(stored.begin(), stored.end(), 1), a.nnz());
    std::vector<std::int32_t> rows(layout.order.begin(), layout.order.end());
    std::sort(rows.begin(), rows.end());
    std::vector<std::int32_t> all(static_cast<std::size_t>(a.rows));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(rows, all);
    return count;
}

TEST(EhybLayout, PartsAreAsManyAsFillTheDeviceWholeTimes)
{
    // 1.03 times 1,000 rows fit in 1,030 columns.
    EXPECT_EQ(part_count(132'000, 1'030, 132), 132);
    EXPECT_EQ(part_count(132'001, 1'030, 132), 264);
    EXPECT_EQ(part_count(8'000'000, 28'000, 132), 3 * 132);
    EXPECT_EQ(part_count(100'000, 28'000, 132), 132);
    // None of less than a slice.
    EXPECT_EQ(part_count(100, 28'000, 132), 4);
    EXPECT_EQ(part_count(1, 28'000, 132), 1);
    EXPECT_EQ(part_count(0, 28'000, 132), 1);
}

TEST(EhybLayout, PlacesInASliceAreDifferent)
{
    for (const int vector : {2, 4}) {
        for (int width = 0; width < 14; ++width) {
            std::set<std::int64_t> values;
            std::set<std::int64_t> columns;
            for (int lane = 0; lane < slice_rows; ++lane) {
                for (int k = 0; k < width; ++k) {
                    values.insert(value_place(k, lane, width, vector));
                    columns.insert(column_place(k, lane));
                }
            }
            const auto all = static_cast<std::size_t>(width) * slice_rows;
            EXPECT_EQ(values.size(), all);
            EXPECT_EQ(columns.size(), all);
            if (all > 0) {
                EXPECT_EQ(*values.rbegin(), static_cast<std::int64_t>(all) - 1);
                EXPECT_LT(*columns.rbegin(), (width + group - 1) / group * group * slice_rows);
            }
        }
    }
    EXPECT_EQ(value_place(1, 3, 3, 2), 7);
    EXPECT_EQ(value_place(2, 3, 3, 2), 67);
    EXPECT_EQ(column_place(5, 3), 128 + 3 * 4 + 1);
}

TEST(EhybLayout, HoldsEveryEntryOnce)
{
    const EhybTuning tuning;
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(shape.name);
        const HostCsr<double> a = make_matrix<double>(shape, 3);
        const Pattern pattern = pattern_of(a);
        for (const EhybGhosts& ghosts : {no_ghosts, ehyb_ghosts}) {
            const auto part = runs(a.rows, 3);
            const Layout layout = make_layout(pattern, part, 3, 20'000, 2, 2, ghosts, tuning);
            EXPECT_EQ(layout.part_count, 3);
            expect_whole(pattern, layout, part, 2, tuning);
        }
    }
}

TEST(EhybLayout, WhatIsOutsideThePartIsExtra)
{
    // Two parts of two rows; entries of the own part, of the other one, and a column that belongs to no row.
    const HostCsr<double> a = matrix_of({{0, 1, 3}, {1}, {2, 3, 4}, {0}}, 5);
    const Pattern pattern = pattern_of(a);
    const auto part = runs(4, 2);
    const Layout layout = make_layout(pattern, part, 2, 100, 2, 1);
    const Stored stored = expect_whole(pattern, layout, part, 2, ehyb_tuning);
    EXPECT_EQ(stored.inside, 5);
    EXPECT_EQ(stored.er, 3);
    EXPECT_THAT(layout.columns, testing::ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(layout.er_row, testing::ElementsAre(0, 2, 3));
}

TEST(EhybLayout, ForeignColumnsOfManyEntriesAreKept)
{
    // Part 0 has three entries in column 4, which belongs to no row, two in column 3 and one in column 2.
    const HostCsr<double> a = matrix_of({{0, 4, 3}, {1, 4, 4, 3, 2}, {2, 0}, {3}}, 5);
    const Pattern pattern = pattern_of(a);
    const auto part = runs(4, 2);
    const auto layout_with = [&](std::int64_t columns) {
        return make_layout(pattern, part, 2, columns, 2, 1, EhybGhosts{2, 0});
    };
    const Layout roomy = layout_with(100);
    Stored stored = expect_whole(pattern, roomy, part, 2, ehyb_tuning);
    EXPECT_THAT(roomy.columns, testing::ElementsAre(0, 1, 3, 4, 2, 3));
    EXPECT_EQ(stored.er, 2);
    // The one with most entries goes first, and own columns before both.
    const Layout tight = layout_with(3);
    stored = expect_whole(pattern, tight, part, 2, ehyb_tuning);
    EXPECT_THAT(tight.columns, testing::ElementsAre(0, 1, 4, 2, 3));
    EXPECT_EQ(stored.er, 4);
    // Parts are smaller where ghosts are expected: 1,000 columns hold 746 rows, 746 ghosts' 30 % and a large part's 3
    // %.
    EXPECT_EQ(part_count(746 * 132, 1'000, 132, EhybGhosts{2, 30}), 132);
    EXPECT_EQ(part_count(747 * 132, 1'000, 132, EhybGhosts{2, 30}), 264);
}

TEST(EhybLayout, NothingIsExtraInOnePart)
{
    const HostCsr<double> a = matrix_of({{0, 1}, {}, {2, 0}}, 3);
    const Pattern pattern = pattern_of(a);
    const auto part = runs(3, 1);
    const Layout layout = make_layout(pattern, part, 1, 100, 4, 1);
    EXPECT_EQ(expect_whole(pattern, layout, part, 4, ehyb_tuning).er, 0);
    EXPECT_EQ(layout.pieces, 0);
    EXPECT_TRUE(layout.er_row.empty());
    // The empty row is the last one, and column 1 is kept only because it is used.
    EXPECT_THAT(layout.order, testing::ElementsAre(0, 2, 1));
    EXPECT_THAT(layout.columns, testing::ElementsAre(0, 1, 2));
}

TEST(EhybLayout, TheDiagonalSaysWhichColumnsAreOwn)
{
    // Rows 10 and 11 of a larger matrix.
    const HostCsr<double> a = matrix_of({{0, 10, 11}, {1, 11}}, 12);
    const Pattern pattern = pattern_of(a, 10);
    const auto part = runs(2, 1);
    const Layout layout = make_layout(pattern, part, 1, 100, 2, 1);
    const Stored stored = expect_whole(pattern, layout, part, 2, ehyb_tuning);
    EXPECT_EQ(stored.inside, 3);
    EXPECT_EQ(stored.er, 2);
    EXPECT_THAT(layout.columns, testing::ElementsAre(10, 11));
    // Columns numbered from one that is behind the first row's own.
    const HostCsr<double> behind = matrix_of({{0}, {0, 1}, {1, 2}}, 3);
    const Pattern cut = pattern_of(behind, -1);
    const auto all = runs(3, 1);
    const Layout kept = make_layout(cut, all, 1, 100, 2, 1);
    EXPECT_EQ(expect_whole(cut, kept, all, 2, ehyb_tuning).inside, 4);
    EXPECT_THAT(kept.columns, testing::ElementsAre(0, 1));
}

TEST(EhybLayout, ColumnsThatHaveNoRoomAreExtra)
{
    std::vector<std::vector<std::int32_t>> rows;
    for (std::int32_t row = 0; row < 50; ++row) {
        rows.push_back({row, 49 - row});
    }
    const HostCsr<double> a = matrix_of(rows, 50);
    const Pattern pattern = pattern_of(a);
    const auto part = runs(50, 1);
    const Layout layout = make_layout(pattern, part, 1, 20, 2, 1);
    const Stored stored = expect_whole(pattern, layout, part, 2, ehyb_tuning);
    EXPECT_EQ(stored.inside, 40);
    EXPECT_EQ(stored.er, 60);
    EXPECT_EQ(layout.columns.size(), 20U);
    // 16-bit numbers, of which one is padding's.
    const HostCsr<double> wide = matrix_of(std::vector<std::vector<std::int32_t>>(70'000, {0}), 70'000);
    HostCsr<double> diagonal = wide;
    std::iota(diagonal.col_idx.begin(), diagonal.col_idx.end(), 0);
    const auto one = runs(70'000, 1);
    const Layout most = make_layout(pattern_of(diagonal), one, 1, 1'000'000, 2, 1);
    EXPECT_EQ(most.columns.size(), 65'535U);
    EXPECT_EQ(expect_whole(pattern_of(diagonal), most, one, 2, ehyb_tuning).er, 70'000 - 65'535);
}

TEST(EhybLayout, LongRowsAreCutIntoPieces)
{
    EhybTuning tuning;
    tuning.longest_row = 8;
    std::vector<std::vector<std::int32_t>> rows(40, {0});
    rows[7] = std::vector<std::int32_t>(29, 7);
    rows[9] = std::vector<std::int32_t>(16, 100);
    const HostCsr<double> a = matrix_of(rows, 101);
    const Pattern pattern = pattern_of(a);
    const auto part = runs(40, 1);
    const Layout layout = make_layout(pattern, part, 1, 100, 2, 1, no_ghosts, tuning);
    const Stored stored = expect_whole(pattern, layout, part, 2, tuning);
    EXPECT_EQ(stored.inside, 38 + 8);
    EXPECT_EQ(stored.er, 21 + 16);
    // 21 = 8 + 8 + 5, 16 = 8 + 8.
    EXPECT_THAT(layout.er_row, testing::ElementsAre(7, 9));
    EXPECT_THAT(layout.er_first, testing::ElementsAre(0, 3, 5));
    EXPECT_EQ(layout.order.front(), 7);
}

TEST(EhybLayout, MetisFindsTheParts)
{
    // Four chains whose rows take turns: as parts of the graph nothing lies between them, in natural order everything.
    constexpr std::int64_t rows = 4000;
    std::vector<std::vector<std::int32_t>> chains;
    for (std::int32_t row = 0; row < rows; ++row) {
        // Unsymmetric, with an entry that is there twice.
        chains.push_back({row, row, std::min<std::int32_t>(row + 4, (rows - 4) + row % 4)});
    }
    const HostCsr<double> a = matrix_of(chains, rows);
    const Pattern pattern = pattern_of(a);
    if (!has_metis()) {
        EXPECT_THROW(parts_of_rows(pattern, 4, EhybOrder::metis, 2), NotCompiled);
        GTEST_SKIP() << "a build without METIS";
    }
    const auto part = parts_of_rows(pattern, 4, EhybOrder::metis, 2);
    EXPECT_EQ(part, parts_of_rows(pattern, 4, EhybOrder::metis, 1));
    const Layout layout = make_layout(pattern, part, 4, 2000, 2, 2);
    EXPECT_LT(expect_whole(pattern, layout, part, 2, ehyb_tuning).er, 40);
    for (std::size_t p = 0; p < 4; ++p) {
        EXPECT_NEAR(layout.first_row[p + 1] - layout.first_row[p], 1000, 50);
    }
}

TEST(EhybLayout, UnknownsOfANodeStayTogether)
{
    if (!has_metis()) {
        GTEST_SKIP() << "a build without METIS";
    }
    // A chain of nodes with three unknowns each, and one with a hundred, which is more than a part has.
    for (const std::int32_t unknowns : {3, 100}) {
        const std::int32_t rows = 2400;
        std::vector<std::vector<std::int32_t>> chain;
        for (std::int32_t row = 0; row < rows; ++row) {
            const std::int32_t node = row / unknowns * unknowns;
            chain.emplace_back();
            for (std::int32_t other = node; other < std::min(rows, node + 2 * unknowns); ++other) {
                chain.back().push_back(other);
            }
        }
        const HostCsr<double> a = matrix_of(chain, rows);
        const std::int64_t parts = 40;
        const auto part = parts_of_rows(pattern_of(a), parts, EhybOrder::metis, 2);
        std::vector<int> sizes(parts, 0);
        for (std::int32_t row = 0; row < rows; ++row) {
            ++sizes[static_cast<std::size_t>(part[static_cast<std::size_t>(row)])];
            if (unknowns == 3) {
                EXPECT_EQ(part[static_cast<std::size_t>(row)], part[static_cast<std::size_t>(row / 3 * 3)]);
            }
        }
        EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 2 * rows / parts);
    }
}

/// The seven-point mesh of a box, its points in an order that has nothing to do with the mesh.
HostCsr<double> scrambled_box(std::int32_t nx, std::int32_t ny, std::int32_t nz)
{
    const std::int32_t rows = nx * ny * nz;
    const auto name = [&](std::int32_t point) {
        return static_cast<std::int32_t>(std::int64_t{point} * 7919 % rows);  // a prime, so that all differ
    };
    std::vector<std::vector<std::int32_t>> columns(static_cast<std::size_t>(rows));
    for (std::int32_t point = 0; point < rows; ++point) {
        auto& row = columns[static_cast<std::size_t>(name(point))];
        row.push_back(name(point));
        std::int32_t step = 1;
        const std::array<std::int32_t, 3> at{point % nx, point / nx % ny, point / nx / ny};
        const std::array<std::int32_t, 3> sides{nx, ny, nz};
        for (std::size_t i = 0; i < 3; ++i) {
            if (at[i] > 0) {
                row.push_back(name(point - step));
            }
            if (at[i] + 1 < sides[i]) {
                row.push_back(name(point + step));
            }
            step *= sides[i];
        }
    }
    return matrix_of(columns, rows);
}
HostCsr<double> scrambled_cube(std::int32_t side) { return scrambled_box(side, side, side); }

double share_outside(const HostCsr<double>& a, std::span<const std::int32_t> part)
{
    std::int64_t outside = 0;
    for (std::size_t row = 0; row < part.size(); ++row) {
        for (auto i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            outside += part[row] != part[static_cast<std::size_t>(a.col_idx[static_cast<std::size_t>(i)])] ? 1 : 0;
        }
    }
    return static_cast<double>(outside) / static_cast<double>(a.col_idx.size());
}

TEST(EhybLayout, DistancesFindTheParts)
{
    const HostCsr<double> a = scrambled_cube(30);
    const Pattern pattern = pattern_of(a);
    const auto part = parts_of_rows(pattern, 27, EhybOrder::mesh, 2);
    EXPECT_EQ(part, parts_of_rows(pattern, 27, EhybOrder::mesh, 1));
    EXPECT_EQ(part, parts_of_rows(pattern, 27, EhybOrder::mesh, 3));
    // Twenty-seven cubes have 8 % outside them; in this order nearly all is.
    EXPECT_LT(share_outside(a, part), 0.14);
    EXPECT_GT(share_outside(a, runs(a.rows, 27)), 0.7);
    const Layout layout = make_layout(pattern, part, 27, 2000, 2, 2);
    expect_whole(pattern, layout, part, 2, ehyb_tuning);
    for (std::size_t p = 0; p < 27; ++p) {
        EXPECT_LE(layout.first_row[p + 1] - layout.first_row[p], 1030);
        EXPECT_GE(layout.first_row[p + 1] - layout.first_row[p], 800);
    }
}

TEST(EhybLayout, TwoLandmarksAreEnoughOfALongMesh)
{
    const HostCsr<double> a = scrambled_box(4, 5, 300);
    MeshPartsTuning tuning;
    tuning.most_levels_in_all = 600;
    const Structure structure{a.rows,
                              a.cols,
                              0,
                              a.row_ptr.data(),
                              sizeof(a.row_ptr[0]) == 8,
                              a.col_idx.data(),
                              static_cast<std::int64_t>(a.col_idx.size())};
    HostVector<std::int32_t> part(static_cast<std::size_t>(a.rows), -1);
    mesh_parts(HostPool(2), structure, 12, part.data(), tuning, [](const char*) {});
    // Eleven cuts through 20 points each have 2 % outside.
    EXPECT_LT(share_outside(a, part), 0.04);
}

TEST(EhybLayout, PartsOfWhatIsNoMesh)
{
    std::vector<std::vector<std::int32_t>> rows(5000);
    const auto expect_parts = [&](std::int64_t cols, std::int64_t diagonal) {
        const HostCsr<double> a = matrix_of(rows, cols);
        const auto part = parts_of_rows(pattern_of(a, diagonal), 7, EhybOrder::mesh, 2);
        std::vector<int> sizes(7, 0);
        for (const std::int32_t p : part) {
            ASSERT_TRUE(p >= 0 && p < 7);
            ++sizes[static_cast<std::size_t>(p)];
        }
        EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 736);  // 5000 / 7 and 3 %
    };
    expect_parts(5000, 0);  // no entries
    for (std::int32_t row = 0; row < 5000; ++row) {
        rows[static_cast<std::size_t>(row)] = {row};
    }
    expect_parts(5000, 0);  // nothing is connected
    for (std::int32_t row = 0; row < 5000; ++row) {
        rows[static_cast<std::size_t>(row)] = {0, row / 2, std::min(row + 1, 4999)};
    }
    expect_parts(5000, 0);      // a hub, a tree and a chain, all in one direction
    expect_parts(9000, 6000);   // the columns belong to other rows
    expect_parts(5000, -2500);  // some do
    rows.resize(5);
    for (auto& row : rows) {
        row = {0, 4};
    }
    EXPECT_EQ(parts_of_rows(pattern_of(matrix_of(rows, 5)), 1, EhybOrder::mesh, 2), HostVector<std::int32_t>(5, 0));
}

TEST(EhybLayout, RefusesMoreEntriesThanItNumbers)
{
    const std::vector<std::int64_t> row_ptr{0, std::int64_t{1} << 32};
    const Pattern pattern{1, 1, 0, IndexView(row_ptr.data()), nullptr};
    try {
        make_layout(pattern, runs(1, 1), 1, 100, 2, 1);
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_THAT(error.what(), testing::HasSubstr("4294967296 nonzeros"));
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
