#include <kernels/spmv/sell/policy.hpp>
#include <kernels/spmv/sell_blocks/prepare.hpp>
#include <kernels/spmv/sell_blocks/work.hpp>

namespace rmsp::kernels {
namespace {

/// Rows among which blocks may pay: they leave fewer bytes of smaller matrices too.
constexpr SlicedRows blocked_rows{8, 0.6, 3, 1'000'000};

}  // namespace

template <class T>
SpmvKernel<T> sell_blocks()
{
    return {.info = {.family = "spmv",
                     .name = "sell-blocks",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "sliced rows with one code for each small dense block, for several unknowns a node; a "
                                "copy of the matrix",
                     .keeps_floats = true},
            .body = RMSP_CUDA_BODY(prepare_sell_blocks<T>),
            .weighed = [](const RowStatistics& rows) { return prefers_sell(rows, blocked_rows); },
            .work = blocked_work};
}
RMSP_ENTRY(SpmvKernel, sell_blocks)

}  // namespace rmsp::kernels
