#include <kernels/spmv/choose/model.hpp>

namespace rmsp::kernels {
namespace {

Work csr_openmp_work(const Features& f, int value_bytes)
{
    Work work = csr_work(f, value_bytes);
    work.bandwidth_share = 0.9;
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_openmp(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> csr_openmp()
{
    return {.info = {.family = "spmv",
                     .name = "csr-openmp",
                     .device = DeviceKind::host,
                     .determinism = Determinism::device_count,
                     .summary = "ranges of equal nonzeros and rows, one a thread; long rows shared",
                     .streams = true,
                     .keeps_floats = true},
            .body = prepare_openmp<T>,
            .automatic = any_rows,
            .work = csr_openmp_work};
}
RMSP_ENTRY(SpmvKernel, csr_openmp)

}  // namespace rmsp::kernels
