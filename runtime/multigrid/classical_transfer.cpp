#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <kernels/steps/coarsening/coarsening.hpp>
#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/multigrid/device_transfer.hpp"
#include "runtime/multigrid/transposed.hpp"
#include "runtime/node/per_device.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/whole_rows.hpp"

namespace rmsp::multigrid {
namespace {

/// In the memory of the first device.
template <class T>
struct OnDevice {
    DeviceArray<std::uint8_t> strong;  ///< marks of the entries of A
    DeviceArray<std::int32_t> number;  ///< of each row's coarse point
    kernels::CsrArrays<T> p;           ///< until it is distributed
    Transposed<T> r;                   ///< P^T, until it is distributed
    RowStatistics p_rows;
    RowStatistics r_rows;
    spgemm::DeviceRows<T> whole;  ///< A, where several devices have rows of it, while P is made
    spgemm::DeviceRows<T> old;    ///< P, where several devices have rows of it, while its values are renewed
};

/// Whether the first device has the matrix in the columns' own numbers.
template <class T>
bool first_has_all(const MatrixState<T>& a)
{
    const auto* const product = distributed::row_product(a);
    return a.plan.devices == 1 && a.shards.front()->owned.rows == a.plan.rows &&
           a.plan.shards.front().index_base == 0 && (product == nullptr || !product->by_entries());
}

/// A matrix that the first device has, on its way to several.
template <class T>
struct OnItsWay {
    IndexArray row_ptr;                       ///< on the host, of a matrix whose cut is looked for
    std::vector<std::int64_t> first_entries;  ///< before each device's part, of one whose cut is known
    std::optional<spgemm::EntriesOnDevices<T>> entries;

    void depart(detail::RuntimeState& runtime, std::int64_t rows, const spgemm::FactorPart<T>& there, std::int64_t nnz)
    {
        const auto devices = static_cast<std::size_t>(runtime.devices());
        std::vector<spgemm::FactorPart<T>> parts(devices);
        parts.front() = there;
        const auto all_first = [&](std::int64_t all) { return spgemm::all_on(0, runtime.devices(), all); };
        entries.emplace(runtime, std::move(parts), all_first(nnz), all_first(rows));
    }
    void arrive()
    {
        row_ptr = {};
        first_entries.clear();
        entries.reset();
    }
};

/// P and R from coarse points, on the first device: rows take from points two steps away.
template <class T>
class ClassicalTransfer final : public Transfer<T> {
public:
    /// \param in_place  the first device has all rows, in the columns' own numbers
    ClassicalTransfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener, bool in_place)
        : a_(std::move(a)), coarsener_(coarsener), in_place_(in_place), held_(a_->runtime)
    {
    }

