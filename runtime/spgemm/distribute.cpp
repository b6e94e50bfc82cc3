#include "runtime/spgemm/distribute.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/steps/convert/convert.hpp>

#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/product_factor.hpp"

namespace rmsp::spgemm {
namespace {

/// Values of a product, from its devices to those of a matrix that was made of it.
template <class T>
class ValuesOfProduct final : public plan::ResidentValues<T> {
public:
    ValuesOfProduct(RuntimeState& runtime, const ResidentFactor<T>& product) : runtime_(runtime), product_(product) {}
    ~ValuesOfProduct() override { close(); }
    ValuesOfProduct(const ValuesOfProduct&) = delete;
    ValuesOfProduct& operator=(const ValuesOfProduct&) = delete;

    void split(const Partition& partition) override
    {
        close();
        room_ = engine::Tasks(partition.parts.size());
        exchange_ = std::make_shared<EntryExchange>();
        exchange_->slices = product_.slices;
        exchange_->values.copies.resize(partition.parts.size());
        for (std::size_t rank = 0; rank < partition.parts.size(); ++rank) {
            const PartialCsr& part = partition.parts[rank];
            exchange_->needed.push_back({part.start_idx, part.end_idx});
            exchange_->values.held.push_back(entry_zero(product_.parts[rank].values, product_.slices[rank]));
        }
        open_channel(runtime_, exchange_transport(runtime_, {}), sizeof(T), *exchange_);
    }
    void gather(engine::Worker& worker, engine::Rendezvous& meeting, T* to) override
    {
        const auto rank = static_cast<std::size_t>(worker.rank());
        exchange_->values.copies[rank] = entry_zero(to, exchange_->needed[rank].first);
        meeting.arrive_and_wait();
        gather_held<T>(worker, meeting, *exchange_, exchange_->values);
    }

private:
    void close() noexcept
    {
        for (int rank = 0; exchange_ && exchange_->channel && rank < runtime_.devices(); ++rank) {
            runtime_.release(rank, room_, [exchange = exchange_, rank] { exchange->close(rank); });
        }
        exchange_.reset();
    }

    RuntimeState& runtime_;
    const ResidentFactor<T>& product_;
    std::shared_ptr<EntryExchange> exchange_;
    engine::Tasks room_;  ///< to close it
};

/// Columns of a product that are in the memory of the one device there is.
class ColumnsOnDevice final : public kernels::ColumnReader {
public:
    ColumnsOnDevice(RuntimeState& runtime, const std::int32_t* columns) : runtime_(runtime), columns_(columns) {}

    std::vector<IndexView> ranges(std::span<const kernels::EntryRange> ranges) override
    {
        std::int64_t count = 0;
        for (const kernels::EntryRange& range : ranges) {
            count += range.count;
        }
        copy_.resize(static_cast<std::size_t>(count));
        std::vector<IndexView> out;
        std::vector<engine::Download> parts;
        std::int32_t* to = copy_.data();
        for (const kernels::EntryRange& range : ranges) {
            const auto n = static_cast<std::size_t>(range.count);
            parts.push_back({to, columns_ + range.first, n * sizeof(std::int32_t)});
            out.emplace_back(static_cast<const std::int32_t*>(to));
            to += n;
        }
        on_device([&](engine::Worker& worker) { worker.device().download(worker.stream(), parts); });
        return out;
    }
    std::vector<std::int64_t> spread(std::int64_t first, std::int64_t step, std::int64_t count) override
    {
        const auto n = static_cast<std::size_t>(count);
        std::vector<std::int64_t> places(n);
        std::vector<std::int32_t> found(n);
        for (std::size_t i = 0; i < n; ++i) {
            places[i] = first + static_cast<std::int64_t>(i) * step;
        }
        on_device([&](engine::Worker& worker) {
            const kernels::DeviceArray<std::int64_t> from(worker.device(), n);
            const kernels::DeviceArray<std::int32_t> there(worker.device(), n);
            worker.device().upload(worker.stream(), from.data(), places.data(), n * sizeof(std::int64_t));
            kernels::take_from(count, static_cast<const std::int64_t*>(from.data()), columns_, there.data(),
                               worker.context());
            worker.device().download(worker.stream(), found.data(), there.data(), n * sizeof(std::int32_t));
            worker.stream().synchronize();
        });
        return {found.begin(), found.end()};
    }

private:
    template <class F>
    void on_device(const F& f)
    {
        runtime_
            .submit(
                [&](engine::Worker& worker, engine::Rendezvous&) {
                    f(worker);
                    worker.stream().synchronize();
                },
                {}, true)
            .get();
    }

