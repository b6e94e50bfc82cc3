#pragma once

#include <cstddef>
#include <cstdint>

#include <rmsp/matrix.hpp>

/// How much there is to multiply.
namespace rmsp::spgemm {

/// What a row of C costs besides its products, in products.
inline constexpr std::int64_t row_work = 8;

/// work[i]: products of the rows of A before row i, plus row_work for each of them. rows + 1 entries; cutting them
/// evenly balances the devices. \throws Error(usage) if the products do not fit 64 bits
template <class T>
HostVector<std::int64_t> count_work(const CsrView<T>& a, const CsrView<T>& b);

inline std::int64_t products_of(const HostVector<std::int64_t>& work, std::int64_t first_row, std::int64_t end_row)
{
    return work[static_cast<std::size_t>(end_row)] - work[static_cast<std::size_t>(first_row)] -
           row_work * (end_row - first_row);
}

}  // namespace rmsp::spgemm
