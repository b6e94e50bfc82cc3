#include "runtime/spgemm/work.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"

namespace rmsp::spgemm {

template <class T>
RowWork count_work(const CsrView<T>& a, const CsrView<T>& b)
{
    RowWork work;
    HostVector<std::int64_t>& before = work.before;
    before = HostVector<std::int64_t>(static_cast<std::size_t>(a.rows) + 1);
    before[0] = 0;
    std::int64_t most = row_work;
    bool overflow = false;
    a.row_ptr.visit([&](const auto* a_ptr) {
        a.col_idx.visit([&](const auto* a_col) {
            b.row_ptr.visit([&](const auto* b_ptr) {
#pragma omp parallel for schedule(dynamic, 1024) reduction(|| : overflow) reduction(max : most)
                for (std::int64_t row = 0; row < a.rows; ++row) {
                    std::int64_t sum = row_work;
                    for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                        const std::int64_t k = a_col[i];
                        overflow = __builtin_add_overflow(sum, std::int64_t{b_ptr[k + 1]} - b_ptr[k], &sum) || overflow;
                    }
                    before[static_cast<std::size_t>(row) + 1] = sum;
                    most = std::max(most, sum);
                }
            });
        });
    });
    for (std::size_t row = 1; row < before.size(); ++row) {
        overflow = __builtin_add_overflow(before[row], before[row - 1], &before[row]) || overflow;
    }
    if (overflow) {
        throw Error(ErrorCode::usage,
                    fmt::format("A ({} x {}, {} nonzeros) times B ({} x {}, {} nonzeros) takes more than 2^63 - 1 "
                                "multiplications",
                                a.rows, a.cols, a.nnz, b.rows, b.cols, b.nnz));
    }
    work.most_products = most - row_work;
    return work;
}

#define RMSP_INSTANTIATE(T) template RowWork count_work(const CsrView<T>&, const CsrView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
