#include <string.h>

#include "check.h"
#include "tests.h"

void general_version(void)
{
    CHECK(strlen(rmsp_version()) >= 5);
    CHECK(strlen(rmsp_commit()) > 0);
    CHECK(strlen(rmsp_build_features()) > 0);
}

void general_names(void)
{
    CHECK(strcmp(rmsp_status_name(RMSP_SUCCESS), "success") == 0);
    CHECK(strcmp(rmsp_status_name(RMSP_ERROR_USAGE), "usage") == 0);
    CHECK(strcmp(rmsp_status_name(RMSP_ERROR_IO), "io") == 0);
    CHECK(strcmp(rmsp_status_name((rmsp_status)99), "unknown") == 0);
    CHECK(strcmp(rmsp_status_name((rmsp_status)-1), "unknown") == 0);
    CHECK(strcmp(rmsp_outcome_name(RMSP_CONVERGED), "converged") == 0);
    CHECK(strcmp(rmsp_outcome_name(RMSP_CANCELLED), "cancelled") == 0);
    CHECK(strcmp(rmsp_outcome_name((rmsp_outcome)0), "unknown") == 0);
    CHECK(strcmp(rmsp_outcome_name((rmsp_outcome)9), "unknown") == 0);
}

static void check_list(rmsp_status (*list)(rmsp_text_format, char**), const char* name)
{
    char* text = NULL;
    if (CHECK_OK(list(RMSP_TEXT, &text))) {
        CHECK_TEXT(text, name);
        rmsp_free(text);
    }
    text = NULL;
    if (CHECK_OK(list(RMSP_JSON, &text))) {
        CHECK_TEXT(text, name);
        CHECK_TEXT(text, "\"summary\": ");
        rmsp_free(text);
    }
    text = NULL;
    CHECK_USAGE(list((rmsp_text_format)2, &text), "format is 2, which is not one of 0 to 1");
    CHECK_USAGE(list(RMSP_TEXT, NULL), "text is null");
    CHECK(text == NULL);
}

void general_lists(void)
{
    check_list(rmsp_list_kernels, "reference");
    check_list(rmsp_list_solvers, "gmres");
    check_list(rmsp_list_preconditioners, "jacobi");
    check_list(rmsp_list_keys, "solver.tolerance");
}
