#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tests.h"

enum { unknowns = 6 * 5 * 4 };
static const char* const grid = "stencil7 6 5 4";

/* Solves A x = b with A of the grid by a method; checks x against the one that made b. */
static void solve_by(rmsp_matrix* matrix, const char* method, const char* preconditioner)
{
    const char* keys[6] = {"solver.method", NULL, "solver.preconditioner", NULL, "solver.tolerance", "1e-10"};
    rmsp_options* options;
    rmsp_solver* solver = NULL;
    rmsp_result* result = NULL;
    rmsp_outcome outcome;
    int64_t iterations, count;
    const double* history = NULL;
    const char* reason = NULL;
    double residual, target, rhs_norm, seconds;
    double expected[unknowns], b[unknowns], x[unknowns];
    int i;
    keys[1] = method;
    keys[3] = preconditioner;
    options = options_of(keys, 3);
    for (i = 0; i < unknowns; ++i) {
        expected[i] = sin(i);
        x[i] = 0;
    }
    CHECK_OK(rmsp_matrix_apply(matrix, 1, expected, 0, b));
    if (CHECK_OK(rmsp_solver_create(matrix, options, &solver)) && CHECK_OK(rmsp_solver_solve(solver, b, x, &result))) {
        CHECK_OK(rmsp_result_outcome(result, &outcome));
        if (!CHECK(outcome == RMSP_CONVERGED)) {
            CHECK_TEXT(method, "converged");
        }
        CHECK_OK(rmsp_result_iterations(result, &iterations));
        CHECK_OK(rmsp_result_residual(result, &residual, &target, &rhs_norm));
        CHECK(residual <= target && target <= 1.001e-10 * rhs_norm);
        CHECK_OK(rmsp_result_history(result, &history, &count));
        CHECK(count >= 1 && history[0] > 0);
        CHECK_OK(rmsp_result_reason(result, &reason));
        CHECK(strcmp(reason, "") == 0);
        CHECK_OK(rmsp_result_seconds(result, &seconds));
        CHECK(seconds > 0);
        for (i = 0; i < unknowns; ++i) {
            if (!CHECK(fabs(x[i] - expected[i]) < 1e-7)) {
                break;
            }
        }
        rmsp_result_destroy(result);
    }
    rmsp_solver_destroy(solver);
    rmsp_options_destroy(options);
}

/* The names in a list of JSON objects, one after the other. */
static char* next_name(char** json)
{
    static const char before[] = "\"name\": \"";
    char* begin = strstr(*json, before);
    char* end;
    if (begin == NULL) {
        return NULL;
    }
    begin += sizeof before - 1;
    end = strchr(begin, '"');
    *end = '\0';
    *json = end + 1;
    return begin;
}

void solver_every_method(void)
{
    static const char* const devices[] = {"host:2", "auto"};
    char* methods = NULL;
    char* preconditioners = NULL;
    char *at, *name;
    int count = 0;
    int d;
    for (d = 0; d < 2; ++d) {
        rmsp_runtime* runtime = open_runtime(devices[d]);
        rmsp_matrix* matrix = poisson(runtime, grid, "double");
        if (d == 0) {
            CHECK_OK(rmsp_list_solvers(RMSP_JSON, &methods));
            for (at = methods; (name = next_name(&at)) != NULL; ++count) {
                solve_by(matrix, name, strcmp(name, "ir") == 0 ? "polynomial" : "none");
            }
            CHECK_OK(rmsp_list_preconditioners(RMSP_JSON, &preconditioners));
            for (at = preconditioners; (name = next_name(&at)) != NULL; ++count) {
                solve_by(matrix, "bicgstab", name);
            }
            CHECK(count > 10);
            rmsp_free(preconditioners);
            rmsp_free(methods);
        } else {
            solve_by(matrix, "cg", "jacobi");
        }
        rmsp_matrix_destroy(matrix);
        rmsp_runtime_destroy(runtime);
    }
}

static int cancel(void* context, int64_t iteration, double residual, double target, double seconds)
{
    ++*(int*)context;
    return iteration >= 0 && residual > target && seconds >= 0;
}

