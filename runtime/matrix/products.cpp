#include "runtime/matrix/products.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "runtime/matrix/column_product.hpp"
#include "runtime/matrix/row_product.hpp"

namespace rmsp::distributed {
namespace {

template <class T>
bool is_brief(const MatrixState<T>& matrix)
{
    const RowProduct<T>* const rows = row_product(matrix);
    for (std::size_t rank = 0; rank < matrix.plan.shards.size(); ++rank) {
        const std::int64_t bytes = rows != nullptr ? rows->apply_bytes(rank) : matrix.plan.shards[rank].apply_bytes;
        if (bytes > engine::most_bytes_of_a_brief_job) {
            return false;
        }
    }
    return true;
}

void check_length(const char* what, std::int64_t has, std::int64_t wants)
{
    if (has != wants) {
        throw Error(ErrorCode::usage, fmt::format("{} has {} entries; the matrix needs {}", what, has, wants));
    }
}

}  // namespace

template <class T>
void require_operands(const std::shared_ptr<MatrixState<T>>& matrix, bool of_transpose,
                      const std::shared_ptr<VectorState<T>>& x, const std::shared_ptr<VectorState<T>>& y)
{
    const plan::Side& side = x_side(*matrix, of_transpose);
    const plan::Side& other = x_side(*matrix, !of_transpose);
    check_length("x", x->size, side.size());
    check_length("y", y->size, other.size());
    if (x->runtime != matrix->runtime || y->runtime != matrix->runtime) {
        throw Error(ErrorCode::usage, "the matrix and its vectors belong to different runtimes");
    }
    const char* const y_maker = of_transpose ? "make_x(Layout::rows)" : "make_y()";
    if (y->layout != Layout::rows || y->offsets != other.slices) {
        throw Error(ErrorCode::usage, fmt::format("y is not sliced as the matrix's {} are; make it with {}",
                                                  of_transpose ? "columns" : "rows", y_maker));
    }
    if (x == y) {
        throw Error(ErrorCode::usage, "x and y are the same vector");
    }
    for (const auto& [name, vector] : {std::pair{"x", &x}, {"y", &y}}) {
        const auto& order = (*vector)->order;
        if (order && (of_transpose || order->matrix != matrix)) {
            throw Error(ErrorCode::usage,
                        fmt::format("{} is in the order of {}; make it with Order::matrix", name,
                                    of_transpose ? "a kernel, which products with the transpose do not take"
                                                 : "another matrix's kernel"));
        }
    }
    if (!plan::multiplies_by_rows(matrix->plan, of_transpose) && matrix->runtime->connection.transport) {
        if (x->layout == Layout::rows && !x->holds(side.touched)) {
            throw Error(ErrorCode::usage, fmt::format("x has no room for what the devices need of it; make it with {}",
                                                      of_transpose ? "make_y()" : "make_x()"));
        }
        if (!y->holds(other.touched)) {
            throw Error(ErrorCode::usage,
                        fmt::format("y has no room for what the devices find of it; make it with {}", y_maker));
        }
    }
}

template <class T>
engine::JobTerms product_terms(const MatrixState<T>& matrix, bool host_data)
{
    engine::JobTerms terms;
    terms.kind = "product";
    terms.matrix = &matrix.options.name;
    terms.host_data = host_data;
    terms.may_end_early = true;
    terms.devices = matrix.plan.devices;
    terms.brief = !host_data && matrix.options.mode == Mode::resident && is_brief(matrix);
    // What is streamed or borrowed is the caller's too.
    terms.owns_all = !host_data && matrix.options.mode == Mode::resident && !matrix.options.borrow;
    if (matrix.options.mode == Mode::streamed) {
        for (const ShardPlan& shard : matrix.plan.shards) {
            terms.streamed_bytes += shard.matrix_bytes;
        }
    }
    return terms;
}

template <class T>
void prepare_apply(MatrixState<T>& matrix, bool of_transpose)
{
    std::lock_guard lock(matrix.on_demand.making);
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

#define RMSP_INSTANTIATE(T)                                                                                         \
    template engine::JobTerms product_terms(const MatrixState<T>&, bool);                                           \
    template void prepare_apply(MatrixState<T>&, bool);                                                             \
    template void apply_on(MatrixState<T>&, engine::Worker&, engine::Rendezvous&, T, const Source<T>&, T,           \
                           const Target<T>&, PhaseProbe*, bool);                                                    \
    template void require_operands(const std::shared_ptr<MatrixState<T>>&, bool,                                    \
                                   const std::shared_ptr<VectorState<T>>&, const std::shared_ptr<VectorState<T>>&); \
    template void finish_host_y(const MatrixState<T>&, T*, bool);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
