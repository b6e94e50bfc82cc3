#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Solves with sparse triangular matrices on one device. Queued on the context's stream, they return at once on GPUs;
/// all pointers are memory of the context's device.
namespace rmsp::kernels {

/// A triangular matrix T whose rows are stored level by level (matrix::LevelTriangle): beside the diagonal, the row at
/// a place has entries only in columns that are rows of levels before its own. Not owned.
template <class T>
struct TriangleShard {
    std::int64_t rows = 0;                  ///< at most 2^31 - 1
    std::int64_t nnz = 0;                   ///< beside the diagonal
    const std::int32_t* row = nullptr;      ///< which row of T stands at each place
    const std::int64_t* row_ptr = nullptr;  ///< of the places: rows + 1 entries
    const std::int32_t* col_idx = nullptr;  ///< beside the diagonal
    const T* values = nullptr;              ///< beside the diagonal
    const T* inverse_diagonal = nullptr;    ///< 1 / t_ii at each place; null: all are one
    const std::int64_t* levels = nullptr;   ///< host devices: first place of each level, and rows; GPUs do not read it
    std::int64_t level_count = 0;
};

/// What solve_levels() needs on a GPU besides its operands: so many bytes of device memory for a matrix with so many
/// rows, zero before the first call. Calls in one stream share it, also for other matrices with as many rows.
template <class T>
constexpr std::int64_t solve_workspace_bytes(std::int64_t rows)
{
    return 64 + 2 * rows * static_cast<std::int64_t>(sizeof(T));
}

template <class T>
struct TriangularSolves {
    /// x = T^-1 b. x and b may be the same, but must not overlap otherwise. The sum of a row is added in an order that
    /// depends on the matrix alone: the same bits each time. `skip`: if not null, and not 0 there when the device comes
    /// to it, nothing is done. `workspace`: solve_workspace_bytes(); host devices: unused. On a GPU one launch, in
    /// which a row waits for the rows that it needs, not for their levels.
    void (*solve_levels)(const TriangleShard<T>& triangle, const T* b, T* x, void* workspace, const double* skip,
                         const Context& context) = nullptr;

    static const TriangularSolves& host();
    static const TriangularSolves& cuda();
};
RMSP_VALUE_STEP(TriangularSolves, solve_levels);

/// Loads the kernels of solve_levels() on the current device: the first launch of a kernel may wait for those that run,
/// which must not be where one of them waits for another device.
struct TriangularLoading {
    void (*load_triangular)(const Context& context) = nullptr;

    static const TriangularLoading& host();
    static const TriangularLoading& cuda();
};
inline constexpr Step load_triangular{&TriangularLoading::load_triangular, "load_triangular"};

}  // namespace rmsp::kernels
