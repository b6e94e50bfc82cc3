#include "runtime/matrix/products.hpp"

#include <memory>
#include <mutex>

#include "runtime/matrix/column_product.hpp"
#include "runtime/matrix/row_product.hpp"

namespace rmsp::distributed {

template <class T>
void prepare_apply(MatrixState<T>& matrix, bool of_transpose)
{
    std::lock_guard lock(matrix.preparing);
    if (matrix.options.mode == Mode::streamed && of_transpose) {
        throw Error(ErrorCode::usage, "a streamed matrix has no transposed product; distribute the transpose as well");
    }
    const RowProduct<T>* const rows = row_product(matrix);
    if (rows != nullptr && rows->by_entries() && of_transpose) {
        throw Error(ErrorCode::usage,
                    "the columns of this matrix were numbered anew, to exchange x by entries, so it has no transposed "
                    "product: distribute it with DistributeOptions::transposed");
    }
    std::shared_ptr<Product<T>>& place = matrix.products[of_transpose ? 1 : 0];
    const std::shared_ptr<Product<T>> product =
        place ? place : std::make_shared<ColumnProduct<T>>(matrix, of_transpose);
    product->prepare();
    if (!place) {
        place = product;
    }
}

template <class T>
void apply_on(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x,
              T beta, const Target<T>& y, PhaseProbe* probe, bool of_transpose)
{
    try {
        matrix.products[of_transpose ? 1 : 0]->apply(worker, meeting, alpha, x, beta, y, probe);
    } catch (...) {
        if (const auto& streamed = matrix.shards[static_cast<std::size_t>(worker.rank())]->streamed) {
            streamed->abandon(worker);
        }
        throw;
    }
}

template <class T>
void finish_host_y(const MatrixState<T>& matrix, T* y, bool of_transpose)
{
    matrix.products[of_transpose ? 1 : 0]->finish_host_y(y);
}

#define RMSP_INSTANTIATE(T)                                                                               \
    template void prepare_apply(MatrixState<T>&, bool);                                                   \
    template void apply_on(MatrixState<T>&, engine::Worker&, engine::Rendezvous&, T, const Source<T>&, T, \
                           const Target<T>&, PhaseProbe*, bool);                                          \
    template void finish_host_y(const MatrixState<T>&, T*, bool);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::distributed
