#include <stddef.h>
#include <string.h>

#include "check.h"
#include "tests.h"

/* Two rows of blocks of 1 x 2, from 1 on:
       | 1 2 3 4 |
       | 0 0 5 6 | */
void matrix_of_blocks(void)
{
    static const int32_t row_ptr[3] = {1, 3, 4};
    static const int64_t col_idx[3] = {1, 2, 2};
    static const double values[6] = {1, 2, 3, 4, 5, 6};
    static const double twice[6] = {2, 4, 6, 8, 10, 12};
    const double x[4] = {1, 10, 100, 1000};
    const double expected[2] = {4321, 6500};
    const double expected_twice[2] = {8642, 13000};
    double y[2] = {0, 0};
    int64_t rows, cols, nnz;
    rmsp_runtime* runtime = open_runtime("host:2x1");
    rmsp_matrix* matrix = NULL;
    int by_column;
    for (by_column = 0; by_column < 2; ++by_column) {
        if (CHECK_OK(rmsp_matrix_create_bsr(runtime, 2, 2, 3, 1, 2, by_column, row_ptr, col_idx, values, RMSP_INT32,
                                            RMSP_INT64, 1, RMSP_DOUBLE, NULL, &matrix))) {
            CHECK_OK(rmsp_matrix_size(matrix, &rows, &cols, &nnz));
            CHECK(rows == 2 && cols == 4 && nnz == 6);
            CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, y));
            CHECK_VALUES(RMSP_DOUBLE, y, expected, 2);
            CHECK_OK(rmsp_matrix_update_values(matrix, twice));
            CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, y));
            CHECK_VALUES(RMSP_DOUBLE, y, expected_twice, 2);
            rmsp_matrix_destroy(matrix);
        }
    }
    matrix = NULL;
    CHECK_USAGE(rmsp_matrix_create_bsr(runtime, 2, 2, 3, 1, 2, 0, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT64, 0,
                                       RMSP_DOUBLE, NULL, &matrix),
                "row_ptr[0] is 1, not 0");
    CHECK_USAGE(rmsp_matrix_create_bsr(runtime, 2, 2, 3, 1, 2, 0, NULL, col_idx, values, RMSP_INT32, RMSP_INT64, 1,
                                       RMSP_DOUBLE, NULL, &matrix),
                "the row pointers are null");
    CHECK_USAGE(rmsp_matrix_create_bsr(runtime, 2, 2, 3, 1, 2, 0, row_ptr, col_idx, values, (rmsp_index_type)7,
                                       RMSP_INT64, 1, RMSP_DOUBLE, NULL, &matrix),
                "row_ptr_type");
    CHECK(matrix == NULL);
    rmsp_runtime_destroy(runtime);
}

/* The square of a diagonal matrix, which is on the GPU, into arrays there and here. */
static void square_of(rmsp_runtime* runtime, const rmsp_matrix* diagonal, rmsp_vector* const* vectors,
                      void* const* there, int n, const double* d)
{
    rmsp_product* product = NULL;
    int64_t row_ptr[121];
    double values[120], columns[120];
    int32_t column;
    int i;
    if (!CHECK(n == 120) || !CHECK_OK(rmsp_product_create_resident(runtime, diagonal, diagonal, NULL, &product))) {
        return;
    }
    CHECK_OK(rmsp_product_compute(product, 1));
    CHECK_OK(rmsp_product_download_arrays(product, row_ptr, (int32_t*)there[2], there[1]));
    CHECK_OK(rmsp_vector_download(vectors[1], values));
    CHECK_OK(rmsp_vector_download(vectors[2], columns));
    for (i = 0; i < n; ++i) {
        memcpy(&column, (const char*)columns + 4 * i, 4);
        CHECK(row_ptr[i] == i && column == i);
        CHECK(values[i] - d[i] * d[i] < 1e-9 && d[i] * d[i] - values[i] < 1e-9);
    }
    CHECK(row_ptr[n] == n);
    rmsp_product_destroy(product);
}

