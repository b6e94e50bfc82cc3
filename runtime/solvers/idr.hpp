#pragma once

#include "runtime/solvers/recipe.hpp"

namespace rmsp::solvers {

/// The shadow vectors: the same ones for the same size, whatever the devices.
template <class T>
std::vector<Vec<T>> shadow_vectors(Recipe<T>& s)
{
    const std::vector<Vec<T>> p = s.vectors(s.options.shadow);
    std::uint64_t seed = 20110822;
    for (const Vec<T>& vector : p) {
        fill_random(vector, seed++, s.first_row());
    }
    return p;
}

/// Induced dimension reduction, IDR(s) with biorthogonality (M. B. van Gijzen, P. Sonneveld, Algorithm 913, 2011),
/// preconditioned from the right. What makes a direction biorthogonal is found from one group of inner products (T. P.
/// Collignon, M. B. van Gijzen 2011) rather than from one after the other.
template <class T>
void idr(Recipe<T>& s)
{
    const int dimension = s.options.shadow;
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    const std::vector<Vec<T>> p = shadow_vectors(s), g = s.vectors(dimension), u = s.vectors(dimension);
    const std::vector<Scalar> f = s.scalars(dimension), c = s.scalars(dimension), a = s.scalars(dimension);
    std::vector<std::vector<Scalar>> m;  // m[k][i] = p[i] g[k], which is 0 for i < k
    for (int k = 0; k < dimension; ++k) {
        m.push_back(s.scalars(dimension));
    }
    auto [r, v] = s.template vectors<2>();
    auto [rr, beta, omega, tr, tt, cosine] = s.template scalars<6>();
    const Vec<T> mv = s.preconditioned(v);
    const Vec<T> mr = s.preconditioned(r);
    const Vec<T> t = v;

    s.residual(s.start, r);
    std::vector<Statement> identity;
    for (int k = 0; k < dimension; ++k) {
        s.start.pass(g[at(k)] = 0.0 * r);
        s.start.pass(u[at(k)] = 0.0 * r);
        for (int i = 0; i < dimension; ++i) {
            identity.push_back(m[at(k)][at(i)] = i == k ? 1.0 : 0.0);
        }
    }
    s.start.pass(rr = dot(r, r), identity, omega = 1.0, s.check(sqrt(rr)));
    for (int i = 0; i < dimension; ++i) {
        s.start.pass(f[at(i)] = dot(p[at(i)], r));
    }

    for (int k = 0; k < dimension; ++k) {
        Sequence& step = s.next_iteration();
        // M c = f, for what is still to come of g
        std::vector<Statement> substitution;
        for (int i = k; i < dimension; ++i) {
            substitution.push_back(c[at(i)] = f[at(i)]);
            for (int j = k; j < i; ++j) {
                substitution.push_back(c[at(i)] = c[at(i)] - m[at(j)][at(i)] * c[at(j)]);
            }
            substitution.push_back(c[at(i)] = c[at(i)] / m[at(i)][at(i)]);
        }
        step.pass(substitution);
        step.pass(v = r - combination(c, g, k, dimension));
        s.precondition(step, mv, v);
        step.pass(u[at(k)] = omega * mv + combination(c, u, k, dimension));
        s.multiply(step, u[at(k)], g[at(k)]);

        for (int i = 0; i < dimension; ++i) {
            step.pass(m[at(k)][at(i)] = dot(p[at(i)], g[at(k)]));
        }
        std::vector<Statement> biorthogonal;
        for (int i = 0; i < k; ++i) {
            biorthogonal.push_back(a[at(i)] = m[at(k)][at(i)] / m[at(i)][at(i)]);
            for (int j = i + 1; j < dimension; ++j) {
                biorthogonal.push_back(m[at(k)][at(j)] = m[at(k)][at(j)] - a[at(i)] * m[at(i)][at(j)]);
            }
        }
        const Scalar& pivot = m[at(k)][at(k)];
        step.pass(biorthogonal, s.need_nonzero(pivot), beta = f[at(k)] / pivot);
        std::vector<Statement> left;
        for (int i = k + 1; i < dimension; ++i) {
            left.push_back(f[at(i)] = f[at(i)] - beta * m[at(k)][at(i)]);
        }
        if (k > 0) {
            step.pass(g[at(k)] -= combination(a, g, 0, k));
            step.pass(u[at(k)] -= combination(a, u, 0, k));
        }
        step.pass(s.x += beta * u[at(k)], r -= beta * g[at(k)], rr = dot(r, r), left, s.check(sqrt(rr)));
    }

    // r falls into the next, smaller space. omega makes it small, but not where r and t are close to orthogonal (G. L.
    // G. Sleijpen, H. A. van der Vorst 1995).
    constexpr double least_cosine = 0.7;
    Sequence& step = s.next_iteration();
    s.precondition(step, mr, r);
    s.multiply(step, mr, t);
    step.pass(tr = dot(t, r), tt = dot(t, t), omega = tr / max(tt, smallest),
              cosine = abs(tr) / max(sqrt(tt) * sqrt(rr), smallest),
              omega = omega * max(1.0, least_cosine / max(cosine, smallest)));
    step.pass(s.x += omega * mr, r -= omega * t, rr = dot(r, r), s.check(sqrt(rr)), s.need_nonzero(omega));
    for (int i = 0; i < dimension; ++i) {
        step.pass(f[at(i)] = dot(p[at(i)], r));
    }
}

}  // namespace rmsp::solvers
