#include "runtime/spgemm/download.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/engine/parallel_copy.hpp"
#include "runtime/spgemm/work.hpp"

namespace rmsp::spgemm {
namespace {

/// Entries of C before those of a device.
template <class T>
std::int64_t entries_before(const ProductState<T>& state, int device)
{
    std::int64_t begin = 0;
    for (int rank = 0; rank < device; ++rank) {
        begin += state.plan.shards[static_cast<std::size_t>(rank)].c_nnz;
    }
    return begin;
}

/// Row pointers of `rows` rows with `begin` entries before them; each row's length is held against its products, where
/// the host counted them.
void place_row_pointers(const std::int64_t* local, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                        const HostVector<std::int64_t>& work, std::int64_t cols, std::int64_t* row_ptr, int threads)
{
    std::int64_t wrong = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : wrong)
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t n = local[i + 1] - local[i];
        const std::int64_t most = work.empty() ? cols : products_of(work, first_row + i, first_row + i + 1);
        wrong += n < 0 || n > std::min(most, cols) ? 1 : 0;
        row_ptr[first_row + i + 1] = begin + local[i + 1];
    }
    if (wrong > 0) {
        throw Error(ErrorCode::internal,
                    fmt::format("{} rows of A B from row {} on have more entries than products", wrong, first_row));
    }
}

/// Row pointers of a part of C that is on its device, to their place in those of C.
template <class T>
void download_row_pointers(const ProductState<T>& state, const ProductPart<T>& part, engine::Worker& worker,
                           std::int64_t begin, std::int64_t* row_ptr)
{
    const std::int64_t rows = part.end_row - part.first_row;
    HostVector<std::int64_t> local(static_cast<std::size_t>(rows) + 1);
    worker.device().download(worker.stream(), local.data(), part.product->row_ptr(),
                             local.size() * sizeof(std::int64_t));
    worker.stream().synchronize();
    place_row_pointers(local.data(), part.first_row, rows, begin, state.factors.work, state.plan.cols, row_ptr,
                       worker.context().threads);
}

/// C without entries.
template <class T>
CsrMatrix<T> empty_c(const SpgemmPlan& plan)
{
    CsrMatrix<T> c;
    c.rows = plan.rows;
    c.cols = plan.cols;
    c.row_ptr.resize(static_cast<std::size_t>(c.rows) + 1);
    c.row_ptr[0] = 0;
    return c;
}

}  // namespace

template <class T>
CsrMatrix<T> download(ProductState<T>& state)
{
    CsrMatrix<T> c = empty_c<T>(state.plan);
    HostVector<std::int32_t> col_idx(static_cast<std::size_t>(state.plan.c_nnz));
    c.values.resize(static_cast<std::size_t>(state.plan.c_nnz));
    const auto seconds = on_devices<T>(state, [&](engine::Worker& worker, ProductPart<T>& part, engine::Rendezvous&) {
        std::int64_t begin = entries_before(state, worker.rank());
        const int threads = worker.context().threads;
        if (part.product) {
            engine::Device& device = worker.device();
            const auto nnz = static_cast<std::size_t>(part.product->nnz());
            device.download(worker.stream(), col_idx.data() + begin, part.col_idx.data(), nnz * sizeof(std::int32_t));
            device.download(worker.stream(), c.values.data() + begin, part.values.data(), nnz * sizeof(T));
            download_row_pointers(state, part, worker, begin, c.row_ptr.data());
            return;
        }
        for (const HostRows<T>& chunk : part.chunks) {
            const auto rows = static_cast<std::int64_t>(chunk.row_ptr.size()) - 1;
            place_row_pointers(chunk.row_ptr.data(), chunk.first_row, rows, begin, state.factors.work, c.cols,
                               c.row_ptr.data(), threads);
            engine::parallel_ranges(threads, chunk.values.size() * sizeof(T), [&](std::size_t first, std::size_t n) {
                std::memcpy(reinterpret_cast<std::byte*>(c.values.data() + begin) + first,
                            reinterpret_cast<const std::byte*>(chunk.values.data()) + first, n);
            });
            engine::parallel_ranges(
                threads, chunk.col_idx.size() * sizeof(std::int32_t), [&](std::size_t first, std::size_t n) {
                    std::memcpy(reinterpret_cast<std::byte*>(col_idx.data() + begin) + first,
                                reinterpret_cast<const std::byte*>(chunk.col_idx.data()) + first, n);
                });
            begin += static_cast<std::int64_t>(chunk.values.size());
        }
    });
    state.set_phase("download", seconds);
    c.col_idx = std::move(col_idx);
    return c;
}

#define RMSP_INSTANTIATE(T) template CsrMatrix<T> download(ProductState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
