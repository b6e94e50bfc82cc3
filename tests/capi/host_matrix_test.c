#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tests.h"

#define FOLDER TEST_FOLDER "/"

/* Counted from 1: 5 in (1, 2), 7 in (2, 1), and a third row whose columns fall and repeat: 9 in column 2, 8 in column
   1, 9 in column 2. */
static const int32_t row_ptr[4] = {1, 2, 3, 6};
static const int64_t col_idx[5] = {2, 1, 2, 1, 2};
static const double values[5] = {5, 7, 9, 8, 9};

static rmsp_host_matrix* view(void)
{
    rmsp_host_matrix* matrix = NULL;
    CHECK_OK(rmsp_host_matrix_create_csr(3, 2, 5, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT64, 1, RMSP_DOUBLE,
                                         &matrix));
    return matrix;
}

void host_matrix_view(void)
{
    rmsp_host_matrix* matrix = view();
    int64_t rows, cols, nnz;
    rmsp_format format;
    rmsp_value_type value_type;
    rmsp_index_type first_type, second_type;
    const void *first, *second, *entries;
    CHECK_OK(rmsp_host_matrix_size(matrix, &rows, &cols, &nnz));
    CHECK(rows == 3 && cols == 2 && nnz == 5);
    CHECK_OK(rmsp_host_matrix_size(matrix, NULL, NULL, NULL));
    CHECK_OK(rmsp_host_matrix_type(matrix, &format, &value_type));
    CHECK(format == RMSP_CSR && value_type == RMSP_DOUBLE);
    if (CHECK_OK(rmsp_host_matrix_arrays(matrix, &first, &first_type, &second, &second_type, &entries))) {
        CHECK(first_type == RMSP_INT32 && second_type == RMSP_INT64);
        CHECK(((const int32_t*)first)[0] == 0 && ((const int32_t*)first)[3] == 5);
        CHECK(((const int64_t*)second)[0] == 1 && ((const int64_t*)second)[1] == 0);
        CHECK(entries == values);
    }
    CHECK_OK(rmsp_host_matrix_arrays(matrix, NULL, NULL, NULL, NULL, NULL));
    rmsp_host_matrix_destroy(matrix);
    rmsp_host_matrix_destroy(NULL);

    matrix = NULL;
    CHECK_OK(rmsp_host_matrix_create_csc(2, 3, 5, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT64, 1, RMSP_DOUBLE,
                                         &matrix));
    CHECK_OK(rmsp_host_matrix_type(matrix, &format, NULL));
    CHECK(format == RMSP_CSC);
    if (CHECK_OK(rmsp_host_matrix_arrays(matrix, &first, &first_type, NULL, NULL, NULL))) {
        CHECK(first_type == RMSP_INT32 && ((const int32_t*)first)[3] == 5);
    }
    rmsp_host_matrix_destroy(matrix);
    matrix = NULL;
    CHECK_OK(rmsp_host_matrix_create_coo(2, 2, 2, col_idx, col_idx, values, RMSP_INT64, RMSP_INT64, 0, RMSP_DOUBLE,
                                         &matrix));
    CHECK_OK(rmsp_host_matrix_type(matrix, &format, NULL));
    CHECK(format == RMSP_COO);
    if (CHECK_OK(rmsp_host_matrix_arrays(matrix, &first, NULL, &second, NULL, NULL))) {
        CHECK(first == col_idx && second == col_idx);
    }
    rmsp_host_matrix_destroy(matrix);
}

/* The values of the matrix in order, after it went by one format to another. */
static void convert_twice(const rmsp_host_matrix* from, rmsp_format by, rmsp_format to, int expected)
{
    rmsp_host_matrix* once = NULL;
    rmsp_host_matrix* twice = NULL;
    rmsp_format format;
    const void* entries;
    int i;
    int digits = 0;
    if (CHECK_OK(rmsp_host_matrix_convert(from, by, &once)) && CHECK_OK(rmsp_host_matrix_convert(once, to, &twice))) {
        CHECK_OK(rmsp_host_matrix_type(twice, &format, NULL));
        CHECK(format == to);
        CHECK_OK(rmsp_host_matrix_arrays(twice, NULL, NULL, NULL, NULL, &entries));
        for (i = 0; i < 5; ++i) {
            digits = 10 * digits + (int)((const double*)entries)[i];
        }
        CHECK(digits == expected);
    }
    rmsp_host_matrix_destroy(twice);
    rmsp_host_matrix_destroy(once);
}

