#include "runtime/spgemm/triple_in_slabs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "runtime/matrix/part_columns.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/matrix_factor.hpp"
#include "runtime/spgemm/part.hpp"

namespace rmsp::spgemm {
namespace {

/// Bytes that a product of A P takes at the most crowded moment: its share of A P, of what finds the structures of A P
/// and of R (A P), and of C. The 7-point Laplacian takes 19 on an H100.
constexpr std::int64_t bytes_a_product = 24;
/// Products of A P that are computed at once at most, whatever the room: of more it was never tried.
constexpr std::int64_t most_products = std::int64_t{1} << 32;
/// Slabs take so much of the room that there is. Few are faster: where they meet, rows are multiplied twice.
constexpr std::int64_t share_of_room = 3;
/// So many slabs are given up.
constexpr std::int64_t most_slabs = 4096;

/// Rows of a device, of which each slab has as many as the others.
std::int64_t rows_each(std::int64_t rows, std::int64_t slabs)
{
    return std::max<std::int64_t>((rows - 1) / slabs + 1, 1);
}

/// The columns that occur, and all between them; waits.
transport::Range extent(engine::Worker& worker, const std::int32_t* columns, std::int64_t n)
{
    const kernels::IndexRange found = distributed::PartColumns(worker, columns, 0).extent({0, n});
    return {found.first, found.end};
}

/// C = A B on the device, all of it.
template <class T>
struct Computed {
    /// Of A and B with entries. Waits for nothing at the end. \param memory  to be there as long as this is
    Computed(engine::Worker& worker, engine::MemoryBudget& memory, const SpgemmOptions& options, const DeviceRows<T>& a,
             const DeviceRows<T>& b)
        : operation(prepare_product(worker, memory, options, a, b, {}))
    {
        check_counts(*operation, operation->products(), b.shard.cols);
        const auto nnz = static_cast<std::size_t>(operation->nnz());
        col_idx = kernels::DeviceArray<std::int32_t>(*worker.context().memory, nnz);
        values = kernels::DeviceArray<T>(*worker.context().memory, nnz);
        const kernels::Context context = context_of(worker, memory);
        operation->fill(T{1}, a.shard.values, b.shard.values, col_idx.data(), values.data(), context);
        operation->finish(context);
    }

    std::unique_ptr<kernels::SpgemmOperator<T>> operation;  ///< has the row pointers
    kernels::DeviceArray<std::int32_t> col_idx;
    kernels::DeviceArray<T> values;
};

/// Calls f(pointers) for memory of rows + 1 of them, of the width that so many entries need.
template <class T, class F>
void make_pointers(kernels::Memory& memory, std::int64_t rows, std::int64_t nnz, DeviceRows<T>& out, const F& f)
{
    const auto as = [&]<class Pointer>(Pointer /*type*/) {
        out.row_ptr = kernels::DeviceArray<std::byte>(memory, (static_cast<std::size_t>(rows) + 1) * sizeof(Pointer));
        auto* const pointers = reinterpret_cast<Pointer*>(out.row_ptr.data());
        out.shard.row_ptr = IndexView(static_cast<const Pointer*>(pointers));
        f(pointers);
    };
    if (nnz <= std::numeric_limits<std::int32_t>::max()) {
        as(std::int32_t{});
    } else {
        as(std::int64_t{});
    }
}

/// Copies of the rows of a factor that each device wants.
template <class T>
class WantedRows {
public:
    WantedRows(RuntimeState& runtime, const ResidentFactor<T>& from, std::int64_t cols)
        : runtime_(runtime), from_(from), cols_(cols), entries_(runtime, from.parts, from.slices, from.first_rows)
    {
    }

