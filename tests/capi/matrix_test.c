#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tests.h"

/*     | 1 2 |
   A = | 0 3 |  as arrays of every format, type and base
       | 0 0 | */
static const int32_t csr_ptr_32[2][4] = {{0, 2, 3, 3}, {1, 3, 4, 4}};
static const int64_t csr_ptr_64[2][4] = {{0, 2, 3, 3}, {1, 3, 4, 4}};
static const int32_t csc_ptr_32[2][3] = {{0, 1, 3}, {1, 2, 4}};
static const int64_t csc_ptr_64[2][3] = {{0, 1, 3}, {1, 2, 4}};
static const int32_t row_32[2][3] = {{0, 0, 1}, {1, 1, 2}};
static const int64_t row_64[2][3] = {{0, 0, 1}, {1, 1, 2}};
static const int32_t col_32[2][3] = {{0, 1, 1}, {1, 2, 2}};
static const int64_t col_64[2][3] = {{0, 1, 1}, {1, 2, 2}};
static const double values_double[3] = {1, 2, 3};
static const float values_float[3] = {1, 2, 3};

static rmsp_status create(rmsp_runtime* runtime, rmsp_format format, int wide_first, int wide_second, int base,
                          rmsp_value_type type, rmsp_matrix** matrix)
{
    const void* values = type == RMSP_FLOAT ? (const void*)values_float : values_double;
    const void* rows = wide_second ? (const void*)row_64[base] : row_32[base];
    const void* cols = wide_second ? (const void*)col_64[base] : col_32[base];
    const rmsp_index_type first = wide_first ? RMSP_INT64 : RMSP_INT32;
    const rmsp_index_type second = wide_second ? RMSP_INT64 : RMSP_INT32;
    switch (format) {
        case RMSP_CSR:
            return rmsp_matrix_create_csr(runtime, 3, 2, 3,
                                          wide_first ? (const void*)csr_ptr_64[base] : csr_ptr_32[base], cols, values,
                                          first, second, base, type, NULL, matrix);
        case RMSP_CSC:
            return rmsp_matrix_create_csc(runtime, 3, 2, 3,
                                          wide_first ? (const void*)csc_ptr_64[base] : csc_ptr_32[base], rows, values,
                                          first, second, base, type, NULL, matrix);
        default:
            return rmsp_matrix_create_coo(runtime, 3, 2, 3, wide_first ? (const void*)row_64[base] : row_32[base], cols,
                                          values, first, second, base, type, NULL, matrix);
    }
}

static void multiply(rmsp_matrix* matrix, rmsp_value_type type)
{
    const double expected[3] = {2 * 210 - 1, 2 * 300 - 2, -3};
    const double expected_transposed[2] = {2 * 10 + 1, 2 * (20 + 300) + 2};
    const double x_double[3] = {10, 100, 1000};
    const float x_float[3] = {10, 100, 1000};
    double y_double[3] = {1, 2, 3};
    float y_float[3] = {1, 2, 3};
    double z_double[2] = {1, 2};
    float z_float[2] = {1, 2};
    const int single = type == RMSP_FLOAT;
    const void* x = single ? (const void*)x_float : x_double;
    void* y = single ? (void*)y_float : y_double;
    void* z = single ? (void*)z_float : z_double;
    rmsp_future* future = NULL;
    rmsp_value_type value_type;
    int64_t rows, cols, nnz;
    CHECK_OK(rmsp_matrix_size(matrix, &rows, &cols, &nnz));
    CHECK(rows == 3 && cols == 2 && nnz == 3);
    CHECK_OK(rmsp_matrix_value_type(matrix, &value_type));
    CHECK(value_type == type);
    CHECK_OK(rmsp_matrix_apply(matrix, 2, x, -1, y));
    CHECK_VALUES(type, y, expected, 3);
    CHECK_OK(rmsp_matrix_apply_transposed(matrix, 2, x, 1, z));
    CHECK_VALUES(type, z, expected_transposed, 2);
    memset(y, 0, 3 * (single ? sizeof(float) : sizeof(double)));
    if (CHECK_OK(rmsp_matrix_apply_async(matrix, 2, x, 0, y, &future))) {
        const double once_more[3] = {420, 600, 0};
        CHECK_OK(rmsp_future_wait(future));
        CHECK_OK(rmsp_future_wait(future));
        CHECK_VALUES(type, y, once_more, 3);
        rmsp_future_destroy(future);
    }
}

