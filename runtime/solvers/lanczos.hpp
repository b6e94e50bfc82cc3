#pragma once

#include "runtime/solvers/eigen_state.hpp"

namespace rmsp::solvers {

/// Thick-restart Lanczos (K. Wu, H. Simon 2000) with full orthogonalisation by classical Gram-Schmidt, twice. The basis
/// grows on the devices; then the host takes the projected matrix apart, and the Ritz vectors next to the wanted end of
/// the spectrum are what the next basis begins with. One sequence of such vectors finds one vector of each eigenspace:
/// once all wanted pairs have converged, another sequence begins with a random vector beside them, until it changes
/// nothing. So eigenvalues are found as often as they are there.
template <class T>
class Lanczos final : public EigenMethod<T> {
public:
    Lanczos(const EigenMatrix<T>& matrix, const EigenOptions& options, Scalars& scalars)
        : options_(options),
          matrix_(matrix),
          rows_(static_cast<std::size_t>(matrix.rows)),
          wanted_(static_cast<std::size_t>(options.count)),
          size_(std::min(rows_, basis_of(options))),
          most_kept_(std::min(size_ - 1, wanted_ + (size_ - wanted_) / 2)),
          h_(scalars, size_ * size_),
          again_(scalars, size_),
          below_(scalars, size_),
          scalars_(scalars),
          to_kept_(scalars)
    {
        for (std::size_t j = 0; j <= size_; ++j) {
            v_.push_back(matrix.vector());
        }
        for (std::size_t k = 0; k < most_kept_; ++k) {
            kept_vectors_.push_back(matrix.vector());
        }
        // The coefficients are where h was: the host has read it by then.
        record_combinations(to_kept_, kept_vectors_);
        for (std::size_t k = 0; k < most_kept_; ++k) {
            to_kept_.pass(v_[k] = kept_vectors_[k]);
        }
        if (most_kept_ > 0) {
            to_kept_.pass(v_[most_kept_] = v_[size_]);
        }
        const Scalar ww = scalars.make();
        const Scalar inverse = scalars.make();
        for (std::size_t j = 0; j < size_; ++j) {
            Sequence& step = steps_.emplace_back(scalars);
            matrix.multiply(step, v_[j], v_[j + 1]);
            orthogonalise(step, j + 1, [&](std::size_t i) { return h_[j * size_ + i]; });
            orthogonalise(step, j + 1, [&](std::size_t i) { return again_[i]; });
            for (std::size_t i = 0; i <= j; ++i) {
                step.pass(h_[j * size_ + i] = h_[j * size_ + i] + again_[i]);
            }
            step.pass(ww = dot(v_[j + 1], v_[j + 1]), below_[j] = sqrt(ww), inverse = 1.0 / max(below_[j], smallest));
            step.pass(v_[j + 1] = inverse * v_[j + 1]);
        }
        // A vector that something else filled becomes orthogonal to those before it.
        for (std::size_t j = 0; j < size_; ++j) {
            Sequence& step = fresh_.emplace_back(scalars);
            for (int times = 0; j > 0 && times < 2; ++times) {
                orthogonalise(step, j, [&](std::size_t i) { return again_[i]; });
            }
            step.pass(ww = dot(v_[j], v_[j]), inverse = 1.0 / max(sqrt(ww), smallest));
            step.pass(v_[j] = inverse * v_[j]);
        }
    }

    void start() override
    {
        seed_ = 1;
        kept_ = 0;
        ritz_ = {};
        found_.clear();
        t_.assign(size_ * size_, 0.0);
        matrix_.fill_random(v_[0], seed_++);
        fresh_[0].run();
    }

    bool iterate(EigenProgress& progress) override
    {
        if (!ritz_.values.empty()) {
            restart();
        }
        constexpr double eps = std::numeric_limits<T>::epsilon();
        double norm = 0;
        for (std::size_t i = 0; i < kept_; ++i) {
            norm = std::max(norm, std::abs(t_[i * size_ + i]));
        }
        double last_below = 0;
        for (std::size_t j = kept_; j < size_;) {
            for (std::size_t i = j; i < size_; ++i) {
                static_cast<void>(steps_[i].run_async());
            }
            const std::vector<double> h = h_.read();
            const std::vector<double> below = below_.read();
            for (bool goes_on = true; goes_on && j < size_; ++j) {
                for (std::size_t i = 0; i <= j; ++i) {
                    t_[i * size_ + j] = t_[j * size_ + i] = h[j * size_ + i];
                }
                ++progress.iterations;
                last_below = below[j];
                norm = std::max(norm, std::abs(h[j * size_ + j]));
                if (!std::isfinite(h[j * size_ + j]) || !std::isfinite(last_below)) {
                    progress.residual = std::numeric_limits<double>::quiet_NaN();
                    return false;
                }
                goes_on = last_below > 100 * eps * norm;
                norm = std::max(norm, last_below);
            }
            if (j < size_) {
                // The basis spans an invariant subspace: another one begins beside it.
                matrix_.fill_random(v_[j], seed_++);
                fresh_[j].run();
            }
        }
        ritz_ = symmetric_eigen(t_, size_);
        progress.residual = 0;
        for (std::size_t k = 0; k < wanted_ && size_ < rows_; ++k) {
            progress.residual =
                std::max(progress.residual, std::abs(last_below * ritz_.vectors[(size_ - 1) * size_ + place(k)]));
        }
        progress.target = options_.tolerance * std::max(std::abs(ritz_.values.front()), std::abs(ritz_.values.back()));
        again_beside_ = false;
        // A sequence that ends leaves out what is left of the residuals: some of these must not add up to the target.
        if (progress.residual <= 0.3 * progress.target) {
            std::vector<double> values;
            bool same = !found_.empty();
            for (std::size_t k = 0; k < wanted_; ++k) {
                values.push_back(ritz_.values[place(k)]);
                same = same && std::abs(values[k] - found_[k]) <= progress.target;
            }
            progress.converged = same || size_ == rows_;
            again_beside_ = !progress.converged;
            found_ = std::move(values);
        }
        return std::isfinite(progress.target);
    }

