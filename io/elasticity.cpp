#include "io/elasticity.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/build_rows.hpp"
#include "io/row_patterns.hpp"

namespace rmsp {
namespace io {
namespace {

constexpr double modulus = 1;  // Young's
constexpr double poisson_ratio = 0.3;
constexpr std::int64_t unknowns = 3;
constexpr int corners = 8;

constexpr int axis_of(int corner, int axis) { return corner >> axis & 1; }

/// The stiffness of a unit cube of an isotropic material, displacements linear along each axis: 24 x 24, corner after
/// corner (x fastest), three displacements each. Integrals of products of such functions are products of integrals
/// along the axes, so it is exact. (T. J. R. Hughes: The finite element method, 1987, sections 2.7 and 3.4)
class Cube {
public:
    Cube()
    {
        constexpr double lame = modulus * poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio));
        constexpr double shear = modulus / (2 * (1 + poisson_ratio));
        for (int a = 0; a < corners; ++a) {
            for (int b = 0; b < corners; ++b) {
                const double gradients = integral(a, 0, b, 0) + integral(a, 1, b, 1) + integral(a, 2, b, 2);
                for (int p = 0; p < unknowns; ++p) {
                    for (int q = 0; q < unknowns; ++q) {
                        entries_[index(a, p, b, q)] = lame * integral(a, p, b, q) + shear * integral(a, q, b, p) +
                                                      (p == q ? shear * gradients : 0);
                    }
                }
            }
        }
    }
    double entry(int a, int p, int b, int q) const { return entries_[index(a, p, b, q)]; }

private:
    static std::size_t index(int a, int p, int b, int q)
    {
        return static_cast<std::size_t>((unknowns * a + p) * unknowns * corners + unknowns * b + q);
    }
    /// Of the derivative along p of the function of corner a times that along q of the function of corner b.
    static double integral(int a, int p, int b, int q)
    {
        double product = 1;
        for (int axis = 0; axis < 3; ++axis) {
            const bool same = axis_of(a, axis) == axis_of(b, axis);
            const double slope_of_a = axis_of(a, axis) == 1 ? 1 : -1;
            const double slope_of_b = axis_of(b, axis) == 1 ? 1 : -1;
            product *= axis == p && axis == q ? slope_of_a * slope_of_b
                       : axis == p            ? slope_of_a / 2
                       : axis == q            ? slope_of_b / 2
                       : same                 ? 1.0 / 3
                                              : 1.0 / 6;
        }
        return product;
    }

    std::array<double, static_cast<std::size_t>(unknowns* unknowns* corners* corners)> entries_{};
};

/// A bar of cubes that is held at the nodes in front of its first plane, which are no unknowns.
struct Bar {
    std::array<std::int64_t, 3> nodes;  ///< along x, y and z, x fastest

