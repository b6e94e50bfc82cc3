#include <cmath>
#include <limits>

#include <rmsp/runtime.hpp>

namespace rmsp {

template <class T>
Verification verify_spmv(const CsrView<T>& a, T alpha, const T* x, T beta, const T* y_in, const T* y,
                         StoredValues values)
{
    Verification result;
    result.done = true;
    result.passed = true;
    // The row that comes closest to its bound, or passes it the furthest.
    double worst = -1;
    constexpr double eps = std::numeric_limits<T>::epsilon();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto value = [&](std::int64_t i) {
        return values == StoredValues::floats ? static_cast<T>(static_cast<float>(a.values[i])) : a.values[i];
    };
    const auto compare = [&](const auto* row_ptr, const auto* col) {
#pragma omp parallel
        {
            Verification own;
            own.passed = true;
            double own_worst = -1;
#pragma omp for schedule(dynamic, 4096)
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
                const long double difference = std::fabs(static_cast<long double>(y[row]) - reference);
                const double bound = static_cast<double>(row_ptr[row + 1] - row_ptr[row] + 4) * eps;
                // A row of zeros has to be exactly zero; NaN never passes.
                const double error = magnitude > 0     ? static_cast<double>(difference / magnitude)
                                     : difference == 0 ? 0.0
                                                       : infinity;
                const double closeness = std::isnan(error) ? infinity : error / bound;
                own.passed = own.passed && error <= bound;
                if (closeness > own_worst) {
                    own_worst = closeness;
                    own.error = error;
                    own.bound = bound;
                    own.worst_row = row;
                }
            }
#pragma omp critical(rmsp_verify_spmv)
            {
                result.passed = result.passed && own.passed;
                if (own_worst > worst) {
                    worst = own_worst;
                    result.error = own.error;
                    result.bound = own.bound;
                    result.worst_row = own.worst_row;
                }
            }
        }
    };
    a.row_ptr.visit([&](const auto* row_ptr) { a.col_idx.visit([&](const auto* col) { compare(row_ptr, col); }); });
    return result;
}

template Verification verify_spmv(const CsrView<float>&, float, const float*, float, const float*, const float*,
                                  StoredValues);
template Verification verify_spmv(const CsrView<double>&, double, const double*, double, const double*, const double*,
                                  StoredValues);

}  // namespace rmsp
