list(APPEND small spmv/csr_row_vector/*.cu)
