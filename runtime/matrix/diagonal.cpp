#include "runtime/matrix/diagonal.hpp"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include <kernels/steps/diagonal/diagonal.hpp>
#include <kernels/steps/support/support.hpp>
#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/diagonal.hpp"
#include "runtime/matrix/download.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/matrix/vector.hpp"

namespace rmsp::distributed {
namespace {

/// What a part has of the diagonal entry of the row that it shares with its predecessor; waits for the device.
template <class T>
T carry_diagonal(const MatrixState<T>& matrix, const Shard<T>& shard, engine::Worker& worker)
{
    engine::Device& device = worker.device();
    const RowProduct<T>& rows = *row_product(matrix);
    kernels::CsrShard<T> carry = shard.carry;
    carry.diagonal = shard.part.start_row - matrix.plan.shards[static_cast<std::size_t>(worker.rank())].index_base;
    kernels::DeviceArray<std::int32_t> columns;
    if (rows.by_entries()) {
        // The row belongs to another device, so its column is one of the ghosts, if it is there.
        columns = kernels::DeviceArray<std::int32_t>(device, static_cast<std::size_t>(carry.nnz));
        rows.restore_columns(worker, carry.col_idx, carry.nnz, columns.data());
        carry.col_idx = columns.data();
        carry.diagonal = shard.part.start_row;
    }
    const kernels::DeviceArray<T> found(device, 1);
    kernels::csr_diagonal(carry, found.data(), worker.context());
    T sum = 0;
    device.download(worker.stream(), &sum, found.data(), sizeof(T));
    worker.stream().synchronize();
    return sum;
}

/// The device that holds the row that a part shares with its predecessor.
std::size_t owner_of_first_row(const Partition& partition, std::size_t part)
{
    do {
        --part;
    } while (partition.parts[part].owned_rows() == 0);
    return part;
}

/// Rows belong to one device each: it writes their entries to its slice, and adds what devices behind it have of its
/// last row, in their order.
template <class T>
void write_rows(const MatrixState<T>& matrix, const VectorState<T>& out)
{
    const Partition& partition = matrix.plan.partition;
    std::vector<T> carries(matrix.shards.size(), T{0});
    matrix.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const Shard<T>& shard = *matrix.shards[rank];
            const kernels::CsrShard<T>& owned = shard.owned;
            if (matrix.origin.coordinates) {
                kernels::coo_diagonal(shard.owned_rows, owned.col_idx, owned.values, owned.nnz,
                                      shard.part.first_owned_row(), owned.rows, true, out.slices[rank],
                                      worker.context());
            } else {
                kernels::csr_diagonal(owned, out.slices[rank], worker.context());
            }
            if (shard.carry_nnz > 0) {
                carries[rank] = carry_diagonal(matrix, shard, worker);
            }
        })
        .get();
    std::vector<std::vector<T>> added(carries.size());
    bool any = false;
    for (std::size_t i = 0; i < partition.parts.size(); ++i) {
        if (partition.parts[i].start_flag) {
            added[owner_of_first_row(partition, i)].push_back(carries[i]);
            any = true;
        }
    }
    if (!any) {
        return;
    }
    matrix.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const std::vector<T>& own = added[rank];
            if (own.empty()) {
                return;
            }
            const kernels::DeviceArray<T> there(worker.device(), own.size());
            worker.device().upload(worker.stream(), there.data(), own.data(), own.size() * sizeof(T));
            kernels::add_carries(out.slices[rank] + matrix.shards[rank]->owned.rows - 1,
                                 static_cast<const T*>(there.data()), static_cast<int>(own.size()), worker.context());
            worker.stream().synchronize();
        })
        .get();
}

/// Each device may have some of every row: what it has goes through the host, one device after the other, so that sums
/// have one order.
template <class T>
HostVector<T> sum_of_parts(const MatrixState<T>& matrix)
{
    const auto n = static_cast<std::size_t>(matrix.plan.rows);
    HostVector<T> sums(n, T{0});
    HostVector<T> part(n);
    for (std::size_t of = 0; of < matrix.shards.size(); ++of) {
        const kernels::CsrShard<T>& owned = matrix.shards[of]->owned;
        if (owned.nnz == 0) {
            continue;
        }
        matrix.runtime
            ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
                if (static_cast<std::size_t>(worker.rank()) != of) {
                    return;
                }
                const kernels::DeviceArray<T> found(worker.device(), n);
                kernels::fill(found.data(), matrix.plan.rows, T{0}, worker.context());
                kernels::coo_diagonal(matrix.shards[of]->owned_rows, owned.col_idx, owned.values, owned.nnz,
                                      std::int64_t{0}, matrix.plan.rows, false, found.data(), worker.context());
                worker.device().download(worker.stream(), part.data(), found.data(), n * sizeof(T));
                worker.stream().synchronize();
            })
            .get();
        for (std::size_t i = 0; i < n; ++i) {
            sums[i] += part[i];
        }
    }
    return sums;
}

}  // namespace

template <class T>
std::shared_ptr<VectorState<T>> diagonal(const std::shared_ptr<MatrixState<T>>& matrix)
{
    const Plan& plan = matrix->plan;
    if (plan.rows != plan.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("the diagonal of a {} x {} matrix: it has to be square", plan.rows, plan.cols));
    }
    auto out = make_vector(*matrix, x_side(*matrix, true), Layout::rows);
    if (matrix->origin.source) {
        const auto of = [](const CsrView<T>& a) { return rmsp::matrix::diagonal<T>(a); };
        const StreamSource<T>& source = *matrix->origin.source;
        upload_vector(out, (source.coordinates ? of(download_matrix(*matrix).view()) : of(source.a)).data());
    } else if (plan.order == CooOrder::unsorted) {
        upload_vector(out, sum_of_parts(*matrix).data());
    } else {
        write_rows(*matrix, *out);
    }
    return out;
}

template <class T>
std::shared_ptr<VectorState<T>> row_norms(const std::shared_ptr<MatrixState<T>>& matrix)
{
    auto out = make_vector(*matrix, x_side(*matrix, true), Layout::rows);
    if (matrix->origin.source || matrix->origin.coordinates || plan::transposed(matrix->plan) ||
        plan::shares_rows(matrix->plan.partition)) {
        upload_vector(out, rmsp::matrix::row_norms<T>(download_matrix(*matrix).view()).data());
        return out;
    }
    matrix->runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            kernels::csr_row_norms(matrix->shards[rank]->owned, out->slices[rank], worker.context());
        })
        .get();
    return out;
}

#define RMSP_INSTANTIATE(T)                                                                    \
    template std::shared_ptr<VectorState<T>> diagonal(const std::shared_ptr<MatrixState<T>>&); \
    template std::shared_ptr<VectorState<T>> row_norms(const std::shared_ptr<MatrixState<T>>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::distributed
