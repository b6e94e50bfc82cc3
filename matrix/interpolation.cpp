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

/// Leaves what stays of a row in the sum.
void truncate_sum(RowSum& sum, const InterpolationOptions& options)
{
    RowEntries kept = static_cast<const RowEntries&>(sum);
    truncate(kept, options.truncation, options.most_entries);
    sum.clear();
    for (const auto& [column, value] : kept.entries) {
        sum.add(column, value);
    }
}

template <class T>
void take_pattern(CsrMatrix<T>& p, std::int64_t row, const RowSum& sum)
{
    take_columns(p.col_idx.view(), p.row_ptr[static_cast<std::size_t>(row)],
                 p.row_ptr[static_cast<std::size_t>(row) + 1], sum,
                 [&](std::int64_t k, double value) { p.values[static_cast<std::size_t>(k)] = static_cast<T>(value); });
}

/// A row of the product of both stages.
template <class T>
void add_product(const TwoStages<T>& stages, const HostVector<std::int64_t>& row_of, std::int64_t row, RowSum& sum)
{
    const auto begin = [](const CsrMatrix<T>& m, std::int64_t r) { return m.row_ptr[static_cast<std::size_t>(r)]; };
    const auto value = [](const CsrMatrix<T>& m, std::int64_t k) {
        return static_cast<double>(m.values[static_cast<std::size_t>(k)]);
    };
    const CsrMatrix<T>& inner = stages.to_first;
    for (std::int64_t k = begin(stages.to_all, row); k < begin(stages.to_all, row + 1); ++k) {
        const std::int64_t point = row_of[static_cast<std::size_t>(stages.to_all.col_idx[k])];
        for (std::int64_t m = begin(inner, point); m < begin(inner, point + 1); ++m) {
            sum.add(static_cast<std::int32_t>(inner.col_idx[m]), value(stages.to_all, k) * value(inner, m));
        }
    }
}

}  // namespace

template <class T>
CsrMatrix<T> interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                           const InterpolationOptions& options, const Coarsening* of)
{
    const Source<T> source(a, strong, coarse);
    return collect_rows<T>(a.rows, coarse.count, [&](std::int64_t row, RowSum& sum) {
        if (of == nullptr || of->number[static_cast<std::size_t>(row)] >= 0) {
            interpolate_row(source.arrays, options.kind == Interpolation::direct, row, sum);
            truncate_sum(sum, options);
        }
    });
}

template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                         Interpolation kind, CsrMatrix<T>& p)
{
    const Source<T> source(a, strong, coarse);
    for_row_sums(a.rows, coarse.count, [&](std::int64_t row, RowSum& sum) {
        if (p.row_ptr[static_cast<std::size_t>(row)] < p.row_ptr[static_cast<std::size_t>(row) + 1]) {
            interpolate_row(source.arrays, kind == Interpolation::direct, row, sum);
            take_pattern(p, row, sum);
        }
    });
}

template <class T>
TwoStages<T> interpolation_in_stages(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& first,
                                     const Coarsening& last, const InterpolationOptions& options)
{
    TwoStages<T> stages;
    stages.to_all = interpolation(a, strong, first, options);
    stages.to_first = interpolation(a, strong, last, options, &first);
    multiply_stages(stages, first, options);
    return stages;
}

template <class T>
void multiply_stages(TwoStages<T>& stages, const Coarsening& first, const InterpolationOptions& options)
{
    const HostVector<std::int64_t> row_of = rows_of_points(first);
    stages.p = collect_rows<T>(stages.to_all.rows, stages.to_first.cols, [&](std::int64_t row, RowSum& sum) {
        add_product(stages, row_of, row, sum);
        truncate_sum(sum, options);
    });
}

template <class T>
void renew_product(TwoStages<T>& stages, const Coarsening& first)
{
    const HostVector<std::int64_t> row_of = rows_of_points(first);
    for_row_sums(stages.p.rows, stages.p.cols, [&](std::int64_t row, RowSum& sum) {
        add_product(stages, row_of, row, sum);
        take_pattern(stages.p, row, sum);
    });
}

template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& first,
                         const Coarsening& last, Interpolation kind, TwoStages<T>& stages)
{
    renew_interpolation(a, strong, first, kind, stages.to_all);
    renew_interpolation(a, strong, last, kind, stages.to_first);
    renew_product(stages, first);
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template CsrMatrix<T> interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&,           \
                                        const InterpolationOptions&, const Coarsening*);                               \
    template TwoStages<T> interpolation_in_stages(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&, \
                                                  const Coarsening&, const InterpolationOptions&);                     \
    template void multiply_stages(TwoStages<T>&, const Coarsening&, const InterpolationOptions&);                      \
    template void renew_product(TwoStages<T>&, const Coarsening&);                                                     \
    template void renew_interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&,             \
                                      const Coarsening&, Interpolation, TwoStages<T>&);                                \
    template void renew_interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&,             \
                                      Interpolation, CsrMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::matrix
