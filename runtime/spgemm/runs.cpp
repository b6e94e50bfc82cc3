#include "runtime/spgemm/runs.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "runtime/engine/make_device.hpp"
#include "runtime/spgemm/work.hpp"

namespace rmsp::spgemm {
namespace {

std::unique_ptr<engine::Worker> make_copier(engine::Worker& worker)
{
    const DeviceInfo& info = worker.device().info();
    auto copier =
        std::make_unique<engine::Worker>(worker.rank(), info.placement, [info] { return engine::make_device(info); });
    copier->wait_until_open();
    return copier;
}

/// Computes runs of rows of one part. While one is computed, the one before is on its way to the host.
template <class T>
class Runs {
public:
    Runs(const Factors<T>& factors, ProductPart<T>& part, engine::Worker& worker, T alpha)
        : factors_(factors),
          part_(part),
          worker_(worker),
          alpha_(alpha),
          filled_(worker.device().make_event(false)),
          before_(std::exchange(part.chunks, {}))
    {
    }
    ~Runs()
    {
        if (on_the_way_.arrived.valid()) {
            on_the_way_.arrived.wait();
        }
    }
    Runs(const Runs&) = delete;
    Runs& operator=(const Runs&) = delete;

    /// Rows [first_row, end_row), cut in halves until each half fits.
    void compute(std::int64_t first_row, std::int64_t end_row)
    {
        if (first_row == end_row) {
            return;
        }
        try {
            compute_at_once(first_row, end_row);
            return;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory || lost_) {
                throw;
            }
            if (on_the_way_.arrived.valid()) {
                finish();
            } else if (end_row - first_row > 1) {
                const std::int64_t middle = first_row + (end_row - first_row) / 2;
                compute(first_row, middle);
                first_row = middle;
            } else if (part_.b.shard.row_ptr.data() != nullptr) {
                part_.b = {};  // then each run brings what it needs
            } else {
                throw Error(
                    ErrorCode::out_of_memory,
                    fmt::format("row {} of A B, {} products, does not fit the memory of device {} ({} bytes may be "
                                "used): {}",
                                first_row, products_of(factors_.work, first_row, end_row), worker_.rank(),
                                part_.budget.limit() > 0 ? fmt::format("{}", part_.budget.limit()) : "all", e.what()));
            }
        }
        compute(first_row, end_row);
    }
    /// Waits until all runs are on the host.
    void finish()
    {
        if (on_the_way_.arrived.valid()) {
            lost_ = true;
            on_the_way_.arrived.get();
            lost_ = false;
            on_the_way_ = {};
        }
    }

private:
    /// Entries of a run, until they are on the host.
    struct OnTheWay {
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<T> values;
        std::future<void> arrived;
    };

