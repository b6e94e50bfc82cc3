#include <string.h>

#include "check.h"
#include "tests.h"

void options_are_set_and_read(void)
{
    rmsp_options* options = NULL;
    char* value = NULL;
    if (!CHECK_OK(rmsp_options_create(&options))) {
        return;
    }
    if (CHECK_OK(rmsp_options_get(options, "solver.method", &value))) {
        CHECK(strcmp(value, "cg") == 0);
        rmsp_free(value);
    }
    CHECK_OK(rmsp_options_set(options, "solver.tolerance", "1e-5"));
    if (CHECK_OK(rmsp_options_get(options, "solver.tolerance", &value))) {
        CHECK(strcmp(value, "1e-05") == 0);
        rmsp_free(value);
    }
    CHECK_OK(rmsp_options_use_environment(options));
    rmsp_options_destroy(options);
    rmsp_options_destroy(NULL);
    rmsp_free(NULL);
}

void options_refuse(void)
{
    rmsp_options* options = NULL;
    char* value = NULL;
    CHECK_USAGE(rmsp_options_create(NULL), "rmsp_options_create: options is null");
    if (!CHECK_OK(rmsp_options_create(&options))) {
        return;
    }
    CHECK_USAGE(rmsp_options_set(options, "solver.tolerence", "1"), "the nearest known key is \"solver.tolerance\"");
    CHECK_USAGE(rmsp_options_set(options, "solver.tolerance", "small"), "solver.tolerance must be a number");
    CHECK_USAGE(rmsp_options_set(options, "solver.method", "gauss"), "must be one of");
    CHECK_USAGE(rmsp_options_set(options, NULL, "1"), "key is null");
    CHECK_USAGE(rmsp_options_set(options, "solver.tolerance", NULL), "value is null");
    CHECK_USAGE(rmsp_options_set(NULL, "solver.tolerance", "1"), "rmsp_options_set: options is null");
    CHECK_USAGE(rmsp_options_get(NULL, "solver.tolerance", &value), "options is null");
    CHECK_USAGE(rmsp_options_get(options, "solver.tolerance", NULL), "value is null");
    CHECK_USAGE(rmsp_options_get(options, "solver", &value), "unknown key \"solver\"");
    CHECK_USAGE(rmsp_options_use_environment(NULL), "options is null");
    CHECK_USAGE(rmsp_options_set_callback(NULL, NULL, NULL), "options is null");
    CHECK_OK(rmsp_options_set_callback(options, NULL, NULL));
    CHECK(value == NULL);
    rmsp_options_destroy(options);
}
