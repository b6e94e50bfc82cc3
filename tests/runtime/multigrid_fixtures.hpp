#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/rmsp.hpp>

#include "matrices.hpp"
#include "solver_fixtures.hpp"

/// What multigrid is tested with.
namespace rmsp::test {

inline SolverOptions by(const std::string& preconditioner, const MultigridOptions& multigrid = {},
                        const std::string& method = "cg")
{
    SolverOptions options;
    options.method = method;
    options.preconditioner = preconditioner;
    options.preconditioner_options.multigrid = multigrid;
    options.max_iterations = 200;
    return options;
}

/// With small last levels, which are inverted on the host.
inline MultigridOptions small()
{
    MultigridOptions options;
    options.coarse_rows = 40;
    return options;
}

template <class T>
SolveResult solve(Runtime& runtime, const CsrMatrix<T>& a, const std::vector<T>& b, const SolverOptions& options)
{
    const auto matrix = runtime.distribute(a.view());
    Solver<T> solver(matrix, options);
    std::vector<T> x(b.size(), T{0});
    return solver.solve(b.data(), x.data());
}

/// Anisotropic diffusion on an n x n grid, `along` in the direction of the rows' numbers.
inline CsrMatrix<double> anisotropic(std::int64_t n, double along)
{
    auto a = stencil7<double>(n, n, 1, {.values = ValueKind::poisson});
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
            const std::int64_t j = a.col_idx[k];
            a.values[static_cast<std::size_t>(k)] = j == i ? 2 + 2 * along : std::abs(i - j) == 1 ? -along : -1;
        }
    }
    return a;
}

/// Diffusion whose coefficient jumps between 1 and `jump` from one block of the grid to the next.
inline CsrMatrix<double> jumping(std::int64_t n, double jump)
{
    auto a = poisson<double>(n);
    const auto coefficient = [&](std::int64_t i) {
        return (i % n / 4 + i / n % n / 4 + i / n / n / 4) % 2 == 0 ? 1.0 : jump;
    };
    for (std::int64_t i = 0; i < a.rows; ++i) {
        double sum = 0;
        std::size_t diagonal = 0;
        for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
            const std::int64_t j = a.col_idx[k];
            if (j == i) {
                diagonal = static_cast<std::size_t>(k);
                continue;
            }
            const double face = 2 / (1 / coefficient(i) + 1 / coefficient(j));
            a.values[static_cast<std::size_t>(k)] = -face;
            sum += face;
        }
        // Fixed beyond the boundary.
        const auto neighbours = a.row_ptr[static_cast<std::size_t>(i) + 1] - a.row_ptr[static_cast<std::size_t>(i)] - 1;
        a.values[diagonal] = sum + static_cast<double>(6 - neighbours) * coefficient(i);
    }
    return a;
}

}  // namespace rmsp::test