    /// Not on a worker.
    void want(const std::vector<transport::Range>& rows)
    {
        std::vector<std::int64_t> ends;
        for (const transport::Range& range : rows) {
            ends.push_back(range.first);
            ends.push_back(range.end);
        }
        const std::vector<std::int64_t> before = from_.entries_before(runtime_, ends);
        Partition partition;
        partition.rows = from_.first_rows.back();
        partition.nnz = from_.slices.back();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            partition.parts.push_back({before[2 * i], before[2 * i + 1], rows[i].first, rows[i].end, false});
        }
        entries_.split(partition);
        parts_ = std::move(partition.parts);
    }
    /// Every worker of the job calls it. Waits for the device.
    void bring(engine::Worker& worker, engine::Rendezvous& meeting, DeviceRows<T>& out)
    {
        const PartialCsr& part = parts_[static_cast<std::size_t>(worker.rank())];
        kernels::Memory& memory = *worker.context().memory;
        out.col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(part.nnz()));
        out.values = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(part.nnz()));
        entries_.gather_columns(worker, meeting, out.col_idx.data());
        entries_.gather(worker, meeting, out.values.data());
        out.shard = {part.rows(), cols_, part.nnz(), {}, out.col_idx.data(), out.values.data()};
        make_pointers(memory, part.rows(), part.nnz(), out,
                      [&](auto* pointers) { entries_.gather_row_ptr(worker, meeting, pointers); });
        out.filled = {0, part.rows()};
        out.selected = part.rows();
    }

private:
    RuntimeState& runtime_;
    const ResidentFactor<T>& from_;
    std::int64_t cols_;
    EntriesOnDevices<T> entries_;
    std::vector<PartialCsr> parts_;  ///< of each device
};

/// From the columns of a matrix to those of the rows that were copied, of which the first was this one; queues it.
template <class T>
void count_from(std::int64_t first, DeviceRows<T>& rows, std::int64_t cols, engine::Worker& worker)
{
    kernels::shift_indices(rows.col_idx.data(), rows.shard.nnz, static_cast<std::int32_t>(-first), rows.col_idx.data(),
                           worker.context());
    rows.shard.cols = cols;
}

}  // namespace

/// What is multiplied.
template <class T>
struct TripleInSlabs<T>::Sources {
    ResidentFactor<T>& r;
    WantedRows<T>& a;
    WantedRows<T>& p;
    std::int64_t cols;  ///< of P
    SpgemmOptions options;
};

template <class T>
TripleInSlabs<T>::TripleInSlabs(const std::shared_ptr<MatrixState<T>>& r, const std::shared_ptr<MatrixState<T>>& a,
                                const std::shared_ptr<MatrixState<T>>& p, Determinism determinism, std::int64_t slabs)
    : ResidentFactor<T>(r->plan.rows, p->plan.cols),
      runtime_(r->runtime),
      room_(static_cast<std::size_t>(runtime_->devices()))
{
    const auto r_there = matrix_factor(*runtime_, r, "R");
    const auto a_there = matrix_factor(*runtime_, a, "A");
    const auto p_there = matrix_factor(*runtime_, p, "P");
    runtime_
        ->submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            for (ResidentFactor<T>* const factor : {r_there.get(), a_there.get(), p_there.get()}) {
                factor->refresh(worker, meeting);
            }
        })
        .get();
    WantedRows<T> of_a(*runtime_, *a_there, a->plan.cols);
    WantedRows<T> of_p(*runtime_, *p_there, p->plan.cols);
    for (int rank = 0; rank < runtime_->devices(); ++rank) {
        devices_.push_back(std::make_unique<OnDevice>());
    }
    SpgemmOptions options;
    options.determinism = determinism;
    this->first_rows = r_there->first_rows;
    compute(slabs > 0 ? slabs : slabs_for(*r, *a, *p), {*r_there, of_a, of_p, p->plan.cols, options});
    this->slices = {0};
    for (const std::unique_ptr<OnDevice>& device : devices_) {
        const Slab& c = device->c;
        this->parts.push_back(
            {IndexView(static_cast<const std::int64_t*>(c.row_ptr.data())), c.col_idx.data(), c.values.data()});
        this->slices.push_back(this->slices.back() + c.nnz);
    }
}

template <class T>
TripleInSlabs<T>::~TripleInSlabs()
{
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
        runtime_->release(static_cast<int>(rank), room_, [device = devices_[rank].release()] { delete device; });
    }
}

