#include <algorithm>
#include <memory>

#include <core/value_types.hpp>
#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/matrix/products.hpp"

namespace rmsp::detail {

using distributed::Source;
using distributed::Target;

template <class T>
void GhostedState<T>::prepare_transposed()
{
    distributed::prepare_apply(*MatrixAccess::state(multiplied()), true);
    if (!ghosts.empty()) {
        distributed::prepare_apply(*MatrixAccess::state(rest), true);
    }
    if (!sent.empty()) {
        auto& matrix = *MatrixAccess::state(pick);
        distributed::prepare_apply(matrix, true);
        // Entries that come back to several GPUs are added by one of them, which has room for its own ones of y alone.
        if (!VectorAccess::state(back) && !matrix.runtime->shared_memory() && matrix.runtime->devices() > 1) {
            back = pick.make_x(Layout::rows);
        }
    }
}

template <class T>
void GhostedState<T>::take_rest_rows(engine::Worker& worker, const VectorState<T>& from)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto& list = parts->parts[rank].rest_rows;
    kernels::pack(from.slices[rank], list.data(), static_cast<std::int64_t>(list.size()),
                  VectorAccess::state(of_rest_rows)->slices[rank], worker.context());
}

template <class T>
void GhostedState<T>::give_rest_rows(engine::Worker& worker, const VectorState<T>& x, const VectorState<T>& to,
                                     sequence::ProductSums* sums)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto& list = parts->parts[rank].rest_rows;
    const T* const from = VectorAccess::state(of_rest_rows)->slices[rank];
    const auto n = static_cast<std::int64_t>(list.size());
    if (sums == nullptr || sums->count[rank] == 0 || n == 0) {
        kernels::put_back(from, list.data(), n, to.slices[rank], worker.context());
        return;
    }
    kernels::put_back_with(from, list.data(), n, to.slices[rank], x.slices[rank],
                           sums->places[rank].data() + sums->count[rank], worker.context());
    sums->count[rank] += kernels::put_back_sums;
}

template <class T>
void GhostedState<T>::queue_leaving(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                                    const std::shared_ptr<VectorState<T>>& x, bool of_transpose)
{
    if (!of_transpose && !sent.empty()) {
        distributed::apply_on(*MatrixAccess::state(pick), worker, meeting, T{1}, Source<T>{nullptr, x}, T{0},
                              sent.target(), nullptr, false);
    }
    if (of_transpose && !ghosts.empty()) {
        std::shared_ptr<VectorState<T>> of_rows = x;
        if (!rest_rows.empty()) {
            take_rest_rows(worker, *x);
            of_rows = VectorAccess::state(of_rest_rows);
        }
        distributed::apply_on(*MatrixAccess::state(rest), worker, meeting, alpha, Source<T>{nullptr, of_rows}, T{0},
                              ghosts.target(), nullptr, true);
    }
}

template <class T>
void GhostedState<T>::queue_arrived(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                                    const std::shared_ptr<VectorState<T>>& x, const std::shared_ptr<VectorState<T>>& y,
                                    bool of_transpose, sequence::ProductSums* sums)
{
    if (!of_transpose && !ghosts.empty()) {
        auto& matrix = *MatrixAccess::state(rest);
        if (rest_rows.empty()) {
            distributed::apply_on(matrix, worker, meeting, alpha, ghosts.source(), T{1}, Target<T>{nullptr, y}, nullptr,
                                  false);
            return;
        }
        // In y's own entries, so that they get the bits of a product with all rows.
        take_rest_rows(worker, *y);
        distributed::apply_on(matrix, worker, meeting, alpha, ghosts.source(), T{1},
                              Target<T>{nullptr, VectorAccess::state(of_rest_rows)}, nullptr, false);
        give_rest_rows(worker, *x, *y, sums);
    }
    if (of_transpose && !sent.empty()) {
        const auto& added = VectorAccess::state(back);
        distributed::apply_on(*MatrixAccess::state(pick), worker, meeting, T{1}, sent.source(), added ? T{0} : T{1},
                              Target<T>{nullptr, added ? added : y}, nullptr, true);
        if (added) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const kernels::PartialSums<T> came{added->slices[rank], 0, y->offsets[rank + 1] - y->offsets[rank]};
            kernels::add_partials(y->slices[rank], came.first, came.end, T{1}, &came, 1, worker.context());
        }
    }
}

