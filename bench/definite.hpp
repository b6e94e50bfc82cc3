#pragma once

#include <algorithm>
#include <cstdint>

#include <rmsp/rmsp.hpp>

/// A random number of an edge, the same in both directions, in [0.5, 1.5).
inline double weight(std::int64_t i, std::int64_t j)
{
    auto z =
        static_cast<std::uint64_t>(std::min(i, j)) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(std::max(i, j));
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return 0.5 + static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// Values of a symmetric positive definite matrix of the structure, which is symmetric.
inline void make_definite(rmsp::CsrMatrix<double>& a)
{
    for (std::int64_t i = 0; i < a.rows; ++i) {
        double sum = 0;
        std::size_t diagonal = a.values.size();
        for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
             k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
            const std::int64_t j = a.col_idx[static_cast<std::int64_t>(k)];
            if (j == i) {
                diagonal = k;
            } else {
                a.values[k] = -weight(i, j);
                sum -= a.values[k];
            }
        }
        if (diagonal < a.values.size()) {
            a.values[diagonal] = sum + 1e-4 * weight(i, i);
        }
    }
}