void matrix_multiplies(void)
{
    static const char* const devices[] = {"host:1", "host:3", "auto"};
    int d, format, type;
    for (d = 0; d < 3; ++d) {
        rmsp_runtime* runtime = open_runtime(devices[d]);
        for (format = 0; runtime != NULL && format < 3; ++format) {
            /* Every type on one of the device sets; on the others float from 0 and double from 1. */
            for (type = d == 1 ? 0 : 3; type < 16; type += d == 1 ? 1 : 9) {
                rmsp_matrix* matrix = NULL;
                const rmsp_value_type value_type = type & 8 ? RMSP_DOUBLE : RMSP_FLOAT;
                if (CHECK_OK(
                        create(runtime, (rmsp_format)format, type & 1, type & 2, type >> 2 & 1, value_type, &matrix))) {
                    multiply(matrix, value_type);
                    rmsp_matrix_destroy(matrix);
                }
            }
        }
        rmsp_runtime_destroy(runtime);
    }
}

void matrix_refuses_bad_arrays(void)
{
    const int32_t falling[4] = {0, 2, 1, 3};
    const int32_t outside[3] = {0, 1, 2};
    const int32_t outside_rows[3] = {0, 3, 1};
    const int32_t least[3] = {INT32_MIN, 1, 2};
    const int32_t unsorted_rows[3] = {1, 0, 1};
    const int32_t unsorted_cols[3] = {1, 0, 0};
    rmsp_matrix* matrix = NULL;
    rmsp_runtime* runtime = open_runtime("host:2");
    if (runtime == NULL) {
        return;
    }
#define CREATE(format, rows, cols, nnz, first, second, values, base)                                           \
    rmsp_matrix_create_##format(runtime, rows, cols, nnz, first, second, values, RMSP_INT32, RMSP_INT32, base, \
                                RMSP_DOUBLE, NULL, &matrix)
    CHECK_USAGE(CREATE(csr, 3, 2, 3, falling, col_32[0], values_double, 0), "row 1");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, csr_ptr_32[0], outside, values_double, 0), "entry 2");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, csr_ptr_32[0], col_32[1], values_double, 1), "row_ptr[0]");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, csr_ptr_32[1], least, values_double, 1), "entry 0");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, csr_ptr_32[0], col_32[0], values_double, 2), "index_base is 2");
    CHECK_USAGE(CREATE(csr, -1, 2, 3, csr_ptr_32[0], col_32[0], values_double, 0), "rows is -1");
    CHECK_USAGE(CREATE(csr, INT64_MAX, 2, 3, csr_ptr_32[0], col_32[0], values_double, 0),
                "rows is 9223372036854775807");
    CHECK_USAGE(CREATE(csr, 3, -2, 3, csr_ptr_32[0], col_32[0], values_double, 0), "cols is -2");
    CHECK_USAGE(CREATE(csr, 3, 2, -3, csr_ptr_32[0], col_32[0], values_double, 0), "nnz is -3");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, NULL, col_32[0], values_double, 0), "row_ptr is null; it has to have 4 entries");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, csr_ptr_32[0], NULL, values_double, 0),
                "col_idx is null; it has to have 3 entries");
    CHECK_USAGE(CREATE(csr, 3, 2, 3, csr_ptr_32[0], col_32[0], NULL, 0), "values is null; it has to have 3 entries");
    CHECK_USAGE(CREATE(csc, 3, 2, 3, csc_ptr_32[0], outside_rows, values_double, 0), "entry 1");
    CHECK_USAGE(CREATE(csc, 3, 2, 3, NULL, row_32[0], values_double, 0), "col_ptr is null; it has to have 3 entries");
    CHECK_USAGE(CREATE(coo, 2, 2, 3, unsorted_rows, unsorted_cols, values_double, 0), "sort");
    CHECK_USAGE(CREATE(coo, 1, 2, 3, unsorted_rows, unsorted_cols, values_double, 0), "entry 0");
    CHECK_USAGE(CREATE(coo, 3, 2, 3, NULL, col_32[0], values_double, 0), "row_idx is null; it has to have 3 entries");
