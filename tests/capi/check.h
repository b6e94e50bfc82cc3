#ifndef RMSP_TESTS_CAPI_CHECK_H
#define RMSP_TESTS_CAPI_CHECK_H

#include <rmsp/rmsp.h>

/* Tests in C99. A program's table of them is run by run_tests(), which speaks as much of GoogleTest's command line as
   tests/suites.cmake and scripts/check ask for. */

typedef struct test_case {
    const char* suite;
    const char* name;
    void (*body)(void);
} test_case;

/* What main() returns: 0 if the tests that the arguments choose passed, and there was at least one. */
int run_tests(int argc, char** argv, const test_case* tests, int count);

/* Each records a failure of the running test, and goes on; `check_*` return whether it held. */
int check_that(int holds, const char* what, const char* file, int line);
int check_success(rmsp_status status, const char* what, const char* file, int line);
/* That a call failed with this status, and that its message holds the text. */
int check_error(rmsp_status status, rmsp_status expected, const char* text, const char* what, const char* file,
                int line);
int check_text(const char* text, const char* part, const char* what, const char* file, int line);
/* |value - expected| <= 1e-4 |expected| for float, 1e-12 for double, entry by entry. */
int check_values(rmsp_value_type type, const void* values, const double* expected, int count, const char* what,
                 const char* file, int line);

#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_OK(call) check_success((call), #call, __FILE__, __LINE__)
#define CHECK_ERROR(call, status, text) check_error((call), (status), (text), #call, __FILE__, __LINE__)
#define CHECK_USAGE(call, text) CHECK_ERROR(call, RMSP_ERROR_USAGE, text)
#define CHECK_TEXT(text, part) check_text((text), (part), #text, __FILE__, __LINE__)
#define CHECK_VALUES(type, values, expected, count) \
    check_values((type), (values), (expected), (count), #values, __FILE__, __LINE__)

#endif
