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
 * well: then what writes it must have ended before the call, and the call has ended with it when it returns, unless the
 * function takes a stream to order the work by.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RMSP_C_API __attribute__((visibility("default")))
#else
#define RMSP_C_API
#endif

/* To C++ too, every int is a value of an enumeration. */
#ifdef __cplusplus
#define RMSP_C_ENUM : int
extern "C" {
#else
#define RMSP_C_ENUM
#endif

/* ---------------------------------------------------------------------------------------------------- general */

/* What went wrong; the values are the exit codes of `mspmv`. */
typedef enum rmsp_status RMSP_C_ENUM {
    RMSP_SUCCESS = 0,
    RMSP_ERROR_INTERNAL = 1,      /* a broken invariant of librmsp itself */
    RMSP_ERROR_USAGE = 2,         /* arguments, keys, or dimensions that do not fit */
    RMSP_ERROR_IO = 3,            /* a file that cannot be read, parsed or written */
    RMSP_ERROR_OUT_OF_MEMORY = 4, /* of the host or a device */
    RMSP_ERROR_DEVICE = 5,        /* CUDA, NCCL or a peer link failed */
    RMSP_ERROR_NOT_CONVERGED = 6, /* a solve without a place for its result did not converge */
    RMSP_ERROR_VERIFICATION = 7,  /* a result differs from the reference; of `mspmv` only */
    RMSP_ERROR_CANCELLED = 8,     /* a job was cancelled: with the C++ interface only, as the next two */
    RMSP_ERROR_DEADLINE = 9,      /* a job's deadline passed */
    RMSP_ERROR_BUSY = 10          /* the queue of jobs is full */
} rmsp_status;

typedef enum rmsp_value_type RMSP_C_ENUM { RMSP_FLOAT = 0, RMSP_DOUBLE = 1 } rmsp_value_type;
typedef enum rmsp_index_type RMSP_C_ENUM { RMSP_INT32 = 0, RMSP_INT64 = 1 } rmsp_index_type; /* signed */
typedef enum rmsp_format RMSP_C_ENUM { RMSP_CSR = 0, RMSP_CSC = 1, RMSP_COO = 2 } rmsp_format;
/* TEXT for people, or JSON; either is to be given to rmsp_free(). */
typedef enum rmsp_text_format RMSP_C_ENUM { RMSP_TEXT = 0, RMSP_JSON = 1 } rmsp_text_format;

typedef struct rmsp_options rmsp_options;
typedef struct rmsp_runtime rmsp_runtime;
typedef struct rmsp_host_matrix rmsp_host_matrix;
typedef struct rmsp_matrix rmsp_matrix;
typedef struct rmsp_vector rmsp_vector;
typedef struct rmsp_future rmsp_future;
typedef struct rmsp_product rmsp_product;
typedef struct rmsp_solver rmsp_solver;
typedef struct rmsp_result rmsp_result;
typedef struct rmsp_eigen rmsp_eigen;

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

/* Every kernel, method, preconditioner and key of options that this build has: a line each, or a JSON list of objects
   with "name", "summary" and more. */
RMSP_C_API rmsp_status rmsp_list_kernels(rmsp_text_format format, char** text);
RMSP_C_API rmsp_status rmsp_list_solvers(rmsp_text_format format, char** text);
RMSP_C_API rmsp_status rmsp_list_preconditioners(rmsp_text_format format, char** text);
RMSP_C_API rmsp_status rmsp_list_keys(rmsp_text_format format, char** text);

/* ---------------------------------------------------------------------------------------------------- options */

/* Options by the keys of configuration files (docs/configuration.md), which begin with the defaults listed there.
   Wherever a function takes options, null stands for these defaults, and the options are only read during the call.
   Keys of what `mspmv` does alone (its right-hand sides, comparisons, outputs) mean nothing here. One thread at a time
   sets. */
RMSP_C_API rmsp_status rmsp_options_create(rmsp_options** options);
RMSP_C_API void rmsp_options_destroy(rmsp_options* options);
/* Sets a key from text: "solver.tolerance" to "1e-8", "runtime.weights" to "1, 2". USAGE for a value that is not of the
   key's type or range, and for an unknown key, naming the nearest known one; the options are then unchanged. */
RMSP_C_API rmsp_status rmsp_options_set(rmsp_options* options, const char* key, const char* value);
/* The value of a key, as rmsp_options_set() takes it; to be given to rmsp_free(). */
RMSP_C_API rmsp_status rmsp_options_get(const rmsp_options* options, const char* key, char** value);
/* Sets what the environment variables RMSP_DEVICES, RMSP_BIND, RMSP_TRANSPORT, RMSP_CACHE_DIR and RMSP_IO_MAX_BYTES
   give. */
RMSP_C_API rmsp_status rmsp_options_use_environment(rmsp_options* options);

/* Told of a solve, now and then, on the thread that solves: the newest iteration, its residual |b - A x|, the residual
   that is asked for, and the seconds so far. Cancels the solve if it does not return 0. */
typedef int (*rmsp_solve_callback)(void* context, int64_t iteration, double residual, double target, double seconds);
/* The callback of solvers that are created with these options; null for none. `context` is passed on as it is. */
RMSP_C_API rmsp_status rmsp_options_set_callback(rmsp_options* options, rmsp_solve_callback callback, void* context);
/* Arrays in the memory of a GPU that a matrix is made of with these options are read after what is on this stream, a
   cudaStream_t of that GPU; null: its default stream. Options without a stream: what writes the arrays has ended. */
RMSP_C_API rmsp_status rmsp_options_set_stream(rmsp_options* options, void* stream);

/* ---------------------------------------------------------------------------------------------------- runtimes */

/* Opens the devices of runtime.devices, starts and binds a thread for each, and tests the transports between them.
   Takes the keys runtime.*. DEVICE if a device is not there. Blocks. */
RMSP_C_API rmsp_status rmsp_runtime_create(const rmsp_options* options, rmsp_runtime** runtime);
/* Finishes the work that was accepted, then stops the threads. */
RMSP_C_API void rmsp_runtime_destroy(rmsp_runtime* runtime);
/* Waits until all work accepted so far has ended on every device. */
RMSP_C_API rmsp_status rmsp_runtime_synchronize(rmsp_runtime* runtime);
RMSP_C_API rmsp_status rmsp_runtime_device_count(const rmsp_runtime* runtime, int* count);
/* A line for each device, or a JSON list of objects: name, kind, memory, NUMA node, hardware threads. */
RMSP_C_API rmsp_status rmsp_runtime_devices(const rmsp_runtime* runtime, rmsp_text_format format, char** text);
/* The transport in use, and why. To be given to rmsp_free(). */
RMSP_C_API rmsp_status rmsp_runtime_transport(const rmsp_runtime* runtime, char** text);

/* ---------------------------------------------------------------------------------------------------- host matrices */

/* A matrix in host memory: read, generated or computed, or a view of the caller's arrays. Nothing changes it, so that
   any number of threads may use it. */

/* Views of the caller's arrays, which must outlive the handle and what it is given to, as far as that needs them. The
   parameters are those of rmsp_matrix_create_csr() and the like. The arrays are checked where they are used. */
RMSP_C_API rmsp_status rmsp_host_matrix_create_csr(int64_t rows, int64_t cols, int64_t nnz, const void* row_ptr,
                                                   const void* col_idx, const void* values,
                                                   rmsp_index_type row_ptr_type, rmsp_index_type col_idx_type,
                                                   int index_base, rmsp_value_type value_type,
                                                   rmsp_host_matrix** matrix);
RMSP_C_API rmsp_status rmsp_host_matrix_create_csc(int64_t rows, int64_t cols, int64_t nnz, const void* col_ptr,
                                                   const void* row_idx, const void* values,
                                                   rmsp_index_type col_ptr_type, rmsp_index_type row_idx_type,
                                                   int index_base, rmsp_value_type value_type,
                                                   rmsp_host_matrix** matrix);
RMSP_C_API rmsp_status rmsp_host_matrix_create_coo(int64_t rows, int64_t cols, int64_t nnz, const void* row_idx,
                                                   const void* col_idx, const void* values,
                                                   rmsp_index_type row_idx_type, rmsp_index_type col_idx_type,
                                                   int index_base, rmsp_value_type value_type,
                                                   rmsp_host_matrix** matrix);
/* Reads Matrix Market (plain, .gz, .xz, .zst) or SciPy's .npz. Takes the keys matrix.* but for file and generate:
   precision, format, values and so on. IO "FILE:LINE:COLUMN: ..." for a bad file; USAGE for matrix.order = none. */
RMSP_C_API rmsp_status rmsp_host_matrix_read(const char* path, const rmsp_options* options, rmsp_host_matrix** matrix);
/* Generates by a description as of the key matrix.generate, "stencil7 100 100 100" for example; takes the same keys.
   USAGE naming the word that is wrong. */
RMSP_C_API rmsp_status rmsp_host_matrix_generate(const char* description, const rmsp_options* options,
                                                 rmsp_host_matrix** matrix);
RMSP_C_API void rmsp_host_matrix_destroy(rmsp_host_matrix* matrix);
/* The same entries in a format, in new arrays. From CSR or CSC to either of them, columns of rows and rows of columns
   are in order after it. Coordinates are by row, but those of a CSC matrix by column, and within a row or column, as in
   a matrix made of coordinates, entries stay in the order in which they came. */
RMSP_C_API rmsp_status rmsp_host_matrix_convert(const rmsp_host_matrix* matrix, rmsp_format format,
                                                rmsp_host_matrix** converted);
/* Writes a CSR matrix by the name's ending: .mtx, .mtx.gz, .mtx.xz, .mtx.zst or .npz. */
RMSP_C_API rmsp_status rmsp_host_matrix_write(const rmsp_host_matrix* matrix, const char* path);
/* Each place may be null. */
RMSP_C_API rmsp_status rmsp_host_matrix_size(const rmsp_host_matrix* matrix, int64_t* rows, int64_t* cols,
                                             int64_t* nnz);
RMSP_C_API rmsp_status rmsp_host_matrix_type(const rmsp_host_matrix* matrix, rmsp_format* format,
                                             rmsp_value_type* value_type);
/* The arrays, which count from 0 and live as long as the handle: row_ptr and col_idx of CSR, col_ptr and row_idx of
   CSC, row_idx and col_idx of COO. Each place may be null. */
RMSP_C_API rmsp_status rmsp_host_matrix_arrays(const rmsp_host_matrix* matrix, const void** first,
                                               rmsp_index_type* first_type, const void** second,
                                               rmsp_index_type* second_type, const void** values);

/* A vector from a file: NumPy's .npy, or Matrix Market of one column. The entries are to be given to rmsp_free(). */
RMSP_C_API rmsp_status rmsp_read_vector(const char* path, rmsp_value_type value_type, int64_t* size, void** entries);
/* Writes by the name's ending: .npy, .mtx, .mtx.gz, .mtx.xz or .mtx.zst. */
RMSP_C_API rmsp_status rmsp_write_vector(const char* path, rmsp_value_type value_type, int64_t size,
                                         const void* entries);

/* ---------------------------------------------------------------------------------------------------- matrices */

/* A sparse matrix that is split over the devices of a runtime. Of several threads, calls are done in the order in which
   they came; those of one thread in its order. */

/* Splits a matrix in compressed sparse rows and copies each part to its device. row_ptr has rows + 1 entries, col_idx
   and values nnz; columns of a row may be in any order and may repeat (repeated entries add up). With index_base 1 row
   pointers and columns count from 1; they are copied to be renumbered. Each array may be in the memory of any GPU of
   this process if the runtime's devices are GPUs: values then go from GPU to GPU, the structure also comes to the host.
   The arrays are read during the call only, except with run.mode = streamed: they must then outlive the matrix and what
   uses it (of those that count from 1: the values alone). Takes the keys partition.*, kernel.*, run.mode,
   run.chunk_mib, run.merge, run.vectors, stream.*. USAGE for a bad matrix, naming the row and the entry. Blocks. */
RMSP_C_API rmsp_status rmsp_matrix_create_csr(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz,
                                              const void* row_ptr, const void* col_idx, const void* values,
                                              rmsp_index_type row_ptr_type, rmsp_index_type col_idx_type,
                                              int index_base, rmsp_value_type value_type, const rmsp_options* options,
                                              rmsp_matrix** matrix);
/* A matrix by columns: each device multiplies its columns, and the partial results are added. */
RMSP_C_API rmsp_status rmsp_matrix_create_csc(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz,
                                              const void* col_ptr, const void* row_idx, const void* values,
                                              rmsp_index_type col_ptr_type, rmsp_index_type row_idx_type,
                                              int index_base, rmsp_value_type value_type, const rmsp_options* options,
                                              rmsp_matrix** matrix);
/* A matrix of coordinates, nnz in each array, sorted by row or by column, or as partition.unsorted says. */
RMSP_C_API rmsp_status rmsp_matrix_create_coo(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz,
                                              const void* row_idx, const void* col_idx, const void* values,
                                              rmsp_index_type row_idx_type, rmsp_index_type col_idx_type,
                                              int index_base, rmsp_value_type value_type, const rmsp_options* options,
                                              rmsp_matrix** matrix);
/* A matrix of compressed rows of blocks: rows, cols and blocks count blocks, which are dense, of height x width values
   each, by rows or, unless by_column is 0, by columns; all their values become entries. rmsp_matrix_update_values()
   takes values block after block. What is in the memory of GPUs passes through the host each time. Not streamed. */
RMSP_C_API rmsp_status rmsp_matrix_create_bsr(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t blocks,
                                              int64_t height, int64_t width, int by_column, const void* row_ptr,
                                              const void* col_idx, const void* values, rmsp_index_type row_ptr_type,
                                              rmsp_index_type col_idx_type, int index_base, rmsp_value_type value_type,
                                              const rmsp_options* options, rmsp_matrix** matrix);
/* A matrix from a host matrix. What a streamed matrix needs of arrays that the host matrix owns, it keeps. */
RMSP_C_API rmsp_status rmsp_matrix_create(rmsp_runtime* runtime, const rmsp_host_matrix* host,
                                          const rmsp_options* options, rmsp_matrix** matrix);
/* Reads or generates a host matrix, with the keys matrix.*, and splits it. */
RMSP_C_API rmsp_status rmsp_matrix_read(rmsp_runtime* runtime, const char* path, const rmsp_options* options,
                                        rmsp_matrix** matrix);
RMSP_C_API rmsp_status rmsp_matrix_generate(rmsp_runtime* runtime, const char* description, const rmsp_options* options,
                                            rmsp_matrix** matrix);
/* C of a product that has been computed, in memory of its own; its structure passes through the host. */
RMSP_C_API rmsp_status rmsp_matrix_create_product(const rmsp_product* product, const rmsp_options* options,
                                                  rmsp_matrix** matrix);
RMSP_C_API void rmsp_matrix_destroy(rmsp_matrix* matrix);

/* Each place may be null. */
RMSP_C_API rmsp_status rmsp_matrix_size(const rmsp_matrix* matrix, int64_t* rows, int64_t* cols, int64_t* nnz);
RMSP_C_API rmsp_status rmsp_matrix_value_type(const rmsp_matrix* matrix, rmsp_value_type* value_type);

/* y = alpha A x + beta y; x of cols entries and y of rows entries do not overlap. With beta == 0, y is not read. Either
   may be in the memory of a GPU of this process. Blocks until y is complete. */
RMSP_C_API rmsp_status rmsp_matrix_apply(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y);
/* y = alpha A^T x + beta y; x of rows entries, y of cols. The first call makes it ready, which takes time. USAGE for a
   streamed matrix, and for one whose devices numbered its columns anew, which partition.exchange = ranges prevents. */
RMSP_C_API rmsp_status rmsp_matrix_apply_transposed(rmsp_matrix* matrix, double alpha, const void* x, double beta,
                                                    void* y);
/* Products in the order of a stream: a cudaStream_t of the GPU that has y, null for its default stream. The product
   begins after what was queued there, and what is queued there afterwards begins once y is complete. x and y are in the
   memory of GPUs. Return when the work is queued; what a device reports later is lost: rmsp_runtime_synchronize() and
   the stream itself tell of broken devices. */
RMSP_C_API rmsp_status rmsp_matrix_apply_on_stream(rmsp_matrix* matrix, double alpha, const void* x, double beta,
                                                   void* y, void* stream);
RMSP_C_API rmsp_status rmsp_matrix_apply_transposed_on_stream(rmsp_matrix* matrix, double alpha, const void* x,
                                                              double beta, void* y, void* stream);
/* Products with vectors on the devices. One takes x and y as rmsp_vector_create_x() and rmsp_vector_create_y()
   make them, a transposed one the other way round, its y by rows. */
RMSP_C_API rmsp_status rmsp_matrix_apply_vectors(rmsp_matrix* matrix, double alpha, const rmsp_vector* x, double beta,
                                                 rmsp_vector* y);
RMSP_C_API rmsp_status rmsp_matrix_apply_transposed_vectors(rmsp_matrix* matrix, double alpha, const rmsp_vector* x,
                                                            double beta, rmsp_vector* y);
/* Products without waiting. The arrays must stay, and be left alone, until rmsp_future_wait(); vectors may even be
   destroyed. Work is done in order without waiting in between. */
RMSP_C_API rmsp_status rmsp_matrix_apply_async(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y,
                                               rmsp_future** future);
RMSP_C_API rmsp_status rmsp_matrix_apply_vectors_async(rmsp_matrix* matrix, double alpha, const rmsp_vector* x,
                                                       double beta, rmsp_vector* y, rmsp_future** future);
/* Waits for the end of the work, any number of times, and says how it ended. */
RMSP_C_API rmsp_status rmsp_future_wait(const rmsp_future* future);
/* Does not wait. */
RMSP_C_API void rmsp_future_destroy(rmsp_future* future);

/* New values for the same structure: nnz entries in the order of the arrays that the matrix was made of. A streamed
   matrix takes no other array: write the new values there, and call this. They may be in the memory of a GPU of this
   process, but not for a matrix of blocks. Blocks. USAGE for coordinates that were sorted on the way. */
RMSP_C_API rmsp_status rmsp_matrix_update_values(rmsp_matrix* matrix, const void* values);
/* New values in the memory of a GPU, after what is on a stream of it. */
RMSP_C_API rmsp_status rmsp_matrix_update_values_on_stream(rmsp_matrix* matrix, const void* values, void* stream);
/* The matrix as the devices hold it, with the values that it has now, as a new host matrix in CSR. The entries of a row
   are in the order in which they were given; by column, where the matrix was given by columns. Blocks. */
RMSP_C_API rmsp_status rmsp_matrix_download(const rmsp_matrix* matrix, rmsp_host_matrix** host);
/* The same matrix on the devices of another runtime, or of the same one with other options: what rmsp_matrix_create()
   makes of rmsp_matrix_download(), whose order new values have then. The caller's arrays are not needed, and `matrix`
   stays. USAGE for run.mode = streamed. Blocks. */
RMSP_C_API rmsp_status rmsp_matrix_transfer(const rmsp_matrix* matrix, rmsp_runtime* runtime,
                                            const rmsp_options* options, rmsp_matrix** transferred);
/* The diagonal of a square matrix, as a new vector by rows. Blocks. */
RMSP_C_API rmsp_status rmsp_matrix_diagonal(const rmsp_matrix* matrix, rmsp_vector** diagonal);
/* Times products as the keys run.vectors, run.iterations, run.warmup, run.cache, run.alpha and run.beta say, with a
   host array x of cols entries; rmsp_matrix_report() then tells. y, of rows entries, is where they begin and receives
   the result of one product; it may be null if run.beta is 0. Blocks. */
RMSP_C_API rmsp_status rmsp_matrix_measure(rmsp_matrix* matrix, const rmsp_options* options, const void* x, void* y);
/* Which part of the matrix is on which device, with which kernel, and what a product is predicted to take. */
RMSP_C_API rmsp_status rmsp_matrix_plan(const rmsp_matrix* matrix, rmsp_text_format format, char** text);
/* The plan, the times of the set-up, and what was measured (docs/report.md). */
RMSP_C_API rmsp_status rmsp_matrix_report(const rmsp_matrix* matrix, rmsp_text_format format, char** text);
/* The plan that rmsp_matrix_create() would make; touches no device. */
RMSP_C_API rmsp_status rmsp_runtime_plan(const rmsp_runtime* runtime, const rmsp_host_matrix* host,
                                         const rmsp_options* options, rmsp_text_format format, char** text);

/* ---------------------------------------------------------------------------------------------------- vectors */

/* A vector on the devices, for products and solves of the matrix that it was made of, uninitialised. Operations return
   when they are queued, in order with products, unless they copy to or from the caller or return a number. */
typedef enum rmsp_layout RMSP_C_ENUM {
    RMSP_ROWS = 0,      /* each device holds its own slice */
    RMSP_REPLICATED = 1 /* each device holds all entries */
} rmsp_layout;
typedef enum rmsp_order RMSP_C_ENUM {
    RMSP_ORDER_MATRIX = 0, /* as the matrix is numbered */
    RMSP_ORDER_KERNEL = 1  /* as the matrix's kernel numbers it: spares copies; for products with this matrix alone */
} rmsp_order;

/* A vector of cols entries, and one of rows entries by rows. Block. */
RMSP_C_API rmsp_status rmsp_vector_create_x(const rmsp_matrix* matrix, rmsp_layout layout, rmsp_order order,
                                            rmsp_vector** vector);
RMSP_C_API rmsp_status rmsp_vector_create_y(const rmsp_matrix* matrix, rmsp_order order, rmsp_vector** vector);
RMSP_C_API void rmsp_vector_destroy(rmsp_vector* vector);
RMSP_C_API rmsp_status rmsp_vector_size(const rmsp_vector* vector, int64_t* size);
RMSP_C_API rmsp_status rmsp_vector_value_type(const rmsp_vector* vector, rmsp_value_type* value_type);
/* Copies all entries in or out, in the matrix's order; block. The array is in host memory, or in that of a GPU of this
   process. */
RMSP_C_API rmsp_status rmsp_vector_upload(rmsp_vector* vector, const void* entries);
RMSP_C_API rmsp_status rmsp_vector_download(const rmsp_vector* vector, void* entries);
/* What a device holds, in that device's memory: the position of the first entry and their number. For the caller's own
   kernels: rmsp_runtime_synchronize() before they begin, and they have ended before the next call with the vector. Each
   place may be null. */
RMSP_C_API rmsp_status rmsp_vector_local(rmsp_vector* vector, int device, void** entries, int64_t* first,
                                         int64_t* count);
/* y = x, entry by entry, whatever their runtimes, layouts and orders are; through host memory. Blocks. */
RMSP_C_API rmsp_status rmsp_vector_transfer(const rmsp_vector* x, rmsp_vector* y);
RMSP_C_API rmsp_status rmsp_vector_fill(rmsp_vector* vector, double value);
RMSP_C_API rmsp_status rmsp_vector_copy(const rmsp_vector* x, rmsp_vector* y);               /* y = x */
RMSP_C_API rmsp_status rmsp_vector_scale(double alpha, rmsp_vector* x);                      /* x = alpha x */
RMSP_C_API rmsp_status rmsp_vector_axpy(double alpha, const rmsp_vector* x, rmsp_vector* y); /* y = alpha x + y */
/* Block. */
RMSP_C_API rmsp_status rmsp_vector_dot(const rmsp_vector* x, const rmsp_vector* y, double* dot);
RMSP_C_API rmsp_status rmsp_vector_norm2(const rmsp_vector* x, double* norm);

/* ---------------------------------------------------------------------------------------------------- products */

/* C = alpha A B of sparse matrices on all devices: the structure once, the values as often as A and B get new ones. All
   functions block; one thread at a time uses a product. */

/* Plans, sends each device what it needs, and counts the entries of C. A and B are CSR; where C is computed in runs
   because it does not fit (the plan says so), their arrays are needed as long as the product. Takes the keys spgemm.*
   of how a product is computed, and kernel.determinism. USAGE for matrices or dimensions that do not fit. */
RMSP_C_API rmsp_status rmsp_product_create(rmsp_runtime* runtime, const rmsp_host_matrix* a, const rmsp_host_matrix* b,
                                           const rmsp_options* options, rmsp_product** product);
/* A product of matrices on the devices, which stay there: resident, of CSR. For factors in arrays of the caller's in
   the memory of GPUs, rmsp_matrix_create_csr() makes such matrices. */
RMSP_C_API rmsp_status rmsp_product_create_resident(rmsp_runtime* runtime, const rmsp_matrix* a, const rmsp_matrix* b,
                                                    const rmsp_options* options, rmsp_product** product);
RMSP_C_API void rmsp_product_destroy(rmsp_product* product);
/* Computes C from the values that A and B have now. */
RMSP_C_API rmsp_status rmsp_product_compute(rmsp_product* product, double alpha);
/* New values for the same structures; null: as before, and always for matrices on the devices, of which the values that
   they have at the time are taken. */
RMSP_C_API rmsp_status rmsp_product_update_values(rmsp_product* product, const void* a_values, const void* b_values);
/* Each place may be null. */
RMSP_C_API rmsp_status rmsp_product_size(const rmsp_product* product, int64_t* rows, int64_t* cols, int64_t* nnz);
/* C, once computed, as a new host matrix in CSR, without the entries below spgemm.prune_below. */
RMSP_C_API rmsp_status rmsp_product_download(const rmsp_product* product, rmsp_host_matrix** c);
/* C, once computed, into arrays of the caller's: rows + 1 row pointers from 0, and as many columns and values as
   rmsp_product_size() says; NULL for what is not wanted. Each is in host memory or in the memory of a GPU of the
   process, where columns and values go from device to device; row pointers pass through the host. What uses the arrays
   has to have ended before the call, and the call has ended with them when it returns. spgemm.prune_below does not
   count. USAGE before rmsp_product_compute(), and for memory of a GPU where the runtime's devices are the host's. */
RMSP_C_API rmsp_status rmsp_product_download_arrays(const rmsp_product* product, int64_t* row_ptr, int32_t* col_idx,
                                                    void* values);
/* Gives a matrix of rmsp_matrix_create_product() the values that C has now. */
RMSP_C_API rmsp_status rmsp_product_renew(const rmsp_product* product, rmsp_matrix* matrix);
/* The plan, and the times so far. */
RMSP_C_API rmsp_status rmsp_product_report(const rmsp_product* product, rmsp_text_format format, char** text);

/* ---------------------------------------------------------------------------------------------------- solvers */

/* How a solve ended. */
typedef enum rmsp_outcome RMSP_C_ENUM {
    RMSP_CONVERGED = 1,  /* the residual that was asked for is reached; lsqr: or x is a least squares solution */
    RMSP_ITERATIONS = 2, /* solver.max_iterations were done */
    RMSP_TIME = 3,       /* solver.max_seconds were over */
    RMSP_STAGNATION = 4, /* the residual has not become smaller for long */
    RMSP_BREAKDOWN = 5,  /* the method cannot go on with this matrix */
    RMSP_DIVERGED = 6,   /* the residual grew beyond solver.divergence times the first one */
    RMSP_NOT_FINITE = 7, /* the residual is NaN or infinite */
    RMSP_CANCELLED = 8   /* by the callback */
} rmsp_outcome;

/* A method made ready for a matrix, for any number of solves of A x = b, which are done one after the other. Takes the
   keys solver.*: the method, its preconditioner, tolerances and limits. USAGE for a matrix that the method or the
   preconditioner is not for. Blocks. */
RMSP_C_API rmsp_status rmsp_solver_create(const rmsp_matrix* matrix, const rmsp_options* options, rmsp_solver** solver);
RMSP_C_API void rmsp_solver_destroy(rmsp_solver* solver);
/* Solves A x = b; x, of cols entries, is where the method begins, and the solution; b has rows entries. The arrays are
   in host memory, or in that of a GPU of this process. How it went is in `result`, a new handle: numerical failure is
   an outcome there, not an error. Only if `result` is null, it is NOT_CONVERGED. Blocks. */
RMSP_C_API rmsp_status rmsp_solver_solve(rmsp_solver* solver, const void* b, void* x, rmsp_result** result);
/* Solves with b in the memory of a GPU, after what is on a stream of it. It has ended when the call returns. */
RMSP_C_API rmsp_status rmsp_solver_solve_on_stream(rmsp_solver* solver, const void* b, void* x, void* stream,
                                                   rmsp_result** result);
/* Solves with vectors as rmsp_vector_create_y() and rmsp_vector_create_x() by rows make them. */
RMSP_C_API rmsp_status rmsp_solver_solve_vectors(rmsp_solver* solver, const rmsp_vector* b, rmsp_vector* x,
                                                 rmsp_result** result);
/* After rmsp_matrix_update_values(): renews the preconditioner; everything else stays. Blocks. */
RMSP_C_API rmsp_status rmsp_solver_renew(rmsp_solver* solver);

RMSP_C_API void rmsp_result_destroy(rmsp_result* result);
RMSP_C_API rmsp_status rmsp_result_outcome(const rmsp_result* result, rmsp_outcome* outcome);
RMSP_C_API rmsp_status rmsp_result_iterations(const rmsp_result* result, int64_t* iterations);
/* |b - A x|, computed from the x that is returned; the residual that was asked for; |b|. Each place may be null. */
RMSP_C_API rmsp_status rmsp_result_residual(const rmsp_result* result, double* residual, double* target,
                                            double* rhs_norm);
RMSP_C_API rmsp_status rmsp_result_seconds(const rmsp_result* result, double* seconds);
/* The residual before the first iteration and after each; the array lives as long as the result. */
RMSP_C_API rmsp_status rmsp_result_history(const rmsp_result* result, const double** residuals, int64_t* count);
/* A sentence on an outcome other than converged, else ""; it lives as long as the result. */
RMSP_C_API rmsp_status rmsp_result_reason(const rmsp_result* result, const char** reason);
/* Plan, preconditioner, outcome and the course of the residual (docs/report.md). */
RMSP_C_API rmsp_status rmsp_result_report(const rmsp_result* result, rmsp_text_format format, char** text);
/* "converged", "iterations", ...; "unknown" for a number that is no outcome. */
RMSP_C_API const char* rmsp_outcome_name(rmsp_outcome outcome);

/* ---------------------------------------------------------------------------------------------------- eigenpairs */

/* Finds a few extreme eigenpairs A v = lambda v of a symmetric matrix, by the keys eigen.* (their number, which,
   method, tolerance, limits) and, for eigen.preconditioner, solver.*; that A is symmetric is the caller's word. The
   callback of the options is told the largest residual. Numerical failure is an outcome of `eigen`, a new handle, not
   an error. USAGE for a matrix that is not square, and options that do not fit. Blocks. */
RMSP_C_API rmsp_status rmsp_eigen_solve(const rmsp_matrix* matrix, const rmsp_options* options, rmsp_eigen** eigen);
RMSP_C_API void rmsp_eigen_destroy(rmsp_eigen* eigen);
RMSP_C_API rmsp_status rmsp_eigen_outcome(const rmsp_eigen* eigen, rmsp_outcome* outcome);
RMSP_C_API rmsp_status rmsp_eigen_iterations(const rmsp_eigen* eigen, int64_t* iterations);
/* The eigenvalues, beginning with what was asked for (the smallest, or the largest), and |A v - lambda v| of each,
   computed from what is returned; the arrays live as long as the handle. Each place but the count's may be null. */
RMSP_C_API rmsp_status rmsp_eigen_values(const rmsp_eigen* eigen, const double** values, const double** residuals,
                                         int* count);
/* The vector of an eigenvalue, counted from 0, of length 1: a new handle, to be given to rmsp_vector_destroy(). */
RMSP_C_API rmsp_status rmsp_eigen_vector(const rmsp_eigen* eigen, int index, rmsp_vector** vector);
/* As rmsp_result_reason() and rmsp_result_report(). */
RMSP_C_API rmsp_status rmsp_eigen_reason(const rmsp_eigen* eigen, const char** reason);
RMSP_C_API rmsp_status rmsp_eigen_report(const rmsp_eigen* eigen, rmsp_text_format format, char** text);

#ifdef __cplusplus
}
#endif

#endif
