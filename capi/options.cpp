#include "capi/call.hpp"
#include "capi/handles.hpp"

namespace rmsp::capi {

const Config& config_of(const rmsp_options* options)
{
    static const Config defaults;
    return options != nullptr ? options->config : defaults;
}

DistributeOptions distribute_options_of(const rmsp_options* options)
{
    const Config& config = config_of(options);
    DistributeOptions distribute = distribute_options(config);
    // How often `mspmv run` multiplies says nothing of the caller.
    distribute.expected_applies = config.kernel.expected_applies;
    if (options != nullptr) {
        distribute.after = options->after;
    }
    return distribute;
}

}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_options_create(rmsp_options** options)
{
    return call(__func__, [&] { put(options, "options", [&] { return new rmsp_options; }); });
}

void rmsp_options_destroy(rmsp_options* options) { delete options; }

rmsp_status rmsp_options_set(rmsp_options* options, const char* key, const char* value)
{
    return call(__func__, [&] {
        rmsp::set_key(required(options, "options").config, &required(key, "key"), &required(value, "value"));
    });
}

rmsp_status rmsp_options_get(const rmsp_options* options, const char* key, char** value)
{
    return call(__func__, [&] {
        char*& result = required(value, "value");
        result = copied(rmsp::key_text(required(options, "options").config, &required(key, "key")));
    });
}

rmsp_status rmsp_options_use_environment(rmsp_options* options)
{
    return call(__func__, [&] { rmsp::apply_environment(required(options, "options").config); });
}

rmsp_status rmsp_options_set_callback(rmsp_options* options, rmsp_solve_callback callback, void* context)
{
    return call(__func__, [&] {
        rmsp_options& of = required(options, "options");
        of.callback = callback;
        of.context = context;
    });
}

rmsp_status rmsp_options_set_stream(rmsp_options* options, void* stream)
{
    return call(__func__, [&] { required(options, "options").after = rmsp::StreamRef{stream}; });
}