#undef CREATE
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, csr_ptr_32[0], col_32[0], values_double, (rmsp_index_type)7,
                                       RMSP_INT32, 0, RMSP_DOUBLE, NULL, &matrix),
                "row_ptr_type is 7");
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, csr_ptr_32[0], col_32[0], values_double, RMSP_INT32,
                                       (rmsp_index_type)-1, 0, RMSP_DOUBLE, NULL, &matrix),
                "col_idx_type is -1");
    CHECK_USAGE(rmsp_matrix_create_csr(runtime, 3, 2, 3, csr_ptr_32[0], col_32[0], values_double, RMSP_INT32,
                                       RMSP_INT32, 0, (rmsp_value_type)2, NULL, &matrix),
                "value_type is 2");
    CHECK(matrix == NULL);
    /* The runtime goes on. */
    if (CHECK_OK(create(runtime, RMSP_CSR, 0, 0, 0, RMSP_DOUBLE, &matrix))) {
        multiply(matrix, RMSP_DOUBLE);
        rmsp_matrix_destroy(matrix);
    }
    rmsp_runtime_destroy(runtime);
}

void matrix_updates(void)
{
    const float new_values[3] = {10, 20, 30};
    const float x[2] = {1, 1};
    const double expected[3] = {30, 30, 0};
    float y[3];
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = NULL;
    int format;
    for (format = 0; format < 2; ++format) {
        if (CHECK_OK(create(runtime, (rmsp_format)format, 0, 1, 1, RMSP_FLOAT, &matrix))) {
            CHECK_OK(rmsp_matrix_update_values(matrix, new_values));
            CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, y));
            CHECK_VALUES(RMSP_FLOAT, y, expected, 3);
            CHECK_USAGE(rmsp_matrix_update_values(matrix, NULL), "values is null; it has to have 3 entries");
            rmsp_matrix_destroy(matrix);
        }
    }
    matrix = poisson(runtime, "stencil7 2 1 1", "double");
    if (matrix != NULL) {
        rmsp_vector* diagonal = NULL;
        double entries[2];
        const double twos[4] = {2, 1, 1, 2};
        CHECK_OK(rmsp_matrix_update_values(matrix, twos));
        if (CHECK_OK(rmsp_matrix_diagonal(matrix, &diagonal))) {
            const double both[2] = {2, 2};
            CHECK_OK(rmsp_vector_download(diagonal, entries));
            CHECK_VALUES(RMSP_DOUBLE, entries, both, 2);
            rmsp_vector_destroy(diagonal);
        }
        CHECK_USAGE(rmsp_matrix_diagonal(matrix, NULL), "diagonal is null");
        rmsp_matrix_destroy(matrix);
    }
    rmsp_runtime_destroy(runtime);
}

/* A streamed matrix uses its arrays at each product, so that those that are not the caller's must be kept. */
void matrix_streams(void)
{
    static const char* const keys[] = {"run.mode", "streamed", "matrix.values", "ones"};
    rmsp_options* options = options_of(keys, 2);
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = NULL;
    rmsp_host_matrix* host = NULL;
    rmsp_future* future = NULL;
    const double x[2] = {1, 1};
    const double expected[3] = {3, 3, 0};
    const double eights[8] = {4, 4, 4, 4, 4, 4, 4, 4};
    double ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    double y[8];
    if (CHECK_OK(rmsp_matrix_create_csr(runtime, 3, 2, 3, csr_ptr_64[1], col_64[1], values_double, RMSP_INT64,
                                        RMSP_INT64, 1, RMSP_DOUBLE, options, &matrix))) {
        CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, y));
        CHECK_VALUES(RMSP_DOUBLE, y, expected, 3);
        CHECK_USAGE(rmsp_matrix_update_values(matrix, ones), "stream");
        CHECK_OK(rmsp_matrix_update_values(matrix, values_double));
        CHECK_USAGE(rmsp_matrix_apply_transposed(matrix, 1, ones, 0, y), "stream");
        rmsp_matrix_destroy(matrix);
    }
    if (CHECK_OK(rmsp_host_matrix_generate("stencil7 2 2 2", options, &host))) {
        CHECK_OK(rmsp_matrix_create(runtime, host, options, &matrix));
        rmsp_host_matrix_destroy(host);
        CHECK_OK(rmsp_matrix_apply(matrix, 1, ones, 0, y));
        CHECK_VALUES(RMSP_DOUBLE, y, eights, 8);
        CHECK_OK(rmsp_matrix_apply_async(matrix, 1, ones, 0, y, &future));
        rmsp_matrix_destroy(matrix);
        rmsp_future_destroy(future);
        CHECK_VALUES(RMSP_DOUBLE, y, eights, 8);
    }
    rmsp_runtime_destroy(runtime);
    rmsp_options_destroy(options);
}

