#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/value_types.hpp"
#include "matrix/csr_build.hpp"
#include "matrix/for_each_row.hpp"

namespace rmsp {

using matrix::for_each_row;

template <class T>
CsrMatrix<T> plus_identity(const CsrView<T>& a)
{
    if (a.rows != a.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("the identity can be added to square matrices; this one is {} x {}", a.rows, a.cols));
    }
    validate(a);
    HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(a.rows) + 1);
    row_ptr.front() = 0;
    CsrMatrix<T> out;
    a.col_idx.visit([&](const auto* col) {
        for_each_row(a.rows, [&](std::int64_t row) {
            const auto* const begin = col + a.row_ptr[row];
            const auto* const end = col + a.row_ptr[row + 1];
            row_ptr[static_cast<std::size_t>(row) + 1] = end - begin + (std::find(begin, end, row) == end ? 1 : 0);
        });
        for (std::size_t row = 0; row < static_cast<std::size_t>(a.rows); ++row) {
            row_ptr[row + 1] += row_ptr[row];
        }
        out = matrix::allocate_csr<T>(a.rows, a.cols, row_ptr.back());
        out.row_ptr = std::move(row_ptr);
        out.col_idx.visit([&](auto& out_col) {
            using C = typename std::decay_t<decltype(out_col)>::value_type;
            for_each_row(a.rows, [&](std::int64_t row) {
                const std::int64_t begin = a.row_ptr[row];
                const std::int64_t end = a.row_ptr[row + 1];
                auto to = static_cast<std::size_t>(out.row_ptr[static_cast<std::size_t>(row)]);
                const std::int64_t diagonal = std::find(col + begin, col + end, row) - col;
                const std::int64_t insert_at =
                    diagonal < end ? -1 : std::find_if(col + begin, col + end, [&](auto c) { return c > row; }) - col;
                for (std::int64_t k = begin; k <= end; ++k) {
                    if (k == insert_at) {
                        out_col[to] = static_cast<C>(row);
                        out.values[to++] = T{1};
                    }
                    if (k < end) {
                        out_col[to] = static_cast<C>(col[k]);
                        out.values[to++] = a.values[k] + (k == diagonal ? T{1} : T{0});
                    }
                }
            });
        });
    });
    return out;
}

template <class T>
CsrMatrix<T> kronecker_ones(const CsrView<T>& a, std::int64_t block)
{
    constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() - 1;
    if (block < 1) {
        throw Error(ErrorCode::usage, fmt::format("Kronecker product with blocks of {}: at least 1", block));
    }
    if (std::max(a.rows, a.cols) > limit / block || a.nnz > limit / block / block) {
        throw Error(ErrorCode::usage,
                    fmt::format("Kronecker product of a {} x {} matrix with {} nonzeros and blocks of {}: the "
                                "product's sizes do not fit 64 bits",
                                a.rows, a.cols, a.nnz, block));
    }
    validate(a);
    CsrMatrix<T> out = matrix::allocate_csr<T>(a.rows * block, a.cols * block, a.nnz * block * block);
    out.row_ptr.front() = 0;
    a.col_idx.visit([&](const auto* col) {
        out.col_idx.visit([&](auto& out_col) {
            using C = typename std::decay_t<decltype(out_col)>::value_type;
            for_each_row(a.rows, [&](std::int64_t row) {
                const std::int64_t begin = a.row_ptr[row];
                const std::int64_t end = a.row_ptr[row + 1];
                auto to = static_cast<std::size_t>(begin * block * block);
                for (std::int64_t i = 0; i < block; ++i) {
                    for (std::int64_t k = begin; k < end; ++k) {
                        for (std::int64_t j = 0; j < block; ++j) {
                            out_col[to] = static_cast<C>(static_cast<std::int64_t>(col[k]) * block + j);
                            out.values[to++] = a.values[k];
                        }
                    }
                    out.row_ptr[static_cast<std::size_t>(row * block + i) + 1] = static_cast<std::int64_t>(to);
                }
            });
        });
    });
    return out;
}

#define RMSP_INSTANTIATE(T)                                 \
    template CsrMatrix<T> plus_identity(const CsrView<T>&); \
    template CsrMatrix<T> kronecker_ones(const CsrView<T>&, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
