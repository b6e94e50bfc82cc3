#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/ell/layout.hpp>

namespace rmsp::kernels {
namespace {

Work ell_work(const Features& f, int value_bytes)
{
    Work work;
    work.matrix_bytes = static_cast<double>(ell_entries(f.rows.rows, ell_shape(f.rows))) * (value_bytes + 4);
    work.gathers = static_cast<double>(f.rows.nnz) * f.sectors;
    work.bandwidth_share = 0.84;
    work.gather_share = 0.7;
    work.prepare_products = 8;
    work.start_seconds = -0.3e-6;  // no wait for row pointers
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ell(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> ell()
{
    return {
        .info = {.family = "spmv",
                 .name = "ell",
                 .device = DeviceKind::cuda,
                 .determinism = Determinism::run,
                 .compiled = cuda_compiled,
                 .summary = "rows of equal room, longer ones' rest in CSR, for small matrices; a copy of the matrix"},
        .body = RMSP_CUDA_BODY(prepare_ell<T>),
        .weighed = [](const RowStatistics& rows) { return weighs_ell(rows); },
        .work = ell_work,
        .beside = Beside::rows};
}
RMSP_ENTRY(SpmvKernel, ell)

}  // namespace rmsp::kernels
