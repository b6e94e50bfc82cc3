#include "runtime/engine/trace.hpp"

#include <nvtx3/nvToolsExt.h>

namespace rmsp::engine {
namespace {

nvtxDomainHandle_t domain() noexcept
{
    static const nvtxDomainHandle_t made = nvtxDomainCreateA("rmsp");
    return made;
}

}  // namespace

void begin_range(const char* name, std::uint64_t job) noexcept
{
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    if (job != 0) {
        attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        attributes.payload.ullValue = job;
    }
    nvtxDomainRangePushEx(domain(), &attributes);
}

void end_range() noexcept { nvtxDomainRangePop(domain()); }

}  // namespace rmsp::engine