void matrix_read_and_generated(void)
{
    static const char* const keys[] = {"matrix.precision", "float"};
    rmsp_options* options = options_of(keys, 1);
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = NULL;
    rmsp_value_type type;
    const float x[2] = {1, 10};
    const double expected[2] = {30, 4};
    float y[2];
    const char* const path = TEST_FOLDER "/capi_read.mtx";
    FILE* file = fopen(path, "w");
    if (!CHECK(file != NULL)) {
        return;
    }
    fputs("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 3\n2 1 4\n", file);
    fclose(file);
    if (CHECK_OK(rmsp_matrix_read(runtime, path, options, &matrix))) {
        CHECK_OK(rmsp_matrix_value_type(matrix, &type));
        CHECK(type == RMSP_FLOAT);
        CHECK_OK(rmsp_matrix_apply(matrix, 1, x, 0, y));
        CHECK_VALUES(RMSP_FLOAT, y, expected, 2);
        rmsp_matrix_destroy(matrix);
    }
    file = fopen(path, "w");
    fputs("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 3\n2 1 x\n", file);
    fclose(file);
    matrix = NULL;
    CHECK_ERROR(rmsp_matrix_read(runtime, path, options, &matrix), RMSP_ERROR_IO, "capi_read.mtx:4:");
    CHECK(remove(path) == 0);
    CHECK_ERROR(rmsp_matrix_read(runtime, path, NULL, &matrix), RMSP_ERROR_IO, "capi_read.mtx");
    CHECK_USAGE(rmsp_matrix_read(NULL, path, NULL, &matrix), "runtime is null");
    CHECK_USAGE(rmsp_matrix_generate(runtime, "cube 3", NULL, &matrix), "cube");
    CHECK_USAGE(rmsp_matrix_generate(NULL, "rmat 3 2", NULL, &matrix), "runtime is null");
    CHECK_USAGE(rmsp_matrix_generate(runtime, "rmat 3 2", NULL, NULL), "matrix is null");
    CHECK(matrix == NULL);
    rmsp_options_destroy(options);
    rmsp_runtime_destroy(runtime);
}

void matrix_reports(void)
{
    static const char* const keys[] = {"run.iterations", "3", "run.warmup", "1", "run.beta", "1", "run.alpha", "2"};
    rmsp_options* options = options_of(keys, 4);
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = poisson(runtime, "stencil7 2 1 1", "double");
    const double x[2] = {1, 2};
    double y[2] = {5, 6};
    char* text = NULL;
    int format;
    if (matrix != NULL) {
        CHECK_OK(rmsp_matrix_measure(matrix, options, x, y));
        CHECK_OK(rmsp_matrix_measure(matrix, NULL, x, NULL));
        CHECK_USAGE(rmsp_matrix_measure(matrix, options, x, NULL), "y is null; it has to have 2 entries");
        CHECK_USAGE(rmsp_matrix_measure(matrix, options, NULL, y), "x is null; it has to have 2 entries");
        for (format = 0; format < 2; ++format) {
            const rmsp_text_format how = (rmsp_text_format)format;
            if (CHECK_OK(rmsp_matrix_plan(matrix, how, &text))) {
                CHECK_TEXT(text, format ? "\"plan\"" : "2 x 2, 4 nonzeros");
                rmsp_free(text);
            }
            if (CHECK_OK(rmsp_matrix_report(matrix, how, &text))) {
                CHECK_TEXT(text, "stencil7 2 1 1");
                CHECK_TEXT(text, "spmv/csr/double/resident");
                rmsp_free(text);
            }
        }
        CHECK_USAGE(rmsp_matrix_plan(matrix, (rmsp_text_format)2, &text), "format is 2");
        CHECK_USAGE(rmsp_matrix_plan(matrix, RMSP_TEXT, NULL), "text is null");
        CHECK_USAGE(rmsp_matrix_report(matrix, (rmsp_text_format)3, &text), "format is 3");
        CHECK_USAGE(rmsp_matrix_report(matrix, RMSP_TEXT, NULL), "text is null");
        rmsp_matrix_destroy(matrix);
    }
    rmsp_options_destroy(options);
    rmsp_runtime_destroy(runtime);
}

