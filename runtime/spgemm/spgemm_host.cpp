#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/convert.hpp>
#include <rmsp/spgemm.hpp>

#include "matrix/compare.hpp"

/// What is made of products, and what checks them, on the host.
namespace rmsp {
namespace {

/// A matrix whose row i is written by fill(i, columns, values) into room for count(i) entries.
template <class T, class Count, class Fill>
CsrMatrix<T> by_rows(std::int64_t rows, std::int64_t cols, const Count& count, const Fill& fill)
{
    CsrMatrix<T> out;
    out.rows = rows;
    out.cols = cols;
    out.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    out.row_ptr[0] = 0;
#pragma omp parallel for schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < rows; ++row) {
        out.row_ptr[static_cast<std::size_t>(row) + 1] = count(row);
    }
    std::partial_sum(out.row_ptr.begin(), out.row_ptr.end(), out.row_ptr.begin());
    const auto nnz = static_cast<std::size_t>(out.row_ptr.back());
    out.values.resize(nnz);
    out.col_idx = IndexArray(index_type_for(cols), nnz);
    out.col_idx.visit([&](auto& columns) {
#pragma omp parallel for schedule(dynamic, 1024)
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t begin = out.row_ptr[static_cast<std::size_t>(row)];
            fill(row, columns.data() + begin, out.values.data() + begin);
        }
    });
    return out;
}

/// The entries of a row by column, in the order of the arrays where they are equal.
template <class T>
using Row = std::vector<std::pair<std::int64_t, T>>;

template <class T>
void sorted_row(const CsrView<T>& a, std::int64_t row, Row<T>& out)
{
    out.clear();
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
        out.emplace_back(a.col_idx[i], a.values[i]);
    }
    const auto by_column = [](const auto& l, const auto& r) { return l.first < r.first; };
    if (!std::is_sorted(out.begin(), out.end(), by_column)) {
        std::stable_sort(out.begin(), out.end(), by_column);
    }
}

/// Calls put(column, value) for each column of alpha X + beta Y in the row.
template <class T, class Put>
void add_row(T alpha, const Row<T>& x, T beta, const Row<T>& y, const Put& put)
{
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < x.size() || j < y.size()) {
        const std::int64_t column = j == y.size()   ? x[i].first
                                    : i == x.size() ? y[j].first
                                                    : std::min(x[i].first, y[j].first);
        T value = 0;
        for (; i < x.size() && x[i].first == column; ++i) {
            value += alpha * x[i].second;
        }
        for (; j < y.size() && y[j].first == column; ++j) {
            value += beta * y[j].second;
        }
        put(column, value);
    }
}

bool stays(double value, double threshold) { return !(std::fabs(value) < threshold); }

/// Entry i of a vector in [-1, 1), by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
double random_entry(std::int64_t i)
{
    std::uint64_t z = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}

/// One row of C, entry by entry.
template <class T>
void compare_row(const CsrView<T>& a, const CsrView<T>& b, T alpha, const CsrView<T>& c, std::int64_t row,
                 detail::Worst& worst)
{
    struct Product {
        std::int64_t column;
        long double value;
    };
    std::vector<Product> products;
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
        const std::int64_t k = a.col_idx[i];
        for (std::int64_t j = b.row_ptr[k]; j < b.row_ptr[k + 1]; ++j) {
            products.push_back({b.col_idx[j], static_cast<long double>(alpha) * a.values[i] * b.values[j]});
        }
    }
    std::stable_sort(products.begin(), products.end(),
                     [](const Product& l, const Product& r) { return l.column < r.column; });
    std::int64_t out = c.row_ptr[row];
    for (std::size_t i = 0; i < products.size();) {
        const std::int64_t column = products[i].column;
        long double sum = 0;
        long double magnitude = 0;
        std::int64_t n = 0;
        for (; i < products.size() && products[i].column == column; ++i, ++n) {
            sum += products[i].value;
            magnitude += std::fabs(products[i].value);
        }
        if (out >= c.row_ptr[row + 1] || c.col_idx[out] != column) {
            worst.add_structure_error(row);
            return;
        }
        worst.add(row, c.values[out++], sum, magnitude, static_cast<double>(n + 4) * std::numeric_limits<T>::epsilon());
    }
    if (out != c.row_ptr[row + 1]) {
        worst.add_structure_error(row);
    }
}

}  // namespace

