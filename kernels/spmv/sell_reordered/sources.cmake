rmsp_cuda_together(rmsp_kernels sell_reordered spmv/sell_reordered/*.cu)