    std::vector<double> pairs(const std::vector<Vec<T>>& vectors) override
    {
        h_.write(wanted_combinations(vectors.size()));
        Sequence form(scalars_);
        record_combinations(form, vectors);
        form.run();
        std::vector<double> values;
        for (std::size_t k = 0; k < vectors.size(); ++k) {
            values.push_back(ritz_.values[place(k)]);
        }
        return values;
    }

private:
    static std::size_t basis_of(const EigenOptions& options)
    {
        return static_cast<std::size_t>(options.basis > 0 ? options.basis : std::max(20, 2 * options.count + 10));
    }
    /// Which Ritz pair is the k-th wanted one.
    std::size_t place(std::size_t k) const { return options_.which == Spectrum::smallest ? k : size_ - 1 - k; }

    /// v_[j] becomes orthogonal to those before it, as far as rounding lets it.
    template <class Coefficient>
    void orthogonalise(Sequence& step, std::size_t j, const Coefficient& coefficient)
    {
        std::vector<Scalar> c;
        for (std::size_t i = 0; i < j; ++i) {
            c.push_back(coefficient(i));
            step.pass(c.back() = dot(v_[i], v_[j]));
        }
        subtract_combination(step, v_[j], c, v_, 0, static_cast<int>(j));
    }

    /// out[k] = the sum of h_[k size + j] v_[j]
    void record_combinations(Sequence& sequence, const std::vector<Vec<T>>& out)
    {
        const int n = static_cast<int>(size_);
        for (std::size_t k = 0; k < out.size(); ++k) {
            std::vector<Scalar> c;
            for (std::size_t j = 0; j < size_; ++j) {
                c.push_back(h_[k * size_ + j]);
            }
            sequence.pass(out[k] = combination(c, v_, 0, std::min(n, 12)));
            add_combination(sequence, out[k], c, v_, 12, n);
        }
    }
    /// Those of the first `count` wanted Ritz vectors.
    std::vector<double> wanted_combinations(std::size_t count) const
    {
        std::vector<double> c(count * size_);
        for (std::size_t k = 0; k < count; ++k) {
            for (std::size_t j = 0; j < size_; ++j) {
                c[k * size_ + j] = ritz_.vectors[j * size_ + place(k)];
            }
        }
        return c;
    }

    /// The next basis begins with the wanted Ritz vectors, and what the last product left beside them.
    void restart()
    {
        h_.write(wanted_combinations(most_kept_));
        to_kept_.run();
        std::fill(t_.begin(), t_.end(), 0.0);
        // What a new sequence leaves out of the vectors that have not converged would be missed.
        kept_ = again_beside_ ? wanted_ : most_kept_;
        for (std::size_t k = 0; k < kept_; ++k) {
            t_[k * size_ + k] = ritz_.values[place(k)];
        }
        if (again_beside_) {
            matrix_.fill_random(v_[kept_], seed_++);
            fresh_[kept_].run();
        }
    }

    const EigenOptions& options_;
    const EigenMatrix<T>& matrix_;
    const std::size_t rows_;  ///< of all processes
    const std::size_t wanted_;
    const std::size_t size_;  ///< of the basis
    const std::size_t most_kept_;
    const ScalarBlock h_;      ///< [j size + i]: v_[i] A v_[j], i <= j
    const ScalarBlock again_;  ///< what the second orthogonalisation adds to a column of it
    const ScalarBlock below_;  ///< the length of what is left of A v_[j]
    Scalars scalars_;
    Sequence to_kept_;
    std::vector<Vec<T>> v_;
    std::vector<Vec<T>> kept_vectors_;
    std::vector<Sequence> steps_;  ///< v_[j + 1] from v_[j]
    std::vector<Sequence> fresh_;  ///< v_[j] from what is there
    std::vector<double> t_;        ///< the projected matrix
    SymmetricEigen ritz_;
    std::vector<double> found_;  ///< the wanted values when they converged last
    bool again_beside_ = false;  ///< a sequence ends, and another one begins
    std::size_t kept_ = 0;
    std::uint64_t seed_ = 1;
};

}  // namespace rmsp::solvers
