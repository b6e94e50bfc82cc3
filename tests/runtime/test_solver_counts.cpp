#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/solver.hpp>

#include "solver_fixtures.hpp"

/// Iterations to a residual, compared with those of methods as textbooks have them, serially and without
/// preconditioners: Y. Saad, Iterative Methods for Sparse Linear Systems, algorithms 6.18, 6.9 with 6.5.3, 7.5 and 7.7.
namespace rmsp::test {
namespace {

using Vector = std::vector<double>;

double inner(const Vector& a, const Vector& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}
/// a + factor b
Vector plus(const Vector& a, double factor, const Vector& b)
{
    Vector c(a);
    for (std::size_t i = 0; i < a.size(); ++i) {
        c[i] += factor * b[i];
    }
    return c;
}

struct Problem {
    CsrMatrix<double> a;
    Vector b;
    double target;
    int most = 3000;
    Vector times(const Vector& x) const { return product(a, x); }
};

int textbook_cg(const Problem& s)
{
    Vector r = s.b;
    Vector p = r;
    for (int i = 1; i <= s.most; ++i) {
        const Vector q = s.times(p);
        const double rho = inner(r, r);
        r = plus(r, -rho / inner(p, q), q);
        if (norm_of(r) <= s.target) {
            return i;
        }
        p = plus(r, inner(r, r) / rho, p);
    }
    return -1;
}

int textbook_bicgstab(const Problem& s)
{
    Vector r = s.b;
    const Vector shadow = r;
    Vector p = r;
    for (int i = 1; i <= s.most; ++i) {
        const double rho = inner(r, shadow);
        const Vector v = s.times(p);
        const double alpha = rho / inner(v, shadow);
        const Vector half = plus(r, -alpha, v);
        const Vector t = s.times(half);
        const double omega = inner(t, half) / inner(t, t);
        r = plus(half, -omega, t);
        if (norm_of(r) <= s.target) {
            return i;
        }
        p = plus(r, inner(r, shadow) / rho * alpha / omega, plus(p, -omega, v));
    }
    return -1;
}

int textbook_cgs(const Problem& s)
{
    Vector r = s.b;
    const Vector shadow = r;
    Vector p = r;
    Vector u = r;
    for (int i = 1; i <= s.most; ++i) {
        const double rho = inner(r, shadow);
        const Vector v = s.times(p);
        const double alpha = rho / inner(v, shadow);
        const Vector q = plus(u, -alpha, v);
        r = plus(r, -alpha, s.times(plus(u, 1, q)));
        if (norm_of(r) <= s.target) {
            return i;
        }
        const double beta = inner(r, shadow) / rho;
        u = plus(r, beta, q);
        p = plus(u, beta, plus(q, beta, p));
    }
    return -1;
}

/// With modified Gram-Schmidt.
int textbook_gmres(const Problem& s, int restart)
{
    Vector x(s.b.size(), 0.0);
    int iterations = 0;
    while (iterations < s.most) {
        Vector r = plus(s.b, -1, s.times(x));
        const double length = norm_of(r);
        std::vector<Vector> v{plus(Vector(r.size(), 0.0), 1 / length, r)};
        std::vector<Vector> h;
        Vector cosine;
        Vector sine;
        Vector g{length};
        bool done = false;
        for (int j = 0; j < restart && !done; ++j) {
            Vector w = s.times(v.back());
            Vector column;
            for (const Vector& before : v) {
                column.push_back(inner(before, w));
                w = plus(w, -column.back(), before);
            }
            const double below = norm_of(w);
            v.push_back(plus(Vector(w.size(), 0.0), 1 / below, w));
            for (std::size_t i = 0; i < cosine.size(); ++i) {
                const double upper = cosine[i] * column[i] + sine[i] * column[i + 1];
                column[i + 1] = cosine[i] * column[i + 1] - sine[i] * column[i];
                column[i] = upper;
            }
            const double diagonal = std::hypot(column.back(), below);
            cosine.push_back(column.back() / diagonal);
            sine.push_back(below / diagonal);
            column.back() = diagonal;
            h.push_back(column);
            g.push_back(-sine.back() * g.back());
            g[g.size() - 2] *= cosine.back();
            ++iterations;
            done = std::abs(g.back()) <= s.target;
        }
        Vector y(h.size());
        for (std::size_t i = h.size(); i-- > 0;) {
            y[i] = g[i];
            for (std::size_t j = i + 1; j < h.size(); ++j) {
                y[i] -= h[j][i] * y[j];
            }
            y[i] /= h[i][i];
            x = plus(x, y[i], v[i]);
        }
        if (done) {
            return iterations;
        }
    }
    return -1;
}

/// MINRES is GMRES without a restart in exact arithmetic: the least residual of the Krylov space.
int least_residual(const Problem& s) { return textbook_gmres(s, s.most); }

class SolverCounts : public SolverTest {};

TEST_P(SolverCounts, AreThoseOfTextbooks)
{
    const auto solve = [&](const Problem& s, const char* method, int expected) {
        SCOPED_TRACE(method);
        auto matrix = runtime_->distribute(s.a.view());
        SolverOptions options;
        options.method = method;
        options.tolerance = 0;
        options.absolute_tolerance = s.target;
        std::vector<double> x(s.b.size(), 0.0);
        const SolveResult result = Solver<double>(matrix, options).solve(s.b.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::converged) << result.reason;
        EXPECT_NEAR(static_cast<double>(result.iterations), expected, 1);
    };
    const auto problem = [](CsrMatrix<double> a) {
        Vector b(static_cast<std::size_t>(a.rows));
        for (std::size_t i = 0; i < b.size(); ++i) {
            b[i] = std::sin(1.0 + static_cast<double>(i));
        }
        const double target = 1e-8 * norm_of(b);
        return Problem{std::move(a), std::move(b), target};
    };
    {
        const Problem s = problem(poisson<double>(8));
        const int count = textbook_cg(s);
        for (const char* const method : {"cg", "cg_single", "cg_pipelined", "fcg", "bicg"}) {
            solve(s, method, count);
        }
        solve(s, "minres", least_residual(s));
        solve(s, "gmres", textbook_gmres(s, 30));
    }
    {
        const Problem s = problem(convection_diffusion<double>(8));
        solve(s, "bicgstab", textbook_bicgstab(s));
        solve(s, "cgs", textbook_cgs(s));
        solve(s, "gmres", textbook_gmres(s, 30));
    }
    {
        const Problem s = problem(shifted_laplacian<double>(5));
        solve(s, "minres", least_residual(s));
        solve(s, "gmres", textbook_gmres(s, 30));
    }
}

INSTANTIATE_TEST_SUITE_P(All, SolverCounts, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
