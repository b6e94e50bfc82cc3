#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <kernels/steps/coarsening/row_sums.cuh>

/// P of smoothed aggregation.
namespace rmsp::kernels::cuda::coarsening {

/// A without its weak entries; its diagonal has them.
template <class T>
struct Filtered {
    RowPointers row_ptr;
    const std::int32_t* columns;
    const T* values;
    const std::uint8_t* strong;
    std::int64_t first_row;  ///< the number of row 0
    const double* inverse;   ///< of the diagonal; 0 where there is none
};

/// An entry of A, and whether it is strong.
template <class T>
struct MarkedEntry {
    T value;
    std::int32_t column;
    std::uint8_t strong;
};

/// The aggregates, and P before it is smoothed.
struct Aggregated {
    const std::int32_t* number;
    const double* values;
    const double* coarse;

    /// The near-null vector; 1 where there is none.
    __device__ __forceinline__ double near(std::int64_t row) const
    {
        const double value = number[row] < 0 ? 0.0 : values[row] * coarse[number[row]];
        return value != 0 ? value : 1.0;
    }
};

template <class T>
Aggregated aggregated(const AggregatedRows<T>& rows)
{
    return {rows.number, rows.values, rows.coarse};
}

template <class T>
Filtered<T> filtered(const AggregatedRows<T>& rows, const double* inverse)
{
    return {RowPointers(rows.a.row_ptr), rows.a.col_idx, rows.a.values, rows.strong, rows.first_row, inverse};
}

template <class T>
void filtered_inverse(const AggregatedRows<T>& rows, double* inverse, const Context& context)
{
    const CsrShard<T>& a = rows.a;
    const RowPointers row_ptr(a.row_ptr);
    for_each_row(a.rows, a.nnz, context,
                 [row_ptr, columns = a.col_idx, values = a.values, strong = rows.strong, first_row = rows.first_row,
                  t = aggregated(rows), inverse] __device__(std::int64_t row, int lane, int lanes) {
                     double own = 0;
                     double weak = 0;
                     double strong_sizes = 0;
                     for_each_entry<4>(
                         row_ptr[row], row_ptr[row + 1], lane, lanes,
                         [&](std::int64_t k) {
                             return MarkedEntry<T>{values[k], columns[k], strong[k]};
                         },
                         [&](const MarkedEntry<T>& entry) {
                             const auto value = static_cast<double>(entry.value);
                             if (entry.column == first_row + row) {
                                 own += value;
                             } else if (entry.strong == 0) {
                                 weak += value * t.near(entry.column) / t.near(first_row + row);
                             } else {
                                 strong_sizes += fabs(value);
                             }
                         });
                     const auto plus = [](double x, double y) { return x + y; };
                     own = over_lanes(own, lanes, plus);
                     weak = over_lanes(weak, lanes, plus);
                     strong_sizes = over_lanes(strong_sizes, lanes, plus);
                     if (lane == 0) {
                         // Weak entries of a row without strong ones may cancel its diagonal.
                         const double sum = own + weak;
                         const double diagonal = fabs(sum) > 1e-12 * fabs(own) ? sum : own;
                         const bool smooth = strong_sizes <= matrix::most_of_diagonal * fabs(diagonal);
                         inverse[row] = smooth && diagonal != 0 && isfinite(diagonal) ? 1 / diagonal : 0.0;
                     }
                 });
}

/// The strong entries of the row [begin, end) times v, as far as this lane of `Lanes` has them.
template <int Lanes, class T>
__device__ __forceinline__ double part_of_row(const Filtered<T>& a, std::int64_t begin, std::int64_t end, int lane,
                                              const double* __restrict__ v)
{
    constexpr int at_once = 4;  // loads before the first is used
    double sum = 0;
    for (std::int64_t k = begin + lane; k < end; k += at_once * Lanes) {
        std::int32_t column[at_once];
        double entry[at_once];
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            const std::int64_t at = k + i * Lanes;
            column[i] = at < end && a.strong[at] != 0 ? a.columns[at] : -1;
            entry[i] = at < end ? static_cast<double>(a.values[at]) : 0.0;
        }
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            sum += column[i] >= 0 ? entry[i] * v[column[i]] : 0.0;
        }
    }
    return sum;
}

constexpr int run_entries = 8 * threads;  ///< of a run of rows that a block multiplies together

/// Two entries that lie side by side, as they are loaded.
template <class T>
struct EntryPair {
    std::int32_t column[2];  ///< -1: not strong, or none
    T value[2];

