list(APPEND small spmv/ell/*.cu)
