list(APPEND small spmv/coo/*.cu)
