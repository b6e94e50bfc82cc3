#include <math.h>
#include <stddef.h>

#include "check.h"
#include "tests.h"

/* On two points: A = | 2 -1; -1 2 | with the diagonal that update_values() sets. */
static rmsp_matrix* two_points(rmsp_runtime* runtime, const char* precision)
{
    const double values[4] = {2, -1, -1, 2};
    const float small_values[4] = {2, -1, -1, 2};
    rmsp_matrix* matrix = poisson(runtime, "stencil7 2 1 1", precision);
    CHECK_OK(rmsp_matrix_update_values(matrix, precision[0] == 'f' ? (const void*)small_values : values));
    return matrix;
}

void vectors_are_multiplied(void)
{
    static const char* const devices[] = {"host:1", "host:2", "auto"};
    const float entries[2] = {1, 10};
    const double expected[2] = {3 * -8 + 1, 3 * 19 + 10};
    const double expected_transposed[2] = {-8, 19};
    float y_entries[2];
    int d, layout, order;
    for (d = 0; d < 3; ++d) {
        rmsp_runtime* runtime = open_runtime(devices[d]);
        rmsp_matrix* matrix = two_points(runtime, "float");
        for (layout = 0; matrix != NULL && layout < 2; ++layout) {
            for (order = 0; order < 2; ++order) {
                rmsp_vector* x = NULL;
                rmsp_vector* y = NULL;
                rmsp_future* future = NULL;
                CHECK_OK(rmsp_vector_create_x(matrix, (rmsp_layout)layout, (rmsp_order)order, &x));
                CHECK_OK(rmsp_vector_create_y(matrix, (rmsp_order)order, &y));
                CHECK_OK(rmsp_vector_upload(x, entries));
                CHECK_OK(rmsp_vector_upload(y, entries));
                CHECK_OK(rmsp_matrix_apply_vectors(matrix, 3, x, 1, y));
                CHECK_OK(rmsp_vector_download(y, y_entries));
                CHECK_VALUES(RMSP_FLOAT, y_entries, expected, 2);
                CHECK_OK(rmsp_vector_upload(y, entries));
                CHECK_OK(rmsp_matrix_apply_vectors_async(matrix, 3, x, 1, y, &future));
                rmsp_vector_destroy(x);
                CHECK_OK(rmsp_future_wait(future));
                rmsp_future_destroy(future);
                CHECK_OK(rmsp_vector_download(y, y_entries));
                CHECK_VALUES(RMSP_FLOAT, y_entries, expected, 2);
                rmsp_vector_destroy(y);
            }
        }
        if (matrix != NULL) {
            rmsp_vector* x = NULL;
            rmsp_vector* y = NULL;
            CHECK_OK(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, &x));
            CHECK_OK(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, &y));
            CHECK_OK(rmsp_vector_upload(x, entries));
            CHECK_OK(rmsp_matrix_apply_transposed_vectors(matrix, 1, x, 0, y));
            CHECK_OK(rmsp_vector_download(y, y_entries));
            CHECK_VALUES(RMSP_FLOAT, y_entries, expected_transposed, 2);
            rmsp_vector_destroy(y);
            rmsp_vector_destroy(x);
        }
        rmsp_matrix_destroy(matrix);
        rmsp_runtime_destroy(runtime);
    }
}