void solver_outcomes(void)
{
    static const char* const keys[] = {"solver.max_iterations", "2",   "solver.preconditioner", "jacobi",
                                       "solver.method",         "auto"};
    rmsp_options* options = options_of(keys, 3);
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = poisson(runtime, grid, "float");
    rmsp_solver* solver = NULL;
    rmsp_result* result = NULL;
    rmsp_outcome outcome;
    const char* reason = NULL;
    char* text = NULL;
    float b[unknowns], x[unknowns];
    int called = 0;
    int i;
    for (i = 0; i < unknowns; ++i) {
        b[i] = (float)(i % 7);
        x[i] = 0;
    }
    if (CHECK_OK(rmsp_solver_create(matrix, options, &solver))) {
        if (CHECK_OK(rmsp_solver_solve(solver, b, x, &result))) {
            CHECK_OK(rmsp_result_outcome(result, &outcome));
            CHECK(outcome == RMSP_ITERATIONS);
            CHECK_OK(rmsp_result_reason(result, &reason));
            CHECK_TEXT(reason, "2");
            for (i = 0; i < 2; ++i) {
                if (CHECK_OK(rmsp_result_report(result, (rmsp_text_format)i, &text))) {
                    CHECK_TEXT(text, "jacobi");
                    CHECK_TEXT(text, grid);
                    CHECK_TEXT(text, "an iteration is expected to take");
                    rmsp_free(text);
                }
            }
            rmsp_result_destroy(result);
        }
        CHECK_ERROR(rmsp_solver_solve(solver, b, x, NULL), RMSP_ERROR_NOT_CONVERGED, "not converged (iterations)");
        rmsp_solver_destroy(solver);
    }
    CHECK_OK(rmsp_options_set(options, "solver.max_iterations", "1000"));
    CHECK_OK(rmsp_options_set(options, "solver.tolerance", "1e-5"));
    if (CHECK_OK(rmsp_solver_create(matrix, options, &solver))) {
        CHECK_OK(rmsp_solver_solve(solver, b, x, NULL));
        rmsp_solver_destroy(solver);
    }
    CHECK_OK(rmsp_options_set_callback(options, cancel, &called));
    if (CHECK_OK(rmsp_solver_create(matrix, options, &solver))) {
        rmsp_vector* on_devices = NULL;
        rmsp_vector* solution = NULL;
        CHECK_OK(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, &on_devices));
        CHECK_OK(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, &solution));
        CHECK_OK(rmsp_vector_upload(on_devices, b));
        CHECK_OK(rmsp_vector_fill(solution, 0));
        if (CHECK_OK(rmsp_solver_solve_vectors(solver, on_devices, solution, &result))) {
            CHECK_OK(rmsp_result_outcome(result, &outcome));
            CHECK(outcome == RMSP_CANCELLED);
            CHECK(called > 0);
            rmsp_result_destroy(result);
        }
        rmsp_vector_destroy(solution);
        rmsp_vector_destroy(on_devices);
        rmsp_solver_destroy(solver);
    }
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
    rmsp_options_destroy(options);
    rmsp_result_destroy(NULL);
    rmsp_solver_destroy(NULL);
}

void solver_is_renewed(void)
{
    static const char* const keys[] = {"solver.preconditioner", "jacobi", "run.mode", "resident"};
    rmsp_options* options = options_of(keys, 2);
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 2 1 1", "double");
    rmsp_solver* solver = NULL;
    const double values[4] = {4, 1, 1, 4};
    const double b[2] = {6, 9};
    const double expected[2] = {1, 2};
    double x[2] = {0, 0};
    if (CHECK_OK(rmsp_solver_create(matrix, options, &solver))) {
        CHECK_OK(rmsp_matrix_update_values(matrix, values));
        CHECK_OK(rmsp_solver_renew(solver));
        /* The solver keeps what it needs of the matrix. */
        rmsp_matrix_destroy(matrix);
        CHECK_OK(rmsp_solver_solve(solver, b, x, NULL));
        CHECK(fabs(x[0] - expected[0]) < 1e-6 && fabs(x[1] - expected[1]) < 1e-6);
        rmsp_solver_destroy(solver);
    }
    rmsp_runtime_destroy(runtime);
    rmsp_options_destroy(options);
}

