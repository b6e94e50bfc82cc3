#pragma once

#include <array>
#include <cstdint>

#include <kernels/steps/step.hpp>
#include <rmsp/matrix.hpp>

#include "matrix/sparse_inverse.hpp"

/// Values of sparse approximate inverses (matrix/sparse_inverse.hpp) on one device. Pointers are memory of the
/// context's device. What one row becomes depends on the rows of A that it names alone, and not on which others are on
/// the device.
namespace rmsp::kernels {

/// Rows of A in A's own columns, each column once, in any order.
template <class T>
struct InverseSource {
    std::int64_t first = 0;  ///< row that row_ptr begins with
    IndexView row_ptr;       ///< up to the last row that a row of M names; rows that none names may be empty
    const std::int32_t* col_idx = nullptr;
    const T* values = nullptr;
};

/// Rows of M: columns rise in each, and the diagonal is there.
struct InverseRows {
    std::int64_t first = 0;  ///< number of the first one in M
    std::int64_t rows = 0;
    IndexView row_ptr;  ///< rows + 1 entries: places in col_idx, and of values
    const std::int32_t* col_idx = nullptr;
};

/// By how much work they are, rows of M have classes of their own kernels. Patterns alone decide.
inline constexpr int inverse_classes = 5;

struct InverseClasses {
    DeviceArray<std::int32_t> system_rows;  ///< of each row's system; on host devices empty
    DeviceArray<std::int32_t> rows;         ///< by class
    std::array<std::int64_t, inverse_classes + 1> begin{};
    std::array<std::int64_t, inverse_classes> most_bytes{};  ///< of a row's system, where they lie in memory
    /// Rows whose systems are larger than most_inverse_bytes, which fill_inverse_rows() is not for; the first of them.
    std::int64_t refused = 0;
    std::int64_t first_refused = -1;
};
inline constexpr std::int64_t most_inverse_bytes = std::int64_t{1} << 28;

/// kind: matrix::SparseInverse::spai or isai.
template <class T>
struct SparseInverses {
    /// Waits.
    InverseClasses (*classify_inverse_rows)(const InverseSource<T>& a, matrix::SparseInverse kind, const InverseRows& m,
                                            const Context& context) = nullptr;
    /// The values of M (matrix::fill_inverse()), to rounding: GPUs sum in another order, and solve the square systems
    /// of isai by reflections too. first_singular is a number of M. Waits.
    matrix::InverseStatus (*fill_inverse_rows)(const InverseSource<T>& a, matrix::SparseInverse kind,
                                               const InverseRows& m, const InverseClasses& classes, T* values,
                                               const Context& context) = nullptr;

    static const SparseInverses& host();
    static const SparseInverses& cuda();
};
RMSP_VALUE_STEP(SparseInverses, classify_inverse_rows);
RMSP_VALUE_STEP(SparseInverses, fill_inverse_rows);

}  // namespace rmsp::kernels