void host_matrix_generated(void)
{
    static const char* const keys[] = {"matrix.format",    "coo",   "matrix.order", "column",
                                       "matrix.precision", "float", "matrix.kron",  "2"};
    static const int digits[3][3] = {{57899, 78599, 57899}, {57899, 78599, 78599}, {57989, 78599, 57989}};
    rmsp_options* options = options_of(keys, 4);
    rmsp_host_matrix* matrix = NULL;
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_format format;
    rmsp_value_type value_type;
    int64_t rows;
    char* text = NULL;
    int by, to;
    if (CHECK_OK(rmsp_host_matrix_generate("stencil7 3 3 3", options, &matrix))) {
        CHECK_OK(rmsp_host_matrix_type(matrix, &format, &value_type));
        CHECK(format == RMSP_COO && value_type == RMSP_FLOAT);
        CHECK_OK(rmsp_host_matrix_size(matrix, &rows, NULL, NULL));
        CHECK(rows == 54);
        if (CHECK_OK(rmsp_runtime_plan(runtime, matrix, NULL, RMSP_TEXT, &text))) {
            CHECK_TEXT(text, "54 x 54");
            rmsp_free(text);
        }
        if (CHECK_OK(rmsp_runtime_plan(runtime, matrix, NULL, RMSP_JSON, &text))) {
            CHECK_TEXT(text, "stencil7 3 3 3");
            rmsp_free(text);
        }
        rmsp_host_matrix_destroy(matrix);
    }
    rmsp_options_destroy(options);
    rmsp_runtime_destroy(runtime);
    matrix = view();
    for (by = 0; by < 3; ++by) {
        for (to = 0; to < 3; ++to) {
            convert_twice(matrix, (rmsp_format)by, (rmsp_format)to, digits[by][to]);
        }
    }
    rmsp_host_matrix_destroy(matrix);
}

void host_matrix_files(void)
{
    static const char* const paths[] = {FOLDER "capi_matrix.mtx", FOLDER "capi_matrix.npz"};
    static const double entries[3] = {1.5, 2, -3};
    static const float small_entries[2] = {0.5F, 1};
    rmsp_host_matrix* matrix = view();
    int i;
    int64_t size = 0;
    void* read = NULL;
    for (i = 0; i < 2; ++i) {
        rmsp_host_matrix* again = NULL;
        int64_t nnz = 0;
        CHECK_OK(rmsp_host_matrix_write(matrix, paths[i]));
        if (CHECK_OK(rmsp_host_matrix_read(paths[i], NULL, &again))) {
            CHECK_OK(rmsp_host_matrix_size(again, NULL, NULL, &nnz));
            CHECK(nnz == 4); /* entries at one place are added */
            rmsp_host_matrix_destroy(again);
        }
        CHECK(remove(paths[i]) == 0);
    }
    CHECK_ERROR(rmsp_host_matrix_write(matrix, FOLDER "capi_matrix.txt"), RMSP_ERROR_IO, "capi_matrix.txt");
    rmsp_host_matrix_destroy(matrix);

    CHECK_OK(rmsp_write_vector(FOLDER "capi_vector.npy", RMSP_DOUBLE, 3, entries));
    if (CHECK_OK(rmsp_read_vector(FOLDER "capi_vector.npy", RMSP_DOUBLE, &size, &read))) {
        CHECK(size == 3);
        CHECK_VALUES(RMSP_DOUBLE, read, entries, 3);
        rmsp_free(read);
    }
    CHECK_OK(rmsp_write_vector(FOLDER "capi_vector.npy", RMSP_FLOAT, 2, small_entries));
    if (CHECK_OK(rmsp_read_vector(FOLDER "capi_vector.npy", RMSP_FLOAT, &size, &read))) {
        CHECK(size == 2);
        CHECK(((const float*)read)[0] == 0.5F);
        rmsp_free(read);
    }
    CHECK_OK(rmsp_write_vector(FOLDER "capi_vector.npy", RMSP_FLOAT, 0, NULL));
    if (CHECK_OK(rmsp_read_vector(FOLDER "capi_vector.npy", RMSP_FLOAT, &size, &read))) {
        CHECK(size == 0 && read != NULL);
        rmsp_free(read);
    }
    CHECK(remove(FOLDER "capi_vector.npy") == 0);
}

