#include <cmath>

#include <core/value_types.hpp>
#include <rmsp/runtime.hpp>

#include "matrix/compare.hpp"

namespace rmsp {

template <class T>
Verification verify_spmv(const CsrView<T>& a, T alpha, const T* x, T beta, const T* y_in, const T* y,
                         StoredValues values)
{
    if (a.base != 0) {
        validate(a);  // which refuses it
    }
    detail::Worst worst;
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
                detail::Comparison c;
                c.row = row;
                c.value = y[row];
                c.reference = static_cast<long double>(alpha) * sum;
                c.magnitude = magnitude * std::fabs(static_cast<long double>(alpha));
                if (beta != T{0}) {
                    const long double old = static_cast<long double>(beta) * static_cast<long double>(y_in[row]);
                    c.reference += old;
                    c.magnitude += std::fabs(old);
                }
                c.largest = std::fmax(magnitude, c.magnitude);
                detail::set_bounds(c, row_ptr[row + 1] - row_ptr[row], alpha);
                own.template add<T>(c);
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
