! librmsp from Fortran: runtimes, sparse matrices, products and solvers, over the C interface. docs/c.md explains;
! include/rmsp/rmsp.h says more of each function. Compile this file with the application, and link rmsp_c; rmsp_c.inc
! has to be beside it.
!
! Every function returns a status, rmsp_success or what went wrong; rmsp_last_error() then has the message. Handles are
! released by rmsp_destroy(), in any order. Row pointers and columns count from 1.
module rmsp
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_float, c_int, c_int32_t, &
        c_int64_t, c_null_char, c_null_ptr, c_ptr, c_size_t
    implicit none
    private

    public :: rmsp_options_create, rmsp_options_set, rmsp_options_use_environment
    public :: rmsp_runtime_create
    public :: rmsp_matrix_create_csr, rmsp_matrix_create_bsr, rmsp_matrix_read, rmsp_matrix_size
    public :: rmsp_matrix_apply, rmsp_matrix_apply_transposed, rmsp_matrix_update_values, rmsp_matrix_transfer
    public :: rmsp_solver_create, rmsp_solver_solve, rmsp_solver_renew
    public :: rmsp_result_outcome, rmsp_result_iterations, rmsp_result_residual
    public :: rmsp_destroy, rmsp_last_error, rmsp_version

    ! What went wrong.
    integer(c_int), parameter, public :: rmsp_success = 0
    integer(c_int), parameter, public :: rmsp_error_internal = 1
    integer(c_int), parameter, public :: rmsp_error_usage = 2
    integer(c_int), parameter, public :: rmsp_error_io = 3
    integer(c_int), parameter, public :: rmsp_error_out_of_memory = 4
    integer(c_int), parameter, public :: rmsp_error_device = 5
    integer(c_int), parameter, public :: rmsp_error_not_converged = 6

    ! How a solve ended.
    integer(c_int), parameter, public :: rmsp_converged = 1
    integer(c_int), parameter, public :: rmsp_iterations = 2
    integer(c_int), parameter, public :: rmsp_time = 3
    integer(c_int), parameter, public :: rmsp_stagnation = 4
    integer(c_int), parameter, public :: rmsp_breakdown = 5
    integer(c_int), parameter, public :: rmsp_diverged = 6
    integer(c_int), parameter, public :: rmsp_not_finite = 7
    integer(c_int), parameter, public :: rmsp_cancelled = 8

    type, public :: rmsp_options
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: rmsp_runtime
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: rmsp_matrix
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: rmsp_solver
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: rmsp_result
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    integer(c_int), parameter :: type_float = 0, type_double = 1
    integer(c_int), parameter :: type_int32 = 0, type_int64 = 1
    integer(c_int), parameter :: from_one = 1

    ! Splits a matrix in compressed sparse rows over the devices: size(row_ptr) - 1 rows, all integers of 32 or of 64
    ! bits, all values single or double.
    interface rmsp_matrix_create_csr
        module procedure create_csr_i4_r4, create_csr_i4_r8, create_csr_i8_r4, create_csr_i8_r8
    end interface

    ! The same of compressed rows of blocks: values(i, j, k) is in row i and column j of block k; cols, row_ptr and
    ! col_idx count blocks.
    interface rmsp_matrix_create_bsr
        module procedure create_bsr_i4_r4, create_bsr_i4_r8, create_bsr_i8_r4, create_bsr_i8_r8
    end interface

    interface rmsp_destroy
        module procedure destroy_options, destroy_runtime, destroy_matrix, destroy_solver, destroy_result
    end interface

    include 'rmsp_c.inc'

