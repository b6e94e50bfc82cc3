#include <kernels/spgemm/bodies.hpp>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/sell_reordered/reorder.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/error.hpp>

// What stands in for the CUDA sources in a build without CUDA.
namespace rmsp::kernels {
namespace {

[[noreturn]] void missing(const char* what) { throw NotCompiled(what); }

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_nnz_split(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"csr-nnz-split\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"sell\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_reordered(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"sell-reordered\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_blocks(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"sell-blocks\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_packed_tiles(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"packed-tiles\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_column_blocks(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"column-blocks\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_vector(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"csr-row-vector\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_warp(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"csr-row-warp\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"ehyb\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"ehyb-ghosts\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"ehyb-natural\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg1(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-csr-alg1\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg2(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-csr-alg2\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_coo_alg1(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-coo-alg1\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_coo_alg2(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-coo-alg2\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_sell(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-sell\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_bsr(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-bsr\" (CUDA)");
}

template <class T>
Ordering order_rows(const CsrShard<T>&, const Context&, const ReorderTuning&)
{
    missing("order of rows (CUDA)");
}
template Ordering order_rows(const CsrShard<float>&, const Context&, const ReorderTuning&);
template Ordering order_rows(const CsrShard<double>&, const Context&, const ReorderTuning&);
template <class T>
ColumnNumbers number_columns(const CsrShard<T>&, const Ordering&, const Context&)
{
    missing("numbers of columns (CUDA)");
}
template ColumnNumbers number_columns(const CsrShard<float>&, const Ordering&, const Context&);
template ColumnNumbers number_columns(const CsrShard<double>&, const Ordering&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_atomic(const CscShard<T>&, const Context&)
{
    missing("SpMV kernel \"csc-atomic\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>&, const Context&)
{
    missing("SpMV kernel \"csc-to-csr\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_segmented(const CooShard<T>&, const Context&)
{
    missing("SpMV kernel \"coo-segmented\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>&, const Context&)
{
    missing("SpMV kernel \"coo-atomic\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>&, const Context&)
{
    missing("SpMV kernel \"coo-to-csr\" (CUDA)");
}

template std::unique_ptr<SpmvOperator<float>> prepare_csc_atomic(const CscShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_csc_atomic(const CscShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_csc_to_csr(const CscShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_csc_to_csr(const CscShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_segmented(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_segmented(const CooShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_atomic(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_atomic(const CooShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_to_csr(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_to_csr(const CooShard<double>&, const Context&);

#define RMSP_INSTANTIATE(prepare, T) \
    template std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>&, const RowStatistics&, const Context&)
RMSP_INSTANTIATE(prepare_nnz_split, float);
RMSP_INSTANTIATE(prepare_nnz_split, double);
RMSP_INSTANTIATE(prepare_sell, float);
RMSP_INSTANTIATE(prepare_sell, double);
RMSP_INSTANTIATE(prepare_sell_reordered, float);
RMSP_INSTANTIATE(prepare_sell_reordered, double);
RMSP_INSTANTIATE(prepare_sell_blocks, float);
RMSP_INSTANTIATE(prepare_sell_blocks, double);
RMSP_INSTANTIATE(prepare_packed_tiles, float);
RMSP_INSTANTIATE(prepare_packed_tiles, double);
RMSP_INSTANTIATE(prepare_column_blocks, float);
RMSP_INSTANTIATE(prepare_column_blocks, double);
RMSP_INSTANTIATE(prepare_row_vector, float);
RMSP_INSTANTIATE(prepare_row_vector, double);
RMSP_INSTANTIATE(prepare_row_warp, float);
RMSP_INSTANTIATE(prepare_row_warp, double);
RMSP_INSTANTIATE(prepare_ehyb, float);
RMSP_INSTANTIATE(prepare_ehyb, double);
RMSP_INSTANTIATE(prepare_ehyb_ghosts, float);
RMSP_INSTANTIATE(prepare_ehyb_ghosts, double);
RMSP_INSTANTIATE(prepare_ehyb_natural, float);
RMSP_INSTANTIATE(prepare_ehyb_natural, double);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg1, float);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg1, double);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg2, float);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg2, double);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg1, float);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg1, double);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg2, float);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg2, double);
RMSP_INSTANTIATE(prepare_cusparse_sell, float);
RMSP_INSTANTIATE(prepare_cusparse_sell, double);
RMSP_INSTANTIATE(prepare_cusparse_bsr, float);
RMSP_INSTANTIATE(prepare_cusparse_bsr, double);
#undef RMSP_INSTANTIATE

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cuda(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&,
                                                       const Context&)
{
    missing("SpGEMM kernel \"spgemm\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg1(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-alg1\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg2(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-alg2\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg3(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-alg3\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_reuse(const CsrShard<T>&, const CsrShard<T>&,
                                                                 const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-reuse\" (CUDA)");
}

#define RMSP_INSTANTIATE(prepare, T)                                                                                  \
    template std::unique_ptr<SpgemmOperator<T>> prepare(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&, \
                                                        const Context&)
RMSP_INSTANTIATE(prepare_spgemm_cuda, float);
RMSP_INSTANTIATE(prepare_spgemm_cuda, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg1, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg1, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg2, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg2, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg3, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg3, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_reuse, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_reuse, double);
#undef RMSP_INSTANTIATE

namespace cuda {

template <class T>
void count_products(const CsrShard<T>&, const CsrShard<T>&, std::int64_t*, const Context&)
{
    missing("count_products for CUDA devices");
}
template void count_products(const CsrShard<float>&, const CsrShard<float>&, std::int64_t*, const Context&);
template void count_products(const CsrShard<double>&, const CsrShard<double>&, std::int64_t*, const Context&);

}  // namespace cuda
}  // namespace rmsp::kernels
