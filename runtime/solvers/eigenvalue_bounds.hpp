#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "runtime/solvers/recipe.hpp"
#include "runtime/solvers/symmetric_eigen.hpp"

namespace rmsp::solvers {

/// An interval that holds the eigenvalues of M A, or nearly: that of the options, or else the Ritz values of some
/// iterations of conjugate gradients with a random right-hand side, which are those of a Lanczos process (Y. Saad,
/// Iterative Methods for Sparse Linear Systems, 6.7.3), widened: the outermost Ritz values are inside the interval, the
/// least one by most. Waits for the devices.
template <class T>
class EigenvalueBounds {
public:
    explicit EigenvalueBounds(Recipe<T>& s)
        : s_(s), b_(s.vector()), sequence_(s.sequence()), alpha_(s.scalars(steps)), beta_(s.scalars(steps))
    {
        auto [r, p, q] = s.template vectors<3>();
        auto [rho, rho_new, pq] = s.template scalars<3>();
        const Vec<T> z = s.preconditioned(r);
        std::vector<Statement> clear;
        for (std::size_t k = 0; k < alpha_.size(); ++k) {
            clear.push_back(alpha_[k] = 0.0);
            clear.push_back(beta_[k] = 0.0);
        }
        sequence_.pass(r = b_, clear);
        s.precondition(sequence_, z, r);
        sequence_.pass(p = z, rho = dot(r, z));
        for (std::size_t k = 0; k < alpha_.size(); ++k) {
            s.multiply(sequence_, p, q);
            // Residuals that are rounding errors tell nothing.
            sequence_.pass(pq = dot(p, q), s.need_positive(pq), s.need_positive(rho));
            sequence_.pass(alpha_[k] = rho / pq);
            sequence_.pass(r -= alpha_[k] * q);
            s.precondition(sequence_, z, r);
            sequence_.pass(rho_new = dot(r, z), beta_[k] = rho_new / rho, rho = rho_new);
            sequence_.pass(p = z + beta_[k] * p);
        }
    }

    /// The least one and the largest; NaN if M A turns out not to be positive definite.
    std::pair<double, double> find()
    {
        double least = s_.options.smallest_eigenvalue;
        double most = s_.options.largest_eigenvalue;
        if (least <= 0 || most <= 0) {
            const auto [ritz_least, ritz_most] = ritz_values();
            least = least > 0 ? least : 0.5 * ritz_least;
            most = most > 0 ? most : 1.1 * ritz_most;
        }
        return {least, most};
    }

private:
    static constexpr int steps = 20;

    std::pair<double, double> ritz_values()
    {
        fill_random(b_, 20200101, s_.first_row());
        s_.restart();
        sequence_.run();
        std::vector<double> diagonal;
        std::vector<double> beside;
        double alpha_before = 0;
        double beta_before = 0;
        for (std::size_t k = 0; k < alpha_.size(); ++k) {
            const double alpha = s_.get(alpha_[k]);
            const double beta = s_.get(beta_[k]);
            if (!(alpha > 0) || !std::isfinite(alpha) || !(beta >= 0)) {
                break;
            }
            diagonal.push_back(1 / alpha + (k > 0 ? beta_before / alpha_before : 0.0));
            beside.push_back(std::sqrt(beta) / alpha);
            alpha_before = alpha;
            beta_before = beta;
            if (beta < std::numeric_limits<T>::epsilon()) {
                break;
            }
        }
        const std::size_t n = diagonal.size();
        if (n == 0) {
            constexpr double none = std::numeric_limits<double>::quiet_NaN();
            return {none, none};
        }
        std::vector<double> t(n * n, 0.0);
        for (std::size_t k = 0; k < n; ++k) {
            t[k * n + k] = diagonal[k];
            if (k + 1 < n) {
                t[k * n + k + 1] = t[(k + 1) * n + k] = beside[k];
            }
        }
        const std::vector<double> values = symmetric_eigen(std::move(t), n).values;
        return {values.front(), values.back()};
    }

    Recipe<T>& s_;
    const Vec<T> b_;
    Sequence sequence_;
    std::vector<Scalar> alpha_;
    std::vector<Scalar> beta_;
};

}  // namespace rmsp::solvers