contains

    ! A copy of a text of C.
    function fortran_text(text) result(copy)
        type(c_ptr), intent(in) :: text
        character(:), allocatable :: copy
        character(kind=c_char), pointer :: characters(:)
        integer :: i
        call c_f_pointer(text, characters, [c_strlen(text)])
        allocate (character(size(characters)) :: copy)
        do i = 1, size(characters)
            copy(i:i) = characters(i)
        end do
    end function

    ! The handle of options that need not be present: the defaults.
    function handle_of(options) result(handle)
        type(rmsp_options), intent(in), optional :: options
        type(c_ptr) :: handle
        handle = c_null_ptr
        if (present(options)) handle = options%handle
    end function

    ! The message of the last call of this thread that failed.
    function rmsp_last_error() result(message)
        character(:), allocatable :: message
        message = fortran_text(c_last_error())
    end function

    function rmsp_version() result(version)
        character(:), allocatable :: version
        version = fortran_text(c_version())
    end function

    function rmsp_options_create(options) result(status)
        type(rmsp_options), intent(inout) :: options
        integer(c_int) :: status
        call rmsp_destroy(options)
        status = c_options_create(options%handle)
    end function

    ! Sets a key of docs/configuration.md, "solver.tolerance" to "1e-8" for example.
    function rmsp_options_set(options, key, text) result(status)
        type(rmsp_options), intent(inout) :: options
        character(*), intent(in) :: key, text
        integer(c_int) :: status
        status = c_options_set(options%handle, trim(key)//c_null_char, trim(text)//c_null_char)
    end function

    ! Sets what the environment variables RMSP_DEVICES, RMSP_BIND, RMSP_TRANSPORT, RMSP_CACHE_DIR and
    ! RMSP_IO_MAX_BYTES give.
    function rmsp_options_use_environment(options) result(status)
        type(rmsp_options), intent(inout) :: options
        integer(c_int) :: status
        status = c_options_use_environment(options%handle)
    end function

    ! Opens the devices, "runtime.devices" of the options.
    function rmsp_runtime_create(runtime, options) result(status)
        type(rmsp_runtime), intent(inout) :: runtime
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(runtime)
        status = c_runtime_create(handle_of(options), runtime%handle)
    end function

    function create_csr_i4_r4(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int32_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_float), intent(in) :: values(:)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_csr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, int(cols, c_int64_t), &
            entries(size(col_idx, kind=c_int64_t), size(values, kind=c_int64_t)), row_ptr, col_idx, values, &
            type_int32, type_int32, from_one, type_float, handle_of(options), matrix%handle)
    end function

    function create_csr_i4_r8(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int32_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_double), intent(in) :: values(:)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_csr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, int(cols, c_int64_t), &
            entries(size(col_idx, kind=c_int64_t), size(values, kind=c_int64_t)), row_ptr, col_idx, values, &
            type_int32, type_int32, from_one, type_double, handle_of(options), matrix%handle)
    end function

    function create_csr_i8_r4(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int64_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_float), intent(in) :: values(:)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_csr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, cols, &
            entries(size(col_idx, kind=c_int64_t), size(values, kind=c_int64_t)), row_ptr, col_idx, values, &
            type_int64, type_int64, from_one, type_float, handle_of(options), matrix%handle)
    end function

    function create_csr_i8_r8(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int64_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_double), intent(in) :: values(:)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_csr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, cols, &
            entries(size(col_idx, kind=c_int64_t), size(values, kind=c_int64_t)), row_ptr, col_idx, values, &
            type_int64, type_int64, from_one, type_double, handle_of(options), matrix%handle)
    end function

    function create_bsr_i4_r4(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int32_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_float), intent(in) :: values(:, :, :)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_bsr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, int(cols, c_int64_t), &
            entries(size(col_idx, kind=c_int64_t), size(values, 3, c_int64_t)), size(values, 1, c_int64_t), &
            size(values, 2, c_int64_t), 1_c_int, row_ptr, col_idx, values, type_int32, type_int32, from_one, &
            type_float, handle_of(options), matrix%handle)
    end function

    function create_bsr_i4_r8(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int32_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_double), intent(in) :: values(:, :, :)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_bsr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, int(cols, c_int64_t), &
            entries(size(col_idx, kind=c_int64_t), size(values, 3, c_int64_t)), size(values, 1, c_int64_t), &
            size(values, 2, c_int64_t), 1_c_int, row_ptr, col_idx, values, type_int32, type_int32, from_one, &
            type_double, handle_of(options), matrix%handle)
    end function

    function create_bsr_i8_r4(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int64_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_float), intent(in) :: values(:, :, :)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_bsr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, int(cols, c_int64_t), &
            entries(size(col_idx, kind=c_int64_t), size(values, 3, c_int64_t)), size(values, 1, c_int64_t), &
            size(values, 2, c_int64_t), 1_c_int, row_ptr, col_idx, values, type_int64, type_int64, from_one, &
            type_float, handle_of(options), matrix%handle)
    end function

    function create_bsr_i8_r8(runtime, cols, row_ptr, col_idx, values, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        integer(c_int64_t), intent(in) :: cols, row_ptr(:), col_idx(:)
        real(c_double), intent(in) :: values(:, :, :)
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_create_bsr(runtime%handle, size(row_ptr, kind=c_int64_t) - 1, int(cols, c_int64_t), &
            entries(size(col_idx, kind=c_int64_t), size(values, 3, c_int64_t)), size(values, 1, c_int64_t), &
            size(values, 2, c_int64_t), 1_c_int, row_ptr, col_idx, values, type_int64, type_int64, from_one, &
            type_double, handle_of(options), matrix%handle)
    end function

    ! The nonzeros that arrays of these lengths hold. Lengths that differ are a count below 0, which is refused.
    pure function entries(columns, values) result(count)
        integer(c_int64_t), intent(in) :: columns, values
        integer(c_int64_t) :: count
        count = merge(values, -1_c_int64_t, columns == values)
    end function

    ! Matrix Market or .npz.
    function rmsp_matrix_read(runtime, path, matrix, options) result(status)
        type(rmsp_runtime), intent(in) :: runtime
        character(*), intent(in) :: path
        type(rmsp_matrix), intent(inout) :: matrix
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(matrix)
        status = c_matrix_read(runtime%handle, trim(path)//c_null_char, handle_of(options), matrix%handle)
    end function

    function rmsp_matrix_size(matrix, rows, cols, nnz) result(status)
        type(rmsp_matrix), intent(in) :: matrix
        integer(c_int64_t), intent(inout) :: rows, cols, nnz
        integer(c_int) :: status
        status = c_matrix_size(matrix%handle, rows, cols, nnz)
    end function

    ! y = alpha A x + beta y. x and y are of the kind of the matrix's values, which is not checked.
    function rmsp_matrix_apply(matrix, alpha, x, beta, y) result(status)
        type(rmsp_matrix), intent(in) :: matrix
        real(c_double), intent(in) :: alpha, beta
        type(*), intent(in) :: x(*)
        type(*), intent(inout) :: y(*)
        integer(c_int) :: status
        status = c_matrix_apply(matrix%handle, alpha, x, beta, y)
    end function

    ! y = alpha A^T x + beta y
    function rmsp_matrix_apply_transposed(matrix, alpha, x, beta, y) result(status)
        type(rmsp_matrix), intent(in) :: matrix
        real(c_double), intent(in) :: alpha, beta
        type(*), intent(in) :: x(*)
        type(*), intent(inout) :: y(*)
        integer(c_int) :: status
        status = c_matrix_apply_transposed(matrix%handle, alpha, x, beta, y)
    end function

    ! New values for the same structure, of the kind of the matrix's.
    function rmsp_matrix_update_values(matrix, values) result(status)
        type(rmsp_matrix), intent(in) :: matrix
        type(*), intent(in) :: values(*)
        integer(c_int) :: status
        status = c_matrix_update_values(matrix%handle, values)
    end function

    ! The same matrix on the devices of another runtime, or of the same one with other options, without the arrays that
    ! it was made of: what the devices hold, rows in order. Another handle than the matrix's own.
    function rmsp_matrix_transfer(matrix, runtime, transferred, options) result(status)
        type(rmsp_matrix), intent(in) :: matrix
        type(rmsp_runtime), intent(in) :: runtime
        type(rmsp_matrix), intent(inout) :: transferred
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(transferred)
        status = c_matrix_transfer(matrix%handle, runtime%handle, handle_of(options), transferred%handle)
    end function

    ! A solver of A x = b by "solver.method", "solver.preconditioner" and so on of the options.
    function rmsp_solver_create(matrix, solver, options) result(status)
        type(rmsp_matrix), intent(in) :: matrix
        type(rmsp_solver), intent(inout) :: solver
        type(rmsp_options), intent(in), optional :: options
        integer(c_int) :: status
        call rmsp_destroy(solver)
        status = c_solver_create(matrix%handle, handle_of(options), solver%handle)
    end function

    ! Solves A x = b; x is where the method begins, and the solution. A solve that does not converge is
    ! rmsp_error_not_converged, unless a result is asked for, which then tells.
    function rmsp_solver_solve(solver, b, x, outcome) result(status)
        type(rmsp_solver), intent(in) :: solver
        type(*), intent(in) :: b(*)
        type(*), intent(inout) :: x(*)
        type(rmsp_result), intent(inout), optional :: outcome
        integer(c_int) :: status
        if (present(outcome)) then
            call rmsp_destroy(outcome)
            status = c_solver_solve(solver%handle, b, x, outcome%handle)
        else
            status = c_solver_solve(solver%handle, b, x)
        end if
    end function

    ! After rmsp_matrix_update_values().
    function rmsp_solver_renew(solver) result(status)
        type(rmsp_solver), intent(in) :: solver
        integer(c_int) :: status
        status = c_solver_renew(solver%handle)
    end function

    function rmsp_result_outcome(from, outcome) result(status)
        type(rmsp_result), intent(in) :: from
        integer(c_int), intent(inout) :: outcome
        integer(c_int) :: status
        status = c_result_outcome(from%handle, outcome)
    end function

    function rmsp_result_iterations(from, iterations) result(status)
        type(rmsp_result), intent(in) :: from
        integer(c_int64_t), intent(inout) :: iterations
        integer(c_int) :: status
        status = c_result_iterations(from%handle, iterations)
    end function

    ! |b - A x|, the residual that was asked for, and |b|
    function rmsp_result_residual(from, residual, target_residual, rhs_norm) result(status)
        type(rmsp_result), intent(in) :: from
        real(c_double), intent(inout) :: residual, target_residual, rhs_norm
        integer(c_int) :: status
        status = c_result_residual(from%handle, residual, target_residual, rhs_norm)
    end function

    subroutine destroy_options(options)
        type(rmsp_options), intent(inout) :: options
        call c_options_destroy(options%handle)
        options%handle = c_null_ptr
    end subroutine

    subroutine destroy_runtime(runtime)
        type(rmsp_runtime), intent(inout) :: runtime
        call c_runtime_destroy(runtime%handle)
        runtime%handle = c_null_ptr
    end subroutine

    subroutine destroy_matrix(matrix)
        type(rmsp_matrix), intent(inout) :: matrix
        call c_matrix_destroy(matrix%handle)
        matrix%handle = c_null_ptr
    end subroutine

    subroutine destroy_solver(solver)
        type(rmsp_solver), intent(inout) :: solver
        call c_solver_destroy(solver%handle)
        solver%handle = c_null_ptr
    end subroutine

    subroutine destroy_result(from)
        type(rmsp_result), intent(inout) :: from
        call c_result_destroy(from%handle)
        from%handle = c_null_ptr
    end subroutine

end module
