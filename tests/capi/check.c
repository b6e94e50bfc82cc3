#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;

int check_that(int holds, const char* what, const char* file, int line)
{
    if (!holds) {
        ++failures;
        printf("%s:%d: does not hold: %s\n", file, line, what);
    }
    return holds;
}

int check_success(rmsp_status status, const char* what, const char* file, int line)
{
    if (status != RMSP_SUCCESS) {
        ++failures;
        printf("%s:%d: %s\n  returned %s: %s\n", file, line, what, rmsp_status_name(status), rmsp_last_error());
    }
    return status == RMSP_SUCCESS;
}

int check_error(rmsp_status status, rmsp_status expected, const char* text, const char* what, const char* file,
                int line)
{
    if (status != expected) {
        ++failures;
        printf("%s:%d: %s\n  returned %s instead of %s\n", file, line, what, rmsp_status_name(status),
               rmsp_status_name(expected));
        return 0;
    }
    return check_text(rmsp_last_error(), text, what, file, line);
}

int check_text(const char* text, const char* part, const char* what, const char* file, int line)
{
    if (text == NULL || strstr(text, part) == NULL) {
        ++failures;
        printf("%s:%d: %s\n  is \"%s\", without \"%s\"\n", file, line, what, text != NULL ? text : "(null)", part);
        return 0;
    }
    return 1;
}

int check_values(rmsp_value_type type, const void* values, const double* expected, int count, const char* what,
                 const char* file, int line)
{
    const double tolerance = type == RMSP_FLOAT ? 1e-4 : 1e-12;
    int i;
    for (i = 0; i < count; ++i) {
        const double value = type == RMSP_FLOAT ? ((const float*)values)[i] : ((const double*)values)[i];
        if (!(fabs(value - expected[i]) <= tolerance * fabs(expected[i]))) {
            ++failures;
            printf("%s:%d: %s[%d] is %.17g instead of %.17g\n", file, line, what, i, value, expected[i]);
            return 0;
        }
    }
    return 1;
}

/* A filter "SUITE.*" or "SUITE.NAME"; null chooses all. */
static int chosen(const char* filter, const test_case* test)
{
    size_t suite = strlen(test->suite);
    if (filter == NULL || strcmp(filter, "*") == 0) {
        return 1;
    }
    if (strncmp(filter, test->suite, suite) != 0 || filter[suite] != '.') {
        return 0;
    }
    return strcmp(filter + suite + 1, "*") == 0 || strcmp(filter + suite + 1, test->name) == 0;
}

static void list(const test_case* tests, int count)
{
    int i;
    for (i = 0; i < count; ++i) {
        if (i == 0 || strcmp(tests[i].suite, tests[i - 1].suite) != 0) {
            printf("%s.\n", tests[i].suite);
        }
        printf("  %s\n", tests[i].name);
    }
}

int run_tests(int argc, char** argv, const test_case* tests, int count)
{
    static const char filter_option[] = "--gtest_filter=";
    static const char output_option[] = "--gtest_output=xml:";
    const char* filter = NULL;
    const char* output = NULL;
    int run = 0;
    int failed = 0;
    int i;
    for (i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--gtest_list_tests") == 0) {
            list(tests, count);
            return 0;
        }
        if (strncmp(argv[i], filter_option, sizeof filter_option - 1) == 0) {
            filter = argv[i] + sizeof filter_option - 1;
        } else if (strncmp(argv[i], output_option, sizeof output_option - 1) == 0) {
            output = argv[i] + sizeof output_option - 1;
        }
    }
    for (i = 0; i < count; ++i) {
        if (chosen(filter, &tests[i])) {
            failures = 0;
            tests[i].body();
            printf("%s %s.%s\n", failures ? "FAILED" : "OK    ", tests[i].suite, tests[i].name);
            fflush(stdout);
            ++run;
            failed += failures != 0;
        }
    }
    printf("%d tests, %d failed\n", run, failed);
    if (output != NULL) {
        FILE* file = fopen(output, "w");
        if (file == NULL) {
            printf("%s: cannot be written\n", output);
            return 1;
        }
        fprintf(file, "<testsuites>\n  <testsuite tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"0\">\n", run,
                failed);
        fprintf(file, "  </testsuite>\n</testsuites>\n");
        fclose(file);
    }
    return run > 0 && failed == 0 ? 0 : 1;
}