template <class T>
void TripleInSlabs<T>::compute(std::int64_t slabs, const Sources& from)
{
    const auto left = [&](std::size_t rank) {
        return this->first_rows[rank + 1] - this->first_rows[rank] - devices_[rank]->next;
    };
    for (;;) {
        bool done = true;
        for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
            OnDevice& device = *devices_[rank];
            device.rows = std::min(rows_each(this->first_rows[rank + 1] - this->first_rows[rank], slabs), left(rank));
            done = done && device.rows == 0;
        }
        if (done) {
            break;
        }
        try {
            make_slab(from);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::out_of_memory || slabs >= most_slabs) {
                throw;
            }
            clear_slab();
            slabs *= 2;
            continue;
        }
        ++slabs_;
        for (const std::unique_ptr<OnDevice>& device : devices_) {
            device->next += device->rows;
            device->all.push_back(std::move(device->made));
            device->made = {};
        }
    }
    runtime_->submit([&](engine::Worker& worker, engine::Rendezvous&) { join(worker); }).get();
}

/// Frees what a slab has so far.
template <class T>
void TripleInSlabs<T>::clear_slab()
{
    runtime_
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            OnDevice& device = *devices_[static_cast<std::size_t>(worker.rank())];
            device.forget_factors();
            device.made = {};
        })
        .get();
}

template <class T>
void TripleInSlabs<T>::make_slab(const Sources& from)
{
    const auto ranges = [&](transport::Range OnDevice::*of) {
        std::vector<transport::Range> all;
        for (const std::unique_ptr<OnDevice>& device : devices_) {
            all.push_back(device.get()->*of);
        }
        return all;
    };
    runtime_->submit([&](engine::Worker& worker, engine::Rendezvous&) { take_r(worker, from); }).get();
    from.a.want(ranges(&OnDevice::a_rows));
    runtime_
        ->submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            OnDevice& device = *devices_[static_cast<std::size_t>(worker.rank())];
            from.a.bring(worker, meeting, device.a);
            device.p_rows = extent(worker, device.a.col_idx.data(), device.a.shard.nnz);
            count_from(device.p_rows.first, device.a, device.p_rows.end - device.p_rows.first, worker);
        })
        .get();
    from.p.want(ranges(&OnDevice::p_rows));
    runtime_
        ->submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            OnDevice& device = *devices_[static_cast<std::size_t>(worker.rank())];
            from.p.bring(worker, meeting, device.p);
            multiply(worker, from);
        })
        .get();
}

/// The slab's rows of R, and which rows of A they touch.
template <class T>
void TripleInSlabs<T>::take_r(engine::Worker& worker, const Sources& from)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    OnDevice& device = *devices_[rank];
    device.a_rows = {};
    if (device.rows == 0) {
        return;
    }
    const FactorPart<T>& there = from.r.parts[rank];
    const std::int64_t first = pointer_at(worker, there.row_ptr, device.next);
    const std::int64_t nnz = pointer_at(worker, there.row_ptr, device.next + device.rows) - first;
    device.a_rows = extent(worker, there.col_idx + first, nnz);
    kernels::Memory& memory = *worker.context().memory;
    device.r.col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(nnz));
    kernels::shift_indices(there.col_idx + first, nnz, static_cast<std::int32_t>(-device.a_rows.first),
                           device.r.col_idx.data(), worker.context());
    device.r.shard = {device.rows,         device.a_rows.end - device.a_rows.first, nnz, {}, device.r.col_idx.data(),
                      there.values + first};
    make_pointers(memory, device.rows, nnz, device.r, [&](auto* pointers) {
        const IndexView from_here = there.row_ptr.visit([&](const auto* p) { return IndexView(p + device.next); });
        kernels::localize_row_ptr(from_here, device.rows, first, nnz, pointers, worker.context());
    });
    worker.stream().synchronize();
}

