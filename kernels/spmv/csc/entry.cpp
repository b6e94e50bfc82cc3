#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_openmp(const CscShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_reference(const CscShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_atomic(const CscShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>&, const Context&);

template <class T>
CscKernel<T> csc_openmp()
{
    return {.info = {.family = "spmv",
                     .name = "csc-openmp",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "ranges of equal nonzeros, one a thread, with a partial y each",
                     .format = Format::csc},
            .body = prepare_csc_openmp<T>};
}
RMSP_ENTRY(CscKernel, csc_openmp)

// Serial references keep Determinism::run only: where a device's part ends changes which partial results are added.
template <class T>
CscKernel<T> csc_reference()
{
    return {.info = {.family = "spmv",
                     .name = "csc-reference",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "one serial loop in the next wider type, to compare with",
                     .format = Format::csc,
                     .streams = true},
            .body = prepare_csc_reference<T>,
            .automatic = false};
}
RMSP_ENTRY(CscKernel, csc_reference)

template <class T>
CscKernel<T> csc_atomic()
{
    return {.info = {.family = "spmv",
                     .name = "csc-atomic",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "8 nonzeros a lane, added to y atomically",
                     .format = Format::csc,
                     .streams = true},
            .body = RMSP_CUDA_BODY(prepare_csc_atomic<T>)};
}
RMSP_ENTRY(CscKernel, csc_atomic)

template <class T>
CscKernel<T> csc_to_csr()
{
    return {.info = {.family = "spmv",
                     .name = "csc-to-csr",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "a copy sorted by row, made once, then csr-nnz-split",
                     .format = Format::csc},
            .body = RMSP_CUDA_BODY(prepare_csc_to_csr<T>),
            .sorts = true};
}
RMSP_ENTRY(CscKernel, csc_to_csr)

}  // namespace rmsp::kernels
