#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/sell/policy.hpp>
#include <kernels/spmv/sell_blocks/prepare.hpp>

namespace rmsp::kernels {
namespace {

/// Rows among which blocks may pay: they leave fewer bytes of smaller matrices too.
constexpr SlicedRows blocked_rows{8, 0.6, 3, 1'000'000};

Work sell_blocks_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    // Without dense blocks each entry is one of 2 x 2.
    const bool blocks = f.block.entries() > 1;
    Work work;
    work.matrix_bytes =
        nnz * (blocks ? f.block_fill : 4.0) * (narrowed_bytes(f, value_bytes) + 4.0 / (blocks ? f.block.entries() : 4));
    work.gathers = nnz * f.sectors;
    work.bandwidth_share = 0.78;
    work.gather_share = 0.9;
    work.prepare_products = 35;
    work.start_seconds = 0.7e-6;
    return work;
}

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
            .work = sell_blocks_work};
}
RMSP_ENTRY(SpmvKernel, sell_blocks)

}  // namespace rmsp::kernels
