#pragma once

#include <cstdint>

#include <rmsp/host_vector.hpp>

#include "matrix/square_block.hpp"

/// Triangular matrices in the order in which their rows can be solved. (Anderson, Saad: Solving sparse triangular
/// linear systems on parallel computers, Int. J. High Speed Comput. 1, 1989)
namespace rmsp::matrix {

/// Which triangle of the factors in a SquareBlock.
enum class Triangle : std::uint8_t {
    lower,             ///< L of IC(0): below the diagonal, and the diagonal
    unit_lower,        ///< L of ILU(0): below the diagonal, which is one
    upper,             ///< U of ILU(0): above the diagonal, and the diagonal
    transposed_lower,  ///< L^T of IC(0), from the entries below the diagonal
};

/// A triangular matrix T whose rows are stored level by level: a row of a level has entries, beside the diagonal, only
/// in columns that are rows of levels before it, so that the rows of one level can be solved at the same time. The
/// first level has no entries beside the diagonal. Inside a level rows rise.
template <class T>
struct LevelTriangle {
    HostVector<std::int32_t> rows;     ///< which row of T is stored at each place
    HostVector<std::int64_t> row_ptr;  ///< of the places: rows + 1 entries
    HostVector<std::int32_t> col_idx;  ///< beside the diagonal; rising
    HostVector<T> values;              ///< beside the diagonal
    HostVector<T> inverse_diagonal;    ///< 1 / t_ii at each place; empty: all are one
    HostVector<std::int64_t> levels;   ///< the first place of each level, and the number of rows at the end

    std::int64_t size() const noexcept { return static_cast<std::int64_t>(rows.size()); }
    std::int64_t level_count() const noexcept { return static_cast<std::int64_t>(levels.size()) - 1; }
};

/// The level of each row of the lower triangle, from 0, by the pattern alone.
template <class T>
HostVector<std::int32_t> lower_levels(const SquareBlock<T>& block);

/// One triangle of factored values, level by level.
template <class T>
LevelTriangle<T> level_triangle(const SquareBlock<T>& factors, Triangle triangle);

/// New factors of the same pattern into a triangle that was made of the first ones.
template <class T>
void renew(const SquareBlock<T>& factors, Triangle triangle, LevelTriangle<T>& out);

/// x = T^-1 b, row after row in the order of the levels: the reference for kernels. x and b may be the same.
template <class T>
void solve_reference(const LevelTriangle<T>& triangle, const T* b, T* x);

}  // namespace rmsp::matrix
