#include "matrix/interpolation.hpp"

#include <cstddef>

#include "core/value_types.hpp"
#include "matrix/interpolation_row.hpp"
#include "matrix/row_sums.hpp"

namespace rmsp::matrix {
namespace {

/// What rows of P are computed from.
template <class T>
class Source {
public:
    Source(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse)
        : diagonal_(static_cast<std::size_t>(a.rows)),
          arrays{a.row_ptr, a.col_idx, a.values, strong.data(), coarse.number.data(), diagonal_.data()}
    {
        for_each_row(a.rows, [&](std::int64_t row) {
            double& own = diagonal_[static_cast<std::size_t>(row)];
            own = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                own = a.col_idx[k] == row ? double{a.values[k]} : own;
            }
        });
    }

private:
    HostVector<double> diagonal_;

public:
    const InterpolationSource<T, IndexView, IndexView> arrays;
};

}  // namespace

template <class T>
CsrMatrix<T> interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                           const InterpolationOptions& options)
{
    const Source<T> source(a, strong, coarse);
    return collect_rows<T>(a.rows, coarse.count, [&](std::int64_t row, RowSum& sum) {
        interpolate_row(source.arrays, options.kind == Interpolation::direct, row, sum);
        RowEntries kept = static_cast<const RowEntries&>(sum);
        truncate(kept, options.truncation, options.most_entries);
        sum.clear();
        for (const auto& [column, value] : kept.entries) {
            sum.add(column, value);
        }
    });
}

template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                         Interpolation kind, CsrMatrix<T>& p)
{
    const Source<T> source(a, strong, coarse);
    for_row_sums(a.rows, coarse.count, [&](std::int64_t row, RowSum& sum) {
        interpolate_row(source.arrays, kind == Interpolation::direct, row, sum);
        take_columns(
            p.col_idx.view(), p.row_ptr[static_cast<std::size_t>(row)], p.row_ptr[static_cast<std::size_t>(row) + 1],
            sum, [&](std::int64_t k, double value) { p.values[static_cast<std::size_t>(k)] = static_cast<T>(value); });
    });
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template CsrMatrix<T> interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&, \
                                        const InterpolationOptions&);                                        \
    template void renew_interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&,   \
                                      Interpolation, CsrMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::matrix
