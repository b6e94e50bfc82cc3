#include "nvtx_tool.hpp"

#include <mutex>
#include <utility>

// Declarations alone: the rest would define the pointer below, by which NVTX finds a tool that is linked into the
// program.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

namespace rmsp::test {
namespace {

std::mutex mutex;
std::vector<std::string> domains;
std::vector<Range> ranges;
thread_local std::vector<std::size_t> open;  ///< of the calling thread, the innermost last

// A domain's handle is its number in `domains`, from 1 on.
nvtxDomainHandle_t NVTX_API create_domain(const char* name)
{
    const std::lock_guard lock(mutex);
    domains.emplace_back(name);
    return reinterpret_cast<nvtxDomainHandle_t>(domains.size());
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes)
{
    const std::lock_guard lock(mutex);
    Range range{domains.at(reinterpret_cast<std::size_t>(domain) - 1), attributes->message.ascii};
    if (attributes->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64) {
        range.payload = attributes->payload.ullValue;
    }
    open.push_back(ranges.size());
    ranges.push_back(std::move(range));
    return static_cast<int>(open.size()) - 1;
}

int NVTX_API pop(nvtxDomainHandle_t)
{
    const std::lock_guard lock(mutex);
    if (open.empty()) {
        return NVTX_NO_PUSH_POP_TRACKING;
    }
    ranges[open.back()].ended = true;
    open.pop_back();
    return static_cast<int>(open.size());
}

int NVTX_API begin_tool(NvtxGetExportTableFunc_t table_of)
{
    const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
        size <= NVTX_CBID_CORE2_DomainCreateA) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
    *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
    return 1;
}

}  // namespace

std::vector<Range> nvtx_ranges()
{
    const std::lock_guard lock(mutex);
    return ranges;
}

}  // namespace rmsp::test

extern "C" {
extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = rmsp::test::begin_tool;
}
