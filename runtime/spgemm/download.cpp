#include "runtime/spgemm/download.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/engine/caller_memory.hpp"
#include "runtime/engine/parallel_copy.hpp"
#include "runtime/node/node.hpp"
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

/// Row pointers of `rows` rows with `begin` entries before them, without the first; each row's length is held against
/// its products, where the host counted them.
void place_row_pointers(const std::int64_t* local, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                        const RowWork& work, std::int64_t cols, std::int64_t* to, int threads)
{
    std::int64_t wrong = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : wrong)
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t n = local[i + 1] - local[i];
        const std::int64_t most = work.is_known() ? products_of(work, first_row + i, first_row + i + 1) : cols;
        wrong += n < 0 || n > std::min(most, cols) ? 1 : 0;
        to[i] = begin + local[i + 1];
    }
    if (wrong > 0) {
        throw Error(ErrorCode::internal,
                    fmt::format("{} rows of A B from row {} on have more entries than products", wrong, first_row));
    }
}

/// Copies what one device has of C, on its worker.
template <class T>
class PartDownload {
public:
    PartDownload(const ProductState<T>& state, const CArrays<T>& to, engine::Worker& worker)
        : state_(state), to_(to), worker_(worker), begin_(entries_before(state, worker.rank()))
    {
        // Rows of C begin behind those of the device before; the first of all has none before it.
        if (worker.rank() == 0 && to.row_ptr != nullptr) {
            static constexpr std::int64_t zero = 0;
            put(to.row_ptr, &zero, 1);
        }
    }

    void from_device(const ProductPart<T>& part)
    {
        engine::Device& device = worker_.device();
        const auto nnz = static_cast<std::size_t>(part.product->nnz());
        if (to_.col_idx != nullptr) {
            device.download(worker_.stream(), to_.col_idx + begin_, part.col_idx.data(), nnz * sizeof(std::int32_t));
        }
        if (to_.values != nullptr) {
            device.download(worker_.stream(), to_.values + begin_, part.values.data(), nnz * sizeof(T));
        }
        if (to_.row_ptr != nullptr) {
            HostVector<std::int64_t> local(static_cast<std::size_t>(part.end_row - part.first_row) + 1);
            device.download(worker_.stream(), local.data(), part.product->row_ptr(),
                            local.size() * sizeof(std::int64_t));
            worker_.stream().synchronize();
            place(local, part.first_row);
        }
    }

    void from_host(const HostRows<T>& chunk)
    {
        if (to_.row_ptr != nullptr) {
            place(chunk.row_ptr, chunk.first_row);
        }
        if (to_.col_idx != nullptr) {
            put(to_.col_idx + begin_, chunk.col_idx.data(), chunk.col_idx.size());
        }
        if (to_.values != nullptr) {
            put(to_.values + begin_, chunk.values.data(), chunk.values.size());
        }
        begin_ += static_cast<std::int64_t>(chunk.values.size());
    }

private:
    void place(const HostVector<std::int64_t>& local, std::int64_t first_row)
    {
        const std::int64_t rows = static_cast<std::int64_t>(local.size()) - 1;
        std::int64_t* const to = to_.row_ptr + first_row + 1;
        const bool there = engine::gpu_of(to_.row_ptr) >= 0;
        HostVector<std::int64_t> placed(static_cast<std::size_t>(there ? rows : 0));
        place_row_pointers(local.data(), first_row, rows, begin_, state_.factors.work, state_.plan.cols,
                           there ? placed.data() : to, worker_.context().threads);
        if (there) {
            put(to, placed.data(), placed.size());
        }
    }

    /// What the host has, to memory of any kind. It may be reused when this returns.
    template <class Item>
    void put(Item* to, const Item* from, std::size_t n)
    {
        if (engine::gpu_of(to) >= 0) {
            worker_.device().upload(worker_.stream(), to, from, n * sizeof(Item));
            worker_.stream().synchronize();
            return;
        }
        engine::parallel_ranges(worker_.context().threads, n * sizeof(Item), [&](std::size_t first, std::size_t bytes) {
            std::memcpy(reinterpret_cast<std::byte*>(to) + first, reinterpret_cast<const std::byte*>(from) + first,
                        bytes);
        });
    }

    const ProductState<T>& state_;
    const CArrays<T>& to_;
    engine::Worker& worker_;
    std::int64_t begin_;  ///< entries of C before those that come next
};

}  // namespace

template <class T>
void download(ProductState<T>& state, const CArrays<T>& to)
{
    for (const auto& [name, array] :
         {std::pair<const char*, const void*>{"row_ptr", to.row_ptr}, {"col_idx", to.col_idx}, {"values", to.values}}) {
        if (state.runtime->shared_memory() && engine::gpu_of(array) >= 0) {
            throw Error(ErrorCode::usage, fmt::format("{} of a {} x {} product is in GPU memory, and the runtime's "
                                                      "devices are the host's",
                                                      name, state.plan.rows, state.plan.cols));
        }
    }
    const auto seconds = on_devices<T>(state, [&](engine::Worker& worker, ProductPart<T>& part, engine::Rendezvous&) {
        PartDownload<T> copies(state, to, worker);
        if (part.product) {
            copies.from_device(part);
        }
        for (const HostRows<T>& chunk : part.chunks) {
            copies.from_host(chunk);
        }
    });
    state.set_phase("download", seconds);
}

template <class T>
CsrMatrix<T> download(ProductState<T>& state)
{
    CsrMatrix<T> c;
    c.rows = state.plan.rows;
    c.cols = state.plan.cols;
    c.row_ptr.resize(static_cast<std::size_t>(c.rows) + 1);
    HostVector<std::int32_t> col_idx(static_cast<std::size_t>(state.plan.c_nnz));
    c.values.resize(static_cast<std::size_t>(state.plan.c_nnz));
    download(state, CArrays<T>{c.row_ptr.data(), col_idx.data(), c.values.data()});
    c.col_idx = std::move(col_idx);
    return c;
}

#define RMSP_INSTANTIATE(T)                                      \
    template void download(ProductState<T>&, const CArrays<T>&); \
    template CsrMatrix<T> download(ProductState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
