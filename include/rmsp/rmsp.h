#ifndef RMSP_RMSP_H
#define RMSP_RMSP_H

/*
 * The C interface of librmsp: C99, also from C++. Link rmsp::c (CMake) or rmsp-c (pkg-config); docs/c.md explains.
 *
 * Status: every function that can fail returns an rmsp_status, RMSP_SUCCESS or what went wrong; rmsp_last_error() then
 * has the message. No exception leaves a function, and none ends the process. Results are written to the places given
 * last, and only on success (arrays of the caller that a failed product or solve was writing to are unspecified). A
 * null handle, a null place for a result, and an enumerator that does not exist are RMSP_ERROR_USAGE.
 *
 * Handles: what a *_create, _read or _generate function makes is the caller's, to be given to the *_destroy function of
 * its kind, once, when no other thread uses it; null is allowed there. Handles share what they need of each other, so
 * that they may be destroyed in any order. A runtime that is destroyed takes the devices along: matrices, vectors,
 * products and solvers made of it then return RMSP_ERROR_USAGE.
 *
 * Threads: all functions may be called from any number of threads. One handle may be used by several at once, unless
 * its section says otherwise.
 *
 * Numbers: sizes are int64_t. Values of a matrix are all float or all double, and arrays of values (void*) are of the
 * type of the handle that they are used with; alpha and beta are doubles for both. Rows, columns and devices are
 * counted from 0, also in messages, but index arrays of the caller may count from 1.
 *
 * Memory: arrays are in host memory, pageable or pinned, except where a function says that memory of a GPU does as
 * well: then what writes it must have ended before the call, and the call has ended with it when it returns. Streams
 * of the caller are not taken.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RMSP_C_API __attribute__((visibility("default")))
#else
#define RMSP_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------- general */

/* What went wrong; the values are the exit codes of `mspmv`. */
typedef enum rmsp_status {
    RMSP_SUCCESS = 0,
    RMSP_ERROR_INTERNAL = 1,      /* a broken invariant of librmsp itself */
    RMSP_ERROR_USAGE = 2,         /* arguments, keys, or dimensions that do not fit */
    RMSP_ERROR_IO = 3,            /* a file that cannot be read, parsed or written */
    RMSP_ERROR_OUT_OF_MEMORY = 4, /* of the host or a device */
    RMSP_ERROR_DEVICE = 5,        /* CUDA, NCCL or a peer link failed */
    RMSP_ERROR_NOT_CONVERGED = 6, /* a solve without a place for its result did not converge */
    RMSP_ERROR_VERIFICATION = 7   /* a result differs from the reference; of `mspmv` only */
} rmsp_status;

typedef enum rmsp_value_type { RMSP_FLOAT = 0, RMSP_DOUBLE = 1 } rmsp_value_type;
typedef enum rmsp_index_type { RMSP_INT32 = 0, RMSP_INT64 = 1 } rmsp_index_type; /* signed */

typedef struct rmsp_options rmsp_options;
typedef struct rmsp_runtime rmsp_runtime;
typedef struct rmsp_matrix rmsp_matrix;

/* The message of the last call of this thread that failed, with every dimension, key, file and line that matters; ""
   if none did. Never null; valid until the next call of this thread that fails. */
RMSP_C_API const char* rmsp_last_error(void);
/* "success", "usage", "io", ...; "unknown" for a number that is no status. */
RMSP_C_API const char* rmsp_status_name(rmsp_status status);

/* "0.1.0"; the abbreviated commit of the build; what was compiled in ("CUDA 13.0, cuSPARSE, ..."). */
RMSP_C_API const char* rmsp_version(void);
RMSP_C_API const char* rmsp_commit(void);
RMSP_C_API const char* rmsp_build_features(void);

/* Frees a text or an array that a function made for the caller; null is allowed. */
RMSP_C_API void rmsp_free(void* memory);

/* ---------------------------------------------------------------------------------------------------- options */

/* Options by the keys of configuration files (docs/configuration.md), which begin with the defaults listed there.
   Wherever a function takes options, null stands for these defaults, and the options are only read during the call.
   Keys of what `mspmv` does alone (its right-hand sides, iterations, outputs) mean nothing here. One thread at a time
   sets. */
RMSP_C_API rmsp_status rmsp_options_create(rmsp_options** options);
RMSP_C_API void rmsp_options_destroy(rmsp_options* options);
/* Sets a key from text: "solver.tolerance" to "1e-8", "runtime.weights" to "1, 2". USAGE for a value that is not of the
   key's type or range, and for an unknown key, naming the nearest known one; the options are then unchanged. */
RMSP_C_API rmsp_status rmsp_options_set(rmsp_options* options, const char* key, const char* value);
/* The value of a key, as rmsp_options_set() takes it; to be given to rmsp_free(). */
RMSP_C_API rmsp_status rmsp_options_get(const rmsp_options* options, const char* key, char** value);
/* Sets what the environment variables RMSP_DEVICES, RMSP_BIND, RMSP_TRANSPORT and RMSP_CACHE_DIR give. */
RMSP_C_API rmsp_status rmsp_options_use_environment(rmsp_options* options);

/* ---------------------------------------------------------------------------------------------------- runtimes */

/* Opens the devices of runtime.devices, starts and binds a thread for each, and tests the transports between them.
   Takes the keys runtime.*. DEVICE if a device is not there. Blocks. */
RMSP_C_API rmsp_status rmsp_runtime_create(const rmsp_options* options, rmsp_runtime** runtime);
/* Finishes the work that was accepted, then stops the threads. */
RMSP_C_API void rmsp_runtime_destroy(rmsp_runtime* runtime);
/* Waits until all work accepted so far has ended on every device. */
RMSP_C_API rmsp_status rmsp_runtime_synchronize(rmsp_runtime* runtime);

/* ---------------------------------------------------------------------------------------------------- matrices */

/* A sparse matrix that is split over the devices of a runtime. Of several threads, calls are done in the order in which
   they came; those of one thread in its order. */

/* Splits a matrix in compressed sparse rows and copies each part to its device. row_ptr has rows + 1 entries, col_idx
   and values nnz; columns of a row may be in any order and may repeat (repeated entries add up). With index_base 1 row
   pointers and columns count from 1; they are copied to be renumbered. The arrays are read during the call only, except
   with run.mode = streamed: they must then outlive the matrix and what uses it (of those that count from 1: the values
   alone). Takes the keys partition.*, kernel.*, run.mode, run.chunk_mib, run.merge, run.vectors, stream.*. USAGE for a
   bad matrix, naming the row and the entry. Blocks. */
RMSP_C_API rmsp_status rmsp_matrix_create_csr(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz,
                                              const void* row_ptr, const void* col_idx, const void* values,
                                              rmsp_index_type row_ptr_type, rmsp_index_type col_idx_type,
                                              int index_base, rmsp_value_type value_type, const rmsp_options* options,
                                              rmsp_matrix** matrix);
RMSP_C_API void rmsp_matrix_destroy(rmsp_matrix* matrix);

/* y = alpha A x + beta y; x of cols entries and y of rows entries do not overlap. With beta == 0, y is not read. Blocks
   until y is complete. */
RMSP_C_API rmsp_status rmsp_matrix_apply(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y);

#ifdef __cplusplus
}
#endif

#endif
