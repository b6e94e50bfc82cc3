#include "matrix/sparse_inverse.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/column_numbers.hpp"
#include "core/parallel.hpp"
#include "core/subscript.hpp"
#include "core/value_types.hpp"
#include "matrix/dense.hpp"

namespace rmsp::matrix {
namespace {

using core::at;
using core::ColumnNumbers;

/// Computes rows of M, one at a time.
template <class T>
class RowSolver {
public:
    RowSolver(const CsrView<T>& a, std::int64_t first_of_a, SparseInverse kind) : a_(a), first_(first_of_a), kind_(kind)
    {
    }

    /// The values of row `row` on `columns`, which rise and contain it, into `values`.
    /// \returns false, and a diagonal alone, if the row's system is singular
    template <class C>
    bool solve_row(std::int64_t row, std::span<const C> columns, T* values)
    {
        const auto n = static_cast<std::int64_t>(columns.size());
        const std::int64_t own = std::lower_bound(columns.begin(), columns.end(), row) - columns.begin();
        bool solved = kind_ == SparseInverse::spai   ? least_squares_row(row, columns)
                      : kind_ == SparseInverse::isai ? square_row(columns, own)
                                                     : factor_row(columns);
        bool zero = true;
        for (std::int64_t k = 0; k < n && solved; ++k) {
            values[k] = static_cast<T>(solution_[at(k)]);
            solved = std::isfinite(values[k]);
            zero = zero && values[k] == T{0};
        }
        solved = solved && !zero;
        if (!solved) {
            std::fill_n(values, n, T{0});
            values[own] = diagonal_alone(row);
        }
        return solved;
    }

private:
    std::int64_t begin(std::int64_t row) const { return a_.row_ptr[row - first_]; }
    std::int64_t end(std::int64_t row) const { return a_.row_ptr[row - first_ + 1]; }

    /// Minimises |m A - e_row|: the rows of A that the pattern names are the columns of the system, the columns in
    /// which they have entries its rows.
    template <class C>
    bool least_squares_row(std::int64_t row, std::span<const C> columns)
    {
        constexpr std::int64_t shared = -1;
        const auto n = static_cast<std::int64_t>(columns.size());
        std::int64_t gathered = 1;
        for (const C column : columns) {
            gathered += end(column) - begin(column);
        }
        numbers_.clear(gathered);
        // Number 0 is the column of the one in e_row. A column that only one row of A has needs no row of the system of
        // its own: such columns are turned into one by a rotation, which is as long as all of them.
        numbers_.find_or_add(row);
        only_.assign(1, shared);
        sums_.assign(1, 0.0);
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t k = begin(columns[at(j)]); k < end(columns[at(j)]); ++k) {
                const std::int64_t number = numbers_.find_or_add(a_.col_idx[k]);
                if (number == static_cast<std::int64_t>(only_.size())) {
                    only_.push_back(j);
                    sums_.push_back(0.0);
                }
                if (only_[at(number)] != j) {
                    only_[at(number)] = shared;
                }
                sums_[at(number)] += static_cast<double>(a_.values[k]);
            }
        }
        place_.assign(only_.size(), shared);
        std::int64_t rows = n;
        for (std::size_t i = 0; i < only_.size(); ++i) {
            place_[i] = only_[i] == shared ? rows++ : only_[i];
        }
        system_.assign(at(rows * n), 0.0);
        for (std::size_t i = 0; i < only_.size(); ++i) {
            if (only_[i] != shared) {
                system_[at(only_[i] * rows + only_[i])] += sums_[i] * sums_[i];
            }
        }
        for (std::int64_t j = 0; j < n; ++j) {
            double& rest = system_[at(j * rows + j)];
            rest = std::sqrt(rest);
        }
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t k = begin(columns[at(j)]); k < end(columns[at(j)]); ++k) {
                const std::int64_t number = numbers_.find_or_add(a_.col_idx[k]);
                if (only_[at(number)] == shared) {
                    system_[at(j * rows + place_[at(number)])] += static_cast<double>(a_.values[k]);
                }
            }
        }
        solution_.assign(at(rows), 0.0);
        solution_[at(place_[0])] = 1;
        return least_squares(system_, rows, n, solution_);
    }

    /// Reads A(J, J) of the rows and columns J; entry (i, j) goes to column i, row j: the transpose.
    template <class C>
    void gather_square(std::span<const C> columns)
    {
        const auto n = static_cast<std::int64_t>(columns.size());
        system_.assign(at(n * n), 0.0);
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t k = begin(columns[at(i)]); k < end(columns[at(i)]); ++k) {
                const std::int64_t column = a_.col_idx[k];
                const auto j = std::lower_bound(columns.begin(), columns.end(), column) - columns.begin();
                if (j < n && columns[at(j)] == column) {
                    system_[at(i * n + j)] += static_cast<double>(a_.values[k]);
                }
            }
        }
        solution_.assign(at(n), 0.0);
    }

    /// m A(J, J) = e_row.
    template <class C>
    bool square_row(std::span<const C> columns, std::int64_t own)
    {
        gather_square(columns);
        solution_[at(own)] = 1;
        return solve(system_, static_cast<std::int64_t>(columns.size()), solution_);
    }

    /// A(J, J) y = e_row, where the row is the last of J; g = y / sqrt(y_row).
    template <class C>
    bool factor_row(std::span<const C> columns)
    {
        const auto n = static_cast<std::int64_t>(columns.size());
        gather_square(columns);
        // What is stored transposed has the lower triangle of A above the diagonal.
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < i; ++j) {
                system_[at(j * n + i)] = system_[at(i * n + j)];
            }
        }
        solution_.back() = 1;
        if (!solve_positive_definite(system_, n, solution_)) {
            return false;
        }
        const double scale = 1 / std::sqrt(solution_.back());
        for (double& v : solution_) {
            v *= scale;
        }
        return std::isfinite(scale);
    }

    T diagonal_alone(std::int64_t row) const
    {
        double own = 0;
        double squares = 0;
        for (std::int64_t k = begin(row); k < end(row); ++k) {
            const auto v = static_cast<double>(a_.values[k]);
            own += a_.col_idx[k] == row ? v : 0;
            squares += v * v;
        }
        const auto value = static_cast<T>(kind_ == SparseInverse::fsai ? 1 / std::sqrt(std::fabs(own)) : own / squares);
        return std::isfinite(value) && value != T{0} ? value : T{1};
    }

    const CsrView<T>& a_;
    const std::int64_t first_;
    const SparseInverse kind_;
    ColumnNumbers numbers_;
    std::vector<std::int64_t> only_;   ///< of each numbered column, the one row of the pattern that has it
    std::vector<std::int64_t> place_;  ///< of each numbered column, its row of the system
    std::vector<double> sums_;
    std::vector<double> system_;  ///< by columns
    std::vector<double> solution_;
};

}  // namespace