/// A P of the slab's rows, then its rows of C.
template <class T>
void TripleInSlabs<T>::multiply(engine::Worker& worker, const Sources& from)
{
    OnDevice& device = *devices_[static_cast<std::size_t>(worker.rank())];
    if (device.rows == 0) {
        return;
    }
    Slab& c = device.made;
    c.rows = device.rows;
    c.row_ptr = kernels::DeviceArray<std::int64_t>(*worker.context().memory, static_cast<std::size_t>(c.rows) + 1);
    if (device.r.shard.nnz == 0 || device.a.shard.nnz == 0 || device.p.shard.nnz == 0) {
        kernels::localize_row_ptr(device.r.shard.row_ptr, c.rows, 0, 0, c.row_ptr.data(), worker.context());
    } else {
        engine::MemoryBudget memory(*worker.context().memory, worker.device().room(), "a slab of R A P");
        const Computed<T> ap(worker, memory, from.options, device.a, device.p);
        device.a = {};
        device.p = {};
        DeviceRows<T> rows;
        rows.shard = {device.r.shard.cols, from.cols,       ap.operation->nnz(), IndexView(ap.operation->row_ptr()),
                      ap.col_idx.data(),   ap.values.data()};
        rows.filled = {0, rows.shard.rows};
        rows.selected = rows.shard.rows;
        Computed<T> rap(worker, memory, from.options, device.r, rows);
        c.nnz = rap.operation->nnz();
        c.col_idx = std::move(rap.col_idx);
        c.values = std::move(rap.values);
        worker.stream().copy(c.row_ptr.data(), rap.operation->row_ptr(),
                             (static_cast<std::size_t>(c.rows) + 1) * sizeof(std::int64_t));
    }
    device.forget_factors();
    worker.stream().synchronize();
}

/// All slabs of a device to one, which frees them.
template <class T>
void TripleInSlabs<T>::join(engine::Worker& worker)
{
    OnDevice& device = *devices_[static_cast<std::size_t>(worker.rank())];
    const kernels::Context context = worker.context();
    Slab& c = device.c;
    for (const Slab& slab : device.all) {
        c.rows += slab.rows;
        c.nnz += slab.nnz;
    }
    c.row_ptr = kernels::DeviceArray<std::int64_t>(*context.memory, static_cast<std::size_t>(c.rows) + 1);
    const std::int64_t none = 0;
    worker.device().upload(worker.stream(), c.row_ptr.data(), &none, sizeof none);
    std::int64_t row = 0;
    std::int64_t entry = 0;
    for (Slab& slab : device.all) {
        if (slab.rows > 0) {
            kernels::localize_row_ptr(IndexView(static_cast<const std::int64_t*>(slab.row_ptr.data())), slab.rows,
                                      -entry, c.nnz, c.row_ptr.data() + row, context);
        }
        slab.row_ptr.reset();
        row += slab.rows;
        entry += slab.nnz;
    }
    // One array after the other, so that there is not all of C twice.
    const auto gather = [&]<class E>(kernels::DeviceArray<E> Slab::*of) {
        c.*of = kernels::DeviceArray<E>(*context.memory, static_cast<std::size_t>(c.nnz));
        E* to = (c.*of).data();
        for (Slab& slab : device.all) {
            if (slab.nnz > 0) {
                worker.stream().copy(to, (slab.*of).data(), static_cast<std::size_t>(slab.nnz) * sizeof(E));
                to += slab.nnz;
            }
            (slab.*of).reset();
        }
    };
    gather(&Slab::col_idx);
    gather(&Slab::values);
    device.all.clear();
    worker.stream().synchronize();
}

template <class T>
std::int64_t slabs_for(const MatrixState<T>& r, const MatrixState<T>& a, const MatrixState<T>& p)
{
    const double products_an_entry =
        static_cast<double>(p.plan.nnz) / static_cast<double>(std::max<std::int64_t>(p.plan.rows, 1)) *
        static_cast<double>(a.plan.nnz) / static_cast<double>(std::max<std::int64_t>(r.plan.nnz, 1));
    double slabs = 1;
    for (int rank = 0; rank < r.runtime->devices(); ++rank) {
        const auto nnz = static_cast<double>(r.plan.partition.parts[static_cast<std::size_t>(rank)].nnz());
        const double products = products_an_entry * nnz;
        const auto room = static_cast<double>(r.runtime->memory->room(rank));  // 0: not known
        const double of_room = room > 0 ? products * bytes_a_product / room : 0;
        const double of_most = products / static_cast<double>(most_products);
        if (of_room > 1 || of_most > 1) {
            slabs = std::max({slabs, of_most, of_room * share_of_room});
        }
    }
    return static_cast<std::int64_t>(std::ceil(std::min(slabs, static_cast<double>(most_slabs))));
}

#define RMSP_INSTANTIATE(T)          \
    template class TripleInSlabs<T>; \
    template std::int64_t slabs_for(const MatrixState<T>&, const MatrixState<T>&, const MatrixState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::spgemm
