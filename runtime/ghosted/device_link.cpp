#include <rmsp/device_link.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/error.hpp>

#include "runtime/transport/cuda/device_link.hpp"

namespace rmsp {
namespace {

/// What a build with NCCL has.
struct Bodies {
    std::string (*version)() = nullptr;
    std::vector<std::byte> (*make_id)() = nullptr;
    std::shared_ptr<DeviceLink> (*connect)(int ordinal, const DeviceLinkOptions& options) = nullptr;
};

#ifdef RMSP_HAVE_NCCL
constexpr std::optional<Bodies> compiled = Bodies{.version = transport::nccl_link_version,
                                                  .make_id = transport::make_nccl_link_id,
                                                  .connect = transport::connect_nccl_link};
#else
constexpr std::optional<Bodies> compiled;
#endif

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
    if (runtime.devices().empty() || runtime.devices().front().kind != DeviceKind::cuda) {
        return "NCCL is for GPUs";
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
    return bodies().connect(runtime.devices().front().index, options);
}

}  // namespace rmsp