    std::array<std::int64_t, 3> place(std::int64_t node) const
    {
        return {node % nodes[0], node / nodes[0] % nodes[1], node / nodes[0] / nodes[1]};
    }
    /// f(other, offsets) for the nodes of the cubes around a node, in order.
    template <class F>
    void each_around(std::int64_t node, const F& f) const
    {
        const auto at = place(node);
        std::array<int, 3> d{};
        for (d[2] = at[2] > 0 ? -1 : 0; d[2] <= (at[2] + 1 < nodes[2] ? 1 : 0); ++d[2]) {
            for (d[1] = at[1] > 0 ? -1 : 0; d[1] <= (at[1] + 1 < nodes[1] ? 1 : 0); ++d[1]) {
                for (d[0] = at[0] > 0 ? -1 : 0; d[0] <= (at[0] + 1 < nodes[0] ? 1 : 0); ++d[0]) {
                    f(node + d[0] + nodes[0] * (d[1] + nodes[1] * d[2]), d);
                }
            }
        }
    }
    /// Displacement q of the node at these offsets, in the equation of displacement p of a node: of all cubes that have
    /// both.
    double entry(const Cube& cube, std::int64_t node, const std::array<int, 3>& d, int p, int q) const
    {
        const auto at = place(node);
        double sum = 0;
        for (int own = 0; own < corners; ++own) {
            int other = 0;
            bool there = true;
            for (int axis = 0; axis < 3 && there; ++axis) {
                const auto i = static_cast<std::size_t>(axis);
                const int its = axis_of(own, axis) + d[i];
                // The cube's first plane of nodes; those in front of 0 are held, along x alone.
                const std::int64_t first = at[i] - axis_of(own, axis);
                there = its >= 0 && its <= 1 && first >= (axis == 0 ? -1 : 0) && first + 1 < nodes[i];
                other |= its << axis;
            }
            sum += there ? cube.entry(own, p, other, q) : 0;
        }
        return sum;
    }
};

/// Of so many cubes along each axis; without any there is no node.
Bar bar_of(const Arguments& n)
{
    if (n[0] == 0 || n[1] == 0 || n[2] == 0) {
        return {{0, 0, 0}};
    }
    const std::int64_t plane = checked_count(wide(n[0]) * (wide(n[1]) + 1), "elasticity", "points in a plane");
    const std::int64_t points = checked_count(wide(plane) * (wide(n[2]) + 1), "elasticity", "points");
    checked_count(wide(points) * 243, "elasticity", "nonzeros");
    return {{n[0], n[1] + 1, n[2] + 1}};
}

}  // namespace

template <class T>
CsrMatrix<T> elasticity(const Arguments& n, const GenerateOptions& options)
{
    const Bar bar = bar_of(n);
    const std::int64_t rows = unknowns * bar.nodes[0] * bar.nodes[1] * bar.nodes[2];
    core::require_memory(static_cast<core::uint128>(rows) * (8 + 81 * (sizeof(T) + 4)),
                         fmt::format("elasticity: {} rows of up to 81 nonzeros", rows));
    const auto row = [bar](std::int64_t r, std::vector<std::int64_t>& columns) {
        bar.each_around(r / unknowns, [&](std::int64_t other, const std::array<int, 3>&) {
            for (std::int64_t q = 0; q < unknowns; ++q) {
                columns.push_back(unknowns * other + q);
            }
        });
    };
    CsrMatrix<T> a = build_rows<T>(RowByRow(rows, row), rows, rows, options);
    if (options.values == ValueKind::ones) {
        return a;
    }
    const Cube cube;
    core::parallel_for(core::thread_count(0), (rows + rows_each - 1) / rows_each, [&](std::int64_t block) {
        const std::int64_t end = std::min(rows, (block + 1) * rows_each);
        for (std::int64_t r = block * rows_each; r < end; ++r) {
            auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(r)]);
            bar.each_around(r / unknowns, [&](std::int64_t, const std::array<int, 3>& offsets) {
                for (int q = 0; q < unknowns; ++q) {
                    const auto p = static_cast<int>(r % unknowns);
                    a.values[k++] = static_cast<T>(bar.entry(cube, r / unknowns, offsets, p, q));
                }
            });
        }
    });
    return a;
}

#define RMSP_INSTANTIATE(T) template CsrMatrix<T> elasticity(const Arguments&, const GenerateOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace io

std::vector<double> generated_coordinates(std::string_view description)
{
    const io::Description parsed = io::parse_description(description);
    if (parsed.generator.name != "elasticity") {
        throw Error(ErrorCode::usage,
                    fmt::format("generated matrix \"{}\": only elasticity has coordinates", description));
    }
    const io::Bar bar = io::bar_of(parsed.arguments);
    const std::int64_t nodes = bar.nodes[0] * bar.nodes[1] * bar.nodes[2];
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(3 * nodes));
    for (std::int64_t node = 0; node < nodes; ++node) {
        for (const std::int64_t at : bar.place(node)) {
            all.push_back(static_cast<double>(at));
        }
    }
    return all;
}

}  // namespace rmsp
