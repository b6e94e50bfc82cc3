#include <stddef.h>

#include "check.h"
#include "tests.h"

rmsp_options* options_of(const char* const* keys_and_values, int count)
{
    rmsp_options* options = NULL;
    int i;
    if (!CHECK_OK(rmsp_options_create(&options))) {
        return NULL;
    }
    for (i = 0; i < count; ++i) {
        if (!CHECK_OK(rmsp_options_set(options, keys_and_values[2 * i], keys_and_values[2 * i + 1]))) {
            rmsp_options_destroy(options);
            return NULL;
        }
    }
    return options;
}

rmsp_runtime* open_runtime(const char* devices)
{
    const char* keys[6] = {"runtime.cache", "off", "runtime.limit_gbs", "1", "runtime.devices", NULL};
    rmsp_runtime* runtime = NULL;
    rmsp_options* options;
    keys[5] = devices;
    options = options_of(keys, 3);
    if (options != NULL) {
        CHECK_OK(rmsp_runtime_create(options, &runtime));
        rmsp_options_destroy(options);
    }
    return runtime;
}

static rmsp_options* poisson_options(const char* precision)
{
    const char* keys[4] = {"matrix.values", "poisson", "matrix.precision", NULL};
    keys[3] = precision;
    return options_of(keys, 2);
}

rmsp_matrix* poisson(rmsp_runtime* runtime, const char* grid, const char* precision)
{
    rmsp_options* options = poisson_options(precision);
    rmsp_matrix* matrix = NULL;
    if (options != NULL) {
        CHECK_OK(rmsp_matrix_generate(runtime, grid, options, &matrix));
        rmsp_options_destroy(options);
    }
    return matrix;
}

rmsp_host_matrix* poisson_on_host(const char* grid, const char* precision)
{
    rmsp_options* options = poisson_options(precision);
    rmsp_host_matrix* matrix = NULL;
    if (options != NULL) {
        CHECK_OK(rmsp_host_matrix_generate(grid, options, &matrix));
        rmsp_options_destroy(options);
    }
    return matrix;
}