static void arithmetic(rmsp_runtime* runtime, const char* precision)
{
    rmsp_matrix* matrix = two_points(runtime, precision);
    rmsp_vector* x = NULL;
    rmsp_vector* y = NULL;
    double dot = 0;
    double norm = 0;
    int64_t size = 0;
    rmsp_value_type type;
    if (matrix == NULL) {
        return;
    }
    CHECK_OK(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, &x));
    CHECK_OK(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, &y));
    CHECK_OK(rmsp_vector_size(x, &size));
    CHECK(size == 2);
    CHECK_OK(rmsp_vector_value_type(x, &type));
    CHECK(type == (precision[0] == 'f' ? RMSP_FLOAT : RMSP_DOUBLE));
    CHECK_OK(rmsp_vector_fill(x, 3));
    CHECK_OK(rmsp_vector_copy(x, y));
    CHECK_OK(rmsp_vector_scale(2, y));
    CHECK_OK(rmsp_vector_axpy(0.5, x, y)); /* 7.5 */
    CHECK_OK(rmsp_vector_dot(x, y, &dot));
    CHECK(dot == 45);
    CHECK_OK(rmsp_vector_norm2(x, &norm));
    CHECK(fabs(norm - sqrt(18)) < 1e-6);
    CHECK_OK(rmsp_runtime_synchronize(runtime));
    rmsp_vector_destroy(y);
    rmsp_vector_destroy(x);
    rmsp_vector_destroy(NULL);
    rmsp_matrix_destroy(matrix);
}

void vectors_do_arithmetic(void)
{
    rmsp_runtime* runtime = open_runtime("host:2");
    arithmetic(runtime, "double");
    arithmetic(runtime, "float");
    rmsp_runtime_destroy(runtime);
}

void vectors_are_local(void)
{
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = two_points(runtime, "double");
    rmsp_vector* x = NULL;
    rmsp_vector* everywhere = NULL;
    double entries[2];
    int64_t total = 0;
    int device;
    CHECK_OK(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, &x));
    CHECK_OK(rmsp_vector_create_x(matrix, RMSP_REPLICATED, RMSP_ORDER_MATRIX, &everywhere));
    CHECK_OK(rmsp_vector_fill(x, 0));
    CHECK_OK(rmsp_runtime_synchronize(runtime));
    for (device = 0; device < 2; ++device) {
        void* local = NULL;
        int64_t first = -1, count = -1, i;
        if (CHECK_OK(rmsp_vector_local(x, device, &local, &first, &count))) {
            CHECK(first == total);
            for (i = 0; i < count; ++i) {
                ((double*)local)[i] = (double)(first + i + 1);
            }
            total += count;
        }
        CHECK_OK(rmsp_vector_local(everywhere, device, NULL, &first, &count));
        CHECK(first == 0 && count == 2);
    }
    CHECK(total == 2);
    CHECK_OK(rmsp_vector_download(x, entries));
    CHECK(entries[0] == 1 && entries[1] == 2);
    CHECK_OK(rmsp_vector_local(x, 0, NULL, NULL, NULL));
    CHECK_USAGE(rmsp_vector_local(x, 2, NULL, NULL, NULL), "2");
    CHECK_USAGE(rmsp_vector_local(x, -1, NULL, NULL, NULL), "-1");
    CHECK_USAGE(rmsp_vector_local(NULL, 0, NULL, NULL, NULL), "vector is null");
    rmsp_vector_destroy(everywhere);
    rmsp_vector_destroy(x);
    rmsp_matrix_destroy(matrix);
    rmsp_runtime_destroy(runtime);
}

void vectors_misuse(void)
{
    rmsp_runtime* runtime = open_runtime("host:2");
    rmsp_matrix* matrix = two_points(runtime, "double");
    rmsp_matrix* of_floats = two_points(runtime, "float");
    rmsp_vector* x = NULL;
    rmsp_vector* y = NULL;
    rmsp_vector* floats = NULL;
    rmsp_vector* none = NULL;
    rmsp_future* future = NULL;
    rmsp_value_type type;
    double number;
    int64_t size;
    CHECK_OK(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, &x));
    CHECK_OK(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, &y));
    CHECK_OK(rmsp_vector_create_y(of_floats, RMSP_ORDER_MATRIX, &floats));
    CHECK_USAGE(rmsp_vector_create_x(NULL, RMSP_ROWS, RMSP_ORDER_MATRIX, &none), "matrix is null");
    CHECK_USAGE(rmsp_vector_create_x(matrix, (rmsp_layout)2, RMSP_ORDER_MATRIX, &none), "layout is 2");
    CHECK_USAGE(rmsp_vector_create_x(matrix, RMSP_ROWS, (rmsp_order)2, &none), "order is 2");
    CHECK_USAGE(rmsp_vector_create_x(matrix, RMSP_ROWS, RMSP_ORDER_MATRIX, NULL), "vector is null");
    CHECK_USAGE(rmsp_vector_create_y(NULL, RMSP_ORDER_MATRIX, &none), "matrix is null");
    CHECK_USAGE(rmsp_vector_create_y(matrix, (rmsp_order)-1, &none), "order is -1");
    CHECK_USAGE(rmsp_vector_create_y(matrix, RMSP_ORDER_MATRIX, NULL), "vector is null");
    CHECK(none == NULL);
    CHECK_USAGE(rmsp_vector_size(NULL, &size), "vector is null");
    CHECK_USAGE(rmsp_vector_size(x, NULL), "size is null");
    CHECK_USAGE(rmsp_vector_value_type(NULL, &type), "vector is null");
    CHECK_USAGE(rmsp_vector_value_type(x, NULL), "value_type is null");
    CHECK_USAGE(rmsp_vector_upload(NULL, &number), "vector is null");
    CHECK_USAGE(rmsp_vector_upload(x, NULL), "null");
    CHECK_USAGE(rmsp_vector_download(NULL, &number), "vector is null");
    CHECK_USAGE(rmsp_vector_download(x, NULL), "null");
    CHECK_USAGE(rmsp_vector_fill(NULL, 1), "vector is null");
    CHECK_USAGE(rmsp_vector_copy(NULL, y), "x is null");
    CHECK_USAGE(rmsp_vector_copy(x, NULL), "y is null");
    CHECK_USAGE(rmsp_vector_copy(x, floats), "y has values of type float, where double is needed");
    CHECK_USAGE(rmsp_vector_scale(1, NULL), "x is null");
    CHECK_USAGE(rmsp_vector_axpy(1, x, NULL), "y is null");
    CHECK_USAGE(rmsp_vector_axpy(1, floats, y), "y has values of type double, where float is needed");
    CHECK_USAGE(rmsp_vector_dot(x, y, NULL), "dot is null");
    CHECK_USAGE(rmsp_vector_dot(x, floats, &number), "float");
    CHECK_USAGE(rmsp_vector_norm2(x, NULL), "norm is null");
    CHECK_USAGE(rmsp_vector_norm2(NULL, &number), "x is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors(NULL, 1, x, 0, y), "matrix is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors(matrix, 1, NULL, 0, y), "x is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors(matrix, 1, x, 0, NULL), "y is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors(matrix, 1, x, 0, floats), "y has values of type float");
    CHECK_USAGE(rmsp_matrix_apply_vectors(of_floats, 1, x, 0, floats), "x has values of type double");
    CHECK_USAGE(rmsp_matrix_apply_vectors(matrix, 1, y, 0, y), "same");
    CHECK_USAGE(rmsp_matrix_apply_transposed_vectors(NULL, 1, y, 0, x), "matrix is null");
    CHECK_USAGE(rmsp_matrix_apply_transposed_vectors(matrix, 1, y, 0, NULL), "y is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors_async(NULL, 1, x, 0, y, &future), "matrix is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors_async(matrix, 1, x, 0, y, NULL), "future is null");
    CHECK_USAGE(rmsp_matrix_apply_vectors_async(matrix, 1, floats, 0, y, &future), "x has values of type float");
    CHECK(future == NULL);
    rmsp_runtime_destroy(runtime);
    CHECK_USAGE(rmsp_vector_fill(x, 1), "has been destroyed");
    rmsp_vector_destroy(floats);
    rmsp_vector_destroy(y);
    rmsp_vector_destroy(x);
    rmsp_matrix_destroy(of_floats);
    rmsp_matrix_destroy(matrix);
}
