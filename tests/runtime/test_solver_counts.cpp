#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/solver.hpp>

#include "solver_fixtures.hpp"

/// Iterations to a residual, compared with those of methods as textbooks have them, serially and without
/// preconditioners: Y. Saad, Iterative Methods for Sparse Linear Systems, algorithms 6.18, 6.9 with 6.5.3, 7.5, 7.7,
/// 12.1 and section 4.1; M. B. van Gijzen, P. Sonneveld, Algorithm 913, 2011; C. C. Paige, M. A. Saunders, LSQR, 1982.
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

/// P of IDR(s): orthonormal vectors of random numbers.
std::vector<Vector> shadow_space(std::size_t rows, int dimension, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<Vector> p;
    for (int i = 0; i < dimension; ++i) {
        Vector v(rows);
        for (double& entry : v) {
            entry = normal(random);
        }
        for (const Vector& before : p) {
            v = plus(v, -inner(before, v), before);
        }
        p.push_back(plus(Vector(rows, 0.0), 1 / norm_of(v), v));
    }
    return p;
}

/// Products to the residual. Directions become biorthogonal one after the other, as in Algorithm 913.
int textbook_idr(const Problem& s, const std::vector<Vector>& p)
{
    const std::size_t dimension = p.size();
    const Vector zero(s.b.size(), 0.0);
    Vector r = s.b;
    std::vector<Vector> g(dimension, zero);
    std::vector<Vector> u(dimension, zero);
    std::vector<Vector> m(dimension, Vector(dimension, 0.0));
    for (std::size_t k = 0; k < dimension; ++k) {
        m[k][k] = 1;
    }
    double omega = 1;
    for (int products = 0; products < s.most;) {
        Vector f;
        for (const Vector& shadow : p) {
            f.push_back(inner(shadow, r));
        }
        for (std::size_t k = 0; k < dimension; ++k) {
            Vector c(dimension, 0.0);
            Vector v = r;
            Vector step = zero;
            for (std::size_t i = k; i < dimension; ++i) {
                c[i] = f[i];
                for (std::size_t j = k; j < i; ++j) {
                    c[i] -= m[i][j] * c[j];
                }
                c[i] /= m[i][i];
                v = plus(v, -c[i], g[i]);
                step = plus(step, c[i], u[i]);
            }
            u[k] = plus(step, omega, v);
            g[k] = s.times(u[k]);
            for (std::size_t i = 0; i < k; ++i) {
                const double along = inner(p[i], g[k]) / m[i][i];
                g[k] = plus(g[k], -along, g[i]);
                u[k] = plus(u[k], -along, u[i]);
            }
            for (std::size_t i = k; i < dimension; ++i) {
                m[i][k] = inner(p[i], g[k]);
            }
            const double beta = f[k] / m[k][k];
            r = plus(r, -beta, g[k]);
            ++products;
            if (norm_of(r) <= s.target) {
                return products;
            }
            for (std::size_t i = k + 1; i < dimension; ++i) {
                f[i] -= beta * m[i][k];
            }
        }
        const Vector t = s.times(r);
        const double along = inner(t, r);
        const double cosine = std::abs(along) / (norm_of(t) * norm_of(r));
        omega = along / inner(t, t) * std::max(1.0, 0.7 / cosine);
        r = plus(r, -omega, t);
        ++products;
        if (norm_of(r) <= s.target) {
            return products;
        }
    }
    return -1;
}

/// For eigenvalues in [least, most].
int textbook_chebyshev(const Problem& s, double least, double most)
{
    const double centre = (most + least) / 2;
    const double radius = (most - least) / 2;
    Vector r = s.b;
    Vector d = plus(Vector(r.size(), 0.0), 1 / centre, r);
    double rho = radius / centre;
    for (int i = 1; i <= s.most; ++i) {
        r = plus(r, -1, s.times(d));
        if (norm_of(r) <= s.target) {
            return i;
        }
        const double rho_new = 1 / (2 * centre / radius - rho);
        d = plus(plus(Vector(r.size(), 0.0), rho_new * rho, d), 2 * rho_new / radius, r);
        rho = rho_new;
    }
    return -1;
}

