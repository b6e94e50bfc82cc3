#include <stddef.h>

#include "check.h"
#include "tests.h"

enum { unknowns = 5 * 4 * 3 };

/* Entries that tell their places. */
static void count_up(double* entries)
{
    int i;
    for (i = 0; i < unknowns; ++i) {
        entries[i] = i % 11 - 3;
    }
}

void transfer_moves_matrices(void)
{
    static const char* const keys[] = {"kernel.spmv", "csr-reference"};
    rmsp_options* options = options_of(keys, 1);
    rmsp_runtime* two = open_runtime("host:2x1");
    rmsp_runtime* three = open_runtime("host:3x1");
    rmsp_matrix* matrix = poisson(two, "stencil7 5 4 3", "double");
    rmsp_matrix* there = NULL;
    rmsp_matrix* again = NULL;
    double x[unknowns], y[unknowns], expected[unknowns];
    char* plan = NULL;
    count_up(x);
    CHECK_OK(rmsp_matrix_apply(matrix, 2, x, 0, expected));
    CHECK_OK(rmsp_matrix_transfer(matrix, three, NULL, &there));
    CHECK_OK(rmsp_matrix_transfer(matrix, two, options, &again));
    CHECK_OK(rmsp_matrix_plan(again, RMSP_TEXT, &plan));
    CHECK_TEXT(plan, "csr-reference");
    rmsp_free(plan);
    /* Nothing of the original is needed any more. */
    rmsp_matrix_destroy(matrix);
    rmsp_options_destroy(options);
    CHECK_OK(rmsp_matrix_apply(again, 2, x, 0, y));
    CHECK_VALUES(RMSP_DOUBLE, y, expected, unknowns);
    rmsp_matrix_destroy(again);
    rmsp_runtime_destroy(two);
    CHECK_OK(rmsp_matrix_apply(there, 2, x, 0, y));
    CHECK_VALUES(RMSP_DOUBLE, y, expected, unknowns);
    rmsp_matrix_destroy(there);
    rmsp_runtime_destroy(three);
}

/* A = | 1 2 |
       | 3 0 | by columns, then with other values. */
void transfer_downloads(void)
{
    static const int32_t col_ptr[3] = {0, 2, 3};
    static const int32_t row_idx[3] = {0, 1, 0};
    static const float values[3] = {1, 3, 2};
    static const float others[3] = {10, 30, 20};
    rmsp_runtime* runtime = open_runtime("host:2x1");
    rmsp_matrix* matrix = NULL;
    rmsp_host_matrix* host = NULL;
    rmsp_format format;
    rmsp_value_type type;
    const void* row_ptr = NULL;
    const void* col_idx = NULL;
    const void* entries = NULL;
    rmsp_index_type row_ptr_type, col_idx_type;
    CHECK_OK(rmsp_matrix_create_csc(runtime, 2, 2, 3, col_ptr, row_idx, values, RMSP_INT32, RMSP_INT32, 0, RMSP_FLOAT,
                                    NULL, &matrix));
    CHECK_OK(rmsp_matrix_update_values(matrix, others));
    if (CHECK_OK(rmsp_matrix_download(matrix, &host))) {
        static const double expected[3] = {10, 20, 30};
        rmsp_matrix_destroy(matrix);
        rmsp_runtime_destroy(runtime);
        CHECK_OK(rmsp_host_matrix_type(host, &format, &type));
        CHECK(format == RMSP_CSR && type == RMSP_FLOAT);
        CHECK_OK(rmsp_host_matrix_arrays(host, &row_ptr, &row_ptr_type, &col_idx, &col_idx_type, &entries));
        CHECK(row_ptr_type == RMSP_INT64 && ((const int64_t*)row_ptr)[1] == 2 && ((const int64_t*)row_ptr)[2] == 3);
        CHECK(col_idx_type == RMSP_INT32 && ((const int32_t*)col_idx)[1] == 1 && ((const int32_t*)col_idx)[2] == 0);
        CHECK_VALUES(RMSP_FLOAT, entries, expected, 3);
        rmsp_host_matrix_destroy(host);
    }
}

