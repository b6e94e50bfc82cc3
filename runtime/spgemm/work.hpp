#pragma once

#include <cstddef>
#include <cstdint>

#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/matrix.hpp>

/// How much there is to multiply.
namespace rmsp::spgemm {

/// What a row of C costs besides its products, in products.
inline constexpr std::int64_t row_work = 8;

/// The work of each row of C, if the host counted it.
struct RowWork {
    /// before[i]: products of the rows of A before row i, plus row_work for each of them. rows + 1 entries; cutting
    /// them evenly balances the devices.
    HostVector<std::int64_t> before;
    std::int64_t most_products = 0;  ///< of a row
    bool is_known() const { return !before.empty(); }
};

/// \throws Error(usage) if the products do not fit 64 bits
template <class T>
RowWork count_work(const CsrView<T>& a, const CsrView<T>& b);

inline std::int64_t products_of(const RowWork& work, std::int64_t first_row, std::int64_t end_row)
{
    return work.before[static_cast<std::size_t>(end_row)] - work.before[static_cast<std::size_t>(first_row)] -
           row_work * (end_row - first_row);
}

/// What a kernel can be told of these rows.
inline kernels::KnownProducts known_products(const RowWork& work, std::int64_t first_row, std::int64_t end_row)
{
    return work.is_known() ? kernels::KnownProducts{products_of(work, first_row, end_row), work.most_products}
                           : kernels::KnownProducts{};
}

}  // namespace rmsp::spgemm