template <class T>
CsrMatrix<T> transposed(const CsrView<T>& a)
{
    CscMatrix<T> csc = to_csc(a);
    CsrMatrix<T> out;
    out.rows = a.cols;
    out.cols = a.rows;
    out.row_ptr = std::move(csc.col_ptr);
    out.col_idx = std::move(csc.row_idx);
    out.values = std::move(csc.values);
    return out;
}

template <class T>
CsrMatrix<T> add(T alpha, const CsrView<T>& x, T beta, const CsrView<T>& y)
{
    if (x.rows != y.rows || x.cols != y.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("a sum of matrices of {} x {} and {} x {}", x.rows, x.cols, y.rows, y.cols));
    }
    validate(x);
    validate(y);
    const auto rows_of = [&](std::int64_t row, auto&& put) {
        thread_local Row<T> of_x;
        thread_local Row<T> of_y;
        sorted_row(x, row, of_x);
        sorted_row(y, row, of_y);
        add_row(alpha, of_x, beta, of_y, put);
    };
    return by_rows<T>(
        x.rows, x.cols,
        [&](std::int64_t row) {
            std::int64_t n = 0;
            rows_of(row, [&](std::int64_t, T) { ++n; });
            return n;
        },
        [&](std::int64_t row, auto* columns, T* values) {
            rows_of(row, [&](std::int64_t column, T value) {
                *columns++ = static_cast<std::remove_pointer_t<decltype(columns)>>(column);
                *values++ = value;
            });
        });
}

template <class T>
CsrMatrix<T> pruned(const CsrView<T>& a, double threshold)
{
    validate(a);
    return by_rows<T>(
        a.rows, a.cols,
        [&](std::int64_t row) {
            std::int64_t n = 0;
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                n += stays(a.values[i], threshold) ? 1 : 0;
            }
            return n;
        },
        [&](std::int64_t row, auto* columns, T* values) {
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                if (stays(a.values[i], threshold)) {
                    *columns++ = static_cast<std::remove_pointer_t<decltype(columns)>>(a.col_idx[i]);
                    *values++ = a.values[i];
                }
            }
        });
}

template <class T>
CsrMatrix<T> multiply(Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b, const SpgemmOptions& options, T alpha)
{
    SparseProduct<T> product(runtime, a, b, options);
    product.compute(alpha);
    return product.download();
}

template <class T>
CsrMatrix<T> multiply_add(Runtime& runtime, T alpha, const CsrView<T>& a, const CsrView<T>& b, T beta,
                          const CsrView<T>& d, const SpgemmOptions& options)
{
    if (d.rows != a.rows || d.cols != b.cols) {
        throw Error(ErrorCode::usage, fmt::format("D is {} x {}, but A B is {} x {}", d.rows, d.cols, a.rows, b.cols));
    }
    SpgemmOptions whole = options;
    whole.prune_below = 0;
    const CsrMatrix<T> product = multiply(runtime, a, b, whole, alpha);
    CsrMatrix<T> sum = add(T{1}, product.view(), beta, d);
    return options.prune_below > 0 ? pruned<T>(sum.view(), options.prune_below) : std::move(sum);
}

template <class T>
TripleProduct<T>::TripleProduct(Runtime& runtime, const SpgemmOperand<T>& r, const SpgemmOperand<T>& a,
                                const SpgemmOperand<T>& p, const SpgemmOptions& options)
    : outdated_(a.on_devices() || p.on_devices())
{
    if (r.cols() != a.rows()) {
        throw Error(ErrorCode::usage,
                    fmt::format("R is {} x {} and A is {} x {}: the columns of R must be as many as the rows of A",
                                r.rows(), r.cols(), a.rows(), a.cols()));
    }
    SpgemmOptions whole = options;
    whole.prune_below = 0;
    ap_ = SparseProduct<T>(runtime, a, p, whole);
    ap_.compute();
    rap_ = SparseProduct<T>(runtime, r, ap_, options);
}

template <class T>
void TripleProduct<T>::renew(const T* a_values)
{
    if (a_values != nullptr) {
        ap_.update_values(a_values, nullptr);
    }
    if (a_values != nullptr || outdated_) {
        ap_.compute();
    }
    rap_.compute();
}

