list(APPEND small spmv/csc/*.cu)
