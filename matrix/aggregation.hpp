#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

#include "matrix/coarsening.hpp"

/// The P of smoothed aggregation. (Vanek, Mandel, Brezina: Algebraic multigrid by smoothed aggregation for second and
/// fourth order elliptic problems, Computing 56, 1996) Parallel, the same on any number of threads.
namespace rmsp::matrix {

/// Vectors that the matrix maps to nearly nothing, and that coarse vectors must be able to hold: by rows, `count`
/// numbers a row.
struct NearNullspace {
    int count = 1;
    HostVector<double> values;
};

/// One vector for each of the unknowns of a node: 1 in these, 0 in the others.
NearNullspace constants(std::int64_t rows, int unknowns);

/// A P whose columns are orthonormal on each aggregate, which hold the near-nullspace: `count` columns for each
/// aggregate, one after the other. Columns that an aggregate has not rows enough for, or that depend on those before
/// them, are 0.
struct Tentative {
    int count = 1;              ///< columns of an aggregate
    int unknowns = 1;           ///< rows of a node, which stay together
    Coarsening nodes;           ///< the aggregate of each node
    HostVector<double> values;  ///< rows x count
    NearNullspace coarse;       ///< of the coarse matrix
    std::int64_t columns() const noexcept { return nodes.count * count; }
};
/// By modified Gram-Schmidt, twice.
/// \throws Error(usage) unless the near-nullspace has as many rows as there are nodes times unknowns
Tentative tentative(Coarsening nodes, int unknowns, const NearNullspace& near_nullspace);

/// P = (I - w D^-1 A_F) T with w = 4 / 3 over the largest eigenvalue of D^-1 A_F, by some steps of the power method.
/// A_F is A without its weak entries, of which so much is added to its diagonal D that it maps the near-null vector to
/// what A does; where there are several vectors, it is A. Rows whose strong entries are more than most_of_diagonal
/// times D, in which entries of both signs cancel, stay as T has them: they alone would make the eigenvalue large.
/// `smooth` false: P = T, plain aggregation. \param agreed  of the eigenvalue that was found, gives the one that
/// counts; empty: itself \param vector  of the power method: where an earlier call, of other values, came to; empty:
/// nowhere yet. Null: each call begins anew
template <class T>
CsrMatrix<T> smoothed_prolongator(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Tentative& t,
                                  bool smooth, const std::function<double(double)>& agreed = {},
                                  HostVector<double>* vector = nullptr);
inline constexpr double most_of_diagonal = 3;
/// Steps of the power method from nowhere, and from where an earlier estimate came to.
inline constexpr int power_steps = 8;
inline constexpr int power_steps_again = 4;

/// What a step makes of two vectors, the last one v and the one before.
struct PowerStep {
    double product, last, before;

    /// An entry of the next vector. \param product_of_v  of D^-1 A_F v \param before_v  not read in the first step
    constexpr double next(double product_of_v, double v, double before_v) const
    {
        return product * product_of_v + last * v + (before != 0 ? before * before_v : 0.0);
    }
};

/// All but the last step are those of Chebyshev's polynomials of [0, 1.2]: what belongs to eigenvalues beyond it grows,
/// all else does not. The mean of the eigenvalues is 1, so that the largest one is hardly below. The last step is a
/// product alone, by which vectors grow by about the largest eigenvalue. (Saad: Numerical Methods for Large Eigenvalue
/// Problems, 2nd ed., 2011, section 7.4)
constexpr PowerStep power_step(int step, int steps)
{
    constexpr double end = 1.2;
    if (step + 1 == steps) {
        return {1, 0, 0};
    }
    return step == 0 ? PowerStep{2 / end, -1, 0} : PowerStep{4 / end, -2, -1};
}

/// The translations and rotations of a body, which elasticity maps to nothing. `coordinates`: `dimensions` (2 or 3) of
/// each node; rows are the displacements of each node in turn. Rotations are about the middle of the nodes, all vectors
/// of a length like that of the translations.
/// \throws Error(usage) for other dimensions, or a number of coordinates that is not a multiple
NearNullspace rigid_body_modes(int dimensions, std::span<const double> coordinates);

}  // namespace rmsp::matrix
