#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/csr_nnz_split/prepare.hpp>

namespace rmsp::kernels {
namespace {

Work csr_nnz_split_work(const Features& f, int value_bytes)
{
    Work work = csr_work(f, value_bytes);
    work.bandwidth_share = 0.83;
    work.gather_share = 0.87;
    work.prepare_products = 8;
    work.start_seconds = 1.2e-6;
    return work;
}

}  // namespace

template <class T>
SpmvKernel<T> csr_nnz_split()
{
    return {.info = {.family = "spmv",
                     .name = "csr-nnz-split",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "tiles of equal nonzeros with row ends as bits, for any row lengths",
                     .streams = true},
            .body = RMSP_CUDA_BODY(prepare_nnz_split<T>),
            .automatic = any_rows,
            .work = csr_nnz_split_work};
}
RMSP_ENTRY(SpmvKernel, csr_nnz_split)

}  // namespace rmsp::kernels
