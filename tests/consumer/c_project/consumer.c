/* What a C application outside this tree does: link rmsp::c, multiply a small matrix, check the result. */
#include <stdio.h>

#include <rmsp/rmsp.h>

int main(void)
{
    const int row_ptr[] = {0, 2, 3, 3};
    const int col_idx[] = {0, 1, 1};
    const double values[] = {1.0, 2.0, 3.0};
    const double x[] = {10.0, 100.0};
    double y[] = {-1.0, -1.0, -1.0};

    rmsp_options* options = NULL;
    rmsp_runtime* runtime = NULL;
    rmsp_matrix* a = NULL;
    if (rmsp_options_create(&options) || rmsp_options_set(options, "runtime.devices", "host:2") ||
        rmsp_runtime_create(options, &runtime) ||
        rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT32, 0, RMSP_DOUBLE, NULL,
                               &a) ||
        rmsp_matrix_apply(a, 1.0, x, 0.0, y)) {
        fprintf(stderr, "%s\n", rmsp_last_error());
        return 1;
    }
    printf("librmsp %s: %g %g %g\n", rmsp_version(), y[0], y[1], y[2]);
    rmsp_matrix_destroy(a);
    rmsp_runtime_destroy(runtime);
    rmsp_options_destroy(options);
    return y[0] == 210.0 && y[1] == 300.0 && y[2] == 0.0 ? 0 : 1;
}
