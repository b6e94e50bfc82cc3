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
/// what A does; where there are several vectors, it is A. `smooth` false: P = T, plain aggregation.
/// \param agreed  of the eigenvalue that was found, gives the one that counts; empty: itself
/// \param vector  of the power method: where an earlier call, of other values, came to; empty: nowhere yet. Null: each
/// call begins anew
template <class T>
CsrMatrix<T> smoothed_prolongator(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Tentative& t,
                                  bool smooth, const std::function<double(double)>& agreed = {},
                                  HostVector<double>* vector = nullptr);
/// Steps of the power method from nowhere, and from where an earlier estimate came to.
inline constexpr int power_steps = 15;
inline constexpr int power_steps_again = 5;

/// The translations and rotations of a body, which elasticity maps to nothing. `coordinates`: `dimensions` (2 or 3) of
/// each node; rows are the displacements of each node in turn. Rotations are about the middle of the nodes, all vectors
/// of a length like that of the translations.
/// \throws Error(usage) for other dimensions, or a number of coordinates that is not a multiple
NearNullspace rigid_body_modes(int dimensions, std::span<const double> coordinates);

}  // namespace rmsp::matrix