    void read() override
    {
        if (!in_place_) {
            spgemm::bring_to_first_device(a_, held().whole);
        }
    }
    std::int64_t coarsen(Near&) override
    {
        on_device([&](engine::Worker&, const kernels::Context& context) {
            const kernels::CsrShard<T>& a = shard();
            OnDevice<T>& own = held();
            if (!kernels::is_canonical(a, context)) {
                coarse_rows_ = -1;
                return;
            }
            own.strong = DeviceArray<std::uint8_t>(*context.memory, static_cast<std::size_t>(a.nnz));
            own.number = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(a.rows));
            const DeviceArray<double> diagonal(*context.memory, static_cast<std::size_t>(a.rows));
            const DeviceArray<double> largest(*context.memory, static_cast<std::size_t>(a.rows));
            kernels::weigh_rows(a, 0, false, diagonal.data(), largest.data(), context);
            kernels::strong_entries(a, 0, false, coarsener_.threshold, diagonal.data(), largest.data(),
                                    own.strong.data(), context);
            coarse_rows_ = kernels::pmis(a.rows, a.row_ptr, a.col_idx, own.strong.data(), own.number.data(), context);
        });
        return coarse_rows_;
    }
    bool interpolate(Near&) override
    {
        bool made = false;
        on_device([&](engine::Worker& worker, const kernels::Context& context) {
            const kernels::CsrShard<T>& a = shard();
            OnDevice<T>& own = held();
            std::optional<kernels::CsrArrays<T>> p =
                kernels::interpolation(a, own.strong.data(), own.number.data(), coarsener_.direct,
                                       coarsener_.truncation, coarsener_.interpolation_entries, context);
            made = p.has_value();
            if (!made) {
                return;
            }
            own.p = std::move(*p);
            const IndexView row_ptr(own.p.row_ptr.data());
            const auto nnz = static_cast<std::int64_t>(own.p.values.size());
            own.r.find(own.p.col_idx.data(), nnz, 0, a.rows, row_ptr, coarse_rows_,
                       nnz > std::numeric_limits<std::int32_t>::max(), context);
            own.r.take(own.p.values.data(), nnz, context);
            own.p_rows = kernels::statistics_of_rows(a.rows, row_ptr, context);
            own.r_rows = kernels::statistics_of_rows(coarse_rows_, own.r.pointers(), context);
            own.whole = {};
            if (a_->plan.devices > 1) {
                p_.first_entries = entries_before_parts(worker, row_ptr);
                r_.row_ptr = on_host(worker, coarse_rows_, own.r.pointers(), nnz);
            }
        });
        if (made && a_->plan.devices > 1) {
            depart();
        }
        return made;
    }
    plan::Stored<T> p() override
    {
        const OnDevice<T>& own = held();
        return stored(a_->plan.rows, coarse_rows_, IndexView(own.p.row_ptr.data()), own.p.col_idx, own.p.values,
                      own.p_rows, p_);
    }
    plan::Stored<T> r() override
    {
        const OnDevice<T>& own = held();
        return stored(coarse_rows_, a_->plan.rows, own.r.pointers(), own.r.col_idx, own.r.values, own.r_rows, r_);
    }
    void keep_distributed() override
    {
        on_device([&](engine::Worker& /*worker*/, const kernels::Context& /*context*/) {
            OnDevice<T>& own = held();
            own.p = {};
            own.r.forget(false);
            own.whole = {};
        });
        p_.arrive();
        r_.arrive();
    }
    void renew(const std::shared_ptr<MatrixState<T>>& p) override
    {
        const bool in_place = first_has_all(*p);
        if (!in_place) {
            spgemm::bring_to_first_device(p, held().old);
        }
        on_device([&](engine::Worker& /*worker*/, const kernels::Context& context) {
            OnDevice<T>& own = held();
            const kernels::CsrShard<T>& there = in_place ? p->shards.front()->owned : own.old.shard;
            own.p.values = DeviceArray<T>(*context.memory, static_cast<std::size_t>(there.nnz));
            kernels::renew_interpolation(shard(), own.strong.data(), own.number.data(), coarsener_.direct, there,
                                         own.p.values.data(), context);
            own.r.take(own.p.values.data(), there.nnz, context);
            own.old = {};
        });
    }
    void write(const std::shared_ptr<MatrixState<T>>& p, const std::shared_ptr<MatrixState<T>>& r) override
    {
        if (a_->plan.devices > 1) {
            depart();
            p_.entries->split(p->plan.partition);
            r_.entries->split(r->plan.partition);
            distributed::update_values<T>(p, nullptr, &*p_.entries);
            distributed::update_values<T>(r, nullptr, &*r_.entries);
        } else {
            distributed::update_values<T>(p, held().p.values.data());
            distributed::update_values<T>(r, held().r.values.data());
        }
        keep_distributed();
    }
    std::int64_t device_bytes() const override
    {
        const OnDevice<T>& own = held();
        return bytes_of(own.strong) + bytes_of(own.number) + own.r.kept_bytes();
    }
    std::int64_t host_bytes() const override { return 0; }

private:
    const kernels::CsrShard<T>& shard() const { return in_place_ ? a_->shards.front()->owned : held().whole.shard; }
    OnDevice<T>& held() { return held_.parts.front(); }
    const OnDevice<T>& held() const { return held_.parts.front(); }

