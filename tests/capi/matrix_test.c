#include <string.h>

#include "check.h"
#include "tests.h"

/*     | 1 2 |
   A = | 0 3 |, as arrays of every type and base
       | 0 0 | */
static const int32_t row_ptr_32[2][4] = {{0, 2, 3, 3}, {1, 3, 4, 4}};
static const int64_t row_ptr_64[2][4] = {{0, 2, 3, 3}, {1, 3, 4, 4}};
static const int32_t col_idx_32[2][3] = {{0, 1, 1}, {1, 2, 2}};
static const int64_t col_idx_64[2][3] = {{0, 1, 1}, {1, 2, 2}};
static const double values_double[3] = {1, 2, 3};
static const float values_float[3] = {1, 2, 3};

rmsp_runtime* open_runtime(const char* devices)
{
    rmsp_runtime* runtime = NULL;
    rmsp_options* options = NULL;
    if (CHECK_OK(rmsp_options_create(&options))) {
        CHECK_OK(rmsp_options_set(options, "runtime.devices", devices));
        CHECK_OK(rmsp_options_set(options, "runtime.cache", "off"));
        CHECK_OK(rmsp_runtime_create(options, &runtime));
        rmsp_options_destroy(options);
    }
    return runtime;
}

static void multiply(rmsp_runtime* runtime, rmsp_index_type row_ptr_type, rmsp_index_type col_idx_type, int base,
                     rmsp_value_type value_type)
{
    const void* row_ptr = row_ptr_type == RMSP_INT32 ? (const void*)row_ptr_32[base] : row_ptr_64[base];
    const void* col_idx = col_idx_type == RMSP_INT32 ? (const void*)col_idx_32[base] : col_idx_64[base];
    const double expected[3] = {2 * 210 - 1, 2 * 300 - 2, -3};
    const double x_double[2] = {10, 100};
    const float x_float[2] = {10, 100};
    double y_double[3] = {1, 2, 3};
    float y_float[3] = {1, 2, 3};
    const int single = value_type == RMSP_FLOAT;
    void* y = single ? (void*)y_float : y_double;
    rmsp_matrix* matrix = NULL;
    if (!CHECK_OK(rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr, col_idx,
                                         single ? (const void*)values_float : values_double, row_ptr_type, col_idx_type,
                                         base, value_type, NULL, &matrix))) {
        return;
    }
    CHECK_OK(rmsp_matrix_apply(matrix, 2, single ? (const void*)x_float : x_double, -1, y));
    CHECK_VALUES(value_type, y, expected, 3);
    rmsp_matrix_destroy(matrix);
}

void matrix_multiplies(void)
{
    static const char* const devices[] = {"host:1", "host:3", "auto"};
    int d;
    int type;
    for (d = 0; d < 3; ++d) {
        rmsp_runtime* runtime = open_runtime(devices[d]);
        for (type = 0; runtime != NULL && type < 16; ++type) {
            multiply(runtime, type & 1 ? RMSP_INT64 : RMSP_INT32, type & 2 ? RMSP_INT64 : RMSP_INT32, type >> 2 & 1,
                     type & 8 ? RMSP_DOUBLE : RMSP_FLOAT);
        }
        rmsp_runtime_destroy(runtime);
    }
}

