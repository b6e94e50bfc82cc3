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
