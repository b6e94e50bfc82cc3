#include "io/structures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/memory.hpp"
#include "core/value_types.hpp"
#include "io/build_rows.hpp"
#include "io/elasticity.hpp"
#include "io/random.hpp"
#include "io/row_patterns.hpp"
#include "io/unstructured.hpp"

namespace rmsp::io {
namespace {

using Columns = std::vector<std::int64_t>;

// Of a hub row, one entry in so many columns; of a hub column, one in so many rows.
constexpr std::int64_t hub_stride = 16;
// Columns of the stretch that a row of a linear programme is in, times its entries.
constexpr std::int64_t program_spread = 8;
// A hub row of a linear programme has an entry in one of so many columns.
constexpr std::int64_t program_stride = 4;

RandomStream stream_of_row(std::uint64_t seed, std::int64_t row)
{
    return RandomStream(mix(seed + column_stream), static_cast<std::uint64_t>(row));
}

/// A grid's points, x fastest.
struct Grid {
    std::int64_t nx;
    std::int64_t ny;
    std::int64_t nz;

    std::int64_t points(const char* generator) const
    {
        const std::int64_t plane = checked_count(wide(nx) * wide(ny), generator, "points in a plane");
        return checked_count(wide(plane) * wide(nz), generator, "points");
    }
    /// Calls f(point, dx, dy, dz) for the points of the box of 27 around a point that are in the grid, in order.
    template <class F>
    void each_around(std::int64_t point, const F& f) const
    {
        const std::int64_t x = point % nx;
        const std::int64_t y = point / nx % ny;
        const std::int64_t z = point / nx / ny;
        for (std::int64_t dz = z > 0 ? -1 : 0; dz <= (z + 1 < nz ? 1 : 0); ++dz) {
            for (std::int64_t dy = y > 0 ? -1 : 0; dy <= (y + 1 < ny ? 1 : 0); ++dy) {
                for (std::int64_t dx = x > 0 ? -1 : 0; dx <= (x + 1 < nx ? 1 : 0); ++dx) {
                    f(point + dx + nx * (dy + ny * dz), dx, dy, dz);
                }
            }
        }
    }
};

/// A matrix to be built; it is the same for every type of values.
struct Structure {
    const char* generator;
    std::int64_t rows;
    std::int64_t cols;
    core::uint128 entries;  ///< about how many there will be
    RowByRow::Row row;
};

/// `entries`: about how many there will be.
/// \throws Error(usage) if they do not fit 64 bits; Error(out_of_memory)
void require_room(const char* generator, std::int64_t rows, core::uint128 entries, std::size_t value_bytes)
{
    checked_count(entries, generator, "nonzeros");
    core::require_memory(
        wide(rows) * 8 + entries * value_bytes,
        fmt::format("{}: {} rows and about {} nonzeros", generator, rows, static_cast<std::uint64_t>(entries)));
}

Structure stencil19(const Arguments& n)
{
    const Grid grid{n[0], n[1], n[2]};
    const std::int64_t points = grid.points("stencil19");
    return {"stencil19", points, points, wide(points) * 19, [grid](std::int64_t r, Columns& columns) {
                grid.each_around(r, [&](std::int64_t c, std::int64_t dx, std::int64_t dy, std::int64_t dz) {
                    if (dx == 0 || dy == 0 || dz == 0) {
                        columns.push_back(c);
                    }
                });
            }};
}

/// Which diagonal of a square, or of a cube, is an edge; squares are named by their least point and the axis that they
/// are across.
bool is_edge(const Grid& grid, std::uint64_t seed, std::int64_t point, std::int64_t dx, std::int64_t dy,
             std::int64_t dz)
{
    const int axes = (dx != 0 ? 1 : 0) + (dy != 0 ? 1 : 0) + (dz != 0 ? 1 : 0);
    if (axes < 2) {
        return true;
    }
    const std::int64_t least = point + std::min<std::int64_t>(dx, 0) +
                               grid.nx * (std::min<std::int64_t>(dy, 0) + grid.ny * std::min<std::int64_t>(dz, 0));
    const RandomStream random = stream_of_row(seed, least);
    if (axes == 3) {
        return random.below(3, 4) == (dx == dy ? 2 : 0) + (dx == dz ? 1 : 0);
    }
    const std::uint64_t across = dx == 0 ? 0 : dy == 0 ? 1 : 2;
    const bool rising = dx == 0 ? dy == dz : dy == 0 ? dx == dz : dx == dy;
    return random.below(across, 2) == (rising ? 1 : 0);
}

Structure simplices(const char* generator, const Grid& grid, std::uint64_t seed)
{
    const std::int64_t points = grid.points(generator);
    return {generator, points, points, wide(points) * (grid.nz > 1 ? 15 : 7),
            [grid, seed](std::int64_t r, Columns& columns) {
                grid.each_around(r, [&](std::int64_t c, std::int64_t dx, std::int64_t dy, std::int64_t dz) {
                    if (is_edge(grid, seed, r, dx, dy, dz)) {
                        columns.push_back(c);
                    }
                });
            }};
}

/// Points anywhere in cells of a unit square or cube, which have equally many, numbered cell by cell. A cell is as wide
/// as neighbours are apart at most, so that they are in the cells around.
class PointCloud {
public:
    PointCloud(std::int64_t points, int dimensions, std::int64_t per_row, std::uint64_t seed)
        : points_(points), dimensions_(dimensions), seed_(seed)
    {
        constexpr double pi = 3.14159265358979323846;
        const double ball = dimensions == 2 ? pi : 4 * pi / 3;
        const double cells = static_cast<double>(points) * ball / static_cast<double>(per_row);
        side_ = std::max<std::int64_t>(1, std::llround(std::pow(cells, 1.0 / dimensions)));
        grid_ = {side_, side_, dimensions == 3 ? side_ : 1};
        cells_ = grid_.points("neighbours");
    }
    void operator()(std::int64_t r, Columns& columns) const
    {
        const std::int64_t own = cell_of(r);
        const auto at = position(r, own);
        grid_.each_around(own, [&](std::int64_t cell, std::int64_t, std::int64_t, std::int64_t) {
            for (std::int64_t other = first_of(cell); other < first_of(cell + 1); ++other) {
                const auto its = position(other, cell);
                double distance = 0;
                for (std::size_t d = 0; d < 3; ++d) {
                    distance += (its[d] - at[d]) * (its[d] - at[d]);
                }
                if (distance <= 1) {
                    columns.push_back(other);
                }
            }
        });
    }

private:
    std::int64_t first_of(std::int64_t cell) const
    {
        return static_cast<std::int64_t>(wide(cell) * wide(points_) / wide(cells_));
    }
    std::int64_t cell_of(std::int64_t point) const
    {
        auto cell = static_cast<std::int64_t>(wide(point) * wide(cells_) / wide(points_));
        while (first_of(cell + 1) <= point) {
            ++cell;
        }
        return cell;
    }
    /// In widths of a cell.
    std::array<double, 3> position(std::int64_t point, std::int64_t cell) const
    {
        const RandomStream random = stream_of_row(seed_, point);
        const auto within = [&](std::uint64_t i) { return static_cast<double>(random.at(i) >> 11) * 0x1p-53; };
        return {static_cast<double>(cell % side_) + within(0), static_cast<double>(cell / side_ % side_) + within(1),
                dimensions_ == 3 ? static_cast<double>(cell / side_ / side_) + within(2) : 0.0};
    }