void transfer_moves_vectors(void)
{
    rmsp_runtime* two = open_runtime("host:2x1");
    rmsp_runtime* three = open_runtime("host:3x1");
    rmsp_matrix* here = poisson(two, "stencil7 5 4 3", "double");
    rmsp_matrix* there = poisson(three, "stencil7 5 4 3", "double");
    rmsp_vector* x = NULL;
    double entries[unknowns], got[unknowns];
    int layout;
    count_up(entries);
    CHECK_OK(rmsp_vector_create_x(here, RMSP_ROWS, RMSP_ORDER_KERNEL, &x));
    CHECK_OK(rmsp_vector_upload(x, entries));
    for (layout = 0; layout < 2; ++layout) {
        rmsp_vector* y = NULL;
        CHECK_OK(rmsp_vector_create_x(there, (rmsp_layout)layout, RMSP_ORDER_MATRIX, &y));
        CHECK_OK(rmsp_vector_transfer(x, y));
        CHECK_OK(rmsp_vector_download(y, got));
        CHECK_VALUES(RMSP_DOUBLE, got, entries, unknowns);
        rmsp_vector_destroy(y);
    }
    rmsp_vector_destroy(x);
    rmsp_matrix_destroy(there);
    rmsp_matrix_destroy(here);
    rmsp_runtime_destroy(three);
    rmsp_runtime_destroy(two);
}

void transfer_misuse(void)
{
    static const char* const keys[] = {"run.mode", "streamed"};
    rmsp_options* options = options_of(keys, 1);
    rmsp_runtime* runtime = open_runtime("host:1");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 5 4 3", "double");
    rmsp_matrix* small = poisson(runtime, "stencil7 2 1 1", "double");
    rmsp_matrix* of_floats = poisson(runtime, "stencil7 5 4 3", "float");
    rmsp_matrix* none = NULL;
    rmsp_host_matrix* host = NULL;
    rmsp_vector* x = NULL;
    rmsp_vector* two = NULL;
    rmsp_vector* floats = NULL;
    CHECK_USAGE(rmsp_matrix_transfer(matrix, runtime, options, &none), "streamed");
    CHECK_USAGE(rmsp_matrix_transfer(NULL, runtime, NULL, &none), "matrix is null");
    CHECK_USAGE(rmsp_matrix_transfer(matrix, NULL, NULL, &none), "runtime is null");
    CHECK_USAGE(rmsp_matrix_transfer(matrix, runtime, NULL, NULL), "transferred is null");
    CHECK(none == NULL);
    CHECK_USAGE(rmsp_matrix_download(NULL, &host), "matrix is null");
    CHECK_USAGE(rmsp_matrix_download(matrix, NULL), "host is null");
    CHECK_OK(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, &x));
    CHECK_OK(rmsp_vector_create_x(small, RMSP_ROWS, RMSP_ORDER_MATRIX, &two));
    CHECK_OK(rmsp_vector_create_x(of_floats, RMSP_ROWS, RMSP_ORDER_MATRIX, &floats));
    CHECK_USAGE(rmsp_vector_transfer(x, two), "60 entries is transferred to one of 2");
    CHECK_USAGE(rmsp_vector_transfer(x, floats), "y has values of type float");
    CHECK_USAGE(rmsp_vector_transfer(NULL, x), "x is null");
    CHECK_USAGE(rmsp_vector_transfer(x, NULL), "y is null");
    rmsp_options_destroy(options);
    rmsp_runtime_destroy(runtime);
    CHECK_USAGE(rmsp_matrix_download(matrix, &host), "has been destroyed");
    CHECK(host == NULL);
    rmsp_vector_destroy(floats);
    rmsp_vector_destroy(two);
    rmsp_vector_destroy(x);
    rmsp_matrix_destroy(of_floats);
    rmsp_matrix_destroy(small);
    rmsp_matrix_destroy(matrix);
}
