#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/csr_row_vector/policy.hpp>

namespace rmsp::kernels {
namespace {

Work csr_row_vector_work(const Features& f, int value_bytes)
{
    Work work = csr_work(f, value_bytes);
    work.bandwidth_share = stages_rows(f.rows) ? 0.93 : 0.84;
    work.gather_share = 0.7;
    return work;
}

Work work_of_warps(const Features& f, int value_bytes)
{
    Work work = csr_work(f, value_bytes);
    work.bandwidth_share = 0.6;
    work.gather_share = 0.5;
    work.row_bytes = 780;
    // A step of the longest row loads columns, then entries of x, out of memory.
    constexpr double step_seconds = 0.9e-6;
    const int step = 32 * row_vector_unroll * (value_bytes == sizeof(float) ? row_vector_width<float> : 1);
    work.start_seconds = step_seconds * static_cast<double>(f.rows.longest_row / step);
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_vector(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_warp(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> csr_row_vector()
{
    return {.info = {.family = "spmv",
                     .name = "csr-row-vector",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "1 to 32 lanes a row, for rows of similar length",
                     .streams = true},
            .body = RMSP_CUDA_BODY(prepare_row_vector<T>),
            .automatic = [](const RowStatistics& rows) { return prefers_row_vector(rows); },
            .weighed = [](const RowStatistics& rows) { return prefers_row_vector(rows, weighed_regular_rows); },
            .work = csr_row_vector_work,
            .beside = Beside::rows};
}
RMSP_ENTRY(SpmvKernel, csr_row_vector)

template <class T>
SpmvKernel<T> csr_row_warp()
{
    return {.info = {.family = "spmv",
                     .name = "csr-row-warp",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::device_count,
                     .compiled = cuda_compiled,
                     .summary = "one warp a row, the same bits on any number of GPUs",
                     .streams = true},
            .body = RMSP_CUDA_BODY(prepare_row_warp<T>),
            .automatic = any_rows,
            .work = work_of_warps};
}
RMSP_ENTRY(SpmvKernel, csr_row_warp)

}  // namespace rmsp::kernels
