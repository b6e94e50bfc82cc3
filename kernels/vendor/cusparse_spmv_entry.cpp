#include <limits>

#include <kernels/spmv/spmv.hpp>
#include <kernels/vendor/cusparse_version.hpp>

namespace rmsp::kernels {
namespace {

const char* unsupported(std::int64_t rows, std::int64_t cols, std::int64_t nnz)
{
    if (rows > 0 && nnz / rows > cols - (nnz % rows == 0 ? 0 : 1)) {
        return "cuSPARSE takes at most rows x columns nonzeros, so not this many at repeated places";
    }
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    if (rows > limit) {
        return "cuSPARSE takes row pointers and columns of one width, so at most 2^31 - 1 rows a device";
    }
    if (nnz > limit) {
        return "cuSPARSE takes row pointers and columns of one width, so at most 2^31 - 1 nonzeros a device";
    }
    return nullptr;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg1(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg2(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_coo_alg1(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_coo_alg2(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_sell(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_bsr(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_spmvop_alg1(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_spmvop_alg2(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> cusparse_csr_alg1()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-csr-alg1",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPMV_CSR_ALG1 with preprocessing",
                     .streams = true,
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_csr_alg1<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_csr_alg1)

template <class T>
SpmvKernel<T> cusparse_csr_alg2()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-csr-alg2",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPMV_CSR_ALG2 with preprocessing",
                     .streams = true,
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_csr_alg2<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_csr_alg2)

template <class T>
SpmvKernel<T> cusparse_coo_alg1()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-coo-alg1",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPMV_COO_ALG1; row indices beside the matrix",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_coo_alg1<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_coo_alg1)

template <class T>
SpmvKernel<T> cusparse_coo_alg2()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-coo-alg2",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPMV_COO_ALG2; row indices beside the matrix",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_coo_alg2<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_coo_alg2)

template <class T>
SpmvKernel<T> cusparse_sell()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-sell",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPMV_SELL_ALG1 with slices of 32; a copy",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_sell<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_sell)

template <class T>
SpmvKernel<T> cusparse_bsr()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-bsr",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPMV_BSR_ALG1 where blocks of 2 to 4 fill; a copy",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_bsr<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_bsr)

template <class T>
SpmvKernel<T> cusparse_spmvop_alg1()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-spmvop-alg1",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cusparse::has_spmvop(),
                     .summary = "cuSPARSE from 12.8 on, CUSPARSE_SPMVOP_ALG1 with its plan",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_spmvop_alg1<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_spmvop_alg1)

template <class T>
SpmvKernel<T> cusparse_spmvop_alg2()
{
    return {.info = {.family = "spmv",
                     .name = "cusparse-spmvop-alg2",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cusparse::has_spmvop(),
                     .summary = "cuSPARSE from 12.8 on, CUSPARSE_SPMVOP_ALG2 with its plan",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_cusparse_spmvop_alg2<T>),
            .unsupported = unsupported};
}
RMSP_ENTRY(SpmvKernel, cusparse_spmvop_alg2)

}  // namespace rmsp::kernels
