#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tests.h"

enum { threads = 4, rounds = 50 };

/* What one thread does, and whether all of it was right: checks are made by the thread that started them. */
typedef struct work {
    pthread_t thread;
    rmsp_matrix* matrix;
    rmsp_solver* solver;
    int number;
    int wrong;
} work;

static void* make_errors(void* argument)
{
    work* own = argument;
    rmsp_options* options = NULL;
    char key[32];
    int i;
    own->wrong += strcmp(rmsp_last_error(), "") != 0;
    own->wrong += rmsp_options_create(&options) != RMSP_SUCCESS;
    sprintf(key, "solver.wrong%d", own->number);
    for (i = 0; i < rounds; ++i) {
        own->wrong += rmsp_options_set(options, key, "1") != RMSP_ERROR_USAGE;
        own->wrong += strstr(rmsp_last_error(), key) == NULL;
        own->wrong += rmsp_options_set(options, "solver.tolerance", "1e-3") != RMSP_SUCCESS;
        own->wrong += strstr(rmsp_last_error(), key) == NULL;
    }
    rmsp_options_destroy(options);
    return NULL;
}

static void* use_handles(void* argument)
{
    work* own = argument;
    const double x[2] = {1, own->number};
    double y[2];
    int i;
    for (i = 0; i < rounds; ++i) {
        rmsp_result* result = NULL;
        rmsp_outcome outcome = RMSP_ITERATIONS;
        double solution[2] = {0, 0};
        own->wrong += rmsp_matrix_apply(own->matrix, 1, x, 0, y) != RMSP_SUCCESS;
        own->wrong += y[0] != 4 + own->number || y[1] != 1 + 4 * own->number;
        if (i % 10 == 0) {
            own->wrong += rmsp_solver_solve(own->solver, y, solution, &result) != RMSP_SUCCESS;
            own->wrong += rmsp_result_outcome(result, &outcome) != RMSP_SUCCESS || outcome != RMSP_CONVERGED;
            own->wrong += solution[1] - own->number > 1e-6 || own->number - solution[1] > 1e-6;
            rmsp_result_destroy(result);
        }
    }
    return NULL;
}

static void run_threads(void* (*body)(void*), rmsp_matrix* matrix, rmsp_solver* solver)
{
    work all[threads];
    int i;
    int started = 0;
    for (i = 0; i < threads; ++i) {
        all[i].matrix = matrix;
        all[i].solver = solver;
        all[i].number = i;
        all[i].wrong = 0;
        if (!CHECK(pthread_create(&all[i].thread, NULL, body, &all[i]) == 0)) {
            break;
        }
        ++started;
    }
    for (i = 0; i < started; ++i) {
        pthread_join(all[i].thread, NULL);
        CHECK(all[i].wrong == 0);
    }
}

void threads_have_their_own_errors(void)
{
    CHECK_USAGE(rmsp_options_create(NULL), "options is null");
    run_threads(make_errors, NULL, NULL);
    CHECK_TEXT(rmsp_last_error(), "rmsp_options_create: options is null");
}

void threads_share_handles(void)
{
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 2 1 1", "double");
    rmsp_solver* solver = NULL;
    const double values[4] = {4, 1, 1, 4};
    CHECK_OK(rmsp_matrix_update_values(matrix, values));
    if (CHECK_OK(rmsp_solver_create(matrix, NULL, &solver))) {
        run_threads(use_handles, matrix, solver);
        rmsp_solver_destroy(solver);
    }
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
}
