#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <rmsp/sequence.hpp>
#include <rmsp/solver.hpp>

#include "runtime/ghosted/ghosted_state.hpp"

/// What a method records, once: statements that the devices repeat without the host. A method is a function that fills
/// a Recipe; runtime/solvers/solver.cpp runs it.
namespace rmsp::solvers {

/// Outcomes as what stops a sequence.
constexpr int code(Outcome outcome) { return static_cast<int>(outcome); }

/// What a divisor that may be 0 is kept above, where 0 / 0 is to be 0.
inline constexpr double smallest = 1e-300;

template <class T>
class Recipe {
public:
    Recipe(const DistributedMatrix<T>& a, Preconditioner<T>* m, const SolverOptions& o, const Scalars& s,
           const Vec<T>& x_, const Vec<T>& b_, Order order, std::shared_ptr<detail::GhostedState<T>> ghosted)
        : matrix(a),
          preconditioner(m),
          options(o),
          x(x_),
          b(b_),
          start(s),
          finish(s),
          scalars_(s),
          order_(order),
          ghosted_(std::move(ghosted))
    {
    }

    const DistributedMatrix<T>& matrix;  ///< A, or what of it has columns of this process: vectors are sliced alike
    Preconditioner<T>* const preconditioner;  ///< null: none
    const SolverOptions& options;
    const Vec<T> x;
    const Vec<T> b;

    Sequence start;               ///< before the first iteration, from the x that is there
    std::vector<Sequence> cycle;  ///< one iteration each, in turns
    Sequence finish;  ///< after the last iteration, wherever in the cycle that was; nothing has stopped then

    /// Called, where it is set, once the method is recorded, and again after the matrix has changed; may wait.
    std::function<void()> prepare;
    /// Set by methods that minimise |b - A x|: an estimate of |A|, which the residual's product with A^T is compared
    /// with.
    std::optional<Scalar> matrix_norm;

    Sequence sequence() { return Sequence(scalars_); }
    double get(const Scalar& scalar_) const { return scalars_.get(scalar_); }
    void set(const Scalar& scalar_, double value) { scalars_.set(scalar_, value); }
    void restart() { scalars_.restart(); }
    /// The next iteration of the cycle.
    Sequence& next_iteration() { return cycle.emplace_back(scalars_); }

    Scalar scalar(double value = 0) { return scalars_.make(value); }
    template <std::size_t n>
    std::array<Scalar, n> scalars()
    {
        return [this]<std::size_t... i>(std::index_sequence<i...>)
        {
            return std::array<Scalar, n>{((void)i, scalar())...};
        }
        (std::make_index_sequence<n>());
    }
    /// A vector as b, of rows() entries.
    Vec<T> vector() { return Vec<T>(matrix.make_y(order_)); }
    template <std::size_t n>
    std::array<Vec<T>, n> vectors()
    {
        return [this]<std::size_t... i>(std::index_sequence<i...>)
        {
            return std::array<Vec<T>, n>{((void)i, vector())...};
        }
        (std::make_index_sequence<n>());
    }
    std::vector<Scalar> scalars(int n)
    {
        std::vector<Scalar> all;
        for (int i = 0; i < n; ++i) {
            all.push_back(scalar());
        }
        return all;
    }
    std::vector<Vec<T>> vectors(int n)
    {
        std::vector<Vec<T>> all;
        for (int i = 0; i < n; ++i) {
            all.push_back(vector());
        }
        return all;
    }
    /// The number of this process's first row.
    std::int64_t first_row() const { return ghosted_ ? ghosted_->first_row : 0; }
    /// A vector as x, of cols() entries.
    Vec<T> column_vector() { return Vec<T>(matrix.make_x(Layout::rows, order_)); }