    /// Entries `at`, which is even, and the next one.
    __device__ __forceinline__ void load(const Filtered<T>& a, std::int64_t at)
    {
        struct alignas(2 * sizeof(T)) Values {
            T of[2];
        };
        const auto marks = *reinterpret_cast<const uchar2*>(a.strong + at);
        const auto columns = *reinterpret_cast<const int2*>(a.columns + at);
        const auto values = *reinterpret_cast<const Values*>(a.values + at);
        column[0] = marks.x != 0 ? columns.x : -1;
        column[1] = marks.y != 0 ? columns.y : -1;
        value[0] = values.of[0];
        value[1] = values.of[1];
    }
    /// Entry `at` alone.
    __device__ __forceinline__ void load_last(const Filtered<T>& a, std::int64_t at)
    {
        column[0] = a.strong[at] != 0 ? a.columns[at] : -1;
        column[1] = -1;
        value[0] = a.values[at];
        value[1] = 0;
    }
};

/// A step with D^-1 A_F; a block's sum of the squares of w to partial[blockIdx.x]. A block takes runs of `rows_each`
/// rows, at most one for each thread: all threads multiply the run's entries, which lie side by side, then one adds up
/// each row. Runs of more entries than there is room for go row by row, a warp each. Diagonals are not strong. The
/// arrays of A are aligned for two entries.
template <class T>
__global__ void __launch_bounds__(threads, 4)
    filtered_product_kernel(Filtered<T> a, std::int64_t rows, std::int64_t nnz, int rows_each, matrix::PowerStep step,
                            const double* __restrict__ v, double* __restrict__ w, double* partial)
{
    constexpr int pairs = run_entries / threads / 2;
    __shared__ double products[run_entries];
    __shared__ double of_warp[threads / 32];
    double squares = 0;
    const auto finish = [&](std::int64_t row, double inverse, double own, double sum) {
        const double product = inverse != 0 ? own + inverse * sum : 0.0;
        const double next = step.next(product, own, step.before != 0 ? w[a.first_row + row] : 0.0);
        w[a.first_row + row] = next;
        squares += next * next;
    };
    const int thread = static_cast<int>(threadIdx.x);
    for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < rows;
         first += std::int64_t{gridDim.x} * rows_each) {
        const std::int64_t last = min(rows, first + rows_each);
        const std::int64_t begin = a.row_ptr[first] / 2 * 2;
        const std::int64_t end = a.row_ptr[last];
        if (end - begin > run_entries) {
            for (std::int64_t row = first + thread / 32; row < last; row += threads / 32) {
                double sum = part_of_row<32>(a, a.row_ptr[row], a.row_ptr[row + 1], thread % 32, v);
                for (int distance = 16; distance > 0; distance /= 2) {
                    sum += __shfl_down_sync(~0U, sum, distance);
                }
                if (thread % 32 == 0) {
                    finish(row, a.inverse[row], v[a.first_row + row], sum);
                }
            }
            continue;
        }
        EntryPair<T> entries[pairs];
#pragma unroll
        for (int i = 0; i < pairs; ++i) {
            const std::int64_t at = begin + 2 * (i * threads + thread);
            entries[i].column[0] = entries[i].column[1] = -1;
            if (at < end && at + 1 < nnz) {
                entries[i].load(a, at);
            } else if (at < end) {
                entries[i].load_last(a, at);
            }
        }
        const std::int64_t row = first + thread;
        const bool has_row = row < last;
        const int from = has_row ? static_cast<int>(a.row_ptr[row] - begin) : 0;
        const int behind = has_row ? static_cast<int>(a.row_ptr[row + 1] - begin) : 0;
        const double inverse = has_row ? a.inverse[row] : 0.0;
        const double own = has_row ? v[a.first_row + row] : 0.0;
#pragma unroll
        for (int i = 0; i < pairs; ++i) {
#pragma unroll
            for (int of = 0; of < 2; ++of) {
                const std::int32_t column = entries[i].column[of];
                products[2 * (i * threads + thread) + of] =
                    column >= 0 ? static_cast<double>(entries[i].value[of]) * v[column] : 0.0;
            }
        }
        __syncthreads();
        double sum = 0;
        for (int i = from; i < behind; ++i) {
            sum += products[i];
        }
        if (has_row) {
            finish(row, inverse, own, sum);
        }
        __syncthreads();
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        squares += __shfl_down_sync(~0U, squares, distance);
    }
    if (thread % 32 == 0) {
        of_warp[thread / 32] = squares;
    }
    __syncthreads();
    if (thread == 0) {
        double all = 0;
        for (const double one : of_warp) {
            all += one;
        }
        partial[blockIdx.x] = all;
    }
}

template <class T>
int filtered_product(const AggregatedRows<T>& rows, const double* inverse, const matrix::PowerStep& step,
                     const double* v, double* w, double* squares, const Context& context)
{
    const std::int64_t count = rows.a.rows;
    const std::int64_t nnz = rows.a.nnz;
    if (count == 0) {
        return 0;
    }
    // Runs whose entries differ a little in number have room all the same.
    const auto rows_each = static_cast<int>(
        std::clamp<std::int64_t>(run_entries * 9 / 10 * count / std::max<std::int64_t>(nnz, 1), 1, threads));
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(blocks_for(count, rows_each), most_sums(context)));
    filtered_product_kernel<T><<<blocks, threads, 0, stream_of(context)>>>(filtered(rows, inverse), count, nnz,
                                                                           rows_each, step, v, w, squares);
    RMSP_CUDA_CHECK_LAUNCH("filtered_product_kernel");
    return static_cast<int>(blocks);
}

template <class T>
struct SmoothRow {
    Filtered<T> filtered;
    Aggregated t;
    double omega;
    bool smooth;

    /// An entry of A_F, and what P has in that row before it is smoothed.
    struct Term {
        MarkedEntry<T> entry;
        std::int32_t number;
        double value;
    };

    __device__ void operator()(std::int64_t row, ThreadSum& sum) const
    {
        const Filtered<T>& a = filtered;
        const std::int64_t own = a.first_row + row;
        const double scale = omega * a.inverse[row];
        if (t.number[own] >= 0) {
            sum.add(t.number[own], (scale != 0 ? 1 - omega : 1.0) * t.values[own]);
        }
        if (smooth) {
            for_each_entry<8>(
                a.row_ptr[row], a.row_ptr[row + 1], 0, 1,
                [&](std::int64_t k) {
                    const std::int32_t column = a.columns[k];
                    return Term{{a.values[k], column, a.strong[k]}, t.number[column], t.values[column]};
                },
                [&](const Term& term) {
                    if (term.entry.strong != 0 && term.entry.column != own && term.number >= 0) {
                        sum.add(term.number, -scale * static_cast<double>(term.entry.value) * term.value);
                    }
                });
        }
        matrix::sort_by_column(sum);
    }
};

/// The most entries that each row of P may have, and the largest of these numbers.
struct SmoothedBounds {
    DeviceArray<std::int32_t> most;
    std::int32_t widest = 0;
};

inline SmoothedBounds smoothed_bounds(std::int64_t rows, RowPointers row_ptr, const std::uint8_t* strong, bool smooth,
                                      const Context& context)
{
    SmoothedBounds out{DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(rows))};
    for_each(rows, context, [row_ptr, strong, smooth, most = out.most.data()] __device__(std::int64_t row) {
        std::int64_t found = 1;
        for (std::int64_t k = row_ptr[row]; smooth && k < row_ptr[row + 1]; ++k) {
            found += strong[k] != 0 ? 1 : 0;
        }
        most[row] = static_cast<std::int32_t>(found > widest_row ? widest_row + 1 : found);
    });
    out.widest = rows > 0 ? largest_of(out.most.data(), rows, context) : 0;
    return out;
}

template <class T>
std::optional<CsrArrays<T>> smoothed_rows(const AggregatedRows<T>& rows, const double* inverse, double omega,
                                          bool smooth, const Context& context)
{
    const SmoothedBounds bounds =
        smoothed_bounds(rows.a.rows, RowPointers(rows.a.row_ptr), rows.strong, smooth, context);
    if (bounds.widest > widest_row) {
        return std::nullopt;
    }
    return collect_rows<T>(rows.a.rows, bounds.most.data(), bounds.widest, 0, context,
                           SmoothRow<T>{filtered(rows, inverse), aggregated(rows), omega, smooth});
}

/// Writes the entries of a row, which are those of P, to their places.
template <class T>
struct RenewSmoothRow {
    SmoothRow<T> row_of_p;
    RowPointers row_ptr;  ///< of P
    T* values;

    __device__ void operator()(std::int64_t row, ThreadSum& sum) const
    {
        row_of_p(row, sum);
        T* const to = values + row_ptr[row];
        for (std::int64_t i = 0; i < sum.size(); ++i) {
            to[i] = static_cast<T>(sum.entry(i));
        }
    }
};

template <class T>
void renew_smoothed_rows(const AggregatedRows<T>& rows, const double* inverse, double omega, bool smooth,
                         IndexView p_row_ptr, T* p_values, const Context& context)
{
    const SmoothedBounds bounds =
        smoothed_bounds(rows.a.rows, RowPointers(rows.a.row_ptr), rows.strong, smooth, context);
    for_row_sums(rows.a.rows, bounds.most.data(), bounds.widest, context,
                 RenewSmoothRow<T>{SmoothRow<T>{filtered(rows, inverse), aggregated(rows), omega, smooth},
                                   RowPointers(p_row_ptr), p_values});
}

}  // namespace rmsp::kernels::cuda::coarsening
