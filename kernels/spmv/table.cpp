#include <vector>

#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/spmv.hpp>

// The SpMV kernels, one line each, in the order in which the automatic choice considers them. A line names the function
// in the kernel's entry.cpp.
#define RMSP_CSR_TABLE(row)                                                                                           \
    row(csr_openmp) row(csr_reference) row(diagonals) row(row_slices) row(ehyb_host) row(ehyb_ghosts_host)            \
        row(ehyb_metis_host) row(ehyb_natural_host) row(sell_blocks) row(sell) row(sell_reordered) row(column_blocks) \
            row(packed_tiles) row(ell) row(csr_row_vector) row(csr_nnz_split) row(csr_row_warp) row(ehyb_cuda)        \
                row(ehyb_ghosts_cuda) row(ehyb_metis_cuda) row(ehyb_natural_cuda) row(cusparse_csr_alg1)              \
                    row(cusparse_csr_alg2) row(cusparse_coo_alg1) row(cusparse_coo_alg2) row(cusparse_sell)           \
                        row(cusparse_bsr) row(cusparse_spmvop_alg1) row(cusparse_spmvop_alg2)

#define RMSP_CSC_TABLE(row) row(csc_openmp) row(csc_reference) row(csc_atomic) row(csc_to_csr)

#define RMSP_COO_TABLE(row) row(coo_openmp) row(coo_openmp_scatter) row(coo_reference) row(coo_atomic) row(coo_to_csr)

namespace rmsp::kernels {

#define RMSP_DECLARE_CSR(entry) \
    template <class T>          \
    SpmvKernel<T> entry();
#define RMSP_DECLARE_CSC(entry) \
    template <class T>          \
    CscKernel<T> entry();
#define RMSP_DECLARE_COO(entry) \
    template <class T>          \
    CooKernel<T> entry();
RMSP_CSR_TABLE(RMSP_DECLARE_CSR)
RMSP_CSC_TABLE(RMSP_DECLARE_CSC)
RMSP_COO_TABLE(RMSP_DECLARE_COO)

#define RMSP_CALL(entry) entry<T>(),

template <class T>
std::span<const SpmvKernel<T>> spmv_kernels()
{
    static const std::vector<SpmvKernel<T>> table{RMSP_CSR_TABLE(RMSP_CALL)};
    return table;
}

template <class T>
std::span<const CscKernel<T>> spmv_csc_kernels()
{
    static const std::vector<CscKernel<T>> table{RMSP_CSC_TABLE(RMSP_CALL)};
    return table;
}

template <class T>
std::span<const CooKernel<T>> spmv_coo_kernels()
{
    static const std::vector<CooKernel<T>> table{RMSP_COO_TABLE(RMSP_CALL)};
    return table;
}

#define RMSP_INSTANTIATE(T)                                    \
    template std::span<const SpmvKernel<T>> spmv_kernels();    \
    template std::span<const CscKernel<T>> spmv_csc_kernels(); \
    template std::span<const CooKernel<T>> spmv_coo_kernels();
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
