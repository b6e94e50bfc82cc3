#include "runtime/matrix/links.hpp"

#include <algorithm>
#include <mutex>

#include "runtime/matrix/streamed.hpp"

namespace rmsp::distributed {
namespace {

/// Rate in GB/s of each device's link while all devices copy from the host, until the slowest is done: links may share
/// what lies before them, unevenly, and the sum of their own best rates is more than all of them carry at once. What is
/// copied are the arrays that the matrix is streamed from, where they lie, or pinned memory if they are not locked.
/// `seconds` has an entry a device.
template <class T>
double copy_rate(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting,
                 std::vector<double>& seconds)
{
    constexpr int repetitions = 3;
    constexpr std::int64_t bytes = std::int64_t{512} << 20;
    constexpr std::size_t buffer_bytes = std::size_t{256} << 20;
    const auto rank = static_cast<std::size_t>(worker.rank());
    const auto& part = matrix.shards[rank]->streamed;
    engine::PinnedBuffer from;
    kernels::DeviceArray<std::byte> to;
    const auto copy = [&] {
        const std::int64_t queued = part ? part->copy_without_use(worker, bytes) : 0;
        if (queued > 0) {
            return queued;
        }
        if (from.bytes() == 0) {
            from = engine::PinnedBuffer(worker.device(), buffer_bytes);
            to = kernels::DeviceArray<std::byte>(worker.device(), buffer_bytes);
        }
        for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(buffer_bytes)) {
            worker.stream().copy(to.data(), from.data(), buffer_bytes);
        }
        return bytes;
    };
    const auto before = worker.device().make_event(true);
    const auto after = worker.device().make_event(true);
    double best = 0;
    for (int i = 0; i <= repetitions; ++i) {
        worker.stream().synchronize();
        meeting.arrive_and_wait();
        worker.stream().record(*before);
        const std::int64_t copied = copy();
        worker.stream().record(*after);
        if (meeting.in_turns()) {
            meeting.arrive_and_wait();  // the one thread queues all copies before it waits for the first
        }
        after->synchronize();
        seconds[rank] = after->seconds_since(*before);
        meeting.arrive_and_wait();
        const double slowest = *std::max_element(seconds.begin(), seconds.end());
        // The first one may have made the buffer.
        best = i == 0 || slowest <= 0 ? best : std::max(best, static_cast<double>(copied) / slowest * 1e-9);
    }
    return best;
}

}  // namespace

template <class T>
std::vector<double> measure_links(MatrixState<T>& matrix)
{
    RuntimeState& runtime = *matrix.runtime;
    std::vector<double> rates(matrix.shards.size());
    std::vector<double> seconds(rates.size());
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            rates[static_cast<std::size_t>(worker.rank())] = copy_rate(matrix, worker, meeting, seconds);
        })
        .get();
    std::lock_guard lock(runtime.mutex);
    runtime.link_gbs = rates;
    return rates;
}

#define RMSP_INSTANTIATE(T) template std::vector<double> measure_links(MatrixState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
