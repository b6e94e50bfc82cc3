#include <cmath>

#include <kernels/steps/coarsening/rows.cuh>

#include "matrix/strength.hpp"

namespace rmsp::kernels {
namespace cuda::coarsening {
namespace {

template <class T>
bool is_canonical(const CsrShard<T>& a, const Context& context)
{
    const DeviceArray<int> bad = zeros<int>(1, context);
    const RowPointers row_ptr(a.row_ptr);
    for_each_row(a.rows, a.nnz, context,
                 [row_ptr, columns = a.col_idx, bad = bad.data()] __device__(std::int64_t row, int lane, int lanes) {
                     for (std::int64_t k = row_ptr[row] + 1 + lane; k < row_ptr[row + 1]; k += lanes) {
                         if (columns[k] <= columns[k - 1]) {
                             *bad = 1;
                         }
                     }
                 });
    return fetch(bad.data(), context) == 0;
}

/// How much an entry counts: of the classical measure, as far as its sign is not the diagonal's.
template <class T>
__device__ __forceinline__ double weight(T entry, bool on_diagonal, bool symmetric, double own)
{
    const double value = static_cast<double>(entry);
    if (on_diagonal || !isfinite(value)) {
        return 0;
    }
    return symmetric ? fabs(value) : own < 0 ? value : -value;
}

template <class T>
void weigh_rows(const CsrShard<T>& a, std::int64_t first_row, bool symmetric, double* diagonal, double* largest,
                const Context& context)
{
    find_diagonal(a, first_row, diagonal, context);
    const RowPointers row_ptr(a.row_ptr);
    for_each_row(a.rows, a.nnz, context,
                 [row_ptr, first_row, columns = a.col_idx, values = a.values, diagonal, symmetric, largest] __device__(
                     std::int64_t row, int lane, int lanes) {
                     const double own = diagonal[first_row + row];
                     double most = 0;
                     for (std::int64_t k = row_ptr[row] + lane; k < row_ptr[row + 1]; k += lanes) {
                         most = fmax(most, weight(values[k], columns[k] == first_row + row, symmetric, own));
                     }
                     most = over_lanes(most, lanes, [](double x, double y) { return fmax(x, y); });
                     if (lane == 0) {
                         largest[first_row + row] = most;
                     }
                 });
}

template <class T>
void strong_entries(const CsrShard<T>& a, std::int64_t first_row, bool symmetric, double threshold,
                    const double* diagonal, const double* largest, std::uint8_t* marks, const Context& context)
{
    const RowPointers row_ptr(a.row_ptr);
    for_each_row(a.rows, a.nnz, context,
                 [row_ptr, first_row, columns = a.col_idx, values = a.values, diagonal, symmetric, threshold, largest,
                  marks] __device__(std::int64_t row, int lane, int lanes) {
                     const double own = diagonal[first_row + row];
                     const double largest_of_own = largest[first_row + row];
                     const double least_of_own = matrix::share_of_largest * largest_of_own;
                     for (std::int64_t k = row_ptr[row] + lane; k < row_ptr[row + 1]; k += lanes) {
                         const std::int32_t column = columns[k];
                         const double w = weight(values[k], column == first_row + row, symmetric, own);
                         std::uint8_t found = matrix::mark::weak;
                         if (w > 0 && !symmetric) {
                             found = w >= threshold * largest_of_own ? matrix::mark::strong : matrix::mark::weak;
                         } else if (w > 0) {
                             const bool counts = w >= threshold * sqrt(fabs(own * diagonal[column]));
                             found = counts || w >= fmax(least_of_own, matrix::share_of_largest * largest[column])
                                         ? matrix::mark::strong
                                     : w >= least_of_own ? matrix::mark::one_sided
                                                         : matrix::mark::weak;
                         }
                         marks[k] = found;
                     }
                 });
}

}  // namespace
}  // namespace cuda::coarsening

RMSP_VALUE_ROW(Strengths, cuda, .is_canonical = cuda::coarsening::is_canonical<T>,
               .weigh_rows = cuda::coarsening::weigh_rows<T>, .strong_entries = cuda::coarsening::strong_entries<T>)

}  // namespace rmsp::kernels
