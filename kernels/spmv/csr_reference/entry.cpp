#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_reference(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> csr_reference()
{
    return {.info = {.family = "spmv",
                     .name = "csr-reference",
                     .device = DeviceKind::host,
                     .determinism = Determinism::device_count,
                     .summary = "one serial loop in the next wider type, to compare with",
                     .streams = true},
            .body = prepare_reference<T>};
}
RMSP_ENTRY(SpmvKernel, csr_reference)

}  // namespace rmsp::kernels