    /// f(worker, context) on the device; waits.
    template <class F>
    void on_device(const F& f)
    {
        a_->runtime
            ->submit(
                [&](engine::Worker& worker, engine::Rendezvous&) {
                    if (worker.rank() == 0) {
                        f(worker, worker.context());
                        worker.stream().synchronize();
                    }
                },
                {}, true)
            .get();
    }
    template <class X>
    static void download(engine::Worker& worker, const DeviceArray<X>& from, HostVector<X>& to)
    {
        to.resize(from.size());
        if (from.size() > 0) {
            worker.device().download(worker.stream(), to.data(), from.data(), from.size() * sizeof(X));
        }
    }
    void depart()
    {
        const OnDevice<T>& own = held();
        const auto nnz = static_cast<std::int64_t>(own.p.values.size());
        p_.depart(*a_->runtime, a_->plan.rows,
                  {IndexView(own.p.row_ptr.data()), own.p.col_idx.data(), own.p.values.data()}, nnz);
        r_.depart(*a_->runtime, coarse_rows_, {own.r.pointers(), own.r.col_idx.data(), own.r.values.data()}, nnz);
    }
    /// Of P, whose rows are cut where A's are.
    std::vector<std::int64_t> entries_before_parts(engine::Worker& worker, IndexView row_ptr) const
    {
        const std::vector<std::int64_t>& rows = distributed::x_side(*a_, true).slices;
        std::vector<std::int64_t> before(rows.size());
        row_ptr.visit([&](const auto* pointers) {
            std::vector<std::remove_cvref_t<decltype(*pointers)>> found(rows.size());
            for (std::size_t i = 0; i < rows.size(); ++i) {
                worker.device().download(worker.stream(), &found[i], pointers + rows[i], sizeof found[i]);
            }
            worker.stream().synchronize();
            before.assign(found.begin(), found.end());
        });
        return before;
    }
    IndexArray on_host(engine::Worker& worker, std::int64_t rows, IndexView row_ptr, std::int64_t nnz) const
    {
        const auto narrow = nnz <= std::numeric_limits<std::int32_t>::max() ? IndexType::i32 : IndexType::i64;
        IndexArray out(narrow, static_cast<std::size_t>(rows) + 1);
        out.visit([&](auto& to) {
            using Pointer = typename std::decay_t<decltype(to)>::value_type;
            const DeviceArray<Pointer> there(*worker.context().memory, to.size());
            kernels::localize_row_ptr(row_ptr, rows, 0, nnz, there.data(), worker.context());
            download(worker, there, to);
            worker.stream().synchronize();
        });
        return out;
    }
    static plan::Stored<T> stored(std::int64_t rows, std::int64_t cols, IndexView row_ptr,
                                  const DeviceArray<std::int32_t>& col_idx, const DeviceArray<T>& values,
                                  const RowStatistics& lengths, OnItsWay<T>& way)
    {
        if (!way.entries) {
            return stored_on_device(rows, cols, row_ptr, col_idx, values, lengths);
        }
        plan::Stored<T> out = stored_on_devices<T>(rows, cols, static_cast<std::int64_t>(values.size()), *way.entries);
        out.row_ptr = way.row_ptr.view();
        out.first_entries = way.first_entries;
        return out;
    }

    std::shared_ptr<MatrixState<T>> a_;
    Coarsener coarsener_;
    bool in_place_;
    std::int64_t coarse_rows_ = 0;
    OnItsWay<T> p_;  ///< empty: to the device where it is
    OnItsWay<T> r_;
    node::PerDevice<OnDevice<T>> held_;
};

}  // namespace

template <class T>
std::unique_ptr<Transfer<T>> classical_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
{
    const bool in_place = first_has_all(*a);
    return std::make_unique<ClassicalTransfer<T>>(std::move(a), coarsener, in_place);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<Transfer<T>> classical_transfer(std::shared_ptr<MatrixState<T>>, const Coarsener&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
