#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <rmsp/rmsp.hpp>

/// Matrices that the experiments of MSREP need besides the library's generators.
namespace bench {

using Matrix = rmsp::CsrMatrix<double>;

/// A block of rows for each device, of which the last `low` have `ratio` times the entries of the others. (Section 2.3)
inline Matrix uneven_blocks(std::int64_t rows, std::int64_t nnz, int blocks, int low, double ratio)
{
    Matrix a;
    a.rows = rows;
    a.cols = rows;
    const double high = static_cast<double>(nnz) / static_cast<double>(rows) * blocks / (blocks - low + low * ratio);
    const auto many = static_cast<std::int64_t>(std::llround(high));
    const auto few = static_cast<std::int64_t>(std::llround(high * ratio));
    a.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    a.row_ptr[0] = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        a.row_ptr[static_cast<std::size_t>(r) + 1] =
            a.row_ptr[static_cast<std::size_t>(r)] + (r * blocks < rows * (blocks - low) ? many : few);
    }
    const auto total = static_cast<std::size_t>(a.row_ptr.back());
    rmsp::HostVector<std::int32_t> columns(total);
    a.values.resize(total);
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t first = a.row_ptr[static_cast<std::size_t>(r)];
        const std::int64_t n = a.row_ptr[static_cast<std::size_t>(r) + 1] - first;
        // A band around the diagonal.
        const std::int64_t begin = std::clamp<std::int64_t>(r - n / 2, 0, std::max<std::int64_t>(0, rows - n));
        for (std::int64_t k = 0; k < n; ++k) {
            columns[static_cast<std::size_t>(first + k)] = static_cast<std::int32_t>(begin + k);
            a.values[static_cast<std::size_t>(first + k)] = 1.0;
        }
    }
    a.col_idx = rmsp::IndexArray(std::move(columns));
    return a;
}

/// Row indices of the entries.
inline rmsp::HostVector<std::int32_t> row_indices(const Matrix& a)
{
    rmsp::HostVector<std::int32_t> row_idx(static_cast<std::size_t>(a.nnz()));
#pragma omp parallel for schedule(dynamic, 4096)
    for (std::int64_t r = 0; r < a.rows; ++r) {
        std::fill(row_idx.begin() + a.row_ptr[static_cast<std::size_t>(r)],
                  row_idx.begin() + a.row_ptr[static_cast<std::size_t>(r) + 1], static_cast<std::int32_t>(r));
    }
    return row_idx;
}

/// The same entries in an order that knows neither rows nor columns.
class ShuffledCoordinates {
public:
    explicit ShuffledCoordinates(const rmsp::CooView<double>& from)
        : rows_(from.rows),
          cols_(from.cols),
          row_idx_(static_cast<std::size_t>(from.nnz)),
          col_idx_(static_cast<std::size_t>(from.nnz)),
          values_(static_cast<std::size_t>(from.nnz))
    {
        // A stride without a common divisor with the number of entries visits each once.
        std::int64_t stride = 7'368'787;
        while (from.nnz > 1 && std::gcd(stride, from.nnz) != 1) {
            ++stride;
        }
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < from.nnz; ++i) {
            const auto k = static_cast<std::int64_t>(i % from.nnz * (stride % from.nnz) % from.nnz);
            row_idx_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(from.row_idx[k]);
            col_idx_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(from.col_idx[k]);
            values_[static_cast<std::size_t>(i)] = from.values[k];
        }
    }
    rmsp::CooView<double> view() const
    {
        return {rows_,           cols_,           static_cast<std::int64_t>(values_.size()),
                row_idx_.data(), col_idx_.data(), values_.data()};
    }

private:
    std::int64_t rows_;
    std::int64_t cols_;
    rmsp::HostVector<std::int32_t> row_idx_;
    rmsp::HostVector<std::int32_t> col_idx_;
    rmsp::HostVector<double> values_;
};

}  // namespace bench