    RuntimeState& runtime_;
    const std::int32_t* columns_;
    HostVector<std::int32_t> copy_;
};

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
DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>& product, const DistributeOptions& options,
                                const std::vector<std::int64_t>& first_rows)
{
    RuntimeState& runtime = *checked(product).runtime;
    runtime.require_live();
    if (options.mode == Mode::streamed || options.borrow || options.values == StoredValues::floats ||
        options.alignment == RowAlignment::exact) {
        throw Error(ErrorCode::usage,
                    "a product becomes a matrix in the devices' memory, of exact values and whole rows: not streamed, "
                    "borrowed, rounded or cut within rows");
    }
    const auto c = c_on_devices(product);
    constexpr std::int64_t few_entries = 1 << 20;  // that are faster copied whole than looked at here and there
    const bool one_device = runtime.devices() == 1;
    const bool reads_few = one_device && !runtime.shared_memory() && product->plan.c_nnz > few_entries;
    c->bring_structure(runtime, !reads_few && !(one_device && runtime.shared_memory()));
    ValuesOfProduct<T> values(runtime, *c);
    DistributeOptions whole_rows = options;
    whole_rows.alignment = RowAlignment::row;
    plan::Stored<T> stored = plan::stored(c->view());
    stored.resident = &values;
    stored.first_rows = first_rows;
    std::optional<ColumnsOnDevice> columns;
    if (one_device) {
        stored.device_col_idx = IndexView(c->parts.front().col_idx);
        if (runtime.shared_memory()) {
            stored.col_idx = stored.device_col_idx;
        } else if (reads_few) {
            stored.columns = &columns.emplace(runtime, c->parts.front().col_idx);
        }
    }
    return detail::MatrixAccess::handle(distributed::distribute(product->runtime, stored, whole_rows));
}

template <class T>
void renew(const std::shared_ptr<ProductState<T>>& product, DistributedMatrix<T>& matrix)
{
    const auto& to = detail::MatrixAccess::state(matrix);
    const auto c = c_on_devices(product);
    const SpgemmPlan& from = product->plan;
    if (!to || to->runtime != product->runtime || to->options.mode != Mode::resident ||
        to->plan.format != Format::csr || to->plan.rows != from.rows || to->plan.cols != from.cols ||
        to->plan.nnz != from.c_nnz || plan::shares_rows(to->plan.partition) || to->options.borrow ||
        to->options.values == StoredValues::floats) {
        throw Error(ErrorCode::usage,
                    fmt::format("only a matrix that distribute() made of this product takes its values ({} x {}, {} "
                                "nonzeros)",
                                from.rows, from.cols, from.c_nnz));
    }
    ValuesOfProduct<T> values(*product->runtime, *c);
    values.split(to->plan.partition);
    distributed::update_values<T>(to, nullptr, &values);
}

#define RMSP_INSTANTIATE(T)                                                                                     \
    template DistributedMatrix<T> distribute(const std::shared_ptr<ProductState<T>>&, const DistributeOptions&, \
                                             const std::vector<std::int64_t>&);                                 \
    template void renew(const std::shared_ptr<ProductState<T>>&, DistributedMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
