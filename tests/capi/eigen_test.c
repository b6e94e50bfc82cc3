#include <math.h>
#include <string.h>

#include "check.h"
#include "tests.h"

enum { edge = 8, unknowns = edge * edge * edge };

static int cancel(void* context, int64_t iteration, double residual, double target, double seconds)
{
    (void)iteration, (void)residual, (void)target, (void)seconds;
    ++*(int*)context;
    return 1;
}

/* The eigenvalues of the 7-point stencil on a grid of n^3 points: sums of 2 - 2 cos(i pi / (n + 1)). */
static double smallest(int i, int j, int k)
{
    const double step = acos(-1.0) / (edge + 1);
    return 6 - 2 * (cos(i * step) + cos(j * step) + cos(k * step));
}

static void find(rmsp_matrix* matrix, const char* method, const char* preconditioner)
{
    const char* keys[8] = {"eigen.method", NULL, "eigen.preconditioner", NULL,
                           "eigen.count",  "2",  "eigen.tolerance",      "1e-6"};
    const double expected[2] = {smallest(1, 1, 1), smallest(1, 1, 2)};
    double v[unknowns], av[unknowns];
    const double* values = NULL;
    const double* residuals = NULL;
    const char* reason = NULL;
    rmsp_eigen* eigen = NULL;
    rmsp_vector* vector = NULL;
    rmsp_outcome outcome;
    rmsp_options* options;
    char* text = NULL;
    int64_t iterations = 0;
    int count = 0;
    int i;
    keys[1] = method;
    keys[3] = preconditioner;
    options = options_of(keys, 4);
    if (CHECK_OK(rmsp_eigen_solve(matrix, options, &eigen))) {
        CHECK_OK(rmsp_eigen_outcome(eigen, &outcome));
        CHECK(outcome == RMSP_CONVERGED);
        CHECK_OK(rmsp_eigen_iterations(eigen, &iterations));
        CHECK(iterations > 0);
        CHECK_OK(rmsp_eigen_values(eigen, &values, &residuals, &count));
        if (CHECK(count == 2)) {
            CHECK(fabs(values[0] - expected[0]) < 1e-4 && fabs(values[1] - expected[1]) < 1e-4);
            CHECK(residuals[0] < 2e-5 && residuals[1] < 2e-5);
        }
        CHECK_OK(rmsp_eigen_reason(eigen, &reason));
        CHECK(strcmp(reason, "") == 0);
        if (CHECK_OK(rmsp_eigen_vector(eigen, 0, &vector))) {
            double norm = 0, off = 0;
            CHECK_OK(rmsp_vector_download(vector, v));
            CHECK_OK(rmsp_matrix_apply(matrix, 1, v, 0, av));
            for (i = 0; i < unknowns; ++i) {
                norm += v[i] * v[i];
                off += (av[i] - values[0] * v[i]) * (av[i] - values[0] * v[i]);
            }
            CHECK(fabs(norm - 1) < 1e-10 && sqrt(off) < 2e-5);
            rmsp_vector_destroy(vector);
        }
        CHECK_USAGE(rmsp_eigen_vector(eigen, 2, &vector), "there are 2 eigenvectors");
        if (CHECK_OK(rmsp_eigen_report(eigen, RMSP_TEXT, &text))) {
            CHECK_TEXT(text, method);
            rmsp_free(text);
        }
        rmsp_eigen_destroy(eigen);
    }
    rmsp_options_destroy(options);
}

void eigen_pairs(void)
{
    rmsp_runtime* runtime = open_runtime("host:2x1");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 8 8 8", "double");
    find(matrix, "lobpcg", "jacobi");
    find(matrix, "lanczos", "none");
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
}

void eigen_misuse(void)
{
    const char* keys[2] = {"eigen.count", "16"};
    rmsp_runtime* runtime = open_runtime("host:1");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 2 2 2", "double");
    rmsp_options* options = options_of(keys, 1);
    rmsp_eigen* eigen = NULL;
    const double* values = NULL;
    rmsp_outcome outcome;
    int asked = 0;
    CHECK_USAGE(rmsp_eigen_solve(NULL, NULL, &eigen), "matrix is null");
    CHECK_USAGE(rmsp_eigen_solve(matrix, NULL, NULL), "eigen is null");
    CHECK_USAGE(rmsp_eigen_solve(matrix, options, &eigen), "16");
    CHECK(eigen == NULL);
    CHECK_OK(rmsp_options_set(options, "eigen.count", "1"));
    CHECK_OK(rmsp_options_set_callback(options, cancel, &asked));
    if (CHECK_OK(rmsp_eigen_solve(matrix, options, &eigen))) {
        CHECK_OK(rmsp_eigen_outcome(eigen, &outcome));
        CHECK(asked == 0 || outcome == RMSP_CANCELLED);
        CHECK_USAGE(rmsp_eigen_values(eigen, &values, NULL, NULL), "count is null");
        rmsp_eigen_destroy(eigen);
    }
    rmsp_eigen_destroy(NULL);
    rmsp_options_destroy(options);
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
}
