#pragma once

#include "runtime/solvers/eigen_state.hpp"

namespace rmsp::solvers {

/// Locally optimal block preconditioned conjugate gradients (A. V. Knyazev 2001): Rayleigh-Ritz in the space of the
/// vectors x, their preconditioned residuals w, and the directions p of the last step. The devices multiply and sum;
/// the host solves a dense problem of three times the block in each iteration. A few more pairs than are wanted are in
/// the block, so that the last wanted ones converge as well.
template <class T>
class Lobpcg final : public EigenMethod<T> {
public:
    static std::size_t block_of(const EigenOptions& options)
    {
        return static_cast<std::size_t>(options.count + (options.count + 1) / 2);
    }

    Lobpcg(const EigenMatrix<T>& matrix, Preconditioner<T>* preconditioner, const EigenOptions& options,
           Scalars& scalars)
        : options_(options),
          matrix_(matrix),
          m_(block_of(options)),
          theta_(scalars, m_),
          squares_(scalars, m_),
          c_(scalars, 3 * m_ * m_),
          gram_a_(scalars, 3 * m_ * (3 * m_ + 1) / 2),
          gram_(scalars, 3 * m_ * (3 * m_ + 1) / 2),
          multiply_x_(scalars),
          residuals_(scalars),
          expand_(scalars),
          products_(scalars),
          combine_(scalars)
    {
        // Vectors 0 to m are x, then w, then p.
        for (std::size_t i = 0; i < 3 * m_; ++i) {
            s_.push_back(matrix.vector());
            as_.push_back(matrix.vector());
        }
        std::vector<Vec<T>> next;
        for (std::size_t j = 0; j < 2 * m_; ++j) {
            next.push_back(matrix.vector());
        }
        const Scalar ww = scalars.make();
        const Scalar inverse = scalars.make();
        std::vector<Scalar> along;
        for (std::size_t j = 0; j < m_; ++j) {
            along.push_back(scalars.make());
        }

        for (std::size_t j = 0; j < m_; ++j) {
            const Vec<T>& x = s_[j];
            const Vec<T>& w = s_[m_ + j];
            matrix.multiply(multiply_x_, x, as_[j]);
            multiply_x_.pass(w = 0.0 * x, as_[m_ + j] = 0.0 * x);
            multiply_x_.pass(s_[2 * m_ + j] = 0.0 * x, as_[2 * m_ + j] = 0.0 * x);
            residuals_.pass(w = as_[j] - theta_[j] * x, squares_[j] = dot(w, w));
            if (preconditioner != nullptr) {
                preconditioner->append(expand_, next[j], w);
                expand_.pass(w = next[j]);
            }
            for (std::size_t i = 0; i < m_; ++i) {
                expand_.pass(along[i] = dot(s_[i], w));
            }
            subtract_combination(expand_, w, along, s_, 0, static_cast<int>(m_));
            expand_.pass(ww = dot(w, w), inverse = 1.0 / max(sqrt(ww), smallest));
            expand_.pass(w = inverse * w);
            matrix.multiply(expand_, w, as_[m_ + j]);
        }
        std::size_t at = 0;
        for (std::size_t i = 0; i < 3 * m_; ++i) {
            for (std::size_t j = i; j < 3 * m_; ++j, ++at) {
                products_.pass(gram_[at] = dot(s_[i], s_[j]));
                products_.pass(gram_a_[at] = dot(s_[i], as_[j]));
            }
        }
        // p' = w c + p c, x' = x c + p', and their products with A alike
        for (const std::vector<Vec<T>>* const block : {&s_, &as_}) {
            for (std::size_t j = 0; j < m_; ++j) {
                std::vector<Scalar> c;
                for (std::size_t i = 0; i < 3 * m_; ++i) {
                    c.push_back(c_[i * m_ + j]);
                }
                const int m = static_cast<int>(m_);
                combine_.pass(next[m_ + j] = 0.0 * next[m_ + j]);
                add_combination(combine_, next[m_ + j], c, *block, m, 3 * m);
                combine_.pass(next[j] = next[m_ + j]);
                add_combination(combine_, next[j], c, *block, 0, m);
            }
            for (std::size_t j = 0; j < m_; ++j) {
                combine_.pass((*block)[j] = next[j], (*block)[2 * m_ + j] = next[m_ + j]);
            }
        }
    }

    void start() override
    {
        for (std::size_t j = 0; j < m_; ++j) {
            matrix_.fill_random(s_[j], j + 1);
        }
        multiply_x_.run();
        largest_ = 0;
        begun_ = rayleigh_ritz();
    }

