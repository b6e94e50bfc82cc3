#include "runtime/spgemm/work.hpp"

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"

namespace rmsp::spgemm {

template <class T>
HostVector<std::int64_t> count_work(const CsrView<T>& a, const CsrView<T>& b)
{
    HostVector<std::int64_t> work(static_cast<std::size_t>(a.rows) + 1);
    work[0] = 0;
    bool overflow = false;
    a.row_ptr.visit([&](const auto* a_ptr) {
        a.col_idx.visit([&](const auto* a_col) {
            b.row_ptr.visit([&](const auto* b_ptr) {
#pragma omp parallel for schedule(dynamic, 1024) reduction(|| : overflow)
                for (std::int64_t row = 0; row < a.rows; ++row) {
                    std::int64_t sum = row_work;
                    for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                        const std::int64_t k = a_col[i];
                        overflow = __builtin_add_overflow(sum, std::int64_t{b_ptr[k + 1]} - b_ptr[k], &sum) || overflow;
                    }
                    work[static_cast<std::size_t>(row) + 1] = sum;
                }
            });
        });
    });
    for (std::size_t row = 1; row < work.size(); ++row) {
        overflow = __builtin_add_overflow(work[row], work[row - 1], &work[row]) || overflow;
    }
    if (overflow) {
        throw Error(ErrorCode::usage,
                    fmt::format("A ({} x {}, {} nonzeros) times B ({} x {}, {} nonzeros) takes more than 2^63 - 1 "
                                "multiplications",
                                a.rows, a.cols, a.nnz, b.rows, b.cols, b.nnz));
    }
    return work;
}

#define RMSP_INSTANTIATE(T) template HostVector<std::int64_t> count_work(const CsrView<T>&, const CsrView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