    /// Where M r is found: r itself without a preconditioner, else a vector of its own.
    Vec<T> preconditioned(const Vec<T>& r) { return preconditioner == nullptr ? r : vector(); }
    /// z = M r
    void precondition(Sequence& sequence, const Vec<T>& z, const Vec<T>& r)
    {
        if (preconditioner != nullptr) {
            preconditioner->append(sequence, z, r);
        } else if (z.state() != r.state()) {
            sequence.pass(z = r);
        }
    }
    /// z = M^T r
    void precondition_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r)
    {
        if (preconditioner != nullptr) {
            preconditioner->append_transposed(sequence, z, r);
        } else if (z.state() != r.state()) {
            sequence.pass(z = r);
        }
    }
    /// y = alpha A v + beta y
    void multiply(Sequence& sequence, const Vec<T>& v, const Vec<T>& y, T alpha = 1, T beta = 0)
    {
        if (ghosted_) {
            ghosted::append(ghosted_, sequence, v, y, alpha, beta, false);
        } else {
            sequence.multiply(matrix, v, y, alpha, beta);
        }
    }
    /// y = A^T v
    void multiply_transposed(Sequence& sequence, const Vec<T>& v, const Vec<T>& y)
    {
        if (ghosted_) {
            ghosted::append(ghosted_, sequence, v, y, T{1}, T{0}, true);
        } else {
            sequence.multiply_transposed(matrix, v, y);
        }
    }
    /// r = b - A x, also where the iteration has stopped.
    void residual(Sequence& sequence, const Vec<T>& r)
    {
        sequence.pass_always(r = b);
        multiply(sequence, x, r, T{-1}, T{1});
    }

    /// Ends an iteration, or the start, whose residual has that norm.
    std::vector<Statement> check(const ScalarExpression& norm)
    {
        return {norm_ = norm, record(norm_), stop_unless(is_finite(norm_), code(Outcome::not_finite)),
                stop_if(norm_ <= target_, code(Outcome::converged)), stop_if(norm_ > limit_, code(Outcome::diverged))};
    }
    /// Stops unless a value is one that the method can divide by: finite, and not 0.
    std::vector<Statement> need_nonzero(const Scalar& value)
    {
        return {stop_unless(is_finite(value), code(Outcome::breakdown)),
                stop_if(abs(value) <= 0.0, code(Outcome::breakdown))};
    }
    /// Stops unless a value is above 0.
    Statement need_positive(const Scalar& value) { return stop_unless(value > 0.0, code(Outcome::breakdown)); }

    const Scalar& target() const { return target_; }
    const Scalar& limit() const { return limit_; }
    const Scalar& norm() const { return norm_; }

private:
    Scalars scalars_;
    Order order_;
    const std::shared_ptr<detail::GhostedState<T>> ghosted_;  ///< null: all rows are of this process
    Scalar target_ = scalars_.make();                         ///< the residual norm that is asked for
    Scalar limit_ = scalars_.make();                          ///< the one that counts as divergence
    Scalar norm_ = scalars_.make();                           ///< that of the last iteration
};

/// Entries in [-1, 1) from a fixed seed: the same ones for the same size, whatever the devices. `first`: the number of
/// the vector's first entry in that of all processes.
template <class T>
void fill_random(const Vec<T>& vector, std::uint64_t seed, std::int64_t first = 0)
{
    std::mt19937_64 random(seed);
    random.discard(static_cast<unsigned long long>(first));
    std::vector<T> entries(static_cast<std::size_t>(vector.vector().size()));
    for (T& entry : entries) {
        entry = static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
    }
    vector.vector().upload(entries.data());
}

/// The sum of scalars[i] vectors[i] for i in [first, end).
template <class T>
VectorExpression<T> combination(const std::vector<Scalar>& scalars, const std::vector<Vec<T>>& vectors, int first,
                                int end)
{
    VectorExpression<T> sum;
    for (int i = first; i < end; ++i) {
        sum = std::move(sum) + scalars[static_cast<std::size_t>(i)] * vectors[static_cast<std::size_t>(i)];
    }
    return sum;
}

/// out += that sum, in as many passes as its terms need.
template <class T>
void add_combination(Sequence& sequence, const Vec<T>& out, const std::vector<Scalar>& scalars,
                     const std::vector<Vec<T>>& vectors, int first, int end)
{
    constexpr int most = 11;  // and out itself
    for (; first < end; first += most) {
        sequence.pass(out += combination(scalars, vectors, first, std::min(end, first + most)));
    }
}
template <class T>
void subtract_combination(Sequence& sequence, const Vec<T>& out, const std::vector<Scalar>& scalars,
                          const std::vector<Vec<T>>& vectors, int first, int end)
{
    constexpr int most = 11;
    for (; first < end; first += most) {
        sequence.pass(out -= combination(scalars, vectors, first, std::min(end, first + most)));
    }
}

/// A row of the table of methods.
template <class T>
struct Method {
    SolverInfo info;
    void (*record)(Recipe<T>& recipe) = nullptr;
    /// Scalars that it needs, with those of its programs.
    int (*scalars)(const SolverOptions& options) = nullptr;
};

/// \throws Error(usage) naming the nearest method
template <class T>
const Method<T>& method_named(const std::string& name);

}  // namespace rmsp::solvers
