#include "capi/call.hpp"
#include "capi/handles.hpp"

using namespace rmsp::capi;

rmsp_status rmsp_runtime_create(const rmsp_options* options, rmsp_runtime** runtime)
{
    return call(__func__, [&] {
        rmsp_runtime*& result = required(runtime, "runtime");
        result = new rmsp_runtime{rmsp::Runtime(rmsp::runtime_options(config_of(options)))};
    });
}

void rmsp_runtime_destroy(rmsp_runtime* runtime) { delete runtime; }

rmsp_status rmsp_runtime_synchronize(rmsp_runtime* runtime)
{
    return call(__func__, [&] { required(runtime, "runtime").runtime.synchronize(); });
}

rmsp_status rmsp_runtime_device_count(const rmsp_runtime* runtime, int* count)
{
    return call(__func__, [&] {
        required(count, "count") = static_cast<int>(required(runtime, "runtime").runtime.devices().size());
    });
}

rmsp_status rmsp_runtime_transport(const rmsp_runtime* runtime, char** text)
{
    return call(__func__,
                [&] { put(text, "text", [&] { return copied(required(runtime, "runtime").runtime.transport()); }); });
}