template <class T>
InverseStatus fill_inverse_rows(const CsrView<T>& a, std::int64_t first_of_a, SparseInverse kind, const InverseSlice& m,
                                T* values, int threads)
{
    constexpr std::int64_t rows_each = 256;
    std::atomic<std::int64_t> singular{0};
    std::atomic<std::int64_t> first{std::numeric_limits<std::int64_t>::max()};
    m.col_idx.visit([&](const auto* col_idx) {
        core::parallel_for(threads, (m.rows + rows_each - 1) / rows_each, [&](std::int64_t chunk) {
            RowSolver<T> solver(a, first_of_a, kind);
            for (std::int64_t i = chunk * rows_each; i < std::min(m.rows, (chunk + 1) * rows_each); ++i) {
                const std::int64_t from = m.row_ptr[i];
                const std::span columns(col_idx + from, at(m.row_ptr[i + 1] - from));
                const std::int64_t row = m.first + i;
                if (!solver.solve_row(row, columns, values + from)) {
                    ++singular;
                    std::int64_t seen = first;
                    while (row < seen && !first.compare_exchange_weak(seen, row)) {
                    }
                }
            }
        });
    });
    return {singular, singular > 0 ? first.load() : -1};
}

template <class T>
InverseStatus fill_inverse(const CsrView<T>& a, SparseInverse kind, CsrMatrix<T>& m)
{
    return fill_inverse_rows(a, 0, kind, {0, m.rows, m.row_ptr.data(), m.col_idx.view()}, m.values.data(),
                             core::thread_count(0));
}

#define RMSP_INSTANTIATE(T)                                                                                           \
    template InverseStatus fill_inverse(const CsrView<T>&, SparseInverse, CsrMatrix<T>&);                             \
    template InverseStatus fill_inverse_rows(const CsrView<T>&, std::int64_t, SparseInverse, const InverseSlice&, T*, \
                                             int);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::matrix
