#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/rmsp.hpp>

/// Matrices that multigrid is measured on.

/// A system, and what a solver is to know of it.
struct MultigridCase {
    std::string name;  ///< "jumps:64"
    std::string kind;  ///< "jumps"
    rmsp::CsrMatrix<double> a;
    std::vector<double> b;
    std::vector<double> near_nullspace;  ///< 6 vectors, by rows; empty: constants
    int unknowns = 1;
    bool symmetric = true;
    bool singular = false;  ///< maps constants to zero
};

namespace multigrid_cases {

using Matrix = rmsp::CsrMatrix<double>;

/// The 7-point stencil whose entry towards a neighbour is -coupling(i, j), with zeros beyond the grid.
inline Matrix seven_points(std::int64_t n, const std::function<double(std::int64_t, std::int64_t)>& coupling,
                           const std::function<double(std::int64_t)>& outside)
{
    auto a = rmsp::stencil7<double>(n, n, n, {.values = rmsp::ValueKind::ones});
    for (std::int64_t i = 0; i < a.rows; ++i) {
        const auto begin = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
        const auto end = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]);
        double sum = outside(i);
        std::size_t diagonal = begin;
        for (std::size_t k = begin; k < end; ++k) {
            const std::int64_t j = a.col_idx[static_cast<std::int64_t>(k)];
            if (j == i) {
                diagonal = k;
                continue;
            }
            a.values[k] = -coupling(i, j);
            sum += coupling(i, j);
        }
        a.values[diagonal] = sum;
    }
    return a;
}

/// How many neighbours of a point are outside the grid, along x, y and z.
inline std::array<int, 3> missing(std::int64_t i, std::int64_t n)
{
    const auto along = [n](std::int64_t at) { return (at == 0 ? 1 : 0) + (at == n - 1 ? 1 : 0); };
    return {along(i % n), along(i / n % n), along(i / n / n)};
}

/// Diffusion a hundred times as strong along x.
inline Matrix anisotropic(std::int64_t n)
{
    constexpr double along = 100;
    return seven_points(
        n, [](std::int64_t i, std::int64_t j) { return std::abs(i - j) == 1 ? along : 1.0; },
        [n](std::int64_t i) {
            const auto [x, y, z] = missing(i, n);
            return along * x + y + z;
        });
}

/// A coefficient of 1 and 10^6 in turns, in blocks of an eighth of the grid; harmonic means between.
inline Matrix jumps(std::int64_t n)
{
    const std::int64_t block = std::max<std::int64_t>(1, n / 8);
    const auto coefficient = [n, block](std::int64_t i) {
        return (i % n / block + i / n % n / block + i / n / n / block) % 2 == 0 ? 1.0 : 1e6;
    };
    return seven_points(
        n, [&](std::int64_t i, std::int64_t j) { return 2 / (1 / coefficient(i) + 1 / coefficient(j)); },
        [&](std::int64_t i) {
            const auto [x, y, z] = missing(i, n);
            return coefficient(i) * (x + y + z);
        });
}

/// One component of Oseen's equations: diffusion and a wind that turns about the middle, by upwind differences; cell
/// Peclet numbers up to 10.
inline Matrix oseen(std::int64_t n)
{
    constexpr double strength = 10;
    const auto wind = [n](std::int64_t i, std::int64_t j) {
        const auto centred = [n](std::int64_t at) { return 2 * static_cast<double>(at) / static_cast<double>(n) - 1; };
        const double u = centred(i / n % n);
        const double v = -centred(i % n);
        const std::int64_t step = j - i;
        return std::abs(step) == 1 ? (step > 0 ? u : -u) : std::abs(step) == n ? (step > 0 ? v : -v) : 0.0;
    };
    return seven_points(
        n, [&](std::int64_t i, std::int64_t j) { return 1 + strength * std::max(0.0, -wind(i, j)); },
        [&](std::int64_t i) {
            const auto [x, y, z] = missing(i, n);
            return static_cast<double>(x + y + z);
        });
}

/// Random numbers of the rows, in [-1, 1); without their mean for a singular matrix.
inline std::vector<double> right_hand_side(std::int64_t rows, bool singular)
{
    std::vector<double> b(static_cast<std::size_t>(rows));
    double sum = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        auto bits = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;  // splitmix64
        bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
        bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
        b[i] = static_cast<double>((bits ^ (bits >> 31U)) >> 11U) * 0x1p-52 - 1;
        sum += b[i];
    }
    for (double& entry : b) {
        entry -= singular ? sum / static_cast<double>(rows) : 0;
    }
    return b;
}

struct Row {
    const char* kind;
    Matrix (*make)(std::int64_t n);
};

inline Matrix laplace_of(const std::string& structure)
{
    Matrix a = rmsp::generate<double>(structure, {.values = rmsp::ValueKind::ones});
    rmsp::set_values(a, rmsp::ValueKind::laplace);
    return a;
}

inline constexpr Row all[] = {
    {"poisson7", [](std::int64_t n) { return rmsp::stencil7<double>(n, n, n, {.values = rmsp::ValueKind::poisson}); }},
    {"poisson27",
     [](std::int64_t n) { return rmsp::stencil27<double>(n, n, n, {.values = rmsp::ValueKind::poisson}); }},
    {"anisotropic", anisotropic},
    {"jumps", jumps},
    {"elasticity", [](std::int64_t n) { return rmsp::generate<double>(fmt::format("elasticity {} {} {}", n, n, n)); }},
    {"oseen", oseen},
    {"graph", [](std::int64_t n) { return laplace_of(fmt::format("tetrahedra {} {} {}", n, n, n)); }},
};

}  // namespace multigrid_cases

inline constexpr const char* multigrid_case_help =
    "KIND:N, N points along each axis: poisson7, poisson27, anisotropic, jumps, elasticity, oseen, graph";

/// \throws rmsp::Error(usage) naming the kinds
inline MultigridCase make_multigrid_case(const std::string& text)
{
    MultigridCase made;
    made.name = text;
    made.kind = text.substr(0, text.find(':'));
    const std::string size = text.substr(std::min(text.size(), made.kind.size() + 1));
    const auto row = std::find_if(std::begin(multigrid_cases::all), std::end(multigrid_cases::all),
                                  [&](const auto& known) { return known.kind == made.kind; });
    if (row == std::end(multigrid_cases::all) || size.empty() || size.size() > 4 ||
        size.find_first_not_of("0123456789") != std::string::npos) {
        throw rmsp::Error(rmsp::ErrorCode::usage, fmt::format("case \"{}\": it must be {}", text, multigrid_case_help));
    }
    const std::int64_t n = std::stoll(size);
    made.a = row->make(n);
    made.symmetric = made.kind != "oseen";
    made.singular = made.kind == "graph";
    if (made.kind == "elasticity") {
        made.unknowns = 3;
        made.near_nullspace =
            rmsp::rigid_body_modes(3, rmsp::generated_coordinates(fmt::format("elasticity {} {} {}", n, n, n)));
    }
    made.b = multigrid_cases::right_hand_side(made.a.rows, made.singular);
    return made;
}
