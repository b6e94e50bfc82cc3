#include <cmath>

#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/sell/policy.hpp>

namespace rmsp::kernels {
namespace {

const char* column_blocks_unsupported(std::int64_t /*rows*/, std::int64_t /*cols*/, std::int64_t nnz)
{
    return nnz > 2'000'000'000
               ? "column-blocks numbers stretches of rows in 31 bits, so at most 2 * 10^9 nonzeros a device"
               : nullptr;
}

bool column_blocks_weighed(const RowStatistics& rows) { return rows.nnz >= sliced_rows.fewest_nonzeros; }

Work column_blocks_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    Work work;
    // 16-bit columns; the partial sums of what lies outside the hubs, of which a sample meets only the hottest, are
    // written and read again.
    work.matrix_bytes = nnz * (uniform_bytes(f, value_bytes) + 2 + (1 - std::sqrt(f.hub_share)) * (value_bytes + 4));
    work.gathers = nnz * f.sectors;
    work.bandwidth_share = 0.72;
    work.gather_share = 4;
    work.prepare_products = 40;
    work.start_seconds = 5.4e-6;
    work.entry_bytes = 17.5;
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_column_blocks(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> column_blocks()
{
    return {
        .info = {.family = "spmv",
                 .name = "column-blocks",
                 .device = DeviceKind::cuda,
                 .determinism = Determinism::run,
                 .compiled = cuda_compiled,
                 .summary =
                     "blocks of columns whose slice of x stays in shared memory, for power laws; a copy of the matrix",
                 .keeps_floats = true},
        .body = RMSP_CUDA_BODY(prepare_column_blocks<T>),
        .unsupported = column_blocks_unsupported,
        .weighed = column_blocks_weighed,
        .work = column_blocks_work,
        .beside = Beside::columns};
}
RMSP_ENTRY(SpmvKernel, column_blocks)

}  // namespace rmsp::kernels
