#ifndef RMSP_TESTS_CAPI_TESTS_H
#define RMSP_TESTS_CAPI_TESTS_H

#include <rmsp/rmsp.h>

/* A runtime of the devices that runtime.devices is set to, without a cache; null after a failed check. */
rmsp_runtime* open_runtime(const char* devices);

void options_are_set_and_read(void);
void options_refuse(void);

void matrix_multiplies(void);
void matrix_refuses_bad_arrays(void);
void matrix_names_misuse(void);

#endif