/* y = A x and z = A y in the order of the default stream, in arrays that vectors have on the GPU. */
static void on_a_gpu(rmsp_runtime* runtime)
{
    enum { unknowns = 6 * 5 * 4 };
    rmsp_matrix* matrix = poisson(runtime, "stencil7 6 5 4", "double");
    rmsp_vector* vectors[3] = {NULL, NULL, NULL};
    void* there[3] = {NULL, NULL, NULL};
    double x[unknowns], y[unknowns], z[unknowns], expected[unknowns];
    int64_t ones[unknowns + 1];
    rmsp_matrix* diagonal = NULL;
    rmsp_matrix* blocks = NULL;
    rmsp_solver* solver = NULL;
    rmsp_options* options = NULL;
    int i;
    for (i = 0; i < unknowns; ++i) {
        x[i] = i % 7;
    }
    for (i = 0; i < 3; ++i) {
        CHECK_OK(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, &vectors[i]));
        CHECK_OK(rmsp_vector_local(vectors[i], 0, &there[i], NULL, NULL));
    }
    CHECK_OK(rmsp_vector_upload(vectors[0], x));
    CHECK_OK(rmsp_matrix_apply_on_stream(matrix, 1, there[0], 0, there[1], NULL));
    CHECK_OK(rmsp_matrix_apply_transposed_on_stream(matrix, 1, there[1], 0, there[2], NULL));
    CHECK_OK(rmsp_runtime_synchronize(runtime));
    CHECK_OK(rmsp_vector_download(vectors[2], z));
    CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, y));
    CHECK_OK(rmsp_matrix_apply(matrix, 1, y, 0, expected));
    CHECK_VALUES(RMSP_DOUBLE, z, expected, unknowns);
    CHECK_OK(rmsp_matrix_apply(matrix, 1, there[0], 0, there[1]));
    CHECK_OK(rmsp_vector_download(vectors[1], z));
    CHECK_VALUES(RMSP_DOUBLE, z, y, unknowns);
    /* A matrix, its values and a solve, all after what is on the stream. */
    CHECK_OK(rmsp_vector_fill(vectors[2], 0));
    CHECK_OK(rmsp_runtime_synchronize(runtime));
    CHECK_OK(rmsp_solver_create(matrix, NULL, &solver));
    CHECK_OK(rmsp_matrix_apply_on_stream(matrix, 1, there[0], 0, there[1], NULL));
    CHECK_OK(rmsp_solver_solve_on_stream(solver, there[1], there[2], NULL, NULL));
    CHECK_OK(rmsp_vector_download(vectors[2], z));
    for (i = 0; i < unknowns; ++i) {
        CHECK(z[i] - x[i] < 1e-5 && x[i] - z[i] < 1e-5);
    }
    CHECK_OK(rmsp_options_create(&options));
    CHECK_OK(rmsp_options_set_stream(options, NULL));
    for (i = 0; i <= unknowns; ++i) {
        ones[i] = i;
    }
    if (CHECK_OK(rmsp_matrix_create_csr(runtime, unknowns, unknowns, unknowns, ones, ones, there[0], RMSP_INT64,
                                        RMSP_INT64, 0, RMSP_DOUBLE, options, &diagonal))) {
        CHECK_OK(rmsp_matrix_apply(diagonal, 2, x, 0, y));
        for (i = 0; i < unknowns; ++i) {
            CHECK(y[i] == 2 * x[i] * x[i]);
        }
        CHECK_OK(rmsp_matrix_apply_on_stream(matrix, 1, there[0], 0, there[1], NULL));
        CHECK_OK(rmsp_matrix_update_values_on_stream(diagonal, there[1], NULL));
        CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, expected));
        CHECK_OK(rmsp_matrix_apply(diagonal, 1, x, 0, y));
        for (i = 0; i < unknowns; ++i) {
            CHECK(y[i] - expected[i] * x[i] < 1e-9 && expected[i] * x[i] - y[i] < 1e-9);
        }
        square_of(runtime, diagonal, vectors, there, unknowns, expected);
    }
    /* Blocks of 1 x 1, whose values are there. */
    CHECK_OK(rmsp_vector_upload(vectors[0], x));
    if (CHECK_OK(rmsp_matrix_create_bsr(runtime, unknowns, unknowns, unknowns, 1, 1, 0, ones, ones, there[0],
                                        RMSP_INT64, RMSP_INT64, 0, RMSP_DOUBLE, options, &blocks))) {
        CHECK_OK(rmsp_matrix_apply(blocks, 2, x, 0, y));
        for (i = 0; i < unknowns; ++i) {
            CHECK(y[i] == 2 * x[i] * x[i]);
        }
        CHECK_OK(rmsp_vector_upload(vectors[0], y));
        CHECK_OK(rmsp_matrix_update_values(blocks, there[0]));
        CHECK_OK(rmsp_matrix_apply(blocks, 1, x, 0, z));
        for (i = 0; i < unknowns; ++i) {
            CHECK(z[i] == y[i] * x[i]);
        }
    }
    rmsp_matrix_destroy(blocks);
    rmsp_matrix_destroy(diagonal);
    rmsp_options_destroy(options);
    rmsp_solver_destroy(solver);
    for (i = 0; i < 3; ++i) {
        rmsp_vector_destroy(vectors[i]);
    }
    rmsp_matrix_destroy(matrix);
}

void matrix_orders_by_streams(void)
{
    const char* keys[4] = {"runtime.cache", "off", "runtime.devices", "0"};
    rmsp_options* options = options_of(keys, 2);
    rmsp_runtime* runtime = NULL;
    rmsp_matrix* matrix;
    rmsp_solver* solver = NULL;
    double x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    double y[8];
    if (rmsp_runtime_create(options, &runtime) == RMSP_SUCCESS) {
        on_a_gpu(runtime);
        rmsp_runtime_destroy(runtime);
    }
    rmsp_options_destroy(options);
    runtime = open_runtime("host:1");
    matrix = poisson(runtime, "stencil7 2 2 2", "double");
    CHECK_USAGE(rmsp_matrix_apply_on_stream(matrix, 1, x, 0, y, NULL), "x is in host memory");
    CHECK_USAGE(rmsp_matrix_apply_transposed_on_stream(matrix, 1, NULL, 0, y, NULL), "x is null");
    CHECK_USAGE(rmsp_matrix_update_values_on_stream(matrix, x, NULL), "values is not in the memory of a GPU");
    CHECK_USAGE(rmsp_matrix_update_values_on_stream(matrix, NULL, NULL), "values is null");
    CHECK_OK(rmsp_solver_create(matrix, NULL, &solver));
    CHECK_USAGE(rmsp_solver_solve_on_stream(solver, x, y, NULL, NULL), "b is not in the memory of a GPU");
    CHECK_USAGE(rmsp_solver_solve_on_stream(NULL, x, y, NULL, NULL), "solver is null");
    CHECK_USAGE(rmsp_options_set_stream(NULL, NULL), "options is null");
    rmsp_solver_destroy(solver);
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
}
