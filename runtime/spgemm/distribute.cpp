#include "runtime/spgemm/distribute.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/product_factor.hpp"

namespace rmsp::spgemm {
namespace {

/// So many columns are faster copied to the host than looked at here and there.
constexpr std::int64_t few_columns = 1 << 16;

/// What is told where a device had no room for its rows of C.
Error computed_in_runs(const SpgemmPlan& plan)
{
    const auto shard =
        std::find_if(plan.shards.begin(), plan.shards.end(), [](const SpgemmShardPlan& one) { return one.chunks > 1; });
    const std::string most =
        shard->limit_bytes > 0 ? fmt::format(", of which it may have {}", shard->limit_bytes) : std::string();
    return Error(ErrorCode::out_of_memory,
                 fmt::format("C has no room on {}, where A, B and C take {} bytes{}: it was computed in runs of rows, "
                             "which are on the host; distribute what download() returns",
                             shard->device_name, shard->a_bytes + shard->b_bytes + shard->c_bytes, most));
}

/// C of a product that is on the devices and has values.
template <class T>
std::unique_ptr<ResidentFactor<T>> c_on_devices(const std::shared_ptr<ProductState<T>>& product)
{
    auto c = product_factor(*checked(product).runtime, product, "C");
    if (!c->in_place()) {
        throw computed_in_runs(product->plan);
    }
    return c;
}

}  // namespace

template <class T>
DistributedMatrix<T> distribute(const std::shared_ptr<RuntimeState>& runtime, ResidentFactor<T>& c,
                                const DistributeOptions& options, const std::vector<std::int64_t>& first_rows)
{
    runtime->require_live();
    if (options.mode == Mode::streamed || options.borrow || options.values == StoredValues::floats ||
        options.alignment == RowAlignment::exact) {
        throw Error(ErrorCode::usage,
                    "a product becomes a matrix in the devices' memory, of exact values and whole rows: not streamed, "
                    "borrowed, rounded or cut within rows");
    }
    const bool one_device = runtime->devices() == 1;
    const bool borrows = one_device && runtime->shared_memory();
    // What a product by columns takes depends on what each part touches.
    const bool reads_all = options.transposed || (one_device && c.slices.back() <= few_columns);
    c.bring_structure(*runtime, reads_all && !borrows);
    EntriesOnDevices<T> entries(*runtime, c.parts, c.slices);
    DistributeOptions whole_rows = options;
    whole_rows.alignment = RowAlignment::row;
    plan::Stored<T> stored = plan::stored(c.view());
    stored.resident = &entries;
    stored.first_rows = first_rows;
    stored.columns_on_devices = !borrows && !reads_all;
    if (one_device) {
        stored.device_col_idx = IndexView(c.parts.front().col_idx);
    }
    if (borrows) {
        stored.col_idx = stored.device_col_idx;
    }
    return detail::MatrixAccess::handle(distributed::distribute(runtime, stored, whole_rows));
}

template <class T>
void renew(const RuntimeState& runtime, ResidentFactor<T>& c, DistributedMatrix<T>& matrix)
{
    const auto& to = detail::MatrixAccess::state(matrix);
    const CsrView<T> from = c.view();
    if (!to || to->runtime.get() != &runtime || to->options.mode != Mode::resident || to->plan.format != Format::csr ||
        to->plan.rows != from.rows || to->plan.cols != from.cols || to->plan.nnz != from.nnz ||
        plan::shares_rows(to->plan.partition) || to->options.borrow || to->options.values == StoredValues::floats) {
        throw Error(ErrorCode::usage,
                    fmt::format("only a matrix that distribute() made of this product takes its values ({} x {}, {} "
                                "nonzeros)",
                                from.rows, from.cols, from.nnz));
    }
    EntriesOnDevices<T> entries(*to->runtime, c.parts, c.slices);
    entries.split(to->plan.partition);
    distributed::update_values<T>(to, nullptr, &entries);
}

template <class T>
DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>& product, const DistributeOptions& options,
                                const std::vector<std::int64_t>& first_rows)
{
    return distribute(checked(product).runtime, *c_on_devices(product), options, first_rows);
}

template <class T>
void renew(const std::shared_ptr<ProductState<T>>& product, DistributedMatrix<T>& matrix)
{
    renew(*checked(product).runtime, *c_on_devices(product), matrix);
}

#define RMSP_INSTANTIATE(T)                                                                                     \
    template DistributedMatrix<T> distribute(const std::shared_ptr<RuntimeState>&, ResidentFactor<T>&,          \
                                             const DistributeOptions&, const std::vector<std::int64_t>&);       \
    template void renew(const RuntimeState&, ResidentFactor<T>&, DistributedMatrix<T>&);                        \
    template DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>&, const DistributeOptions&, \
                                             const std::vector<std::int64_t>&);                                 \
    template void renew(const std::shared_ptr<ProductState<T>>&, DistributedMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
