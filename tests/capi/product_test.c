#include <stddef.h>

#include "check.h"
#include "tests.h"

/* A = | 1 2; 0 3 |, whose square is | 1 8; 0 9 | */
static const int32_t row_ptr[3] = {0, 2, 3};
static const int32_t col_idx[3] = {0, 1, 1};
static const double values[3] = {1, 2, 3};
static const float small_values[3] = {1, 2, 3};

static rmsp_host_matrix* square(rmsp_value_type type)
{
    rmsp_host_matrix* matrix = NULL;
    CHECK_OK(rmsp_host_matrix_create_csr(2, 2, 3, row_ptr, col_idx,
                                         type == RMSP_FLOAT ? (const void*)small_values : values, RMSP_INT32,
                                         RMSP_INT32, 0, type, &matrix));
    return matrix;
}

static void check_product(const rmsp_product* product, rmsp_value_type type, const double* expected)
{
    rmsp_host_matrix* c = NULL;
    const void* entries = NULL;
    const void* columns = NULL;
    rmsp_index_type column_type;
    rmsp_value_type c_type;
    if (CHECK_OK(rmsp_product_download(product, &c))) {
        int64_t nnz = 0;
        CHECK_OK(rmsp_host_matrix_size(c, NULL, NULL, &nnz));
        CHECK(nnz == 3);
        CHECK_OK(rmsp_host_matrix_type(c, NULL, &c_type));
        CHECK(c_type == type);
        CHECK_OK(rmsp_host_matrix_arrays(c, NULL, NULL, &columns, &column_type, &entries));
        CHECK(column_type == RMSP_INT32 && ((const int32_t*)columns)[1] == 1);
        CHECK_VALUES(type, entries, expected, 3);
        rmsp_host_matrix_destroy(c);
    }
}

/* The same in arrays of ours, all of them or some. */
static void check_arrays(const rmsp_product* product, rmsp_value_type type, const double* expected)
{
    int64_t pointers[3] = {-1, -1, -1};
    int32_t columns[3] = {-1, -1, -1};
    double entries[3] = {0, 0, 0};
    CHECK_OK(rmsp_product_download_arrays(product, pointers, columns, entries));
    CHECK(pointers[0] == 0 && pointers[1] == 2 && pointers[2] == 3);
    CHECK(columns[0] == 0 && columns[1] == 1 && columns[2] == 1);
    CHECK_VALUES(type, entries, expected, 3);
    entries[0] = entries[1] = entries[2] = 0;
    CHECK_OK(rmsp_product_download_arrays(product, NULL, NULL, entries));
    CHECK_VALUES(type, entries, expected, 3);
    CHECK_OK(rmsp_product_download_arrays(product, NULL, NULL, NULL));
}

void product_is_computed(void)
{
    const double expected[3] = {2, 16, 18};
    const double left[3] = {1, 4, 6};
    const double of_left[3] = {1, 14, 18};
    rmsp_runtime* runtime = open_runtime("host:2");
    int type;
    for (type = 0; runtime != NULL && type < 2; ++type) {
        rmsp_host_matrix* a = square((rmsp_value_type)type);
        rmsp_product* product = NULL;
        int64_t rows, cols, nnz;
        char* text = NULL;
        if (CHECK_OK(rmsp_product_create(runtime, a, a, NULL, &product))) {
            CHECK_OK(rmsp_product_size(product, &rows, &cols, &nnz));
            CHECK(rows == 2 && cols == 2 && nnz == 3);
            CHECK_OK(rmsp_product_size(product, NULL, NULL, NULL));
            CHECK_OK(rmsp_product_compute(product, 2));
            check_product(product, (rmsp_value_type)type, expected);
            check_arrays(product, (rmsp_value_type)type, expected);
            if (type == RMSP_DOUBLE) {
                CHECK_OK(rmsp_product_update_values(product, left, NULL));
                CHECK_OK(rmsp_product_compute(product, 1));
                check_product(product, RMSP_DOUBLE, of_left);
            }
            if (CHECK_OK(rmsp_product_report(product, RMSP_TEXT, &text))) {
                CHECK_TEXT(text, "the caller's arrays");
                rmsp_free(text);
            }
            if (CHECK_OK(rmsp_product_report(product, RMSP_JSON, &text))) {
                CHECK_TEXT(text, "\"plan\"");
                rmsp_free(text);
            }
            rmsp_product_destroy(product);
        }
        rmsp_host_matrix_destroy(a);
    }
    rmsp_runtime_destroy(runtime);
}

