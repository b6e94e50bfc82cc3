#include "io/unstructured.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/build_rows.hpp"
#include "io/random.hpp"
#include "io/row_patterns.hpp"

namespace rmsp::io {
namespace {

// Streams of one seed.
constexpr std::uint64_t rank_stream = 3;
constexpr std::uint64_t centre_stream = 4;
constexpr std::uint64_t hole_stream = 5;
// One hole in each box of so many cells along each axis, of a radius below half of that, so that those of the
// neighbouring boxes are all that may reach a cell.
constexpr std::int64_t hole_box = 16;
constexpr double least_radius = 2;
constexpr double most_radius = 7.5;

constexpr std::uint8_t alive = 1;   ///< the cell whose least corner this is
constexpr std::uint8_t centre = 2;  ///< that cell has a vertex inside
constexpr std::uint8_t corner = 4;  ///< a cell around this corner is alive

/// A conforming mesh of tetrahedra in a box with spherical holes. Cells are cubes. Half of them, at random, have a
/// vertex inside, over which each triangle of the surface stands; the others are coned from their least corner. Squares
/// are cut by the diagonal from their least corner, so that both cells agree. Least is by a random rank of the corners
/// (C. W. Lee, "Regular triangulations of convex polytopes", 1991: pulling).
class Mesh {
public:
    Mesh(std::int64_t nx, std::int64_t ny, std::int64_t nz, std::uint64_t seed) : cells_{nx, ny, nz}, seed_(seed)
    {
        const std::int64_t corners = (nx + 1) * (ny + 1) * (nz + 1);
        flags_.assign(static_cast<std::size_t>(corners), 0);
        core::parallel_for(core::thread_count(0), nz + 1, [&](std::int64_t z) {
            for (std::int64_t i = z * (nx + 1) * (ny + 1); i < (z + 1) * (nx + 1) * (ny + 1); ++i) {
                const Point p = point(i);
                if (p[0] < nx && p[1] < ny && p[2] < nz && !in_hole(p)) {
                    const bool inside = RandomStream(seed_, centre_stream).at(static_cast<std::uint64_t>(i)) >> 63 != 0;
                    flags_[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(alive | (inside ? centre : 0));
                }
            }
        });
        for (std::int64_t i = 0; i < corners; ++i) {
            each_cell(i, [&](std::int64_t) { flags_[static_cast<std::size_t>(i)] |= corner; });
        }
        first_.reserve(static_cast<std::size_t>(corners) + 1);
        first_.push_back(0);
        for (const std::uint8_t f : flags_) {
            first_.push_back(first_.back() + ((f & corner) != 0 ? 1 : 0) + ((f & centre) != 0 ? 1 : 0));
        }
    }

    std::int64_t vertices() const { return first_.back(); }

    void operator()(std::int64_t vertex, std::vector<std::int64_t>& columns) const
    {
        const std::int64_t i = std::upper_bound(first_.begin(), first_.end(), vertex) - first_.begin() - 1;
        if (vertex != first_[static_cast<std::size_t>(i)] || !has(i, corner)) {
            each_corner(i, [&](std::int64_t other, int) { columns.push_back(number(other)); });
        } else {
            each_cell(i, [&](std::int64_t cell) { append_of_cell(cell, i, columns); });
        }
        columns.push_back(vertex);
        std::sort(columns.begin(), columns.end());
        columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    }

private:
    using Point = std::array<std::int64_t, 3>;

    bool has(std::int64_t i, std::uint8_t flag) const { return (flags_[static_cast<std::size_t>(i)] & flag) != 0; }
    std::int64_t number(std::int64_t corner_index) const { return first_[static_cast<std::size_t>(corner_index)]; }
    std::int64_t line() const { return cells_[0] + 1; }
    std::int64_t plane() const { return line() * (cells_[1] + 1); }
    Point point(std::int64_t i) const { return {i % line(), i % plane() / line(), i / plane()}; }

    /// Ranks are different: equal ones go by the corners' numbers.
    std::pair<std::uint64_t, std::int64_t> rank(std::int64_t i) const
    {
        return {RandomStream(seed_, rank_stream).at(static_cast<std::uint64_t>(i)), i};
    }

    bool in_hole(const Point& cell) const
    {
        const RandomStream random(seed_, hole_stream);
        for (std::int64_t n = 0; n < 27; ++n) {
            const Point box{cell[0] / hole_box + n % 3 - 1, cell[1] / hole_box + n / 3 % 3 - 1,
                            cell[2] / hole_box + n / 9 - 1};
            // Boxes begin at -1, and there are fewer than 2^20 along an axis.
            const std::uint64_t id =
                static_cast<std::uint64_t>(((box[0] + 1) << 40) + ((box[1] + 1) << 20) + box[2] + 1);
            const auto uniform = [&](std::uint64_t k) {
                return static_cast<double>(random.at(4 * id + k) >> 11) * 0x1p-53;
            };
            const double radius = least_radius + (most_radius - least_radius) * uniform(3);
            double distance = 0;
            for (std::size_t d = 0; d < 3; ++d) {
                const double to =
                    (static_cast<double>(box[d]) + uniform(d)) * hole_box - static_cast<double>(cell[d]) - 0.5;
                distance += to * to;
            }
            if (distance < radius * radius) {
                return true;
            }
        }
        return false;
    }

    /// Calls f(cell) for the cells around a corner that are alive.
    template <class F>
    void each_cell(std::int64_t i, const F& f) const
    {
        const Point p = point(i);
        for (int n = 0; n < 8; ++n) {
            const std::int64_t dx = n & 1;
            const std::int64_t dy = n >> 1 & 1;
            const std::int64_t dz = n >> 2;
            if (p[0] >= dx && p[1] >= dy && p[2] >= dz) {
                const std::int64_t cell = i - dx - line() * dy - plane() * dz;
                if (has(cell, alive)) {
                    f(cell);
                }
            }
        }
    }

    /// Calls f(corner, its place: bits for x, y and z) for those of a cell.
    template <class F>
    void each_corner(std::int64_t cell, const F& f) const
    {
        for (int n = 0; n < 8; ++n) {
            f(cell + (n & 1) + line() * (n >> 1 & 1) + plane() * (n >> 2), n);
        }
    }

    /// Neighbours of a corner in one of its cells.
    void append_of_cell(std::int64_t cell, std::int64_t own, std::vector<std::int64_t>& columns) const
    {
        std::array<std::int64_t, 8> of_cell{};
        int place = 0;
        each_corner(cell, [&](std::int64_t i, int n) {
            of_cell[static_cast<std::size_t>(n)] = i;
            place = i == own ? n : place;
        });
        const auto at = [&](int n) { return of_cell[static_cast<std::size_t>(n)]; };
        // Whether the least corner of those that differ from this one in these axes alone is an end of the diagonal.
        const auto is_edge = [&](int axes) {
            int least = place;
            for (int n = 0; n < 8; ++n) {
                if (((n ^ place) & ~axes) == 0 && rank(at(n)) < rank(at(least))) {
                    least = n;
                }
            }
            return least == place || least == (place ^ axes);
        };
        for (int axes = 1; axes < 8; ++axes) {
            const bool along = (axes & (axes - 1)) == 0;
            const bool across = axes == 7;
            if (along || (!(across && has(cell, centre)) && is_edge(axes))) {
                columns.push_back(number(at(place ^ axes)));
            }
        }
        if (has(cell, centre)) {
            columns.push_back(number(cell) + (has(cell, corner) ? 1 : 0));
        }
    }

    Point cells_;
    std::uint64_t seed_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::int64_t> first_;  ///< vertex of each corner, before that of its cell's inside; and the end
};

}  // namespace

template <class T>
CsrMatrix<T> unstructured(const Arguments& n, const GenerateOptions& options)
{
    for (const std::int64_t cells : {n[0], n[1], n[2]}) {
        if (cells >= std::int64_t{1} << 23) {
            throw Error(ErrorCode::usage, fmt::format("unstructured: {} cells along an axis, at most 2^23 - 1", cells));
        }
    }
    const core::uint128 corners = (wide(n[0]) + 1) * (wide(n[1]) + 1) * (wide(n[2]) + 1);
    checked_count(corners * 23, "unstructured", "nonzeros");
    // 1.5 vertices a cell at most, with 15 nonzeros each; the holes are left out of account.
    core::require_memory(corners * 9 + corners * 3 / 2 * (8 + 15 * (sizeof(T) + 4)),
                         fmt::format("unstructured: a mesh of {} x {} x {} cells", n[0], n[1], n[2]));
    Mesh mesh(n[0], n[1], n[2], options.seed);
    const std::int64_t rows = mesh.vertices();
    return build_rows<T>(RowByRow(rows, std::move(mesh)), rows, rows, options);
}

#define RMSP_INSTANTIATE(T) template CsrMatrix<T> unstructured(const Arguments&, const GenerateOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::io
