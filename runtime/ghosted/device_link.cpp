#include <rmsp/device_link.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/transport/cuda/device_link.hpp"

namespace rmsp {
namespace {

/// What a build with NCCL has.
struct Bodies {
    std::string (*version)() = nullptr;
    std::vector<std::byte> (*make_id)() = nullptr;
    std::shared_ptr<DeviceLink> (*connect)(const std::vector<int>& ordinals,
                                           const DeviceLinkOptions& options) = nullptr;
};

#ifdef RMSP_HAVE_NCCL
constexpr std::optional<Bodies> compiled = Bodies{.version = transport::nccl_link_version,
                                                  .make_id = transport::make_nccl_link_id,
                                                  .connect = transport::connect_nccl_link};
#else
constexpr std::optional<Bodies> compiled;
#endif

std::shared_ptr<DeviceAccess> access_gpus([[maybe_unused]] const std::vector<int>& ordinals)
{
#ifdef RMSP_HAVE_CUDA
    return transport::cuda_device_access(ordinals);
#else
    throw NotCompiled("CUDA");
#endif
}

/// Has done what was queued on a device when that returns.
class HostDeviceAccess final : public DeviceAccess {
public:
    explicit HostDeviceAccess(std::size_t devices) : devices_(static_cast<int>(devices)) {}

    int devices() const override { return devices_; }
    void copy(int /*device*/, void* /*stream*/, void* to, const void* from, std::size_t bytes) override
    {
        if (bytes > 0) {
            std::memcpy(to, from, bytes);
        }
    }
    std::shared_ptr<void> allocate(int /*device*/, std::size_t bytes) override
    {
        const auto memory = std::make_shared<std::vector<std::max_align_t>>(bytes / sizeof(std::max_align_t) + 1);
        return {memory, memory->data()};
    }
    std::shared_ptr<void> make_stream(int /*device*/) override { return nullptr; }
    void visit(int /*device*/, const std::function<void()>& f) override { f(); }

private:
    const int devices_;
};

std::vector<int> ordinals_of(const std::vector<DeviceInfo>& devices)
{
    std::vector<int> ordinals;
    for (const DeviceInfo& device : devices) {
        ordinals.push_back(device.index);
    }
    return ordinals;
}

/// \throws NotCompiled
const Bodies& bodies()
{
    if (!compiled) {
        throw NotCompiled("NCCL");
    }
    return *compiled;
}

}  // namespace

std::string why_no_device_link(const Runtime& runtime)
{
    const std::vector<DeviceInfo> devices = runtime.devices();
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (devices[i].kind != DeviceKind::cuda) {
            return "NCCL is for GPUs";
        }
        for (std::size_t other = 0; other < i; ++other) {
            if (devices[i].index == devices[other].index) {
                return fmt::format("devices {} and {} are on the same GPU, and NCCL takes each once", other, i);
            }
        }
    }
    try {
        (void)device_link_version();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string device_link_version() { return bodies().version(); }

std::vector<std::byte> make_device_link_id() { return bodies().make_id(); }

std::shared_ptr<DeviceLink> connect_device_link(const Runtime& runtime, const DeviceLinkOptions& options)
{
    if (const std::string why = why_no_device_link(runtime); !why.empty()) {
        throw Error(ErrorCode::usage, why);
    }
    return bodies().connect(ordinals_of(runtime.devices()), options);
}

std::shared_ptr<DeviceAccess> open_device_access(const Runtime& runtime)
{
    const std::vector<DeviceInfo> devices = runtime.devices();
    if (devices.front().kind == DeviceKind::cuda) {
        return access_gpus(ordinals_of(devices));
    }
    return std::make_shared<HostDeviceAccess>(devices.size());
}

LinkedEntries place_entries(std::span<const int> here, std::span<const int> there, int devices)
{
    std::vector<std::size_t> order(here.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(here[a], there[a]) < std::pair(here[b], there[b]);
    });
    LinkedEntries entries{std::vector<std::int64_t>(here.size()),
                          std::vector<LinkMessages>(static_cast<std::size_t>(devices))};
    for (const std::size_t entry : order) {
        LinkMessages& messages = entries.messages[static_cast<std::size_t>(here[entry])];
        const std::int64_t place = messages.empty() ? 0 : messages.back().first + messages.back().count;
        entries.places[entry] = place;
        if (messages.empty() || messages.back().gpu != there[entry]) {
            messages.push_back({there[entry], place, 0});
        }
        ++messages.back().count;
    }
    return entries;
}

}  // namespace rmsp