    bool iterate(EigenProgress& progress) override
    {
        if (!begun_) {
            return false;
        }
        if (progress.iterations > 0) {
            expand_.run();
            if (!rayleigh_ritz()) {
                return false;
            }
        }
        ++progress.iterations;
        residuals_.run();
        const std::vector<double> squares = squares_.read();
        progress.residual = 0;
        for (std::size_t k = 0; k < static_cast<std::size_t>(options_.count); ++k) {
            progress.residual = std::max(progress.residual, std::sqrt(squares[k]));
        }
        progress.target = options_.tolerance * largest_;
        progress.converged = progress.residual <= progress.target;
        return std::isfinite(progress.residual);
    }

    std::vector<double> pairs(const std::vector<Vec<T>>& vectors) override
    {
        for (std::size_t k = 0; k < vectors.size(); ++k) {
            copy(s_[k].vector(), vectors[k]);
        }
        return {values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(vectors.size())};
    }

private:
    static void copy(const DistributedVector<T>& from, const Vec<T>& to)
    {
        DistributedVector<T> out = to.vector();
        rmsp::copy(from, out);
    }

    /// Finds the best x in the space of those vectors that are independent; false if there are too few.
    bool rayleigh_ritz()
    {
        products_.run();
        const std::vector<double> gram = gram_.read();
        const std::vector<double> gram_a = gram_a_.read();
        const std::size_t all = 3 * m_;
        std::vector<double> a(all * all);
        std::vector<double> b(all * all);
        std::size_t at = 0;
        for (std::size_t i = 0; i < all; ++i) {
            for (std::size_t j = i; j < all; ++j, ++at) {
                a[i * all + j] = a[j * all + i] = gram_a[at];
                b[i * all + j] = b[j * all + i] = gram[at];
                if (!std::isfinite(gram_a[at]) || !std::isfinite(gram[at])) {
                    return false;
                }
            }
        }
        const auto [kept, l] = independent_cholesky(b, all, 10 * double{std::numeric_limits<T>::epsilon()});
        const std::size_t n = kept.size();
        if (n < m_) {
            return false;
        }
        std::vector<double> reduced(n * n);
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                reduced[i * n + j] = a[kept[i] * all + kept[j]];
            }
        }
        // L^-1 A L^-T, by rows and by columns
        for (int side = 0; side < 2; ++side) {
            for (std::size_t k = 0; k < n; ++k) {
                for (std::size_t i = 0; i < n; ++i) {
                    double sum = reduced[i * n + k];
                    for (std::size_t j = 0; j < i; ++j) {
                        sum -= l[i * n + j] * reduced[j * n + k];
                    }
                    reduced[i * n + k] = sum / l[i * n + i];
                }
            }
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t j = 0; j < i; ++j) {
                    std::swap(reduced[i * n + j], reduced[j * n + i]);
                }
            }
        }
        const SymmetricEigen ritz = symmetric_eigen(std::move(reduced), n);
        std::vector<double> c(all * m_, 0.0);
        values_.clear();
        for (std::size_t k = 0; k < m_; ++k) {
            const std::size_t from = options_.which == Spectrum::smallest ? k : n - 1 - k;
            values_.push_back(ritz.values[from]);
            for (std::size_t i = n; i-- > 0;) {
                double sum = ritz.vectors[i * n + from];
                for (std::size_t j = i + 1; j < n; ++j) {
                    sum -= l[j * n + i] * c[kept[j] * m_ + k];
                }
                c[kept[i] * m_ + k] = sum / l[i * n + i];
            }
        }
        largest_ = std::max({largest_, std::abs(ritz.values.front()), std::abs(ritz.values.back())});
        c_.write(c);
        theta_.write(values_);
        combine_.run();
        return true;
    }

    const EigenOptions& options_;
    const EigenMatrix<T>& matrix_;
    const std::size_t m_;
    const ScalarBlock theta_;
    const ScalarBlock squares_;  ///< of the residuals' lengths
    const ScalarBlock c_;        ///< [i m + j]: of vector i in the new x_j
    const ScalarBlock gram_a_;   ///< the upper triangle of S^T A S, by rows
    const ScalarBlock gram_;     ///< that of S^T S
    Sequence multiply_x_;
    Sequence residuals_;
    Sequence expand_;
    Sequence products_;
    Sequence combine_;
    std::vector<Vec<T>> s_;
    std::vector<Vec<T>> as_;
    std::vector<double> values_;
    double largest_ = 0;  ///< magnitude of a Ritz value so far
    bool begun_ = false;
};

}  // namespace rmsp::solvers
