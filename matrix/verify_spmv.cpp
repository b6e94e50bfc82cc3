#include <cmath>
#include <limits>

#include <core/value_types.hpp>
#include <rmsp/runtime.hpp>

#include "matrix/compare.hpp"

namespace rmsp {

template <class T>
Verification verify_spmv(const CsrView<T>& a, T alpha, const T* x, T beta, const T* y_in, const T* y,
                         StoredValues values)
{
    detail::Worst worst;
    constexpr double eps = std::numeric_limits<T>::epsilon();
    const auto value = [&](std::int64_t i) {
        return values == StoredValues::floats ? static_cast<T>(static_cast<float>(a.values[i])) : a.values[i];
    };
    const auto compare = [&](const auto* row_ptr, const auto* col) {
#pragma omp parallel
        {
            detail::Worst own;
#pragma omp for schedule(dynamic, 4096) nowait
            for (std::int64_t row = 0; row < a.rows; ++row) {
                long double sum = 0;
                long double magnitude = 0;
                for (std::int64_t i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
                    const long double product =
                        static_cast<long double>(value(i)) * static_cast<long double>(x[col[i]]);
                    sum += product;
                    magnitude += std::fabs(product);
                }
                long double reference = static_cast<long double>(alpha) * sum;
                magnitude *= std::fabs(static_cast<long double>(alpha));
                if (beta != T{0}) {
                    const long double old = static_cast<long double>(beta) * static_cast<long double>(y_in[row]);
                    reference += old;
                    magnitude += std::fabs(old);
                }
                own.add(row, y[row], reference, magnitude,
                        static_cast<double>(row_ptr[row + 1] - row_ptr[row] + 4) * eps);
            }
#pragma omp critical(rmsp_verify_spmv)
            worst.merge(own);
        }
    };
    a.row_ptr.visit([&](const auto* row_ptr) { a.col_idx.visit([&](const auto* col) { compare(row_ptr, col); }); });
    return worst.result();
}

#define RMSP_INSTANTIATE(T) \
    template Verification verify_spmv(const CsrView<T>&, T, const T*, T, const T*, const T*, StoredValues);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
