#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <kernels/steps/coarsening/coarsening.hpp>
#include <kernels/steps/convert/convert.hpp>
#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/multigrid/transfer.hpp"
#include "runtime/node/per_device.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/whole_rows.hpp"

namespace rmsp::multigrid {
namespace {

using kernels::DeviceArray;

/// In the memory of one device.
template <class T>
struct OnDevice {
    DeviceArray<std::uint8_t> strong;  ///< marks of the entries of A
    DeviceArray<std::int32_t> number;  ///< of each row's coarse point or aggregate
    DeviceArray<double> values;        ///< aggregation: P before it is smoothed
    DeviceArray<double> coarse;        ///< aggregation: the near-null vector of the coarser matrix
    DeviceArray<double> vector;        ///< aggregation: where the power method came to
    kernels::CsrArrays<T> p;           ///< until it is distributed
    /// Of each entry of R, in P. Kept, so that renewal need not sort.
    std::variant<DeviceArray<std::int32_t>, DeviceArray<std::int64_t>> r_from;
    // R, until it is distributed:
    std::variant<DeviceArray<std::int32_t>, DeviceArray<std::int64_t>> r_row_ptr;
    DeviceArray<std::int32_t> r_col_idx;
    DeviceArray<T> r_values;
    RowStatistics p_rows;         ///< of P
    RowStatistics r_rows;         ///< of R
    spgemm::DeviceRows<T> whole;  ///< A, where several devices have rows of it, while P is made
    spgemm::DeviceRows<T> old;    ///< P likewise, while its values are renewed
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
        const auto all_first = [&](std::int64_t all) {
            std::vector<std::int64_t> slices(devices + 1, all);
            slices.front() = 0;
            return slices;
        };
        entries.emplace(runtime, std::move(parts), all_first(nnz), all_first(rows));
    }
    void arrive()
    {
        row_ptr = {};
        first_entries.clear();
        entries.reset();
    }
};

template <class X>
std::int64_t bytes_of(const DeviceArray<X>& array)
{
    return static_cast<std::int64_t>(array.size() * sizeof(X));
}

template <class T>
class DeviceTransfer final : public Transfer<T> {
public:
    /// \param in_place  the first device has all rows, in the columns' own numbers
    DeviceTransfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener, bool in_place)
        : a_(std::move(a)), coarsener_(coarsener), in_place_(in_place), held_(a_->runtime)
    {
    }

