#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <kernels/steps/coarsening/coarsening.hpp>
#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/multigrid/device_transfer.hpp"
#include "runtime/multigrid/joint_aggregates.hpp"
#include "runtime/multigrid/power_method.hpp"
#include "runtime/multigrid/transposed.hpp"
#include "runtime/node/per_device.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/matrix_factor.hpp"
#include "runtime/spgemm/rows_in_pieces.hpp"
#include "runtime/spgemm/whole_rows.hpp"

namespace rmsp::multigrid {
namespace {

/// In the memory of one device. Vectors along the rows have the range that its rows' columns touch.
template <class T>
struct OfDevice {
    DeviceArray<std::uint8_t> strong;  ///< marks of its entries of A
    DeviceArray<std::int32_t> number;  ///< of each row's aggregate
    DeviceArray<double> values;        ///< P before it is smoothed
    DeviceArray<double> coarse;        ///< the near-null vector of the coarser matrix, all of it
    kernels::CsrArrays<T> p;           ///< its rows, until they are distributed
    Transposed<T> r;                   ///< their transpose
    DeviceArray<double> vector;        ///< where the power method came to
    RowStatistics p_rows;
    RowStatistics r_rows;
};

/// P and R of aggregates, each of whose rows is made where the matrix has it. Which rows become roots is decided in the
/// order of all rows: by all devices together where they reach each other's memory, else on the first one, which gets
/// the pattern of A for as long.
template <class T>
class AggregationTransfer final : public Transfer<T> {
public:
    AggregationTransfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
        : a_(std::move(a)),
          coarsener_(coarsener),
          devices_(static_cast<std::size_t>(a_->runtime->devices())),
          largest_eigenvalue_(devices_, a_->options.determinism == Determinism::none),
          held_(a_->runtime)
    {
    }