void solver_misuse(void)
{
    static const char* const keys[] = {"solver.method", "cg"};
    rmsp_options* options = options_of(keys, 1);
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 2 1 1", "double");
    rmsp_matrix* wide = NULL;
    rmsp_matrix* of_floats = poisson(runtime, "stencil7 2 1 1", "float");
    rmsp_solver* solver = NULL;
    rmsp_result* result = NULL;
    rmsp_vector* floats = NULL;
    rmsp_vector* doubles = NULL;
    const double b[2] = {1, 1};
    double x[2] = {0, 0};
    char* text = NULL;
    int64_t count;
    const double* history;
    const char* reason;
    rmsp_outcome outcome;
    CHECK_USAGE(rmsp_solver_create(NULL, options, &solver), "matrix is null");
    CHECK_USAGE(rmsp_solver_create(matrix, options, NULL), "solver is null");
    CHECK_OK(rmsp_options_set(options, "solver.inner", "cg"));
    CHECK_USAGE(rmsp_solver_create(matrix, options, &solver), "solver.inner is \"cg\"");
    CHECK_OK(rmsp_options_set(options, "solver.inner", "none"));
    CHECK_OK(rmsp_matrix_generate(runtime, "random 3 4 2", NULL, &wide));
    CHECK_USAGE(rmsp_solver_create(wide, options, &solver), "square");
    rmsp_matrix_destroy(wide);
    CHECK(solver == NULL);
    CHECK_USAGE(rmsp_solver_solve(NULL, b, x, &result), "solver is null");
    CHECK_USAGE(rmsp_solver_solve_vectors(NULL, NULL, NULL, &result), "solver is null");
    CHECK_USAGE(rmsp_solver_renew(NULL), "solver is null");
    CHECK_USAGE(rmsp_result_outcome(NULL, &outcome), "result is null");
    CHECK_USAGE(rmsp_result_iterations(NULL, &count), "result is null");
    CHECK_USAGE(rmsp_result_residual(NULL, NULL, NULL, NULL), "result is null");
    CHECK_USAGE(rmsp_result_seconds(NULL, x), "result is null");
    CHECK_USAGE(rmsp_result_history(NULL, &history, &count), "result is null");
    CHECK_USAGE(rmsp_result_reason(NULL, &reason), "result is null");
    CHECK_USAGE(rmsp_result_report(NULL, RMSP_TEXT, &text), "result is null");
    CHECK_OK(rmsp_vector_create_y(of_floats, RMSP_ORDER_MATRIX, &floats));
    CHECK_OK(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, &doubles));
    if (CHECK_OK(rmsp_solver_create(matrix, options, &solver))) {
        CHECK_USAGE(rmsp_solver_solve(solver, NULL, x, &result), "b is null");
        CHECK_USAGE(rmsp_solver_solve(solver, b, NULL, &result), "x is null");
        CHECK_USAGE(rmsp_solver_solve_vectors(solver, NULL, doubles, &result), "b is null");
        CHECK_USAGE(rmsp_solver_solve_vectors(solver, floats, doubles, &result), "b has values of type float");
        CHECK_USAGE(rmsp_solver_solve_vectors(solver, doubles, floats, &result), "x has values of type float");
        CHECK(result == NULL);
        if (CHECK_OK(rmsp_solver_solve(solver, b, x, &result))) {
            CHECK_USAGE(rmsp_result_outcome(result, NULL), "outcome is null");
            CHECK_USAGE(rmsp_result_reason(result, NULL), "reason is null");
            CHECK_USAGE(rmsp_result_history(result, NULL, &count), "residuals is null");
            CHECK_USAGE(rmsp_result_history(result, &history, NULL), "count is null");
            CHECK_USAGE(rmsp_result_report(result, (rmsp_text_format)2, &text), "format is 2");
            CHECK_OK(rmsp_result_residual(result, NULL, NULL, NULL));
            rmsp_result_destroy(result);
        }
        rmsp_runtime_destroy(runtime);
        CHECK_USAGE(rmsp_solver_solve(solver, b, x, &result), "has been destroyed");
        rmsp_solver_destroy(solver);
    }
    rmsp_vector_destroy(doubles);
    rmsp_vector_destroy(floats);
    rmsp_matrix_destroy(of_floats);
    rmsp_matrix_destroy(matrix);
    rmsp_options_destroy(options);
}