void matrix_refuses_bad_arrays(void)
{
    const int32_t falling[4] = {0, 2, 1, 3};
    const int32_t outside[3] = {0, 1, 2};
    const int32_t from_zero[4] = {0, 2, 3, 3};
    const int32_t least[3] = {INT32_MIN, 1, 2};
    rmsp_matrix* matrix = NULL;
    rmsp_runtime* runtime = open_runtime("host:2");
    if (runtime == NULL) {
        return;
    }
#define CREATE(rows, cols, nnz, row_ptr, col_idx, values, base)                                              \
    rmsp_matrix_create_csr(runtime, rows, cols, nnz, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT32, base, \
                           RMSP_DOUBLE, NULL, &matrix)
    CHECK_USAGE(CREATE(3, 2, 3, falling, col_idx_32[0], values_double, 0), "row 1");
    CHECK_USAGE(CREATE(3, 2, 3, row_ptr_32[0], outside, values_double, 0), "entry 2");
    CHECK_USAGE(CREATE(3, 2, 3, from_zero, col_idx_32[1], values_double, 1), "row_ptr[0]");
    CHECK_USAGE(CREATE(3, 2, 3, row_ptr_32[1], least, values_double, 1), "entry 0");
    CHECK_USAGE(CREATE(3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, 2), "index_base is 2");
    CHECK_USAGE(CREATE(-1, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, 0), "rows is -1");
    CHECK_USAGE(CREATE(INT64_MAX, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, 0), "rows is 9223372036854775807");
    CHECK_USAGE(CREATE(3, -2, 3, row_ptr_32[0], col_idx_32[0], values_double, 0), "cols is -2");
    CHECK_USAGE(CREATE(3, 2, -3, row_ptr_32[0], col_idx_32[0], values_double, 0), "nnz is -3");
    CHECK_USAGE(CREATE(3, 2, 3, NULL, col_idx_32[0], values_double, 0), "row_ptr is null; it has to have 4 entries");
    CHECK_USAGE(CREATE(3, 2, 3, row_ptr_32[0], NULL, values_double, 0), "col_idx is null; it has to have 3 entries");
    CHECK_USAGE(CREATE(3, 2, 3, row_ptr_32[0], col_idx_32[0], NULL, 0), "values is null; it has to have 3 entries");
#undef CREATE
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double,
                                       (rmsp_index_type)7, RMSP_INT32, 0, RMSP_DOUBLE, NULL, &matrix),
                "row_ptr_type is 7");
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, RMSP_INT32,
                                       (rmsp_index_type)-1, 0, RMSP_DOUBLE, NULL, &matrix),
                "col_idx_type is ");
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, RMSP_INT32,
                                       RMSP_INT32, 0, (rmsp_value_type)2, NULL, &matrix),
                "value_type is 2");
    CHECK(matrix == NULL);
    rmsp_runtime_destroy(runtime);
}

void matrix_names_misuse(void)
{
    const double x[2] = {10, 100};
    double y[3];
    rmsp_matrix* matrix = NULL;
    rmsp_runtime* runtime = NULL;
    rmsp_options* options = NULL;
    CHECK(strcmp(rmsp_status_name(RMSP_SUCCESS), "success") == 0);
    CHECK(strcmp(rmsp_status_name(RMSP_ERROR_USAGE), "usage") == 0);
    CHECK(strcmp(rmsp_status_name((rmsp_status)99), "unknown") == 0);
    CHECK_USAGE(rmsp_runtime_create(NULL, NULL), "rmsp_runtime_create: runtime is null");
    CHECK_USAGE(rmsp_runtime_synchronize(NULL), "rmsp_runtime_synchronize: runtime is null");
    if (CHECK_OK(rmsp_options_create(&options))) {
        CHECK_OK(rmsp_options_set(options, "runtime.devices", "gpu"));
        CHECK_USAGE(rmsp_runtime_create(options, &runtime), "gpu");
        CHECK(runtime == NULL);
        rmsp_options_destroy(options);
    }
    CHECK_USAGE(rmsp_matrix_create_csr(NULL, 3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, RMSP_INT32,
                                       RMSP_INT32, 0, RMSP_DOUBLE, NULL, &matrix),
                "runtime is null");
    CHECK_USAGE(rmsp_matrix_apply(NULL, 1, x, 0, y), "rmsp_matrix_apply: matrix is null");
    runtime = open_runtime("host:2");
    if (runtime == NULL) {
        return;
    }
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, RMSP_INT32,
                                       RMSP_INT32, 0, RMSP_DOUBLE, NULL, NULL),
                "matrix is null");
    if (CHECK_OK(rmsp_matrix_create_csr(runtime, 3, 2, 3, row_ptr_32[0], col_idx_32[0], values_double, RMSP_INT32,
                                        RMSP_INT32, 0, RMSP_DOUBLE, NULL, &matrix))) {
        CHECK_USAGE(rmsp_matrix_apply(matrix, 1, NULL, 0, y), "x is null; it has to have 2 entries");
        CHECK_USAGE(rmsp_matrix_apply(matrix, 1, x, 0, NULL), "y is null; it has to have 3 entries");
        CHECK_OK(rmsp_runtime_synchronize(runtime));
        /* The handles may be destroyed in any order. */
        rmsp_runtime_destroy(runtime);
        CHECK_USAGE(rmsp_matrix_apply(matrix, 1, x, 0, y), "has been destroyed");
        rmsp_matrix_destroy(matrix);
    }
    rmsp_matrix_destroy(NULL);
    rmsp_runtime_destroy(NULL);
}