    void read() override
    {
        a_held_ = spgemm::matrix_factor(*a_->runtime, a_, "the matrix");
        const std::vector<transport::Range> touched = a_held_->touched_columns();
        std::vector<transport::Range> ranges(devices_);
        for (std::size_t rank = 0; rank < devices_; ++rank) {
            const transport::Range own{first_row(rank), first_row(rank + 1)};
            if (!own.empty()) {
                ranges[rank] = touched.empty() ? transport::Range{0, rows()} : transport::hull(own, touched[rank]);
            }
        }
        along_rows_.emplace(*a_->runtime, a_held_->first_rows, std::move(ranges));
    }
    std::int64_t coarsen(Near& near) override
    {
        std::vector<char> canonical(devices_);
        coarse_rows_ = -1;
        const bool together = a_->plan.devices > 1 && JointAggregates::pays(*a_->runtime, rows());
        JointAggregates joint(*a_->runtime);
        std::optional<spgemm::RowsOnFirstDevice<T>> to_first;
        std::optional<spgemm::SliceExchange> marks;
        std::optional<spgemm::SliceExchange> numbers;
        if (together) {
            numbers.emplace(*a_->runtime, a_held_->first_rows, first_device_gets(rows()));
        } else {
            to_first.emplace(*a_->runtime, *a_held_, a_->plan.cols);
            marks.emplace(*a_->runtime, a_held_->slices, first_device_gets(a_held_->slices.back()));
        }
        on_devices([&](engine::Worker& worker, engine::Rendezvous& meeting, std::size_t rank) {
            const kernels::Context context = worker.context();
            OfDevice<T>& own = held_.parts[rank];
            a_held_->refresh(worker, meeting);
            canonical[rank] = kernels::is_canonical(shard(rank), context) ? 1 : 0;
            meeting.arrive_and_wait();
            if (std::find(canonical.begin(), canonical.end(), 0) != canonical.end()) {
                return;
            }
            find_strong(worker, meeting, rank);
            if (together) {
                const kernels::CsrShard<T> a = shard(rank);
                const DeviceArray<std::int32_t> number(*context.memory, static_cast<std::size_t>(a.rows));
                const std::int64_t found = joint.find(
                    worker, meeting, kernels::aggregate_part(a, first_row(rank), own.strong.data(), number.data()));
                if (found >= 0) {
                    if (rank == 0) {
                        own.number = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(rows()));
                    }
                    numbers->gather(worker, meeting, static_cast<const std::int32_t*>(number.data()),
                                    own.number.data());
                }
                if (rank == 0) {
                    coarse_rows_ = found;
                }
                return;
            }
            if (a_->plan.devices == 1) {
                if (rank == 0) {
                    find_alone(shard(rank), own.strong, context);
                }
                return;
            }
            const spgemm::DeviceRows<T> pattern = to_first->bring(worker, meeting, false);
            const DeviceArray<std::uint8_t> all(*context.memory, static_cast<std::size_t>(marks->size(worker.rank())));
            marks->gather(worker, meeting, static_cast<const std::uint8_t*>(own.strong.data()), all.data());
            if (rank == 0) {
                find_alone(pattern.shard, all, context);
            }
        });
        if (coarse_rows_ >= 0) {
            make_tentative(near);
        }
        return coarse_rows_;
    }
    bool interpolate(Near& near) override
    {
        std::vector<char> made(devices_);
        on_devices([&](engine::Worker& worker, engine::Rendezvous& meeting, std::size_t rank) {
            const kernels::Context context = worker.context();
            OfDevice<T>& own = held_.parts[rank];
            const DeviceArray<double> inverse = inverse_diagonal(rank, context);
            const double omega = find_omega(worker, meeting, inverse.data());
            auto p = kernels::smoothed_rows(aggregated(rank), inverse.data(), omega, coarsener_.smooth, context);
            made[rank] = p ? 1 : 0;
            if (p) {
                own.p = std::move(*p);
            }
        });
        if (std::find(made.begin(), made.end(), 0) != made.end()) {
            return false;
        }
        find_transpose();
        near.host.count = 1;
        near.host.values.clear();
        near.on_first_device = held_.parts.front().coarse.data();
        if (a_->plan.devices > 1) {
            depart();
        }
        return true;
    }
    plan::Stored<T> p() override
    {
        const OfDevice<T>& own = held_.parts.front();
        if (!p_entries_) {
            return stored_on_device(rows(), coarse_rows_, IndexView(own.p.row_ptr.data()), own.p.col_idx, own.p.values,
                                    own.p_rows);
        }
        plan::Stored<T> out = stored_on_devices<T>(rows(), coarse_rows_, p_slices_.back(), *p_entries_);
        out.first_entries = p_slices_;
        return out;
    }
    plan::Stored<T> r() override
    {
        const OfDevice<T>& own = held_.parts.front();
        if (!r_entries_) {
            return stored_on_device(coarse_rows_, rows(), own.r.pointers(), own.r.col_idx, own.r.values, own.r_rows);
        }
        plan::Stored<T> out = stored_on_devices<T>(coarse_rows_, rows(), p_slices_.back(), *r_entries_);
        out.sampled_entries = r_sampled_;
        out.sampled_rows = r_step_;
        return out;
    }
    void keep_distributed() override
    {
        on_devices([&](engine::Worker&, engine::Rendezvous&, std::size_t rank) {
            held_.parts[rank].p = {};
            // Pieces of rows come together anew in each renewal, by their row pointers.
            held_.parts[rank].r.forget(r_entries_.has_value());
        });
        p_entries_.reset();
        r_sampled_.clear();
        a_held_.reset();
    }
    void renew(const std::shared_ptr<MatrixState<T>>& p) override
    {
        on_devices([&](engine::Worker& worker, engine::Rendezvous& meeting, std::size_t rank) {
            const kernels::Context context = worker.context();
            OfDevice<T>& own = held_.parts[rank];
            a_held_->refresh(worker, meeting);
            const DeviceArray<double> inverse = inverse_diagonal(rank, context);
            const double omega = find_omega(worker, meeting, inverse.data());
            const kernels::CsrShard<T>& there = p->shards[rank]->owned;
            own.p.values = DeviceArray<T>(*context.memory, static_cast<std::size_t>(there.nnz));
            kernels::renew_smoothed_rows(aggregated(rank), inverse.data(), omega, coarsener_.smooth, there.row_ptr,
                                         own.p.values.data(), context);
            own.r.take(own.p.values.data(), there.nnz, context);
        });
    }
    void write(const std::shared_ptr<MatrixState<T>>& p, const std::shared_ptr<MatrixState<T>>& r) override
    {
        if (a_->plan.devices > 1) {
            depart();
            p_entries_->split(p->plan.partition);
            r_entries_->split(r->plan.partition);
            distributed::update_values<T>(p, nullptr, &*p_entries_);
            distributed::update_values<T>(r, nullptr, &*r_entries_);
        } else {
            distributed::update_values<T>(p, held_.parts.front().p.values.data());
            distributed::update_values<T>(r, held_.parts.front().r.values.data());
        }
        keep_distributed();
    }
    std::int64_t device_bytes() const override
    {
        std::int64_t bytes = 0;
        for (const OfDevice<T>& own : held_.parts) {
            bytes += bytes_of(own.strong) + bytes_of(own.number) + bytes_of(own.values) + bytes_of(own.coarse) +
                     bytes_of(own.vector) + own.r.kept_bytes();
        }
        return bytes;
    }
    std::int64_t host_bytes() const override { return 0; }

private:
    std::int64_t rows() const { return a_->plan.rows; }
    std::int64_t first_row(std::size_t rank) const { return a_held_->first_rows[rank]; }
    std::vector<transport::Range> first_device_gets(std::int64_t size) const
    {
        std::vector<transport::Range> needed(devices_);
        needed.front() = {0, size};
        return needed;
    }
    kernels::CsrShard<T> shard(std::size_t rank) const
    {
        const spgemm::FactorPart<T>& part = a_held_->parts[rank];
        kernels::CsrShard<T> out;
        out.rows = first_row(rank + 1) - first_row(rank);
        out.cols = a_->plan.cols;
        out.nnz = a_held_->slices[rank + 1] - a_held_->slices[rank];
        out.row_ptr = part.row_ptr;
        out.col_idx = part.col_idx;
        out.values = part.values;
        return out;
    }
    /// f(worker, meeting, rank) on each device; waits.
    template <class F>
    void on_devices(const F& f)
    {
        a_->runtime
            ->submit(
                [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                    f(worker, meeting, static_cast<std::size_t>(worker.rank()));
                    worker.stream().synchronize();
                },
                {}, true)
            .get();
    }
    template <class X>
    DeviceArray<X> make_along_rows(engine::Worker& worker) const
    {
        return DeviceArray<X>(*worker.context().memory, static_cast<std::size_t>(along_rows_->size(worker.rank())));
    }
    /// Where the entry of row 0 would be.
    template <class X>
    X* row_zero(std::size_t rank, const DeviceArray<X>& along_rows) const
    {
        return static_cast<X*>(
            spgemm::entry_zero(along_rows.data(), along_rows_->needed(static_cast<int>(rank)).first));
    }
    kernels::AggregatedRows<T> aggregated(std::size_t rank) const
    {
        const OfDevice<T>& own = held_.parts[rank];
        return {shard(rank),
                first_row(rank),
                own.strong.data(),
                row_zero(rank, own.number),
                row_zero(rank, own.values),
                own.coarse.data()};
    }
    void find_strong(engine::Worker& worker, engine::Rendezvous& meeting, std::size_t rank)
    {
        const kernels::Context context = worker.context();
        const kernels::CsrShard<T> a = shard(rank);
        OfDevice<T>& own = held_.parts[rank];
        own.strong = DeviceArray<std::uint8_t>(*context.memory, static_cast<std::size_t>(a.nnz));
        const auto diagonal = make_along_rows<double>(worker);
        const auto largest = make_along_rows<double>(worker);
        kernels::weigh_rows(a, first_row(rank), true, row_zero(rank, diagonal), row_zero(rank, largest), context);
        along_rows_->complete(worker, meeting, diagonal.data());
        along_rows_->complete(worker, meeting, largest.data());
        kernels::strong_entries(a, first_row(rank), true, coarsener_.threshold, row_zero(rank, diagonal),
                                row_zero(rank, largest), own.strong.data(), context);
    }
    /// On the first device. \param marks  of the entries of `pattern`, all of A
    void find_alone(const kernels::CsrShard<T>& pattern, const DeviceArray<std::uint8_t>& marks,
                    const kernels::Context& context)
    {
        OfDevice<T>& own = held_.parts.front();
        own.number = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(rows()));
        coarse_rows_ = find_aggregates(kernels::aggregate_part(pattern, 0, marks.data(), own.number.data()), context);
    }
    /// P before it is smoothed, on the first device, which has the numbers of all rows; then what the others need.
    void make_tentative(const Near& near)
    {
        const int devices = static_cast<int>(devices_);
        std::vector<transport::Range> along_rows;
        std::vector<transport::Range> of_coarse;
        for (int rank = 0; rank < devices; ++rank) {
            along_rows.push_back(along_rows_->needed(rank));
            of_coarse.push_back(along_rows.back().empty() ? transport::Range{} : transport::Range{0, coarse_rows_});
        }
        spgemm::SliceExchange from_first(*a_->runtime, spgemm::all_on(0, devices, rows()), std::move(along_rows));
        spgemm::SliceExchange coarse(*a_->runtime, spgemm::all_on(0, devices, coarse_rows_), std::move(of_coarse));
        on_devices([&](engine::Worker& worker, engine::Rendezvous& meeting, std::size_t rank) {
            const kernels::Context context = worker.context();
            OfDevice<T>& own = held_.parts[rank];
            own.coarse = DeviceArray<double>(*context.memory, static_cast<std::size_t>(coarse.size(worker.rank())));
            if (rank == 0) {
                find_lengths(worker, near);
            }
            if (a_->plan.devices > 1) {
                const DeviceArray<std::int32_t> number = std::move(own.number);
                own.number = make_along_rows<std::int32_t>(worker);
                from_first.gather(worker, meeting, static_cast<const std::int32_t*>(number.data()), own.number.data());
                coarse.gather(worker, meeting, static_cast<const double*>(own.coarse.data()), own.coarse.data());
                if (!near.constant()) {
                    const DeviceArray<double> values = std::move(own.values);
                    own.values = make_along_rows<double>(worker);
                    from_first.gather(worker, meeting, static_cast<const double*>(values.data()), own.values.data());
                }
            }
            if (near.constant()) {
                own.values = make_along_rows<double>(worker);
                kernels::normalised_ones(along_rows_->size(worker.rank()), own.number.data(), own.coarse.data(),
                                         own.values.data(), context);
            }
        });
    }
    /// On the first device: what a near-null vector has on the aggregates, and, unless it is constant, what is left of
    /// it in the rows.
    void find_lengths(engine::Worker& worker, const Near& near)
    {
        const kernels::Context context = worker.context();
        OfDevice<T>& own = held_.parts.front();
        if (near.constant()) {
            kernels::lengths_of_ones(rows(), own.number.data(), coarse_rows_, own.coarse.data(), context);
            return;
        }
        own.values = DeviceArray<double>(*context.memory, static_cast<std::size_t>(rows()));
        if (near.on_first_device != nullptr) {
            worker.stream().copy(own.values.data(), near.on_first_device, own.values.size() * sizeof(double));
        } else {
            worker.device().upload(worker.stream(), own.values.data(), near.host.values.data(),
                                   near.host.values.size() * sizeof(double));
        }
        kernels::normalise(rows(), own.number.data(), coarse_rows_, own.values.data(), own.coarse.data(), context);
    }
    DeviceArray<double> inverse_diagonal(std::size_t rank, const kernels::Context& context) const
    {
        const kernels::AggregatedRows<T> own = aggregated(rank);
        DeviceArray<double> inverse(*context.memory, static_cast<std::size_t>(own.a.rows));
        kernels::filtered_inverse(own, inverse.data(), context);
        return inverse;
    }
    /// By which P is smoothed.
    double find_omega(engine::Worker& worker, engine::Rendezvous& meeting, const double* inverse)
    {
        const auto rank = static_cast<std::size_t>(worker.rank());
        const double largest = coarsener_.smooth && rows() > 0
                                   ? largest_eigenvalue_(worker, meeting, aggregated(rank), inverse, *along_rows_,
                                                         held_.parts[rank].vector)
                                   : 0.0;
        return largest > 0 ? 4.0 / 3.0 / largest : 0.0;
    }
    /// R of P, each device's rows of it.
    void find_transpose()
    {
        std::int64_t most = 0;
        p_slices_.assign(1, 0);
        for (const OfDevice<T>& own : held_.parts) {
            const auto entries = static_cast<std::int64_t>(own.p.values.size());
            most = std::max(most, entries);
            p_slices_.push_back(p_slices_.back() + entries);
        }
        constexpr std::int64_t narrow = std::numeric_limits<std::int32_t>::max();
        constexpr std::int64_t samples = 1 << 15;
        const bool several = a_->plan.devices > 1;
        r_step_ = coarse_rows_ / samples + 1;
        const std::int64_t count = several ? (coarse_rows_ + r_step_ - 1) / r_step_ + 1 : 0;
        using Samples = std::vector<std::int64_t>;
        std::vector<Samples> sampled(devices_, Samples(static_cast<std::size_t>(count)));
        on_devices([&](engine::Worker& worker, engine::Rendezvous&, std::size_t rank) {
            const kernels::Context context = worker.context();
            OfDevice<T>& own = held_.parts[rank];
            const std::int64_t own_rows = first_row(rank + 1) - first_row(rank);
            const auto nnz = static_cast<std::int64_t>(own.p.values.size());
            const IndexView row_ptr(own.p.row_ptr.data());
            own.r.find(own.p.col_idx.data(), nnz, first_row(rank), own_rows, row_ptr, coarse_rows_, most > narrow,
                       context);
            own.r.take(own.p.values.data(), nnz, context);
            if (several) {
                const DeviceArray<std::int64_t> there(*context.memory, static_cast<std::size_t>(count));
                kernels::sample_pointers(coarse_rows_, own.r.pointers(), r_step_, count, there.data(), context);
                worker.device().download(worker.stream(), sampled[rank].data(), there.data(),
                                         there.size() * sizeof(std::int64_t));
            } else if (rank == 0) {
                own.p_rows = kernels::statistics_of_rows(own_rows, row_ptr, context);
                own.r_rows = kernels::statistics_of_rows(coarse_rows_, own.r.pointers(), context);
            }
        });
        // The row pointers of all of R are the sums of those of the devices' parts.
        r_sampled_.assign(static_cast<std::size_t>(count), 0);
        for (const Samples& of : sampled) {
            std::transform(of.begin(), of.end(), r_sampled_.begin(), r_sampled_.begin(), std::plus<>());
        }
    }
    /// What brings P and R from the devices to their parts.
    void depart()
    {
        std::vector<spgemm::FactorPart<T>> p;
        std::vector<typename spgemm::RowsInPieces<T>::Piece> r;
        for (const OfDevice<T>& own : held_.parts) {
            p.push_back({IndexView(own.p.row_ptr.data()), own.p.col_idx.data(), own.p.values.data()});
            r.push_back({own.r.pointers(), own.r.col_idx.data(), own.r.values.data()});
        }
        p_entries_.emplace(*a_->runtime, std::move(p), p_slices_, a_held_->first_rows);
        r_entries_.emplace(*a_->runtime, coarse_rows_, std::move(r));
    }

    std::shared_ptr<MatrixState<T>> a_;
    Coarsener coarsener_;
    std::size_t devices_;
    std::int64_t coarse_rows_ = 0;
    PowerMethod<T> largest_eigenvalue_;
    std::unique_ptr<spgemm::ResidentFactor<T>> a_held_;  ///< from read() on, until P and R are distributed
    std::optional<spgemm::SliceExchange> along_rows_;
    std::vector<std::int64_t> p_slices_;  ///< entries of P before those of each device, and all at the end
    // Where several devices have rows, until R is distributed: entries of R before each r_step_-th row.
    std::vector<std::int64_t> r_sampled_;
    std::int64_t r_step_ = 1;
    std::optional<spgemm::EntriesOnDevices<T>> p_entries_;
    std::optional<spgemm::RowsInPieces<T>> r_entries_;
    node::PerDevice<OfDevice<T>> held_;
};

}  // namespace

template <class T>
std::unique_ptr<Transfer<T>> aggregation_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
{
    return std::make_unique<AggregationTransfer<T>>(std::move(a), coarsener);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<Transfer<T>> aggregation_transfer(std::shared_ptr<MatrixState<T>>, const Coarsener&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
