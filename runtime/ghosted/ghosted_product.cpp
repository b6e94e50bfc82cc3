#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <core/value_types.hpp>
#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/row_product.hpp"

namespace rmsp::detail {

using distributed::Source;
using distributed::Target;

namespace {

/// Records on a stream an event that is made when it is needed.
void record(engine::Worker& worker, std::unique_ptr<engine::Event>& event, engine::Stream& stream)
{
    if (!event) {
        event = worker.device().make_event(false);
    }
    stream.record(*event);
}

/// Has the worker's stream wait for its side stream, at the latest where an error ends the product: nothing is queued
/// there then that still uses what the caller frees.
class SideJoin {
public:
    SideJoin(engine::Worker& worker, std::unique_ptr<engine::Event>& event) : worker_(worker), event_(event) {}
    ~SideJoin()
    {
        try {
            join();
        } catch (...) {
            // Of a device that is lost; the first error is the one to tell.
        }
    }
    SideJoin(const SideJoin&) = delete;
    SideJoin& operator=(const SideJoin&) = delete;

    void join()
    {
        if (!std::exchange(joined_, true)) {
            record(worker_, event_, worker_.side_stream());
            worker_.stream().wait(*event_);
        }
    }

private:
    engine::Worker& worker_;
    std::unique_ptr<engine::Event>& event_;
    bool joined_ = false;
};

}  // namespace

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
void GhostedState<T>::add_rest_rows(engine::Worker& worker, const VectorState<T>& x, const VectorState<T>& y,
                                    sequence::ProductSums* sums)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto& list = parts->parts[rank].rest_rows;
    const T* const found = VectorAccess::state(of_rest_rows)->slices[rank];
    const auto n = static_cast<std::int64_t>(list.size());
    if (sums == nullptr || sums->count[rank] == 0 || n == 0) {
        kernels::add_at(found, list.data(), n, y.slices[rank], worker.context());
        return;
    }
    kernels::add_at_with(found, list.data(), n, y.slices[rank], x.slices[rank],
                         sums->places[rank].data() + sums->count[rank], worker.context());
    sums->count[rank] += kernels::add_at_sums;
}

template <class T>
bool GhostedState<T>::works_beside(engine::Worker& worker, bool of_transpose) const
{
    if (worker.device().shares_host_memory()) {
        return false;
    }
    if (MatrixAccess::state(own)->runtime->devices() == 1) {
        return true;
    }
    const auto exchanges = [](const DistributedMatrix<T>& matrix) {
        const auto& state = MatrixAccess::state(matrix);
        return state && distributed::row_product(*state)->exchanges();
    };
    return !of_transpose && exchange->on_devices() && !exchanges(pick) && !exchanges(rest);
}

template <class T>
void GhostedState<T>::exchange_on_devices(engine::Worker& worker, engine::Rendezvous& meeting, bool of_transpose)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto& out = (of_transpose ? ghosts : sent).vector;
    const auto& in = (of_transpose ? sent : ghosts).vector;
    arrays[rank] = {worker.side_stream().native(), out ? out->slices[rank] : nullptr, in ? in->slices[rank] : nullptr};
    meeting.arrive_and_wait();
    if (rank == 0) {
        in_order = outside->exchange_on(*exchange, arrays, of_transpose);
    }
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
void GhostedState<T>::queue_ghosts(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, bool of_transpose)
{
    if (!of_transpose && !ghosts.empty() && !rest_rows.empty()) {
        distributed::apply_on(*MatrixAccess::state(rest), worker, meeting, alpha, ghosts.source(), T{0},
                              Target<T>{nullptr, VectorAccess::state(of_rest_rows)}, nullptr, false);
    }
}

