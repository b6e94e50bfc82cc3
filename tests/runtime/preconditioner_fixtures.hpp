#pragma once

#include <cstdint>

#include <rmsp/rmsp.hpp>

/// Matrices for which preconditioners help.
namespace rmsp::test {

/// Symmetric positive definite, with rows of different size.
template <class T>
CsrMatrix<T> definite(std::int64_t n)
{
    GenerateOptions options;
    options.values = ValueKind::poisson;
    CsrMatrix<T> a = stencil7<T>(n, n, n, options);
    // D A D, so that dividing by the diagonal helps.
    const auto scale = [](std::int64_t i) { return 1.0 + static_cast<double>(i * 7 % 13); };
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(row)]; k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            T& value = a.values[static_cast<std::size_t>(k)];
            value = static_cast<T>(double{value} * scale(row) * scale(a.col_idx[k]));
        }
    }
    return a;
}

/// The same with entries that differ on both sides of the diagonal.
template <class T>
CsrMatrix<T> lopsided(std::int64_t n)
{
    CsrMatrix<T> a = definite<T>(n);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(row)]; k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] *= a.col_idx[k] < row ? T{1.25} : a.col_idx[k] > row ? T{0.5} : T{1};
        }
    }
    return a;
}

}  // namespace rmsp::test