int textbook_richardson(const Problem& s, double relaxation)
{
    Vector x(s.b.size(), 0.0);
    Vector r = s.b;
    for (int i = 1; i <= s.most; ++i) {
        x = plus(x, relaxation, r);
        r = plus(s.b, -1, s.times(x));
        if (norm_of(r) <= s.target) {
            return i;
        }
    }
    return -1;
}

/// Until |r| is the target, or |A^T r| <= normal_tolerance |A| |r| with the largest column of the bidiagonal matrix for
/// |A|.
int textbook_lsqr(const Problem& s, double normal_tolerance)
{
    const auto scaled = [](const Vector& v) { return plus(Vector(v.size(), 0.0), 1 / norm_of(v), v); };
    Vector u = scaled(s.b);
    Vector v = product_transposed(s.a, u);
    double alpha = norm_of(v);
    v = scaled(v);
    double rho_bar = alpha;
    double phi_bar = norm_of(s.b);
    double norm = alpha;
    for (int i = 1; i <= s.most; ++i) {
        u = plus(s.times(v), -alpha, u);
        const double beta = norm_of(u);
        u = scaled(u);
        norm = std::max(norm, std::hypot(alpha, beta));
        v = plus(product_transposed(s.a, u), -beta, v);
        alpha = norm_of(v);
        v = scaled(v);
        const double rho = std::hypot(rho_bar, beta);
        const double cosine = rho_bar / rho;
        phi_bar *= beta / rho;
        rho_bar = -cosine * alpha;
        if (phi_bar <= s.target || alpha * std::abs(cosine) <= normal_tolerance * norm) {
            return i;
        }
    }
    return -1;
}

/// MINRES is GMRES without a restart in exact arithmetic: the least residual of the Krylov space.
int least_residual(const Problem& s) { return textbook_gmres(s, s.most); }

class SolverCounts : public SolverTest {
protected:
    static Problem problem(CsrMatrix<double> a)
    {
        Vector b(static_cast<std::size_t>(a.rows));
        for (std::size_t i = 0; i < b.size(); ++i) {
            b[i] = std::sin(1.0 + static_cast<double>(i));
        }
        const double target = 1e-8 * norm_of(b);
        return Problem{std::move(a), std::move(b), target};
    }
    SolveResult solve(const Problem& s, SolverOptions options)
    {
        SCOPED_TRACE(options.method);
        auto matrix = runtime_->distribute(s.a.view());
        options.tolerance = 0;
        options.absolute_tolerance = s.target;
        Vector x(static_cast<std::size_t>(s.a.cols), 0.0);
        SolveResult result = Solver<double>(matrix, options).solve(s.b.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::converged) << result.reason;
        return result;
    }
    void expect_count(const Problem& s, const SolverOptions& options, int expected)
    {
        EXPECT_NEAR(static_cast<double>(solve(s, options).iterations), expected, 1) << options.method;
    }
};

TEST_P(SolverCounts, AreThoseOfTextbooks)
{
    {
        const Problem s = problem(poisson<double>(8));
        const int count = textbook_cg(s);
        for (const char* const method : {"cg", "cg_single", "cg_pipelined", "fcg", "bicg"}) {
            expect_count(s, {.method = method}, count);
        }
        expect_count(s, {.method = "minres"}, least_residual(s));
        expect_count(s, {.method = "gmres"}, textbook_gmres(s, 30));
    }
    {
        const Problem s = problem(convection_diffusion<double>(8));
        expect_count(s, {.method = "bicgstab"}, textbook_bicgstab(s));
        expect_count(s, {.method = "cgs"}, textbook_cgs(s));
        expect_count(s, {.method = "gmres"}, textbook_gmres(s, 30));
    }
    {
        const Problem s = problem(shifted_laplacian<double>(5));
        expect_count(s, {.method = "minres"}, least_residual(s));
        expect_count(s, {.method = "gmres"}, textbook_gmres(s, 30));
    }
}