template <class T>
void GhostedState<T>::queue_arrived(engine::Worker& worker, engine::Rendezvous& meeting, T alpha,
                                    const std::shared_ptr<VectorState<T>>& x, const std::shared_ptr<VectorState<T>>& y,
                                    bool of_transpose, sequence::ProductSums* sums)
{
    if (!of_transpose && !ghosts.empty()) {
        if (rest_rows.empty()) {
            distributed::apply_on(*MatrixAccess::state(rest), worker, meeting, alpha, ghosts.source(), T{1},
                                  Target<T>{nullptr, y}, nullptr, false);
        } else {
            add_rest_rows(worker, *x, *y, sums);
        }
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
    const bool on_devices = exchange->on_devices();
    const auto rank = static_cast<std::size_t>(worker.rank());
    GhostedPart& part = parts->parts[rank];
    const auto begin_exchange = [&] {
        meeting.arrive_and_wait();
        if (!speaks) {
            return;
        }
        if (!out.empty()) {
            distributed::finish_host_y(*sender, out.data, of_transpose);
        }
        std::copy_n(out.data + out.count - copied.size(), copied.size(), in.data + in.count - copied.size());
        outside->post([this, &out, &in, of_transpose] { exchange->begin(out.data, in.data, of_transpose); });
    };

    const bool beside = works_beside(worker, of_transpose);
    std::optional<SideJoin> side_join;
    const auto aside = [&](const auto& f) {
        std::optional<engine::OnSideStream> on;
        if (beside) {
            on.emplace(worker);
        }
        f();
    };

    meeting.arrive_and_wait();
    if (beside) {
        record(worker, part.begun, worker.stream());
        worker.side_stream().wait(*part.begun);
        side_join.emplace(worker, part.came);
    }
    // A GPU multiplies meanwhile; a host device has done what was queued, and would be late.
    const bool at_once = !on_devices && worker.device().shares_host_memory();
    aside([&] {
        queue_leaving(worker, meeting, alpha, x, of_transpose);
        if (part.copied > 0) {
            // The last ones of what the device has.
            const auto last = [&](const GhostedEntries<T>& entries) {
                const VectorState<T>& vector = *entries.vector;
                return vector.slices[rank] + vector.offsets[rank + 1] - vector.offsets[rank] -
                       static_cast<std::int64_t>(part.copied);
            };
            worker.stream().copy(last(in), last(out), part.copied * sizeof(T));
        }
        if (!at_once && !(on_devices && beside)) {
            record(worker, part.gone, worker.stream());
        }
    });
    if (at_once) {
        worker.stream().synchronize();
        begin_exchange();
    } else if (on_devices && !beside) {
        worker.side_stream().wait(*part.gone);
    }
    auto& inside = *MatrixAccess::state(multiplied());
    if (sums != nullptr) {
        sums->count[rank] = inside.products[0]->leave_sums(worker.rank(), sums->places[rank].data());
    }
    distributed::apply_on(inside, worker, meeting, alpha, Source<T>{nullptr, x}, beta, Target<T>{nullptr, y}, nullptr,
                          of_transpose);
    if (sums != nullptr) {
        inside.products[0]->leave_sums(worker.rank(), nullptr);
    }
    if (on_devices) {
        // Now, since the devices have work: what is queued there first begins all the same once there is room.
        exchange_on_devices(worker, meeting, of_transpose);
    } else if (!at_once) {
        part.gone->synchronize();
        begin_exchange();
    }
    if (speaks && !(on_devices && in_order)) {
        outside->ask([this] { exchange->end(); });
    }
    meeting.arrive_and_wait();
    if (on_devices && !beside) {
        record(worker, part.came, worker.side_stream());
        worker.stream().wait(*part.came);
    }
    aside([&] { queue_ghosts(worker, meeting, alpha, of_transpose); });
    if (side_join) {
        side_join->join();
    }
    queue_arrived(worker, meeting, alpha, x, y, of_transpose, sums);
    meeting.arrive_and_wait();
}

#define RMSP_INSTANTIATE(T) template struct GhostedState<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail
