! Solves the Poisson equation on a square grid from Fortran, and says how that went. RMSP_DEVICES=0,1 or
! RMSP_DEVICES=host:4 chooses the devices.
program poisson
    use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int32_t, c_int64_t
    use rmsp
    implicit none

    integer(c_int32_t), parameter :: side = 40, unknowns = side*side
    integer(c_int32_t) :: row_ptr(unknowns + 1), col_idx(5*unknowns), i, j, nnz
    real(c_double) :: values(5*unknowns), expected(unknowns), b(unknowns), x(unknowns)
    real(c_double) :: residual, target_residual, rhs_norm
    integer(c_int64_t) :: iterations
    integer(c_int) :: outcome
    type(rmsp_options) :: options
    type(rmsp_runtime) :: runtime, cores
    type(rmsp_matrix) :: matrix, there
    type(rmsp_solver) :: solver
    type(rmsp_result) :: solve

    ! Five points, in Fortran's own arrays: indices count from 1.
    nnz = 0
    do i = 1, unknowns
        row_ptr(i) = nnz + 1
        if (i > side) call add(i - side, -1d0)
        if (mod(i - 1, side) > 0) call add(i - 1, -1d0)
        call add(i, 4d0)
        if (mod(i, side) > 0) call add(i + 1, -1d0)
        if (i <= unknowns - side) call add(i + side, -1d0)
    end do
    row_ptr(unknowns + 1) = nnz + 1

    call check(rmsp_options_create(options))
    call check(rmsp_options_use_environment(options))
    call check(rmsp_options_set(options, "solver.method", "cg"))
    call check(rmsp_options_set(options, "solver.preconditioner", "jacobi"))
    call check(rmsp_options_set(options, "solver.tolerance", "1e-10"))
    ! What is wrong is said in words.
    if (rmsp_options_set(options, "solver.tolerence", "1") /= rmsp_error_usage) error stop "a wrong key was taken"
    print "(a)", rmsp_last_error()

    call check(rmsp_runtime_create(runtime, options))
    call check(rmsp_matrix_create_csr(runtime, unknowns, row_ptr, col_idx(:nnz), values(:nnz), matrix, options))
    expected = [(sin(real(j, c_double)), j = 1, unknowns)]
    call check(rmsp_matrix_apply(matrix, 1d0, expected, 0d0, b))

    call check(rmsp_solver_create(matrix, solver, options))
    x = 0
    call check(rmsp_solver_solve(solver, b, x, solve))
    call check(rmsp_result_outcome(solve, outcome))
    call check(rmsp_result_iterations(solve, iterations))
    call check(rmsp_result_residual(solve, residual, target_residual, rhs_norm))
    print "(a, i0, a, es9.2, a, es9.2, a)", "after ", iterations, " iterations |b - A x| = ", residual, " of ", &
        target_residual, " asked for"
    print "(a, es9.2)", "largest error ", maxval(abs(x - expected))
    if (outcome /= rmsp_converged .or. maxval(abs(x - expected)) > 1d-7) error stop 1

    ! The same matrix on other devices, two groups of cores, without the arrays above.
    call check(rmsp_options_set(options, "runtime.devices", "host:2"))
    call check(rmsp_runtime_create(cores, options))
    call check(rmsp_matrix_transfer(matrix, cores, there))
    call check(rmsp_matrix_apply(there, 1d0, expected, -1d0, b))
    print "(a, es9.2)", "difference of the products ", maxval(abs(b))
    if (maxval(abs(b)) > 1d-12) error stop 1
    call rmsp_destroy(there)
    call rmsp_destroy(cores)

    call rmsp_destroy(solve)
    call rmsp_destroy(solver)
    call rmsp_destroy(matrix)
    call rmsp_destroy(runtime)
    call rmsp_destroy(options)

contains

    subroutine add(column, value)
        integer(c_int32_t), intent(in) :: column
        real(c_double), intent(in) :: value
        nnz = nnz + 1
        col_idx(nnz) = column
        values(nnz) = value
    end subroutine

    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status /= rmsp_success) then
            print "(a)", rmsp_last_error()
            error stop 1
        end if
    end subroutine
end program
