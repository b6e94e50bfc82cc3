#include <stddef.h>

#include "check.h"
#include "tests.h"

void runtime_devices(void)
{
    rmsp_runtime* runtime = open_runtime("host:3");
    char* text = NULL;
    int count = 0;
    if (runtime == NULL) {
        return;
    }
    CHECK_OK(rmsp_runtime_device_count(runtime, &count));
    CHECK(count == 3);
    if (CHECK_OK(rmsp_runtime_devices(runtime, RMSP_TEXT, &text))) {
        CHECK_TEXT(text, "2 host ");
        rmsp_free(text);
    }
    if (CHECK_OK(rmsp_runtime_devices(runtime, RMSP_JSON, &text))) {
        CHECK_TEXT(text, "\"numa_node\": ");
        rmsp_free(text);
    }
    if (CHECK_OK(rmsp_runtime_transport(runtime, &text))) {
        CHECK_TEXT(text, "shared");
        rmsp_free(text);
    }
    CHECK_OK(rmsp_runtime_synchronize(runtime));
    rmsp_runtime_destroy(runtime);
    rmsp_runtime_destroy(NULL);
}

void runtime_misuse(void)
{
    static const char* const keys[] = {"runtime.devices", "gpu"};
    rmsp_runtime* runtime = NULL;
    rmsp_options* options = options_of(keys, 1);
    char* text = NULL;
    int count;
    CHECK_USAGE(rmsp_runtime_create(NULL, NULL), "rmsp_runtime_create: runtime is null");
    CHECK_USAGE(rmsp_runtime_create(options, &runtime), "gpu");
    CHECK(runtime == NULL);
    rmsp_options_destroy(options);
    CHECK_USAGE(rmsp_runtime_synchronize(NULL), "rmsp_runtime_synchronize: runtime is null");
    CHECK_USAGE(rmsp_runtime_device_count(NULL, &count), "runtime is null");
    CHECK_USAGE(rmsp_runtime_devices(NULL, RMSP_TEXT, &text), "runtime is null");
    CHECK_USAGE(rmsp_runtime_transport(NULL, &text), "runtime is null");
    runtime = open_runtime("host:1");
    CHECK_USAGE(rmsp_runtime_device_count(runtime, NULL), "count is null");
    CHECK_USAGE(rmsp_runtime_devices(runtime, RMSP_TEXT, NULL), "text is null");
    CHECK_USAGE(rmsp_runtime_transport(runtime, NULL), "text is null");
    rmsp_runtime_destroy(runtime);
}