void matrix_misuse(void)
{
    const double x[3] = {10, 100, 0};
    double y[3];
    char* text = NULL;
    rmsp_matrix* matrix = NULL;
    rmsp_future* future = NULL;
    rmsp_vector* vector = NULL;
    rmsp_value_type type;
    rmsp_runtime* runtime = open_runtime("host:2");
    if (runtime == NULL) {
        return;
    }
    CHECK_USAGE(create(NULL, RMSP_CSR, 0, 0, 0, RMSP_DOUBLE, &matrix), "rmsp_matrix_create_csr: runtime is null");
    CHECK_USAGE(create(NULL, RMSP_CSC, 0, 0, 0, RMSP_DOUBLE, &matrix), "rmsp_matrix_create_csc: runtime is null");
    CHECK_USAGE(create(NULL, RMSP_COO, 0, 0, 0, RMSP_DOUBLE, &matrix), "rmsp_matrix_create_coo: runtime is null");
    CHECK_USAGE(create(runtime, RMSP_CSR, 0, 0, 0, RMSP_DOUBLE, NULL), "matrix is null");
    CHECK_USAGE(rmsp_matrix_create(runtime, NULL, NULL, &matrix), "host is null");
    CHECK(matrix == NULL);
    CHECK_USAGE(rmsp_matrix_apply(NULL, 1, x, 0, y), "rmsp_matrix_apply: matrix is null");
    CHECK_USAGE(rmsp_matrix_apply_transposed(NULL, 1, x, 0, y), "matrix is null");
    CHECK_USAGE(rmsp_matrix_apply_async(NULL, 1, x, 0, y, &future), "matrix is null");
    CHECK_USAGE(rmsp_matrix_size(NULL, NULL, NULL, NULL), "matrix is null");
    CHECK_USAGE(rmsp_matrix_value_type(NULL, &type), "matrix is null");
    CHECK_USAGE(rmsp_matrix_update_values(NULL, x), "matrix is null");
    CHECK_USAGE(rmsp_matrix_diagonal(NULL, &vector), "matrix is null");
    CHECK_USAGE(rmsp_matrix_measure(NULL, NULL, x, y), "matrix is null");
    CHECK_USAGE(rmsp_matrix_plan(NULL, RMSP_TEXT, &text), "matrix is null");
    CHECK_USAGE(rmsp_matrix_report(NULL, RMSP_TEXT, &text), "matrix is null");
    CHECK_USAGE(rmsp_future_wait(NULL), "future is null");
    rmsp_future_destroy(NULL);
    if (CHECK_OK(create(runtime, RMSP_CSR, 0, 0, 0, RMSP_DOUBLE, &matrix))) {
        CHECK_USAGE(rmsp_matrix_apply(matrix, 1, NULL, 0, y), "x is null; it has to have 2 entries");
        CHECK_USAGE(rmsp_matrix_apply(matrix, 1, x, 0, NULL), "y is null; it has to have 3 entries");
        CHECK_USAGE(rmsp_matrix_apply_transposed(matrix, 1, NULL, 0, y), "x is null; it has to have 3 entries");
        CHECK_USAGE(rmsp_matrix_apply_async(matrix, 1, x, 0, y, NULL), "future is null");
        CHECK_USAGE(rmsp_matrix_apply_async(matrix, 1, x, 0, NULL, &future), "y is null");
        CHECK_USAGE(rmsp_matrix_value_type(matrix, NULL), "value_type is null");
        CHECK_USAGE(rmsp_matrix_diagonal(matrix, &vector), "square");
        CHECK(future == NULL && vector == NULL);
        /* Handles may be destroyed in any order. */
        rmsp_runtime_destroy(runtime);
        CHECK_USAGE(rmsp_matrix_apply(matrix, 1, x, 0, y), "has been destroyed");
        rmsp_matrix_destroy(matrix);
    }
    rmsp_matrix_destroy(NULL);
}
