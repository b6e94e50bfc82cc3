#include <rmsp/vector_operations.hpp>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include <kernels/steps/blas1/blas1.hpp>
#include <kernels/steps/support/support.hpp>

#include "runtime/engine/await.hpp"
#include "runtime/matrix/vector_state.hpp"

namespace rmsp {
namespace distributed {

/// Where dot products in flight leave a number for each device, in pinned memory, and the devices' workspaces.
class DotSlots {
public:
    explicit DotSlots(RuntimeState& runtime)
        : devices_(static_cast<std::size_t>(runtime.devices())), workspaces_(devices_)
    {
        runtime
            .submit([this](engine::Worker& worker, engine::Rendezvous&) {
                auto& workspace = workspaces_[static_cast<std::size_t>(worker.rank())];
                workspace = kernels::DeviceArray<std::byte>(worker.device(), kernels::dot_workspace_bytes);
                kernels::fill(reinterpret_cast<double*>(workspace.data()), kernels::dot_workspace_bytes / 8, 0.0,
                              worker.context());
                if (worker.rank() == 0) {
                    numbers_ = engine::PinnedBuffer(worker.device(), most * devices_ * sizeof(double));
                }
            })
            .get();
        for (std::size_t i = 0; i < most; ++i) {
            free_.push_back(i);
        }
    }

    /// Room for one number a device. Waits while too many are in flight; it is given back with the last copy.
    static std::shared_ptr<double> take(const std::shared_ptr<DotSlots>& slots)
    {
        std::unique_lock lock(slots->mutex_);
        slots->freed_.wait(lock, [&] { return !slots->free_.empty(); });
        const std::size_t slot = slots->free_.back();
        slots->free_.pop_back();
        // Not the slots themselves: the runtime frees their memory, whoever holds a number last.
        return {static_cast<double*>(slots->numbers_.data()) + slot * slots->devices_,
                [weak = std::weak_ptr<DotSlots>(slots), slot](double*) {
                    if (const auto owner = weak.lock()) {
                        {
                            std::lock_guard guard(owner->mutex_);
                            owner->free_.push_back(slot);
                        }
                        owner->freed_.notify_one();
                    }
                }};
    }
    void* workspace(int rank) const { return workspaces_[static_cast<std::size_t>(rank)].data(); }

private:
    static constexpr std::size_t most = 64;
    std::size_t devices_;
    std::vector<kernels::DeviceArray<std::byte>> workspaces_;
    engine::PinnedBuffer numbers_;
    std::mutex mutex_;
    std::condition_variable freed_;
    std::vector<std::size_t> free_;
};

namespace {

/// What one device works on of a vector.
template <class T>
struct Part {
    T* place;
    std::int64_t count;
};

/// Its slice.
template <class T>
Part<T> slice_of(const VectorState<T>& vector, int rank)
{
    const auto r = static_cast<std::size_t>(rank);
    const std::int64_t first = vector.offsets[r];
    return {vector.slices[r] + (vector.layout == Layout::replicated ? first : 0), vector.offsets[r + 1] - first};
}

/// Everything that it holds of its own: of a replicated vector all entries, unless the devices share them.
template <class T>
Part<T> held_by(const VectorState<T>& vector, int rank)
{
    if (vector.layout == Layout::replicated && !vector.runtime->shared_memory()) {
        return {vector.slices[static_cast<std::size_t>(rank)], vector.size};
    }
    return slice_of(vector, rank);
}

const char* to_string(Layout layout) { return layout == Layout::rows ? "by rows" : "replicated"; }

template <class T>
const std::shared_ptr<VectorState<T>>& operand(const DistributedVector<T>& vector, const char* operation)
{
    const auto& state = VectorAccess::state(vector);
    if (!state) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: a vector is empty; make one with make_x() or make_y()", operation));
    }
    return state;
}

template <class T>
void check_alike(const VectorState<T>& x, const VectorState<T>& y, const char* operation)
{
    if (x.runtime != y.runtime) {
        throw Error(ErrorCode::usage, fmt::format("{}: the vectors belong to different runtimes", operation));
    }
    if (x.size != y.size) {
        throw Error(ErrorCode::usage, fmt::format("{}: x has {} entries, y has {}", operation, x.size, y.size));
    }
    if (x.layout != y.layout) {
        throw Error(ErrorCode::usage, fmt::format("{}: x is {}, y is {}; both must be laid out alike", operation,
                                                  to_string(x.layout), to_string(y.layout)));
    }
    const auto matrix_of = [](const VectorState<T>& vector) {
        return vector.order ? vector.order->matrix.get() : nullptr;
    };
    if (matrix_of(x) != matrix_of(y)) {
        throw Error(
            ErrorCode::usage,
            fmt::format("{}: x and y hold their entries in different orders; make both with Order::matrix, or both "
                        "for one matrix with Order::kernel",
                        operation));
    }
    const auto different = std::mismatch(x.offsets.begin(), x.offsets.end(), y.offsets.begin()).first;
    if (different != x.offsets.end()) {
        const auto device = different - x.offsets.begin();
        throw Error(ErrorCode::usage,
                    fmt::format("{}: device {} begins at entry {} of x and at entry {} of y; both must be sliced alike",
                                operation, device, *different, y.offsets[static_cast<std::size_t>(device)]));
    }
}

const std::shared_ptr<DotSlots>& dot_slots(RuntimeState& runtime)
{
    std::call_once(runtime.dot_slots_made, [&] { runtime.dot_slots = std::make_shared<DotSlots>(runtime); });
    return runtime.dot_slots;
}

/// The sum over all devices, once `done` is ready.
template <class T>
struct DotResult {
    std::future<void> done;
    std::shared_ptr<double> sum;
};

template <class T>
DotResult<T> start_dot(const std::shared_ptr<VectorState<T>>& x, const std::shared_ptr<VectorState<T>>& y)
{
    const auto& slots = dot_slots(*x->runtime);
    const auto numbers = DotSlots::take(slots);
    auto sum = std::make_shared<double>(0.0);
    const int devices = x->runtime->devices();
    auto done = x->runtime->submit(
        [x, y, numbers, workspaces = slots.get()](engine::Worker& worker, engine::Rendezvous&) {
            const auto a = slice_of(*x, worker.rank());
            const auto b = slice_of(*y, worker.rank());
            kernels::dot(a.place, b.place, a.count, workspaces->workspace(worker.rank()), numbers.get() + worker.rank(),
                         worker.context());
        },
        [numbers, sum, devices] {
            for (int rank = 0; rank < devices; ++rank) {
                *sum += numbers.get()[rank];
            }
        });
    return {std::move(done), std::move(sum)};
}

}  // namespace
}  // namespace distributed