    void read() override
    {
        if (!in_place_) {
            spgemm::bring_to_first_device(a_, held().whole);
        }
    }
    std::int64_t coarsen(const matrix::NearNullspace& near) override
    {
        const bool classical = coarsener_.method == Method::classical;
        on_device([&](engine::Worker& worker, const kernels::Context& context) {
            const kernels::CsrShard<T>& a = shard();
            OnDevice<T>& own = held();
            if (!kernels::is_canonical(a, context)) {
                coarse_rows_ = -1;
                return;
            }
            own.strong = DeviceArray<std::uint8_t>(*context.memory, static_cast<std::size_t>(a.nnz));
            own.number = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(a.rows));
            kernels::strong_entries(a, !classical, coarsener_.threshold, own.strong.data(), context);
            if (classical) {
                coarse_rows_ =
                    kernels::pmis(a.rows, a.row_ptr, a.col_idx, own.strong.data(), own.number.data(), context);
            } else {
                const DeviceArray<std::uint8_t> alike(*context.memory, own.strong.size());
                const bool symmetric =
                    kernels::symmetrise(a.rows, a.row_ptr, a.col_idx, own.strong.data(), alike.data(), context);
                coarse_rows_ = symmetric ? kernels::aggregates(a.rows, a.row_ptr, a.col_idx, alike.data(),
                                                               own.number.data(), context)
                                         : -1;
                if (coarse_rows_ >= 0) {
                    make_tentative(worker, context, near);
                }
            }
        });
        return coarse_rows_;
    }
    bool interpolate(matrix::NearNullspace& near) override
    {
        bool made = false;
        on_device([&](engine::Worker& worker, const kernels::Context& context) {
            const kernels::CsrShard<T>& a = shard();
            OnDevice<T>& own = held();
            std::optional<kernels::CsrArrays<T>> p =
                coarsener_.method == Method::classical
                    ? kernels::interpolation(a, own.strong.data(), own.number.data(), coarsener_.direct,
                                             coarsener_.truncation, coarsener_.interpolation_entries, context)
                    : aggregated(context);
            made = p.has_value();
            if (!made) {
                return;
            }
            own.p = std::move(*p);
            const IndexView row_ptr(own.p.row_ptr.data());
            transpose(own.p.col_idx.data(), static_cast<std::int64_t>(own.p.col_idx.size()), row_ptr,
                      own.p.values.data(), context);
            own.p_rows = kernels::statistics_of_rows(a.rows, row_ptr, context);
            own.r_rows = kernels::statistics_of_rows(coarse_rows_, r_row_ptr(), context);
            own.whole = {};
            if (coarsener_.method == Method::aggregation) {
                near.count = 1;
                download(worker, own.coarse, near.values);
            }
            if (a_->plan.devices > 1) {
                p_.first_entries = entries_before_parts(worker, row_ptr);
                r_.row_ptr =
                    on_host(worker, coarse_rows_, r_row_ptr(), static_cast<std::int64_t>(own.r_col_idx.size()));
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
        return stored(coarse_rows_, a_->plan.rows, r_row_ptr(), own.r_col_idx, own.r_values, own.r_rows, r_);
    }
    void keep_distributed() override
    {
        on_device([&](engine::Worker& /*worker*/, const kernels::Context& /*context*/) {
            OnDevice<T>& own = held();
            own.p = {};
            std::visit([](auto& pointers) { pointers.reset(); }, own.r_row_ptr);
            own.r_col_idx.reset();
            own.r_values.reset();
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
            if (coarsener_.method == Method::classical) {
                own.p.values = DeviceArray<T>(*context.memory, static_cast<std::size_t>(there.nnz));
                kernels::renew_interpolation(shard(), own.strong.data(), own.number.data(), coarsener_.direct, there,
                                             own.p.values.data(), context);
            } else {
                own.p.values = DeviceArray<T>(*context.memory, static_cast<std::size_t>(there.nnz));
                kernels::renew_smoothed(shard(), own.strong.data(), own.number.data(), own.values.data(),
                                        own.coarse.data(), coarsener_.smooth, own.vector, there, own.p.values.data(),
                                        context);
            }
            take_transposed(own.p.values.data(), there.nnz, context);
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
            distributed::update_values<T>(r, held().r_values.data());
        }
        keep_distributed();
    }
    std::int64_t device_bytes() const override
    {
        const OnDevice<T>& own = held();
        return bytes_of(own.strong) + bytes_of(own.number) + bytes_of(own.values) + bytes_of(own.coarse) +
               bytes_of(own.vector) + std::visit([](const auto& from) { return bytes_of(from); }, own.r_from);
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
        r_.depart(*a_->runtime, coarse_rows_, {r_row_ptr(), own.r_col_idx.data(), own.r_values.data()}, nnz);
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
    void make_tentative(engine::Worker& worker, const kernels::Context& context, const matrix::NearNullspace& near)
    {
        OnDevice<T>& own = held();
        const auto rows = static_cast<std::size_t>(shard().rows);
        own.values = DeviceArray<double>(*context.memory, rows);
        own.coarse = DeviceArray<double>(*context.memory, static_cast<std::size_t>(coarse_rows_));
        if (near.values.empty()) {
            kernels::fill(own.values.data(), shard().rows, 1.0, context);
        } else {
            worker.device().upload(worker.stream(), own.values.data(), near.values.data(), rows * sizeof(double));
        }
        kernels::normalise(shard().rows, own.number.data(), coarse_rows_, own.values.data(), own.coarse.data(),
                           context);
    }
    std::optional<kernels::CsrArrays<T>> aggregated(const kernels::Context& context)
    {
        OnDevice<T>& own = held();
        return kernels::smoothed_prolongator(shard(), own.strong.data(), own.number.data(), own.values.data(),
                                             own.coarse.data(), coarsener_.smooth, own.vector, context);
    }
    IndexView r_row_ptr() const
    {
        return std::visit([](const auto& pointers) { return IndexView(pointers.data()); }, held().r_row_ptr);
    }
    /// Makes R of P.
    void transpose(const std::int32_t* columns, std::int64_t nnz, IndexView row_ptr, const T* values,
                   const kernels::Context& context)
    {
        if (nnz <= std::numeric_limits<std::int32_t>::max()) {
            transpose_by<std::int32_t>(columns, nnz, row_ptr, context);
        } else {
            transpose_by<std::int64_t>(columns, nnz, row_ptr, context);
        }
        take_transposed(values, nnz, context);
    }
    template <class Offset>
    void transpose_by(const std::int32_t* columns, std::int64_t nnz, IndexView row_ptr, const kernels::Context& context)
    {
        OnDevice<T>& own = held();
        kernels::LineOrder<Offset> order = kernels::sort_by_line<Offset>(nnz, columns, 0, coarse_rows_, context);
        own.r_col_idx = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(nnz));
        kernels::find_lines(nnz, static_cast<const Offset*>(order.from.data()), shard().rows, row_ptr,
                            own.r_col_idx.data(), context);
        own.r_row_ptr = std::move(order.pointers);
        own.r_from = std::move(order.from);
    }
    /// The values of R, of those of P.
    void take_transposed(const T* values, std::int64_t nnz, const kernels::Context& context)
    {
        OnDevice<T>& own = held();
        own.r_values = DeviceArray<T>(*context.memory, static_cast<std::size_t>(nnz));
        std::visit(
            [&]<class Offset>(const DeviceArray<Offset>& from) {
                kernels::take_from(nnz, static_cast<const Offset*>(from.data()), values, own.r_values.data(), context);
            },
            own.r_from);
    }
    static plan::Stored<T> stored(std::int64_t rows, std::int64_t cols, IndexView row_ptr,
                                  const DeviceArray<std::int32_t>& col_idx, const DeviceArray<T>& values,
                                  const RowStatistics& lengths, OnItsWay<T>& way)
    {
        plan::Stored<T> out = plan::stored(
            CsrView<T>{rows, cols, static_cast<std::int64_t>(values.size()), IndexView(), IndexView(), nullptr});
        out.by_lengths = true;
        if (way.entries) {
            out.row_ptr = way.row_ptr.view();
            out.first_entries = way.first_entries;
            out.columns_on_devices = true;
            out.resident = &*way.entries;
            return out;
        }
        out.device_row_ptr = row_ptr;
        out.device_rows = lengths;
        out.device_col_idx = IndexView(static_cast<const std::int32_t*>(col_idx.data()));
        out.device_values = values.data();
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
std::unique_ptr<Transfer<T>> device_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
{
    const DeviceKind kind = a->runtime->infos.front().kind;
    const bool has_steps = kernels::steps_on<kernels::Coarsenings>(kind) != nullptr &&
                           kernels::steps_on<kernels::Conversion<std::int64_t>>(kind) != nullptr;
    if (!has_steps || coarsener.unknowns != 1 || coarsener.aggressive || plan::transposed(a->plan)) {
        return nullptr;
    }
    const bool in_place = first_has_all(*a);
    return std::make_unique<DeviceTransfer<T>>(std::move(a), coarsener, in_place);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<Transfer<T>> device_transfer(std::shared_ptr<MatrixState<T>>, const Coarsener&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
