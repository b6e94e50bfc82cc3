#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <rmsp/eigen.hpp>
#include <rmsp/vector_operations.hpp>

#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/sequence/sequence_state.hpp"
#include "runtime/solvers/recipe.hpp"
#include "runtime/solvers/symmetric_eigen.hpp"

/// What methods for eigenpairs have in common.
namespace rmsp::solvers {

/// Scalars with successive numbers, which the host reads and writes as one.
class ScalarBlock {
public:
    ScalarBlock(Scalars& scalars, std::size_t n) : scalars_(scalars)
    {
        for (std::size_t i = 0; i < n; ++i) {
            all_.push_back(scalars_.make());
        }
    }
    const Scalar& operator[](std::size_t i) const { return all_[i]; }
    /// Waits for what was queued before.
    std::vector<double> read() const
    {
        return detail::SequenceAccess::state(scalars_)->read(all_.front().index(), all_.size());
    }
    void write(const std::vector<double>& values) const
    {
        detail::SequenceAccess::state(scalars_)->send_new();
        detail::SequenceAccess::state(scalars_)->write(all_.front().index(), values);
    }

private:
    Scalars scalars_;
    std::vector<Scalar> all_;
};

/// The matrix, whose rows other processes may have as well.
template <class T>
struct EigenMatrix {
    DistributedMatrix<T> here;                         ///< vectors are sliced as it is
    std::shared_ptr<detail::GhostedState<T>> ghosted;  ///< null: all rows are of this process
    std::int64_t rows = 0;                             ///< of all processes

    explicit EigenMatrix(const DistributedMatrix<T>& matrix) : here(matrix), rows(matrix.rows()) {}
    /// Of every process.
    explicit EigenMatrix(std::shared_ptr<detail::GhostedState<T>> state)
        : here(state->own),
          ghosted(std::move(state)),
          rows(std::llround(ghosted->outside->total(static_cast<double>(here.rows()))))
    {
    }

    Vec<T> vector() const { return Vec<T>(here.make_x(Layout::rows)); }
    /// y = A x
    void multiply(Sequence& sequence, const Vec<T>& x, const Vec<T>& y) const
    {
        if (ghosted) {
            ghosted::append(ghosted, sequence, x, y, T{1}, T{0}, false);
        } else {
            sequence.multiply(here, x, y);
        }
    }
    void fill_random(const Vec<T>& v, std::uint64_t seed) const
    {
        solvers::fill_random(v, seed, ghosted ? ghosted->first_row : 0);
    }
    /// What the first process says.
    double of_first(double value) const { return ghosted ? ghosted->outside->of_first(value) : value; }
};

/// How far a method has come.
struct EigenProgress {
    std::int64_t iterations = 0;
    double residual = 0;  ///< the largest one of the wanted pairs
    double target = 0;
    bool converged = false;
};

/// A method: finds vectors and values, the wanted ones first.
template <class T>
class EigenMethod {
public:
    virtual ~EigenMethod() = default;
    /// Begins anew.
    virtual void start() = 0;
    /// Some products; false if it cannot go on.
    virtual bool iterate(EigenProgress& progress) = 0;
    /// Leaves vectors of length 1 in `vectors` and returns their values.
    virtual std::vector<double> pairs(const std::vector<Vec<T>>& vectors) = 0;
};

}  // namespace rmsp::solvers
