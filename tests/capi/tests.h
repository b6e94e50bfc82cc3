#ifndef RMSP_TESTS_CAPI_TESTS_H
#define RMSP_TESTS_CAPI_TESTS_H

#include <rmsp/rmsp.h>

/* Options with `count` keys and values one after the other; null after a failed check. */
rmsp_options* options_of(const char* const* keys_and_values, int count);
/* A runtime of the devices that runtime.devices is set to, without a cache and with a given bandwidth; null after a
 * failed check. */
rmsp_runtime* open_runtime(const char* devices);
/* The Poisson equation on a grid, "stencil7 8 7 6" for example, of "double" or "float". */
rmsp_matrix* poisson(rmsp_runtime* runtime, const char* grid, const char* precision);
/* Its host matrix. */
rmsp_host_matrix* poisson_on_host(const char* grid, const char* precision);

void general_version(void);
void general_names(void);
void general_lists(void);
void options_are_set_and_read(void);
void options_refuse(void);
void runtime_devices(void);
void runtime_misuse(void);
void host_matrix_view(void);
void host_matrix_generated(void);
void host_matrix_files(void);
void host_matrix_misuse(void);
void matrix_multiplies(void);
void matrix_refuses_bad_arrays(void);
void matrix_updates(void);
void matrix_of_blocks(void);
void matrix_orders_by_streams(void);
void matrix_streams(void);
void matrix_read_and_generated(void);
void matrix_reports(void);
void matrix_misuse(void);
void vectors_are_multiplied(void);
void vectors_do_arithmetic(void);
void vectors_are_local(void);
void vectors_misuse(void);
void product_is_computed(void);
void product_stays(void);
void product_misuse(void);
void solver_every_method(void);
void solver_outcomes(void);
void solver_is_renewed(void);
void solver_misuse(void);
void eigen_pairs(void);
void eigen_misuse(void);
void transfer_moves_matrices(void);
void transfer_downloads(void);
void transfer_moves_vectors(void);
void transfer_misuse(void);
void threads_have_their_own_errors(void);
void threads_share_handles(void);

#endif