    std::int64_t points_;
    int dimensions_;
    std::uint64_t seed_;
    std::int64_t side_ = 1;
    std::int64_t cells_ = 1;
    Grid grid_{};
};

Structure neighbours(const Arguments& n, std::uint64_t seed)
{
    require_at_least(1, "neighbours", {{"per_row", n[2]}});
    if (n[1] != 2 && n[1] != 3) {
        throw Error(ErrorCode::usage, fmt::format("neighbours: dimensions is {}, it must be 2 or 3", n[1]));
    }
    const std::int64_t per_row = std::min(n[2], std::max<std::int64_t>(n[0], 1));
    return {"neighbours", n[0], n[0], wide(n[0]) * wide(per_row),
            PointCloud(n[0], static_cast<int>(n[1]), per_row, seed)};
}

Structure ragged(const Arguments& n, std::uint64_t seed)
{
    require_at_least(1, "ragged", {{"most", n[3]}});
    const Grid grid{n[0], n[1], n[2]};
    const std::int64_t nodes = grid.points("ragged");
    checked_count(wide(nodes) * wide(n[3]), "ragged", "rows");
    core::require_memory(wide(nodes) * 8, fmt::format("ragged: unknowns of {} nodes", nodes));
    Columns first(static_cast<std::size_t>(nodes) + 1, 0);
    for (std::int64_t node = 0; node < nodes; ++node) {
        first[static_cast<std::size_t>(node) + 1] =
            first[static_cast<std::size_t>(node)] + 1 + stream_of_row(seed, node).below(0, n[3]);
    }
    const std::int64_t rows = first.back();
    return {"ragged", rows, rows, wide(rows) * 7 * (wide(n[3]) + 1) / 2,
            [grid, first = std::move(first)](std::int64_t r, Columns& columns) {
                const auto node = std::upper_bound(first.begin(), first.end(), r) - first.begin() - 1;
                grid.each_around(node, [&](std::int64_t c, std::int64_t dx, std::int64_t dy, std::int64_t dz) {
                    if (std::abs(dx) + std::abs(dy) + std::abs(dz) <= 1) {
                        for (std::int64_t u = first[static_cast<std::size_t>(c)];
                             u < first[static_cast<std::size_t>(c) + 1]; ++u) {
                            columns.push_back(u);
                        }
                    }
                });
            }};
}

Structure multidiagonal(const Arguments& n, std::uint64_t seed, std::size_t value_bytes)
{
    require_at_least(1, "multidiagonal", {{"count", n[1]}});
    const std::int64_t rows = n[0];
    require_room("multidiagonal", rows, wide(rows), value_bytes);
    const std::int64_t others = std::min(n[1] - 1, std::max<std::int64_t>(0, 2 * rows - 2));
    // Distances from the main diagonal but 0: n - 1 below and n - 1 above.
    Columns distances;
    Columns drawn;
    draw_distinct(stream_of_row(seed, 0), 2 * std::max<std::int64_t>(rows, 1) - 2, others, drawn,
                  std::back_inserter(distances));
    for (std::int64_t& d : distances) {
        d -= d < rows - 1 ? rows - 1 : rows - 2;
    }
    distances.insert(std::lower_bound(distances.begin(), distances.end(), 0), 0);
    return {"multidiagonal", rows, rows, wide(rows) * wide(others + 1) / 2,
            [rows, distances = std::move(distances)](std::int64_t r, Columns& columns) {
                for (const std::int64_t d : distances) {
                    if (r + d >= 0 && r + d < rows) {
                        columns.push_back(r + d);
                    }
                }
            }};
}

Structure thinned(const Arguments& n, std::uint64_t seed)
{
    const std::int64_t rows = n[0];
    const std::int64_t half = std::min(n[1], std::max<std::int64_t>(rows - 1, 0));
    const std::int64_t per_row = std::min(n[2], half < rows / 2 ? 2 * half + 1 : rows);
    return {"thinned", rows, rows, wide(rows) * wide(per_row), [=](std::int64_t r, Columns& columns) {
                const std::int64_t first = std::max<std::int64_t>(0, r - half);
                const std::int64_t width = std::min(rows - 1, r + half) - first + 1;
                Columns drawn;
                draw_distinct(stream_of_row(seed, r), width, std::min(per_row, width), drawn,
                              std::back_inserter(columns));
                for (std::int64_t& c : columns) {
                    c += first;
                }
            }};
}

Structure arrow(const Arguments& n)
{
    const std::int64_t rows = n[0];
    const std::int64_t width = std::min(n[1], rows);
    return {"arrow", rows, rows, wide(rows) * (2 * wide(width) + 1), [=](std::int64_t r, Columns& columns) {
                for (std::int64_t c = 0; c < (r < width ? rows : width); ++c) {
                    columns.push_back(c);
                }
                if (r >= width) {
                    columns.push_back(r);
                }
            }};
}

/// Hub i of `hubs` among n rows or columns: they are spread evenly.
bool is_hub(std::int64_t i, std::int64_t hubs, std::int64_t n)
{
    return hubs > 0 && wide(i) * wide(hubs) / wide(n) != wide(i + 1) * wide(hubs) / wide(n);
}

/// Appends a column of each stretch of `stride`.
void append_hub(const RandomStream& random, std::int64_t cols, std::int64_t stride, Columns& columns)
{
    for (std::int64_t first = 0; first < cols; first += stride) {
        columns.push_back(first + random.below(static_cast<std::uint64_t>(first), std::min(stride, cols - first)));
    }
}

Structure with_hubs(const Arguments& n, std::uint64_t seed)
{
    const auto [rows, each, hub_rows, hub_columns] = n;
    const std::int64_t per_row = std::min(each, rows);
    const std::int64_t of_columns = std::min(hub_columns, rows);
    const core::uint128 hubs = wide(std::min(hub_rows, rows)) + wide(of_columns);
    return {
        "hubs", rows, rows, wide(rows) * wide(per_row) + hubs * wide(rows) / hub_stride,
        [rows = rows, per_row, of_rows = std::min(hub_rows, rows), of_columns, seed](std::int64_t r, Columns& columns) {
            if (is_hub(r, of_rows, rows)) {
                append_hub(stream_of_row(seed, r), rows, hub_stride, columns);
                return;
            }
            Columns drawn;
            draw_distinct(stream_of_row(seed, r), rows, per_row, drawn, std::back_inserter(columns));
            const RandomStream has(mix(seed), static_cast<std::uint64_t>(r));
            for (std::int64_t h = 0; h < of_columns; ++h) {
                if (has.below(static_cast<std::uint64_t>(h), hub_stride) == 0) {
                    columns.push_back(static_cast<std::int64_t>(wide(h) * wide(rows) / wide(of_columns)));
                }
            }
            std::sort(columns.begin(), columns.end());
            columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
        }};
}

Structure gaps(const Arguments& n, std::uint64_t seed)
{
    require_at_least(1, "gaps", {{"nth", n[2]}});
    const std::int64_t rows = n[0];
    const std::int64_t per_row = std::min(n[1], rows);
    const std::int64_t nth = n[2];
    return {"gaps", rows, rows, wide(rows) * wide(per_row) / wide(nth), [=](std::int64_t r, Columns& columns) {
                if (RandomStream(mix(seed), static_cast<std::uint64_t>(r)).below(0, nth) == 0) {
                    Columns drawn;
                    draw_distinct(stream_of_row(seed, r), rows, per_row, drawn, std::back_inserter(columns));
                }
            }};
}

Structure program(const Arguments& n, std::uint64_t seed)
{
    const auto [rows, cols, each, hub_rows] = n;
    const std::int64_t per_row = std::min(each, cols);
    const std::int64_t width = std::min(cols, std::min(per_row, INT64_MAX / program_spread) * program_spread);
    const std::int64_t hubs = std::min(hub_rows, rows);
    return {"program", rows, cols, wide(rows) * wide(per_row) + wide(hubs) * wide(cols) / program_stride,
            [rows = rows, cols = cols, per_row, width, hubs, seed](std::int64_t r, Columns& columns) {
                if (is_hub(r, hubs, rows)) {
                    append_hub(stream_of_row(seed, r), cols, program_stride, columns);
                    return;
                }
                const auto first = static_cast<std::int64_t>(wide(r) * wide(cols - width) / wide(rows));
                Columns drawn;
                draw_distinct(stream_of_row(seed, r), width, per_row, drawn, std::back_inserter(columns));
                for (std::int64_t& c : columns) {
                    c += first;
                }
            }};
}

/// \throws as generate_structure(), but for want of memory for the matrix itself
Structure structure(std::string_view name, const Arguments& n, std::uint64_t seed, std::size_t value_bytes)
{
    if (name == "stencil19") {
        return stencil19(n);
    }
    if (name == "triangles") {
        return simplices("triangles", {n[0], n[1], 1}, seed);
    }
    if (name == "tetrahedra") {
        return simplices("tetrahedra", {n[0], n[1], n[2]}, seed);
    }
    if (name == "neighbours") {
        return neighbours(n, seed);
    }
    if (name == "ragged") {
        return ragged(n, seed);
    }
    if (name == "multidiagonal") {
        return multidiagonal(n, seed, value_bytes);
    }
    if (name == "thinned") {
        return thinned(n, seed);
    }
    if (name == "arrow") {
        return arrow(n);
    }
    if (name == "hubs") {
        return with_hubs(n, seed);
    }
    if (name == "gaps") {
        return gaps(n, seed);
    }
    return program(n, seed);
}

}  // namespace

template <class T>
CsrMatrix<T> generate_structure(std::string_view name, const Arguments& n, const GenerateOptions& options)
{
    refuse_values_of_grids(options, std::string(name).c_str());
    if (name == "elasticity") {
        return elasticity<T>(n, options);
    }
    if (name == "unstructured") {
        return unstructured<T>(n, options);
    }
    Structure s = structure(name, n, options.seed, sizeof(T));
    require_room(s.generator, s.rows, s.entries, sizeof(T));
    return build_rows<T>(RowByRow(s.rows, std::move(s.row)), s.rows, s.cols, options);
}

#define RMSP_INSTANTIATE(T) \
    template CsrMatrix<T> generate_structure(std::string_view, const Arguments&, const GenerateOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::io
