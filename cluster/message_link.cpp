#include "cluster/message_link.hpp"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include <rmsp/error.hpp>

namespace rmsp::cluster {
namespace {

/// One that is sent, or received.
struct Message {
    int process = 0;
    int from = 0;  ///< numbers of devices in the link
    int to = 0;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;

    auto key() const { return std::tuple(process, from, to); }
};

/// In an order that both processes of a message know: MPI brings what has the same tag in the order in which it is
/// sent.
void sort(std::vector<Message>& messages)
{
    std::stable_sort(messages.begin(), messages.end(),
                     [](const Message& a, const Message& b) { return a.key() < b.key(); });
}

}  // namespace

std::string why_not_gpu_aware()
{
    int is_aware = 0;
#if defined(OMPI_HAVE_MPI_EXT_CUDA) && OMPI_HAVE_MPI_EXT_CUDA
    is_aware = MPIX_Query_cuda_support();
#elif defined(MPIX_GPU_SUPPORT_CUDA)
    if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is_aware) != MPI_SUCCESS) {
        is_aware = 0;
    }
#endif
    return is_aware != 0 ? "" : "the MPI does not say that it takes memory of GPUs";
}

MessageLink::MessageLink(Communicator& processes, std::shared_ptr<DeviceAccess> devices, std::vector<int> first_devices)
    : processes_(processes), devices_(std::move(devices)), first_devices_(std::move(first_devices))
{
}

void MessageLink::begin(std::span<const DeviceArrays> devices, std::span<const LinkMessages> to,
                        std::span<const LinkMessages> from, std::size_t entry_bytes)
{
    if (!usable_) {
        throw Error(ErrorCode::device, "messages between GPUs were given up after an error");
    }
    const auto process_of = [&](int gpu) {
        const auto after = std::upper_bound(first_devices_.begin(), first_devices_.end(), gpu);
        return static_cast<int>(after - first_devices_.begin()) - 1;
    };
    const auto entry_size = static_cast<std::int64_t>(entry_bytes);
    std::vector<Message> sent;
    std::vector<Message> received;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const int own = first_devices_[static_cast<std::size_t>(processes_.rank())] + static_cast<int>(i);
        // MPI knows no streams: what goes has to be there.
        devices_->copy(static_cast<int>(i), devices[i].stream, nullptr, nullptr, 0);
        auto* const out = static_cast<std::byte*>(const_cast<void*>(devices[i].from));
        for (const LinkMessage& other : to[i]) {
            sent.push_back(
                {process_of(other.gpu), own, other.gpu, out + other.first * entry_size, other.count * entry_size});
        }
        auto* const in = static_cast<std::byte*>(devices[i].to);
        for (const LinkMessage& other : from[i]) {
            received.push_back(
                {process_of(other.gpu), other.gpu, own, in + other.first * entry_size, other.count * entry_size});
        }
    }
    sort(sent);
    sort(received);
    // What MPI has of its own for copies it makes on the thread's current device.
    devices_->visit(0, [&] {
        transfer_.emplace(processes_);
        for (const Message& message : received) {
            transfer_->receive(message.data, message.bytes, message.process);
        }
        for (const Message& message : sent) {
            transfer_->send(message.data, message.bytes, message.process);
        }
    });
}

void MessageLink::end()
{
    if (!transfer_) {
        return;
    }
    try {
        devices_->visit(0, [&] { transfer_->wait(seconds_); });
    } catch (...) {
        give_up();
        throw;
    }
    transfer_.reset();
}

void MessageLink::gather(std::span<const DeviceArrays> /*devices*/, std::size_t /*bytes*/)
{
    throw Error(ErrorCode::internal, "sums by messages pass through host memory");
}

void MessageLink::give_up() noexcept
{
    if (transfer_) {
        transfer_->give_up();
        transfer_.reset();
    }
    usable_ = false;
}

}  // namespace rmsp::cluster
