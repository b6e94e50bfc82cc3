#include <kernels/spmv/sell/policy.hpp>
#include <kernels/spmv/sell/work.hpp>

namespace rmsp::kernels {
namespace {

Work sell_work(const Features& f, int /*value_bytes*/) { return sliced_work(f, f.code_bytes); }

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> sell()
{
    return {.info = {.family = "spmv",
                     .name = "sell",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::device_count,
                     .compiled = cuda_compiled,
                     .summary =
                         "sliced rows with columns in 0 to 4 bytes, for rows of similar length; a copy of the matrix",
                     .keeps_floats = true},
            .body = RMSP_CUDA_BODY(prepare_sell<T>),
            .automatic = [](const RowStatistics& rows) { return prefers_sell(rows); },
            .weighed = [](const RowStatistics& rows) { return prefers_sell(rows, weighed_sliced_rows); },
            .work = sell_work,
            .beside = Beside::rows};
}
RMSP_ENTRY(SpmvKernel, sell)

}  // namespace rmsp::kernels
