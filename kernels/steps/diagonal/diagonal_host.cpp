#include <algorithm>
#include <cmath>

#include <kernels/steps/diagonal/diagonal.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

template <class T>
void csr_diagonal(const CsrShard<T>& part, T* out, const Context& context)
{
    part.row_ptr.visit([&](const auto* row_ptr) {
#pragma omp parallel for num_threads(std::max(context.threads, 1)) schedule(static)
        for (std::int64_t row = 0; row < part.rows; ++row) {
            T sum = 0;
            for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
                sum += part.col_idx[k] == part.diagonal + row ? part.values[k] : T{0};
            }
            out[row] = sum;
        }
    });
}

template <class T>
void coo_diagonal(const std::int32_t* row_idx, const std::int32_t* col_idx, const T* values, std::int64_t nnz,
                  std::int64_t first, std::int64_t count, bool sorted, T* out, const Context& context)
{
    if (!sorted) {
        // One thread: each entry is looked at once, and sums have one order.
        for (std::int64_t k = 0; k < nnz; ++k) {
            const std::int64_t row = row_idx[k];
            if (row == col_idx[k] && row >= first && row < first + count) {
                out[row - first] += values[k];
            }
        }
        return;
    }
#pragma omp parallel for num_threads(std::max(context.threads, 1)) schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
        const auto [begin, end] = std::equal_range(row_idx, row_idx + nnz, first + i);
        T sum = 0;
        for (std::int64_t k = begin - row_idx; k < end - row_idx; ++k) {
            sum += col_idx[k] == first + i ? values[k] : T{0};
        }
        out[i] = sum;
    }
}

template <class T>
void csr_row_norms(const CsrShard<T>& part, T* out, const Context& context)
{
    part.row_ptr.visit([&](const auto* row_ptr) {
#pragma omp parallel for num_threads(std::max(context.threads, 1)) schedule(static)
        for (std::int64_t row = 0; row < part.rows; ++row) {
            double sum = 0;
            double diagonal = 0;
            for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k) {
                sum += std::fabs(double{part.values[k]});
                diagonal += part.col_idx[k] == part.diagonal + row ? double{part.values[k]} : 0.0;
            }
            out[row] = static_cast<T>(diagonal < 0 ? -sum : sum);
        }
    });
}

template <class T>
NoDivisors divide_by(double factor, const T* in, std::int64_t n, T* out, const Context& context)
{
    std::int64_t count = 0;
    std::int64_t first = n;
#pragma omp parallel for num_threads(std::max(context.threads, 1)) schedule(static) reduction(+ : count) \
    reduction(min : first)
    for (std::int64_t i = 0; i < n; ++i) {
        const bool good = in[i] != T{0} && std::isfinite(in[i]);
        if (!good) {
            ++count;
            first = std::min(first, i);
        }
        out[i] = static_cast<T>(factor / (good ? double{in[i]} : 1.0));
    }
    return {count, count > 0 ? first : -1};
}

}  // namespace
}  // namespace host

RMSP_VALUE_ROW(Diagonals, host, .csr_diagonal = host::csr_diagonal<T>, .coo_diagonal = host::coo_diagonal<T>,
               .csr_row_norms = host::csr_row_norms<T>, .divide_by = host::divide_by<T>)

}  // namespace rmsp::kernels
