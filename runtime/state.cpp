#include "runtime/state.hpp"

#include <new>

#include <rmsp/error.hpp>

#include "runtime/choose.hpp"

namespace rmsp::detail {

RuntimeState::~RuntimeState() { stop(); }

std::vector<double> RuntimeState::limits(Mode mode) const
{
    std::lock_guard lock(mutex);
    const bool link = mode == Mode::streamed && !shared_memory() && !(options.limit_gbs > 0);
    std::vector<double> known(infos.size(), 0.0);
    for (std::size_t i = 0; i < infos.size(); ++i) {
        known[i] = !link ? infos[i].limit_gbs : link_gbs.empty() ? 0.0 : link_gbs[i];
    }
    return known;
}

void RuntimeState::require_live() const
{
    if (workers.empty()) {
        throw Error(ErrorCode::usage,
                    "this runtime describes another machine (" + topology.source + "): it plans, but runs nothing");
    }
}

std::future<void> RuntimeState::submit(runtime::Job::Body body, std::function<void()> finish, bool host_data)
{
    require_live();
    return jobs->submit(std::move(body), std::move(finish), host_data);
}

void RuntimeState::release(int rank, const std::function<void()>& f) noexcept
{
    if (jobs && jobs->post(rank, [f](runtime::Worker&) { f(); })) {
        return;
    }
    if (!workers.empty()) {
        try {
            workers[static_cast<std::size_t>(rank)]->device().make_current();
        } catch (const Error&) {
            // The driver is shutting down and takes the memory with it; f still has host memory to free.
        }
    }
    f();
}

void RuntimeState::stop() noexcept
{
    if (jobs) {
        jobs->close();
    }
    for (const auto& worker : workers) {
        worker->stop();
    }
}

template <class T>
MatrixState<T>::~MatrixState()
{
    if (runtime) {
        try {
            remember_races(*this);
        } catch (const std::bad_alloc&) {
            // They will be raced again.
        }
    }
    // Each device's part is freed on its own worker, behind the jobs that use it.
    for (int rank = 0; runtime && rank < runtime->devices(); ++rank) {
        Shard<T>* const shard = shards[static_cast<std::size_t>(rank)].release();
        runtime->release(rank, [shard, rank, gather = channel, order = carry_order, left = carries] {
            if (gather) {
                gather->close(rank);
            }
            order->close(rank);
            delete shard;
        });
    }
}

template <class T>
VectorState<T>::~VectorState()
{
    for (std::size_t rank = 0; runtime && rank < storage.size(); ++rank) {
        auto* const array = new kernels::DeviceArray<T>(std::move(storage[rank]));
        runtime->release(static_cast<int>(rank), [array] { delete array; });
    }
}

template struct MatrixState<float>;
template struct MatrixState<double>;
template struct VectorState<float>;
template struct VectorState<double>;

}  // namespace rmsp::detail
