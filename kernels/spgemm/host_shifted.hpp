#pragma once

#include <algorithm>
#include <cstdint>

/// Rows of C = A B that are shifted (RowsOfProduct): most of them where A and B are stencils, bands or diagonals,
/// however they are numbered as long as neighbours of neighbours are neighbours.
namespace rmsp::kernels::spgemm {

/// So many rows behind one are worth that its products are looked for in its columns.
inline constexpr std::int64_t fewest_shifted = 3;
/// Rows of B that are runs of so many columns, on average, are added faster one after the other, without strides.
inline constexpr std::int64_t long_run = 8;

/// The n columns of the first of `rows` rows stand at out; those of the others are written behind them.
inline void repeat_columns(std::int32_t* out, std::int64_t n, std::int64_t rows)
{
    constexpr std::int64_t narrow = 8;
    if (n <= narrow) {  // a loop over a row would be nothing but its beginning and end
        for (std::int64_t i = 0; i < n; ++i) {
            std::int32_t column = out[i];
            for (std::int64_t row = 1; row < rows; ++row) {
                out[row * n + i] = ++column;
            }
        }
        return;
    }
    for (std::int64_t row = 1; row < rows; ++row) {
        const std::int32_t* const before = out;
        out += n;
        for (std::int64_t i = 0; i < n; ++i) {
            out[i] = before[i] + 1;
        }
    }
}

/// The factors.
template <class T, class AIndex, class BIndex>
struct ShiftedRows {
    const AIndex* a_ptr;
    const BIndex* b_ptr;
    const std::int32_t* a_columns;
    const std::int32_t* b_columns;
    const T* a_values;
    const T* b_values;
};

/// Adds up `rows` rows of C from `row` on, all but the first shifted: alpha times the sums of their products, in the
/// order of A's entries and B's, as in any other row. A product is at the same place in each row, so they are added
/// place by place over some rows at a time, without a look at a column. columns: the n of the first row.
template <class T, class AIndex, class BIndex>
void add_up_shifted(const ShiftedRows<T, AIndex, BIndex>& f, std::int64_t row, std::int64_t rows, T alpha,
                    const std::int32_t* columns, std::int64_t n, T* values)
{
    // Few enough that their sums stay in the nearest cache.
    constexpr std::int64_t sums_at_a_time = 2048;
    const std::int64_t most = std::clamp<std::int64_t>(sums_at_a_time / n, 4, 128);
    const std::int64_t of_a = f.a_ptr[row + 1] - f.a_ptr[row];
    const std::int32_t* const a_columns = f.a_columns + f.a_ptr[row];
    for (std::int64_t done = 0; done < rows;) {
        const std::int64_t now = std::min(most, rows - done);
        std::fill_n(values, now * n, T{0});
        const T* const a_values = f.a_values + f.a_ptr[row + done];
        for (std::int64_t i = 0; i < of_a; ++i) {
            const std::int64_t k = a_columns[i];
            const std::int64_t of_b = f.b_ptr[k + 1] - f.b_ptr[k];
            const std::int32_t* const b_columns = f.b_columns + f.b_ptr[k];
            const T* const b_values = f.b_values + f.b_ptr[k + done];
            for (std::int64_t j = 0; j < of_b; ++j) {
                T* const sums = values + (std::lower_bound(columns, columns + n, b_columns[j]) - columns);
                for (std::int64_t r = 0; r < now; ++r) {
                    sums[r * n] += a_values[i + r * of_a] * b_values[j + r * of_b];
                }
            }
        }
        if (alpha != T{1}) {
            for (std::int64_t i = 0; i < now * n; ++i) {
                values[i] *= alpha;
            }
        }
        values += now * n;
        done += now;
    }
}

}  // namespace rmsp::kernels::spgemm