void product_stays(void)
{
    static const char* const devices[] = {"host:2", "auto"};
    const double new_values[3] = {2, 0, 1};
    const double expected[3] = {1, 8, 9};
    const double x[2] = {1, 1};
    const double y_expected[2] = {9, 9};
    const double y_renewed[2] = {4, 1};
    double y[2];
    int d;
    for (d = 0; d < 2; ++d) {
        rmsp_runtime* runtime = open_runtime(devices[d]);
        rmsp_host_matrix* host = square(RMSP_DOUBLE);
        rmsp_matrix* a = NULL;
        rmsp_matrix* c = NULL;
        rmsp_product* product = NULL;
        CHECK_OK(rmsp_matrix_create(runtime, host, NULL, &a));
        if (CHECK_OK(rmsp_product_create_resident(runtime, a, a, NULL, &product))) {
            CHECK_OK(rmsp_product_compute(product, 1));
            check_product(product, RMSP_DOUBLE, expected);
            CHECK_OK(rmsp_matrix_create_product(product, NULL, &c));
            CHECK_OK(rmsp_matrix_apply(c, 1, x, 0, y));
            CHECK_VALUES(RMSP_DOUBLE, y, y_expected, 2);
            CHECK_OK(rmsp_matrix_update_values(a, new_values));
            CHECK_OK(rmsp_product_compute(product, 1));
            CHECK_OK(rmsp_product_renew(product, c));
            CHECK_OK(rmsp_matrix_apply(c, 1, x, 0, y));
            CHECK_VALUES(RMSP_DOUBLE, y, y_renewed, 2);
            CHECK_USAGE(rmsp_product_renew(product, NULL), "matrix is null");
            CHECK_USAGE(rmsp_matrix_create_product(product, NULL, NULL), "matrix is null");
            rmsp_matrix_destroy(c);
            rmsp_product_destroy(product);
        }
        rmsp_matrix_destroy(a);
        rmsp_host_matrix_destroy(host);
        rmsp_runtime_destroy(runtime);
    }
}

void product_misuse(void)
{
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_host_matrix* a = square(RMSP_DOUBLE);
    rmsp_host_matrix* floats = square(RMSP_FLOAT);
    rmsp_host_matrix* coo = NULL;
    rmsp_host_matrix* other = poisson_on_host("stencil7 3 1 1", "double");
    rmsp_host_matrix* c = NULL;
    rmsp_matrix* matrix = NULL;
    rmsp_matrix* none = NULL;
    rmsp_product* product = NULL;
    char* text = NULL;
    CHECK_OK(rmsp_host_matrix_convert(a, RMSP_COO, &coo));
    CHECK_USAGE(rmsp_product_create(NULL, a, a, NULL, &product), "runtime is null");
    CHECK_USAGE(rmsp_product_create(runtime, NULL, a, NULL, &product), "a is null");
    CHECK_USAGE(rmsp_product_create(runtime, a, NULL, NULL, &product), "b is null");
    CHECK_USAGE(rmsp_product_create(runtime, a, a, NULL, NULL), "product is null");
    CHECK_USAGE(rmsp_product_create(runtime, a, floats, NULL, &product), "b has values of type float");
    CHECK_USAGE(rmsp_product_create(runtime, coo, a, NULL, &product), "a is not CSR; rmsp_host_matrix_convert()");
    CHECK_USAGE(rmsp_product_create(runtime, a, coo, NULL, &product), "b is not CSR");
    CHECK_USAGE(rmsp_product_create(runtime, a, other, NULL, &product), "3");
    CHECK_OK(rmsp_matrix_create(runtime, floats, NULL, &matrix));
    CHECK_USAGE(rmsp_product_create_resident(NULL, matrix, matrix, NULL, &product), "runtime is null");
    CHECK_USAGE(rmsp_product_create_resident(runtime, NULL, matrix, NULL, &product), "a is null");
    CHECK_USAGE(rmsp_product_create_resident(runtime, matrix, NULL, NULL, &product), "b is null");
    CHECK_USAGE(rmsp_product_create_resident(runtime, matrix, matrix, NULL, NULL), "product is null");
    CHECK(product == NULL);
    CHECK_USAGE(rmsp_product_compute(NULL, 1), "product is null");
    CHECK_USAGE(rmsp_product_update_values(NULL, NULL, NULL), "product is null");
    CHECK_USAGE(rmsp_product_size(NULL, NULL, NULL, NULL), "product is null");
    CHECK_USAGE(rmsp_product_download(NULL, &c), "product is null");
    CHECK_USAGE(rmsp_product_renew(NULL, matrix), "product is null");
    CHECK_USAGE(rmsp_product_report(NULL, RMSP_TEXT, &text), "product is null");
    CHECK_USAGE(rmsp_matrix_create_product(NULL, NULL, &none), "product is null");
    CHECK_USAGE(rmsp_product_download_arrays(NULL, NULL, NULL, NULL), "product is null");
    if (CHECK_OK(rmsp_product_create(runtime, a, a, NULL, &product))) {
        CHECK_USAGE(rmsp_product_download(product, &c), "comput");
        CHECK_USAGE(rmsp_product_download_arrays(product, NULL, NULL, NULL), "comput");
        CHECK_USAGE(rmsp_product_download(product, NULL), "c is null");
        CHECK_USAGE(rmsp_matrix_create_product(product, NULL, &none), "comput");
        CHECK_OK(rmsp_product_compute(product, 1));
        CHECK_USAGE(rmsp_product_renew(product, matrix), "matrix has values of type float");
        rmsp_runtime_destroy(runtime);
        runtime = NULL;
        CHECK_USAGE(rmsp_product_compute(product, 1), "has been destroyed");
        rmsp_product_destroy(product);
    }
    CHECK(c == NULL && none == NULL);
    rmsp_product_destroy(NULL);
    rmsp_matrix_destroy(matrix);
    rmsp_host_matrix_destroy(coo);
    rmsp_host_matrix_destroy(other);
    rmsp_host_matrix_destroy(floats);
    rmsp_host_matrix_destroy(a);
    rmsp_runtime_destroy(runtime);
}