/// The shadow space is random: with orthonormal ones of other seeds the textbook takes about as many products.
TEST_P(SolverCounts, OfInducedDimensionReduction)
{
    for (const auto& a : {convection_diffusion<double>(8), poisson<double>(8)}) {
        const Problem s = problem(a);
        for (const int dimension : {1, 2, 4, 8}) {
            SCOPED_TRACE(dimension);
            std::vector<int> counts;
            for (unsigned seed = 1; seed <= 10; ++seed) {
                counts.push_back(textbook_idr(s, shadow_space(s.b.size(), dimension, seed)));
            }
            const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
            ASSERT_GT(*least, 0);
            const auto count = solve(s, {.method = "idr", .shadow = dimension}).iterations;
            EXPECT_GE(count, *least - 1);
            EXPECT_LE(count, *most + 1);
        }
    }
}

/// Of methods that are told the eigenvalues, whose residuals theory bounds in every iteration (Y. Saad, Iterative
/// Methods for Sparse Linear Systems, theorem 6.29 and section 4.2.1).
TEST_P(SolverCounts, OfMethodsThatKnowTheSpectrum)
{
    constexpr int n = 8;
    const Problem s = problem(poisson<double>(n));
    const double least = 12 * std::pow(std::sin(M_PI / (2 * (n + 1))), 2);
    const double most = 12 - least;
    const double first = norm_of(s.b);

    const int exact = textbook_chebyshev(s, least, most);
    const SolverOptions told{.method = "chebyshev", .smallest_eigenvalue = least, .largest_eigenvalue = most};
    const SolveResult chebyshev = solve(s, told);
    EXPECT_NEAR(static_cast<double>(chebyshev.iterations), exact, 1);
    const double growth = std::acosh((most + least) / (most - least));
    for (std::size_t k = 0; k < chebyshev.history.size(); ++k) {
        EXPECT_LE(chebyshev.history[k], 1.0001 * first / std::cosh(static_cast<double>(k) * growth)) << k;
    }
    // Estimated, the interval reaches from half the least Ritz value to 1.1 times the largest one: an iteration gains
    // the square root of 2.2 times less.
    const auto estimated = solve(s, {.method = "chebyshev"}).iterations;
    EXPECT_LE(static_cast<double>(estimated), std::sqrt(2.2) * exact + 1);

    const double relaxation = 2 / (least + most);
    const SolveResult refinement = solve(s, {.method = "ir", .relaxation = relaxation});
    EXPECT_NEAR(static_cast<double>(refinement.iterations), textbook_richardson(s, relaxation), 1);
    const double factor = (most - least) / (most + least);
    for (std::size_t k = 0; k < refinement.history.size(); ++k) {
        EXPECT_LE(refinement.history[k], 1.0001 * first * std::pow(factor, static_cast<double>(k))) << k;
    }
}

TEST_P(SolverCounts, OfLeastSquares)
{
    const Problem square = problem(convection_diffusion<double>(6));
    expect_count(square, {.method = "lsqr", .normal_tolerance = 0}, textbook_lsqr(square, 0));
    // Rows below each other: more rows than columns, and no x with A x = b.
    CsrMatrix<double> tall = convection_diffusion<double>(6);
    const CsrMatrix<double> below = shifted_laplacian<double>(6);
    HostVector<std::int32_t> columns;
    for (const CsrMatrix<double>* const part : {&std::as_const(tall), &below}) {
        for (std::int64_t k = 0; k < part->nnz(); ++k) {
            columns.push_back(static_cast<std::int32_t>(part->col_idx[k]));
        }
    }
    for (std::int64_t row = 1; row <= below.rows; ++row) {
        tall.row_ptr.push_back(tall.row_ptr[static_cast<std::size_t>(tall.rows)] +
                               below.row_ptr[static_cast<std::size_t>(row)]);
    }
    tall.values.insert(tall.values.end(), below.values.begin(), below.values.end());
    tall.col_idx = IndexArray(std::move(columns));
    tall.rows += below.rows;
    const Problem least_squares = problem(std::move(tall));
    expect_count(least_squares, {.method = "lsqr", .normal_tolerance = 1e-8}, textbook_lsqr(least_squares, 1e-8));
}

INSTANTIATE_TEST_SUITE_P(All, SolverCounts, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
