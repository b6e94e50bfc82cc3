! Every public procedure of the module rmsp, for integers of 32 and 64 bits and single and double values.
! usage: test_fortran FOLDER VERSION    a folder to write to, and the version that the library is to have
program procedures
    use, intrinsic :: iso_c_binding, only: c_double, c_float, c_int, c_int32_t, c_int64_t
    use rmsp
    implicit none

    integer :: failures = 0
    character(1000) :: folder, version
    type(rmsp_options) :: options
    type(rmsp_runtime) :: runtime, other

    call get_command_argument(1, folder)
    call get_command_argument(2, version)
    call require(rmsp_version() == trim(version), "version "//rmsp_version()//" is not "//trim(version))

    call refuse(rmsp_options_set(options, "solver.method", "cg"), "options is null")
    call check(rmsp_options_create(options))
    call check(rmsp_options_use_environment(options))
    call refuse(rmsp_options_set(options, "solver.metod", "cg"), "solver.method")
    call check(rmsp_runtime_create(runtime, options))
    call check(rmsp_options_set(options, "runtime.devices", "host:2"))
    call check(rmsp_runtime_create(other, options))
    call check(rmsp_options_set(options, "runtime.devices", "host:none"))
    call refuse(rmsp_runtime_create(other, options), "host:none")
    call check(rmsp_options_set(options, "runtime.devices", "host:2"))
    call check(rmsp_runtime_create(other, options))

    call of_i4_r4("integer(4), real(4)")
    call of_i4_r8("integer(4), real(8)")
    call of_i8_r4("integer(8), real(4)")
    call of_i8_r8("integer(8), real(8)")
    call files
    call solves_r4
    call solves_r8

    ! What was destroyed, or never made, may be destroyed.
    call rmsp_destroy(other)
    call rmsp_destroy(other)
    call rmsp_destroy(runtime)
    call rmsp_destroy(options)
    call rmsp_destroy(options)
    if (failures > 0) error stop 1

contains

    subroutine of_i4_r4(kinds)
        character(*), intent(in) :: kinds
        integer, parameter :: ik = c_int32_t, rk = c_float
        include 'of_one_kind.inc'
    end subroutine

    subroutine of_i4_r8(kinds)
        character(*), intent(in) :: kinds
        integer, parameter :: ik = c_int32_t, rk = c_double
        include 'of_one_kind.inc'
    end subroutine

    subroutine of_i8_r4(kinds)
        character(*), intent(in) :: kinds
        integer, parameter :: ik = c_int64_t, rk = c_float
        include 'of_one_kind.inc'
    end subroutine

    subroutine of_i8_r8(kinds)
        character(*), intent(in) :: kinds
        integer, parameter :: ik = c_int64_t, rk = c_double
        include 'of_one_kind.inc'
    end subroutine

    subroutine files
        character(:), allocatable :: path
        real(c_float) :: y(2)
        integer(c_int64_t) :: rows, cols, nnz
        integer :: unit
        type(rmsp_matrix) :: matrix
        path = trim(folder)//"/fortran.mtx"
        open (newunit=unit, file=path, status="replace")
        write (unit, "(a)") "%%MatrixMarket matrix coordinate real general", "2 3 3", "1 1 1.5", "2 3 -4", "1 2 2"
        close (unit)
        call check(rmsp_options_set(options, "matrix.precision", "float"))
        call check(rmsp_matrix_read(runtime, path//"  ", matrix, options))
        call check(rmsp_matrix_size(matrix, rows, cols, nnz))
        call require(rows == 2 .and. cols == 3 .and. nnz == 3, "size of a file's matrix")
        call check(rmsp_matrix_apply(matrix, 1d0, [1._c_float, 2._c_float, 3._c_float], 0d0, y))
        call require(all(y == [5.5_c_float, -12._c_float]), "a file's matrix times x")
        call check(rmsp_options_set(options, "matrix.precision", "double"))
        call check(rmsp_matrix_read(runtime, path, matrix))
        call require(rmsp_matrix_read(runtime, path//".gone", matrix) == rmsp_error_io, "a file that is not there")
        call require(index(rmsp_last_error(), "fortran.mtx.gone") > 0, "the message names the file")
        call rmsp_destroy(matrix)
    end subroutine

    ! 2 on the diagonal, -1 beside it.
    subroutine line(n, row_ptr, col_idx)
        integer(c_int32_t), intent(in) :: n
        integer(c_int32_t), allocatable, intent(out) :: row_ptr(:), col_idx(:)
        integer(c_int32_t) :: i
        row_ptr = [1_c_int32_t, (3*i, i=1, n - 1), 3*n - 1]
        col_idx = [1_c_int32_t, 2_c_int32_t, (i - 1, i, i + 1, i=2, n - 1), n - 1, n]
    end subroutine

    subroutine solves_r8
        integer(c_int32_t), parameter :: n = 50
        integer(c_int32_t), allocatable :: row_ptr(:), col_idx(:)
        integer(c_int32_t) :: i
        real(c_double), allocatable :: values(:)
        real(c_double) :: expected(n), b(n), x(n), residual, target_residual, rhs_norm
        integer(c_int64_t) :: iterations
        integer(c_int) :: outcome
        type(rmsp_matrix) :: matrix
        type(rmsp_solver) :: solver
        type(rmsp_result) :: solve
        call line(n, row_ptr, col_idx)
        values = [2d0, -1d0, (-1d0, 2d0, -1d0, i=2, n - 1), -1d0, 2d0]
        expected = [(real(i, c_double)/n, i=1, n)]
        call check(rmsp_matrix_create_csr(runtime, n, row_ptr, col_idx, values, matrix))
        call check(rmsp_matrix_apply(matrix, 1d0, expected, 0d0, b))
        call check(rmsp_options_set(options, "solver.method", "cg"))
        call check(rmsp_options_set(options, "solver.preconditioner", "jacobi"))
        call check(rmsp_options_set(options, "solver.tolerance", "1e-10"))
        call check(rmsp_solver_create(matrix, solver, options))
        x = 0
        call check(rmsp_solver_solve(solver, b, x, solve))
        call require(maxval(abs(x - expected)) < 1d-7, "solution")
        call check(rmsp_result_outcome(solve, outcome))
        call check(rmsp_result_iterations(solve, iterations))
        call check(rmsp_result_residual(solve, residual, target_residual, rhs_norm))
        call require(outcome == rmsp_converged .and. iterations > 0, "outcome of a solve")
        call require(residual <= target_residual .and. abs(rhs_norm - norm2(b)) < 1d-12, "residual of a solve")

        ! Another matrix of the same structure; the result's place is used again.
        call check(rmsp_matrix_update_values(matrix, 2*values))
        call check(rmsp_solver_renew(solver))
        x = 0
        call check(rmsp_solver_solve(solver, b, x, solve))
        call require(maxval(abs(2*x - expected)) < 1d-7, "solution after new values")
        x = 0
        call check(rmsp_solver_solve(solver, b, x))
        call require(maxval(abs(2*x - expected)) < 1d-7, "solution without a result")

        ! One that does not converge is an error only where nobody asks for the result.
        call check(rmsp_options_set(options, "solver.max_iterations", "1"))
        call check(rmsp_solver_create(matrix, solver, options))
        x = 0
        call require(rmsp_solver_solve(solver, b, x) == rmsp_error_not_converged, "a solve that does not converge")
        x = 0
        call check(rmsp_solver_solve(solver, b, x, solve))
        call check(rmsp_result_outcome(solve, outcome))
        call require(outcome == rmsp_iterations, "outcome of a solve of one iteration")
        call check(rmsp_options_set(options, "solver.max_iterations", "1000"))
        call rmsp_destroy(solve)
        call refuse(rmsp_result_outcome(solve, outcome), "result is null")
        call rmsp_destroy(solver)
        call refuse(rmsp_solver_renew(solver), "solver is null")
        call rmsp_destroy(matrix)
        call refuse(rmsp_solver_create(matrix, solver), "matrix is null")
    end subroutine

    subroutine solves_r4
        integer(c_int32_t), parameter :: n = 20
        integer(c_int32_t), allocatable :: row_ptr(:), col_idx(:)
        integer(c_int32_t) :: i
        real(c_float), allocatable :: values(:)
        real(c_float) :: expected(n), b(n), x(n)
        type(rmsp_matrix) :: matrix
        type(rmsp_solver) :: solver
        call line(n, row_ptr, col_idx)
        values = [2., -1., (-1., 2., -1., i=2, n - 1), -1., 2.]
        expected = 1
        call check(rmsp_matrix_create_csr(runtime, n, row_ptr, col_idx, values, matrix))
        call check(rmsp_matrix_apply(matrix, 1d0, expected, 0d0, b))
        call check(rmsp_options_set(options, "solver.method", "cg"))
        call check(rmsp_options_set(options, "solver.tolerance", "1e-5"))
        call check(rmsp_solver_create(matrix, solver, options))
        x = 0
        call check(rmsp_solver_solve(solver, b, x))
        call require(maxval(abs(x - expected)) < 1e-3, "single solution")
        call rmsp_destroy(solver)
        call rmsp_destroy(matrix)
    end subroutine

    subroutine require(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (holds) return
        print "(2a)", "failed: ", what
        failures = failures + 1
    end subroutine

    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status /= rmsp_success) call require(.false., rmsp_last_error())
    end subroutine

    ! A usage error whose message has these words.
    subroutine refuse(status, words)
        integer(c_int), intent(in) :: status
        character(*), intent(in) :: words
        call require(status == rmsp_error_usage, "what should be refused with '"//words//"' was not")
        if (status == rmsp_error_usage) call require(index(rmsp_last_error(), words) > 0, rmsp_last_error())
    end subroutine
end program
