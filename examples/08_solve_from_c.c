/* Solves the Poisson equation from C99, with the application's own CSR arrays. RMSP_DEVICES=0,1 or RMSP_DEVICES=host:4
   chooses the devices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rmsp/rmsp.h>

#define SIDE 50
#define UNKNOWNS (SIDE * SIDE)

/* Each function says how it ended, and the thread's last message says it in words. */
static void check(rmsp_status status)
{
    if (status != RMSP_SUCCESS) {
        fprintf(stderr, "%s\n", rmsp_last_error());
        exit(status);
    }
}

/* Five points a row; returns the number of nonzeros. */
static int discretise(int* row_ptr, int* col_idx, double* values)
{
    int nnz = 0;
    for (int i = 0; i < UNKNOWNS; ++i) {
        const int columns[5] = {i >= SIDE ? i - SIDE : -1, i % SIDE > 0 ? i - 1 : -1, i,
                                i % SIDE < SIDE - 1 ? i + 1 : -1, i < UNKNOWNS - SIDE ? i + SIDE : -1};
        row_ptr[i] = nnz;
        for (int k = 0; k < 5; ++k) {
            if (columns[k] >= 0) {
                col_idx[nnz] = columns[k];
                values[nnz++] = columns[k] == i ? 4.0 : -1.0;
            }
        }
    }
    row_ptr[UNKNOWNS] = nnz;
    return nnz;
}

int main(void)
{
    static int row_ptr[UNKNOWNS + 1], col_idx[5 * UNKNOWNS];
    static double values[5 * UNKNOWNS], expected[UNKNOWNS], b[UNKNOWNS], x[UNKNOWNS];
    const int nnz = discretise(row_ptr, col_idx, values);
    for (int i = 0; i < UNKNOWNS; ++i) {
        expected[i] = sin(i);
    }

    rmsp_options* options; /* the keys of configuration files */
    check(rmsp_options_create(&options));
    check(rmsp_options_use_environment(options));
    check(rmsp_options_set(options, "solver.method", "cg"));
    check(rmsp_options_set(options, "solver.preconditioner", "jacobi"));
    check(rmsp_options_set(options, "solver.tolerance", "1e-10"));

    rmsp_runtime* runtime;
    rmsp_matrix* matrix;
    check(rmsp_runtime_create(options, &runtime));
    check(rmsp_matrix_create_csr(runtime, UNKNOWNS, UNKNOWNS, nnz, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT32, 0,
                                 RMSP_DOUBLE, options, &matrix));
    check(rmsp_matrix_apply(matrix, 1.0, expected, 0.0, b)); /* b = A x* */

    rmsp_solver* solver;
    rmsp_result* result; /* a solve that does not converge is an outcome, with a reason, not an error */
    check(rmsp_solver_create(matrix, options, &solver));
    check(rmsp_solver_solve(solver, b, x, &result)); /* begins at x, which is 0 */
    rmsp_outcome outcome;
    int64_t iterations;
    double residual;
    check(rmsp_result_outcome(result, &outcome));
    check(rmsp_result_iterations(result, &iterations));
    check(rmsp_result_residual(result, &residual, NULL, NULL));

    double worst = 0;
    for (int i = 0; i < UNKNOWNS; ++i) {
        worst = fmax(worst, fabs(x[i] - expected[i]));
    }
    printf("%s after %lld iterations, |b - A x| = %.3g, largest error %.3g\n", rmsp_outcome_name(outcome),
           (long long)iterations, residual, worst);

    /* Handles go in any order. */
    rmsp_result_destroy(result);
    rmsp_solver_destroy(solver);
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
    rmsp_options_destroy(options);
    return outcome == RMSP_CONVERGED && worst < 1e-7 ? 0 : 1;
}