void host_matrix_misuse(void)
{
    static const char* const shuffled[] = {"matrix.format", "coo", "matrix.order", "none"};
    rmsp_options* options = options_of(shuffled, 2);
    rmsp_host_matrix* matrix = NULL;
    rmsp_host_matrix* other = NULL;
    rmsp_runtime* runtime = NULL;
    int64_t size;
    void* entries;
    char* text = NULL;
    const int32_t falling[4] = {0, 2, 1, 3};
    CHECK_ERROR(rmsp_host_matrix_read("no-such-file.mtx", NULL, &matrix), RMSP_ERROR_IO, "no-such-file.mtx");
    CHECK_USAGE(rmsp_host_matrix_read("", NULL, &matrix), "path is empty");
    CHECK_USAGE(rmsp_host_matrix_read(NULL, NULL, &matrix), "path is null");
    CHECK_USAGE(rmsp_host_matrix_read("a.mtx", NULL, NULL), "matrix is null");
    CHECK_USAGE(rmsp_host_matrix_generate("stencil9 3 3 3", NULL, &matrix), "stencil9");
    CHECK_USAGE(rmsp_host_matrix_generate("", NULL, &matrix), "");
    CHECK_USAGE(rmsp_host_matrix_generate(NULL, NULL, &matrix), "description is null");
    CHECK_USAGE(rmsp_host_matrix_generate("rmat 3 2", options, &matrix), "matrix.order is \"none\"");
    rmsp_options_destroy(options);
    CHECK_USAGE(
        rmsp_host_matrix_create_csr(3, 2, 5, NULL, col_idx, values, RMSP_INT32, RMSP_INT64, 1, RMSP_DOUBLE, &matrix),
        "row_ptr is null; it has to have 4 entries");
    CHECK_USAGE(
        rmsp_host_matrix_create_csc(2, 3, 5, row_ptr, NULL, values, RMSP_INT32, RMSP_INT64, 1, RMSP_DOUBLE, &matrix),
        "row_idx is null; it has to have 5 entries");
    CHECK_USAGE(
        rmsp_host_matrix_create_coo(2, 3, 5, NULL, col_idx, values, RMSP_INT32, RMSP_INT64, 1, RMSP_DOUBLE, &matrix),
        "row_idx is null; it has to have 5 entries");
    CHECK_USAGE(rmsp_host_matrix_create_coo(2, 3, 5, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT64, -1, RMSP_DOUBLE,
                                            &matrix),
                "index_base is -1");
    CHECK(matrix == NULL);
    CHECK_USAGE(rmsp_host_matrix_size(NULL, &size, NULL, NULL), "matrix is null");
    CHECK_USAGE(rmsp_host_matrix_type(NULL, NULL, NULL), "matrix is null");
    CHECK_USAGE(rmsp_host_matrix_arrays(NULL, NULL, NULL, NULL, NULL, NULL), "matrix is null");
    CHECK_USAGE(rmsp_host_matrix_convert(NULL, RMSP_CSR, &other), "matrix is null");
    CHECK_USAGE(rmsp_host_matrix_write(NULL, "a.mtx"), "matrix is null");
    /* The arrays are checked where they are used. */
    if (CHECK_OK(rmsp_host_matrix_create_csr(3, 2, 3, falling, falling, values, RMSP_INT32, RMSP_INT32, 0, RMSP_DOUBLE,
                                             &matrix))) {
        CHECK_USAGE(rmsp_host_matrix_convert(matrix, RMSP_CSC, &other), "row 1");
        CHECK_USAGE(rmsp_host_matrix_convert(matrix, (rmsp_format)3, &other), "format is 3");
        CHECK_USAGE(rmsp_host_matrix_convert(matrix, RMSP_CSC, NULL), "converted is null");
        CHECK_USAGE(rmsp_host_matrix_write(matrix, NULL), "path is null");
        runtime = open_runtime("host:1");
        CHECK_USAGE(rmsp_runtime_plan(runtime, matrix, NULL, RMSP_TEXT, &text), "row 1");
        CHECK_USAGE(rmsp_runtime_plan(NULL, matrix, NULL, RMSP_TEXT, &text), "runtime is null");
        CHECK_USAGE(rmsp_runtime_plan(runtime, NULL, NULL, RMSP_TEXT, &text), "host is null");
        rmsp_runtime_destroy(runtime);
        rmsp_host_matrix_destroy(matrix);
    }
    if (CHECK_OK(rmsp_host_matrix_create_csc(2, 3, 5, row_ptr, col_idx, values, RMSP_INT32, RMSP_INT64, 1, RMSP_DOUBLE,
                                             &matrix))) {
        CHECK_USAGE(rmsp_host_matrix_write(matrix, "a.mtx"), "matrix is not CSR");
        rmsp_host_matrix_destroy(matrix);
    }
    CHECK_ERROR(rmsp_read_vector("no-such-file.npy", RMSP_DOUBLE, &size, &entries), RMSP_ERROR_IO, "no-such-file.npy");
    CHECK_USAGE(rmsp_read_vector(NULL, RMSP_DOUBLE, &size, &entries), "path is null");
    CHECK_USAGE(rmsp_read_vector("a.npy", RMSP_DOUBLE, NULL, &entries), "size is null");
    CHECK_USAGE(rmsp_read_vector("a.npy", RMSP_DOUBLE, &size, NULL), "entries is null");
    CHECK_USAGE(rmsp_read_vector("a.npy", (rmsp_value_type)5, &size, &entries), "value_type is 5");
    CHECK_USAGE(rmsp_write_vector(NULL, RMSP_DOUBLE, 1, values), "path is null");
    CHECK_USAGE(rmsp_write_vector("a.npy", RMSP_DOUBLE, -1, values), "size is -1");
    CHECK_USAGE(rmsp_write_vector("a.npy", RMSP_DOUBLE, 1, NULL), "entries is null; it has to have 1 entries");
    CHECK_USAGE(rmsp_write_vector("a.npy", (rmsp_value_type)-7, 1, values), "value_type is -7");
}