    /// B is what the part keeps, or what these rows need of it.
    void compute_at_once(std::int64_t first_row, std::int64_t end_row)
    {
        DeviceRows<T> own_b;
        RowSelection own_rows;
        const bool kept = part_.b.shard.row_ptr.data() != nullptr;
        if (!kept) {
            own_rows = select_rows(factors_.a, first_row, end_row, factors_.b, worker_.context().threads);
            upload_rows(worker_, part_.budget, factors_.b, own_rows, 0, factors_.b.rows, own_b);
        }
        const DeviceRows<T>& b = kept ? part_.b : own_b;
        DeviceRows<T> a;
        upload_a(worker_, part_.budget, factors_.a, factors_.b, first_row, end_row, kept ? part_.b_rows : own_rows, b,
                 a);
        const auto product = prepare_product(worker_, part_.budget, factors_.options, a, b,
                                             known_products(factors_.work, first_row, end_row));
        check_counts(*product, products_of(factors_.work, first_row, end_row), factors_.b.cols);
        const auto nnz = static_cast<std::size_t>(product->nnz());
        OnTheWay run{{part_.budget, nnz}, {part_.budget, nnz}, {}};
        HostRows<T> rows = room(static_cast<std::size_t>(end_row - first_row), nnz);
        rows.first_row = first_row;
        worker_.device().download(worker_.stream(), rows.row_ptr.data(), product->row_ptr(),
                                  rows.row_ptr.size() * sizeof(std::int64_t));
        product->fill(alpha_, a.shard.values, b.shard.values, run.col_idx.data(), run.values.data(),
                      context_of(worker_, part_.budget));
        finish();
        worker_.stream().record(*filled_);
        part_.chunks.push_back(std::move(rows));
        send(std::move(run), part_.chunks.back());
        // What else the run took is freed in the order of the stream.
    }
    /// Memory of the compute() before, if it was in the same runs: what was touched once costs less.
    HostRows<T> room(std::size_t n, std::size_t nnz)
    {
        const std::size_t at = part_.chunks.size();
        HostRows<T> rows = at < before_.size() ? std::move(before_[at]) : HostRows<T>();
        const auto resize = [](auto& array, std::size_t size) {
            array.clear();  // so that nothing is copied
            array.resize(size);
        };
        resize(rows.row_ptr, n + 1);
        resize(rows.col_idx, nnz);
        resize(rows.values, nnz);
        return rows;
    }
    void send(OnTheWay run, HostRows<T>& rows)
    {
        auto arrived = std::make_shared<std::promise<void>>();
        run.arrived = arrived->get_future();
        on_the_way_ = std::move(run);
        // The vector of runs may grow meanwhile; the arrays of its rows stay.
        part_.copier->post([this, arrived, columns = rows.col_idx.data(), values = rows.values.data(),
                            n = rows.values.size()](engine::Worker& copier) {
            try {
                copier.stream().wait(*filled_);
                copier.device().download(copier.stream(), columns, on_the_way_.col_idx.data(),
                                         n * sizeof(std::int32_t));
                copier.device().download(copier.stream(), values, on_the_way_.values.data(), n * sizeof(T));
                copier.stream().synchronize();
                arrived->set_value();
            } catch (...) {
                arrived->set_exception(std::current_exception());
            }
        });
    }

    const Factors<T>& factors_;
    ProductPart<T>& part_;
    engine::Worker& worker_;
    T alpha_;
    std::unique_ptr<engine::Event> filled_;
    std::vector<HostRows<T>> before_;
    OnTheWay on_the_way_;
    bool lost_ = false;  ///< a run did not get to the host, which no smaller one mends
};

}  // namespace

template <class T>
void compute_in_runs(const Factors<T>& factors, SpgemmShardPlan& plan, ProductPart<T>& part, engine::Worker& worker,
                     const engine::Rendezvous& meeting, T alpha)
{
    part.b = {};
    if (!part.copier) {
        part.copier = make_copier(worker);
    }
    if (part.budget.limit() == 0 || plan.b_bytes <= part.budget.limit() / 2) {
        try {
            upload_rows(worker, part.budget, factors.b, part.b_rows, 0, factors.b.rows, part.b);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory) {
                throw;
            }
            part.b = {};  // then each run brings what it needs
        }
    }
    const HostVector<std::int64_t>& before = factors.work.before;
    const std::int64_t work_begin = before[static_cast<std::size_t>(part.first_row)];
    const std::int64_t work = before[static_cast<std::size_t>(part.end_row)] - work_begin;
    std::int64_t row = part.first_row;
    Runs<T> runs(factors, part, worker, alpha);
    for (std::int64_t chunk = 1; chunk <= plan.chunks; ++chunk) {
        meeting.stop_point();
        const std::int64_t target = work_begin + work / plan.chunks * chunk + work % plan.chunks * chunk / plan.chunks;
        const auto end = std::lower_bound(before.begin() + row, before.begin() + part.end_row, target);
        const std::int64_t next = chunk == plan.chunks ? part.end_row : end - before.begin();
        runs.compute(row, next);
        row = next;
    }
    runs.finish();
    part.b = {};
    plan.chunks = std::max<std::int64_t>(static_cast<std::int64_t>(part.chunks.size()), 2);
    plan.c_nnz = 0;
    for (const HostRows<T>& rows : part.chunks) {
        plan.c_nnz += static_cast<std::int64_t>(rows.values.size());
    }
    plan.c_bytes = bytes_of_c<T>(plan);
    plan.peak_bytes = part.budget.peak();
}

#define RMSP_INSTANTIATE(T)                                                                              \
    template void compute_in_runs(const Factors<T>&, SpgemmShardPlan&, ProductPart<T>&, engine::Worker&, \
                                  const engine::Rendezvous&, T);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