template <class T>
void GhostedState<T>::queue(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                            const std::shared_ptr<VectorState<T>>& x, T beta, const std::shared_ptr<VectorState<T>>& y,
                            bool of_transpose, sequence::ProductSums* sums)
{
    // What goes out, from vectors and to vectors; with A^T those of the ghosts go out and are added where they belong.
    const GhostedEntries<T>& out = of_transpose ? ghosts : sent;
    const GhostedEntries<T>& in = of_transpose ? sent : ghosts;
    const auto& sender = MatrixAccess::state(of_transpose ? rest : pick);
    const bool speaks = worker.rank() == 0;
    const bool on_device = exchange->on_device();
    GhostedPart& part = parts->parts[static_cast<std::size_t>(worker.rank())];
    const auto record = [&](std::unique_ptr<engine::Event>& event, engine::Stream& stream) {
        if (!event) {
            event = worker.device().make_event(false);
        }
        stream.record(*event);
    };
    T* const to_copy = out.data + out.count - copied.size();
    T* const copies = in.data + in.count - copied.size();
    const auto begin_exchange = [&] {
        meeting.arrive_and_wait();
        if (!speaks) {
            return;
        }
        if (!out.empty()) {
            distributed::finish_host_y(*sender, out.data, of_transpose);
        }
        std::copy_n(to_copy, copied.size(), copies);
        outside->post([this, &out, &in, of_transpose] { exchange->begin(out.data, in.data, of_transpose); });
    };

    meeting.arrive_and_wait();
    queue_leaving(worker, meeting, alpha, x, of_transpose);
    // A GPU multiplies meanwhile; a host device has done what was queued, and would be late.
    const bool at_once = !on_device && worker.device().shares_host_memory();
    if (at_once) {
        worker.stream().synchronize();
        begin_exchange();
    } else if (!on_device) {
        record(part.gone, worker.stream());
    } else if (speaks) {
        if (!copied.empty()) {
            worker.stream().copy(copies, to_copy, copied.size() * sizeof(T));
        }
        record(part.gone, worker.stream());
        worker.side_stream().wait(*part.gone);
    }
    auto& inside = *MatrixAccess::state(multiplied());
    const auto rank = static_cast<std::size_t>(worker.rank());
    if (sums != nullptr) {
        sums->count[rank] = inside.products[0]->leave_sums(worker.rank(), sums->places[rank].data());
    }
    distributed::apply_on(inside, worker, meeting, alpha, Source<T>{nullptr, x}, beta, Target<T>{nullptr, y}, nullptr,
                          of_transpose);
    if (sums != nullptr) {
        inside.products[0]->leave_sums(worker.rank(), nullptr);
    }
    bool in_order = false;
    if (on_device && speaks) {
        // Now, since the device has work: what is queued there first begins all the same once there is room.
        engine::Stream& side = worker.side_stream();
        in_order = outside->exchange_on(*exchange, side.native(), out.data, in.data, of_transpose);
        if (in_order) {
            record(part.came, side);
            worker.stream().wait(*part.came);
        }
    }
    if (!at_once && !on_device) {
        part.gone->synchronize();
        begin_exchange();
    }
    if (speaks && !in_order) {
        outside->ask([this] { exchange->end(); });
    }
    meeting.arrive_and_wait();
    queue_arrived(worker, meeting, alpha, x, y, of_transpose, sums);
    meeting.arrive_and_wait();
}

#define RMSP_INSTANTIATE(T) template struct GhostedState<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail
