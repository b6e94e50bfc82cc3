#include <algorithm>

#include <kernels/spgemm/spgemm.hpp>

namespace rmsp::kernels {
namespace {

template <class T>
void count(const CsrShard<T>& a, const CsrShard<T>& b, std::int64_t* out, const Context& context)
{
    a.row_ptr.visit([&](const auto* a_ptr) {
        b.row_ptr.visit([&](const auto* b_ptr) {
#pragma omp parallel for num_threads(std::max(context.threads, 1)) schedule(dynamic, 512)
            for (std::int64_t row = 0; row < a.rows; ++row) {
                std::int64_t sum = 0;
                for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                    const std::int64_t k = a.col_idx[i];
                    sum += std::int64_t{b_ptr[k + 1]} - b_ptr[k];
                }
                out[row] = sum;
            }
        });
    });
}

}  // namespace

RMSP_VALUE_ROW(ProductSteps, host, .count_products = count<T>)

}  // namespace rmsp::kernels