template <class T>
CsrMatrix<T> TripleProduct<T>::compute(const T* a_values)
{
    renew(a_values);
    return rap_.download();
}

template <class T>
Verification verify_spgemm(const CsrView<T>& a, const CsrView<T>& b, T alpha, const CsrView<T>& c,
                           std::int64_t sampled_rows)
{
    if (a.cols != b.rows || c.rows != a.rows || c.cols != b.cols) {
        throw Error(ErrorCode::usage, fmt::format("C ({} x {}) cannot be the product of A ({} x {}) and B ({} x {})",
                                                  c.rows, c.cols, a.rows, a.cols, b.rows, b.cols));
    }
    validate(c);
    // B v and |B| |v|, and how many products each row adds to an entry of A B v.
    HostVector<long double> bv(static_cast<std::size_t>(b.rows));
    HostVector<long double> magnitudes(static_cast<std::size_t>(b.rows));
#pragma omp parallel for schedule(dynamic, 4096)
    for (std::int64_t row = 0; row < b.rows; ++row) {
        long double sum = 0;
        long double magnitude = 0;
        for (std::int64_t i = b.row_ptr[row]; i < b.row_ptr[row + 1]; ++i) {
            const long double product = b.values[i] * static_cast<long double>(random_entry(b.col_idx[i]));
            sum += product;
            magnitude += std::fabs(product);
        }
        bv[static_cast<std::size_t>(row)] = sum;
        magnitudes[static_cast<std::size_t>(row)] = magnitude;
    }
    detail::Worst worst;
    const std::int64_t samples = std::min(sampled_rows, a.rows);
#pragma omp parallel
    {
        detail::Worst own;
#pragma omp for schedule(dynamic, 4096) nowait
        for (std::int64_t row = 0; row < a.rows; ++row) {
            long double expected = 0;
            long double magnitude = 0;
            std::int64_t products = 0;
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                const auto k = static_cast<std::size_t>(a.col_idx[i]);
                const long double value = static_cast<long double>(alpha) * a.values[i];
                expected += value * bv[k];
                magnitude += std::fabs(value) * magnitudes[k];
                products += b.row_ptr[a.col_idx[i] + 1] - b.row_ptr[a.col_idx[i]];
            }
            const std::int64_t entries = c.row_ptr[row + 1] - c.row_ptr[row];
            long double sum = 0;
            bool rising = true;
            for (std::int64_t i = c.row_ptr[row]; i < c.row_ptr[row + 1]; ++i) {
                rising = rising && (i == c.row_ptr[row] || c.col_idx[i - 1] < c.col_idx[i]);
                sum += c.values[i] * static_cast<long double>(random_entry(c.col_idx[i]));
            }
            if (!rising || entries > products || (entries == 0 && products > 0)) {
                own.add_structure_error(row);
                continue;
            }
            own.add(row, sum, expected, magnitude,
                    static_cast<double>(products + 4) * std::numeric_limits<T>::epsilon());
        }
#pragma omp for schedule(dynamic, 4) nowait
        for (std::int64_t s = 0; s < samples; ++s) {
            compare_row(a, b, alpha, c, a.rows / samples * s + a.rows % samples * s / samples, own);
        }
#pragma omp critical(rmsp_verify_spgemm)
        worst.merge(own);
    }
    return worst.result();
}

#define RMSP_INSTANTIATE(T)                                                                                     \
    template CsrMatrix<T> transposed(const CsrView<T>&);                                                        \
    template CsrMatrix<T> add(T, const CsrView<T>&, T, const CsrView<T>&);                                      \
    template CsrMatrix<T> pruned(const CsrView<T>&, double);                                                    \
    template CsrMatrix<T> multiply(Runtime&, const CsrView<T>&, const CsrView<T>&, const SpgemmOptions&, T);    \
    template CsrMatrix<T> multiply_add(Runtime&, T, const CsrView<T>&, const CsrView<T>&, T, const CsrView<T>&, \
                                       const SpgemmOptions&);                                                   \
    template class TripleProduct<T>;                                                                            \
    template Verification verify_spgemm(const CsrView<T>&, const CsrView<T>&, T, const CsrView<T>&, std::int64_t);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
