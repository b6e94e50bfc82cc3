#include "runtime/matrix/caller_product.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/value_types.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/matrix/vector.hpp"

namespace rmsp::distributed {
namespace {

/// When every worker of a job has queued its part, and what went wrong meanwhile.
class Queued {
public:
    explicit Queued(int workers) : left_(workers) {}
    /// A worker has, or has failed to.
    void arrive(std::exception_ptr error = nullptr)
    {
        const std::lock_guard lock(mutex_);
        if (!error_) {
            error_ = std::move(error);
        }
        if (--left_ == 0) {
            changed_.notify_all();
        }
    }
    /// The job is over, also for workers that were never asked for their part.
    void end()
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }
    /// Returns whether all have queued their parts; if not, the job is over. \throws the first error
    bool wait()
    {
        // It takes microseconds, to be woken tens of them.
        constexpr std::chrono::microseconds at_most{50};
        const auto end = std::chrono::steady_clock::now() + at_most;
        while (left_ != 0 && !ended_ && std::chrono::steady_clock::now() < end) {
        }
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return left_ == 0 || ended_; });
        if (error_) {
            std::rethrow_exception(error_);
        }
        return left_ == 0;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<int> left_;
    std::atomic<bool> ended_{false};
    std::exception_ptr error_;
};

/// The job's hold of it.
class QueuedByJob {
public:
    explicit QueuedByJob(std::shared_ptr<Queued> queued) : queued_(std::move(queued)) {}
    ~QueuedByJob() { queued_->end(); }
    QueuedByJob(const QueuedByJob&) = delete;
    QueuedByJob& operator=(const QueuedByJob&) = delete;
    void arrive(std::exception_ptr error = nullptr) const { queued_->arrive(std::move(error)); }

private:
    std::shared_ptr<Queued> queued_;
};

/// The caller's array as a vector of the matrix's only device, so that nothing is copied; null where it is elsewhere,
/// or less aligned than vectors are.
template <class T>
std::shared_ptr<VectorState<T>> vector_of(const MatrixState<T>& matrix, bool of_transpose, const T* entries)
{
    constexpr std::uintptr_t alignment = 128;
    const detail::RuntimeState& runtime = *matrix.runtime;
    if (runtime.devices() != 1 || runtime.shared_memory() ||
        reinterpret_cast<std::uintptr_t>(entries) % alignment != 0 ||
        engine::gpu_of(entries) != runtime.infos.front().index) {
        return nullptr;
    }
    // Of no runtime: there is nothing to free.
    const std::int64_t size = x_side(matrix, of_transpose).size();
    auto vector = std::make_shared<VectorState<T>>(1);
    vector->size = size;
    vector->offsets = {0, size};
    vector->slices = {const_cast<T*>(entries)};
    vector->held = {{0, size}};
    vector->entry_zero = {const_cast<T*>(entries)};
    vector->ghost_room = {0};
    return vector;
}

/// The vectors along the columns and the rows of A.
template <class T>
std::array<std::shared_ptr<VectorState<T>>, 2> scratch_of(MatrixState<T>& matrix)
{
    const std::lock_guard lock(matrix.on_demand.making);
    for (const bool of_transpose : {false, true}) {
        auto& vector = matrix.on_demand.scratch[of_transpose ? 1 : 0];
        if (!vector) {
            vector = make_vector(matrix, x_side(matrix, of_transpose), Layout::rows);
        }
    }
    return matrix.on_demand.scratch;
}

}  // namespace

template <class T>
int gpu_of_operands(const MatrixState<T>& matrix, bool of_transpose, const T* x, const T* y)
{
    const bool on_host = matrix.runtime->shared_memory();
    int gpu = on_host ? -1 : matrix.runtime->infos.front().index;  // that of arrays, unless they have no entries
    for (const auto& [name, array, size] : {std::tuple{"x", x, x_side(matrix, of_transpose).size()},
                                            std::tuple{"y", y, x_side(matrix, !of_transpose).size()}}) {
        const int of_array = engine::gpu_of(array);
        if (on_host || (size > 0 && of_array < 0)) {
            throw Error(ErrorCode::usage,
                        fmt::format("{} {}: streams order products of arrays in the memory of GPUs, on GPUs", name,
                                    of_array < 0 ? "is in host memory" : "is for devices of the host"));
        }
        gpu = of_array >= 0 ? of_array : gpu;
    }
    return gpu;
}

template <class T>
std::future<void> apply_through_vectors(const std::shared_ptr<MatrixState<T>>& matrix, bool of_transpose, T alpha,
                                        const T* x, T beta, T* y, const std::shared_ptr<engine::CallerOrder>& order)
{
    auto own_y = vector_of<T>(*matrix, !of_transpose, y);
    // Of arrays that overlap one has to be a copy.
    const std::less<const T*> before;
    const bool apart =
        !before(x, y + x_side(*matrix, !of_transpose).size()) || !before(y, x + x_side(*matrix, of_transpose).size());
    auto own_x = apart ? vector_of(*matrix, of_transpose, x) : nullptr;
    const bool copies_x = own_x == nullptr;
    const bool copies_y = own_y == nullptr;
    if (copies_x || copies_y) {
        const auto scratch = scratch_of(*matrix);
        own_x = copies_x ? scratch[of_transpose ? 1 : 0] : own_x;
        own_y = copies_y ? scratch[of_transpose ? 0 : 1] : own_y;
    }
    const Source<T> source{nullptr, std::move(own_x)};
    const Target<T> target{nullptr, std::move(own_y)};
    const auto queued = std::make_shared<Queued>(matrix->runtime->devices());
    // Once queued, what the caller's stream waits for cannot be taken back.
    engine::JobTerms terms = product_terms(*matrix, order == nullptr);
    terms.may_end_early = order == nullptr;
    terms.owns_all = false;
    // The caller waits until it is queued: by another thread that takes longer.
    terms.only_queues = order != nullptr && matrix->options.mode == Mode::resident;
    auto done = matrix->runtime->submit(
        [=, by_job = std::make_shared<QueuedByJob>(queued)](engine::Worker& worker, engine::Rendezvous& meeting) {
            const auto part = [&] {
                // Host devices share the vectors: each waits for what the others copy.
                const auto meet = [&] {
                    if (matrix->runtime->shared_memory()) {
                        meeting.arrive_and_wait();
                    }
                };
                if (order) {
                    order->begin(worker);
                }
                if (copies_x) {
                    upload_slice(*source.vector, worker, x);
                }
                if (copies_y && beta != T{0}) {
                    upload_slice(*target.vector, worker, static_cast<const T*>(y));
                }
                meet();
                apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr, of_transpose);
                meet();
                if (copies_y) {
                    download_slice(*target.vector, worker, y);
                }
                if (order) {
                    order->end(worker);
                }
            };
            try {
                part();
            } catch (...) {
                by_job->arrive(std::current_exception());
                throw;
            }
            by_job->arrive();
        },
        {}, terms);
    if (order) {
        if (!queued->wait()) {
            // A device is lost. Where it has no part in the matrix, the product is complete.
            done.get();
            std::promise<void> complete;
            complete.set_value();
            return complete.get_future();
        }
        order->join();
    }
    return done;
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template int gpu_of_operands(const MatrixState<T>&, bool, const T*, const T*);                                     \
    template std::future<void> apply_through_vectors(const std::shared_ptr<MatrixState<T>>&, bool, T, const T*, T, T*, \
                                                     const std::shared_ptr<engine::CallerOrder>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
