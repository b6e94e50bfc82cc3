#include "runtime/matrix/download.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <rmsp/convert.hpp>

#include "core/subscript.hpp"
#include "core/value_types.hpp"
#include "matrix/csr_build.hpp"
#include "runtime/matrix/row_product.hpp"

namespace rmsp::distributed {
namespace {

using core::at;

/// Copies n numbers of the worker's device to the host; waits.
template <class U>
void fetch(engine::Worker& worker, U* to, const U* from, std::int64_t n)
{
    if (n > 0) {
        worker.device().download(worker.stream(), to, from, at(n) * sizeof(U));
        worker.stream().synchronize();
    }
}

/// The part's columns in the matrix's own numbers, to their place among those of all parts.
template <class T>
void fetch_columns(const MatrixState<T>& matrix, engine::Worker& worker, const kernels::CsrShard<T>& part,
                   std::int64_t first, IndexArray& out)
{
    const RowProduct<T>* const rows = row_product(matrix);
    const std::int64_t base = matrix.plan.shards[at(worker.rank())].index_base;
    kernels::DeviceArray<std::int32_t> restored;
    const std::int32_t* columns = part.col_idx;
    const bool anew = rows != nullptr && rows->by_entries();
    if (anew && part.nnz > 0) {
        restored = kernels::DeviceArray<std::int32_t>(worker.device(), at(part.nnz));
        rows->restore_columns(worker, columns, part.nnz, restored.data());
        columns = restored.data();
    }
    HostVector<std::int32_t> local(at(part.nnz));
    fetch(worker, local.data(), columns, part.nnz);
    out.visit([&](auto& all) {
        using C = typename std::decay_t<decltype(all)>::value_type;
        std::transform(local.begin(), local.end(), all.begin() + first,
                       [&](std::int32_t c) { return static_cast<C>(std::int64_t{c} + (anew ? 0 : base)); });
    });
}

}  // namespace

template <class T>
StoredEntries<T> download_entries(const MatrixState<T>& matrix)
{
    const Partition& partition = matrix.plan.partition;
    const bool coordinates = matrix.origin.coordinates;
    CsrMatrix<T> m = rmsp::matrix::allocate_csr<T>(partition.rows, partition.cols, matrix.plan.nnz);
    HostVector<std::int32_t> row_idx(coordinates ? m.values.size() : 0);
    std::fill(m.row_ptr.begin(), m.row_ptr.end(), matrix.plan.nnz);
    engine::JobTerms terms;
    terms.kind = "download of a matrix";
    terms.matrix = &matrix.options.name;
    terms.devices = matrix.plan.devices;
    // The parts of M, one behind the other as they were cut.
    matrix.runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous&) {
                const Shard<T>& shard = *matrix.shards[at(worker.rank())];
                const std::int64_t first_owned = shard.part.start_idx + shard.carry_nnz;
                if (shard.carry_nnz > 0) {
                    fetch(worker, m.values.data() + shard.part.start_idx, shard.carry.values, shard.carry_nnz);
                    fetch_columns(matrix, worker, shard.carry, shard.part.start_idx, m.col_idx);
                    if (coordinates) {
                        std::fill_n(row_idx.begin() + shard.part.start_idx, shard.carry_nnz,
                                    static_cast<std::int32_t>(shard.part.start_row));
                    }
                }
                fetch(worker, m.values.data() + first_owned, shard.owned.values, shard.owned.nnz);
                fetch_columns(matrix, worker, shard.owned, first_owned, m.col_idx);
                if (coordinates) {
                    fetch(worker, row_idx.data() + first_owned, shard.owned_rows, shard.owned.nnz);
                    return;
                }
                shard.owned.row_ptr.visit([&](const auto* row_ptr) {
                    HostVector<std::remove_cvref_t<decltype(*row_ptr)>> local(at(shard.owned.rows));
                    fetch(worker, local.data(), row_ptr, shard.owned.rows);
                    std::transform(local.begin(), local.end(), m.row_ptr.begin() + shard.part.first_owned_row(),
                                   [&](std::int64_t begin) { return first_owned + begin; });
                });
            },
            {}, terms)
        .get();
    return {std::move(m), std::move(row_idx), coordinates};
}

namespace {

template <class T>
CsrMatrix<T> stored_rows(const MatrixState<T>& matrix)
{
    StoredEntries<T> stored = download_entries(matrix);
    return stored.coordinates ? to_csr(stored.as_coordinates()) : std::move(stored.rows);
}

template <class T>
CsrMatrix<T> copy_of(const CsrView<T>& a)
{
    CsrMatrix<T> out = rmsp::matrix::allocate_csr<T>(a.rows, a.cols, a.nnz);
    a.row_ptr.visit([&](const auto* from) { std::copy_n(from, a.rows + 1, out.row_ptr.begin()); });
    a.col_idx.visit([&](const auto* from) {
        out.col_idx.visit([&](auto& to) {
            using C = typename std::decay_t<decltype(to)>::value_type;
            std::transform(from, from + a.nnz, to.begin(), [](auto c) { return static_cast<C>(c); });
        });
    });
    std::copy_n(a.values, a.nnz, out.values.begin());
    return out;
}

}  // namespace

template <class T>
CsrMatrix<T> download_matrix(const MatrixState<T>& matrix)
{
    const StreamSource<T>* const source = matrix.origin.source.get();
    CsrMatrix<T> m = source == nullptr     ? stored_rows(matrix)
                     : source->coordinates ? to_csr(CooView<T>{source->a.rows, source->a.cols, source->a.nnz,
                                                               source->row_idx, source->a.col_idx, source->a.values})
                                           : copy_of<T>(source->a);
    if (!plan::transposed(matrix.plan)) {
        return m;
    }
    return to_csr(transpose(m.view()));
}

#define RMSP_INSTANTIATE(T)                                            \
    template StoredEntries<T> download_entries(const MatrixState<T>&); \
    template CsrMatrix<T> download_matrix(const MatrixState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::distributed