template <class T>
void axpy(T alpha, const DistributedVector<T>& x, DistributedVector<T>& y)
{
    const auto from = distributed::operand(x, "axpy");
    const auto to = distributed::operand(y, "axpy");
    distributed::check_alike(*from, *to, "axpy");
    from->runtime->submit(
        [alpha, from, to](engine::Worker& worker, engine::Rendezvous&) {
            const auto a = distributed::held_by(*from, worker.rank());
            kernels::axpy(alpha, a.place, distributed::held_by(*to, worker.rank()).place, a.count,
                          worker.launching_context());
        },
        {}, from->terms_of_entries(3));
}

template <class T>
void scal(T alpha, DistributedVector<T>& x)
{
    const auto vector = distributed::operand(x, "scal");
    vector->runtime->submit(
        [alpha, vector](engine::Worker& worker, engine::Rendezvous&) {
            const auto a = distributed::held_by(*vector, worker.rank());
            kernels::scal(alpha, a.place, a.count, worker.launching_context());
        },
        {}, vector->terms_of_entries(2));
}

template <class T>
void copy(const DistributedVector<T>& x, DistributedVector<T>& y)
{
    const auto from = distributed::operand(x, "copy");
    const auto to = distributed::operand(y, "copy");
    distributed::check_alike(*from, *to, "copy");
    from->runtime->submit(
        [from, to](engine::Worker& worker, engine::Rendezvous&) {
            const auto a = distributed::held_by(*from, worker.rank());
            kernels::copy(static_cast<const T*>(a.place), distributed::held_by(*to, worker.rank()).place, a.count,
                          worker.launching_context());
        },
        {}, from->terms_of_entries(2));
}

template <class T>
std::future<T> dot_async(const DistributedVector<T>& x, const DistributedVector<T>& y)
{
    const auto& a = distributed::operand(x, "dot");
    const auto& b = distributed::operand(y, "dot");
    distributed::check_alike(*a, *b, "dot");
    return std::async(std::launch::deferred,
                      [result = distributed::start_dot(a, b), on_host = a->runtime->shared_memory()]() mutable {
                          engine::await(std::move(result.done), on_host);
                          return static_cast<T>(*result.sum);
                      });
}

template <class T>
T dot(const DistributedVector<T>& x, const DistributedVector<T>& y)
{
    return dot_async(x, y).get();
}

template <class T>
std::future<T> norm2_async(const DistributedVector<T>& x)
{
    const auto& a = distributed::operand(x, "norm2");
    return std::async(std::launch::deferred,
                      [result = distributed::start_dot(a, a), on_host = a->runtime->shared_memory()]() mutable {
                          engine::await(std::move(result.done), on_host);
                          return static_cast<T>(std::sqrt(*result.sum));
                      });
}

template <class T>
T norm2(const DistributedVector<T>& x)
{
    return norm2_async(x).get();
}

#define RMSP_INSTANTIATE(T)                                                                      \
    template void axpy(T, const DistributedVector<T>&, DistributedVector<T>&);                   \
    template void scal(T, DistributedVector<T>&);                                                \
    template void copy(const DistributedVector<T>&, DistributedVector<T>&);                      \
    template T dot(const DistributedVector<T>&, const DistributedVector<T>&);                    \
    template std::future<T> dot_async(const DistributedVector<T>&, const DistributedVector<T>&); \
    template T norm2(const DistributedVector<T>&);                                               \
    template std::future<T> norm2_async(const DistributedVector<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
