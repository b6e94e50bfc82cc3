#include <algorithm>

#include <kernels/spmv/choose/model.hpp>

namespace rmsp::kernels {
namespace {

/// Fewer are multiplied before another kernel has been made ready.
constexpr std::int64_t fewest_nonzeros = 30'000;
/// Rows that differ more have few neighbours alike.
constexpr double deviation_over_mean = 1;

bool may_have_runs(const RowStatistics& rows)
{
    return rows.nnz >= fewest_nonzeros && rows.deviation <= deviation_over_mean * rows.mean;
}

Work diagonals_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    const auto rows = static_cast<double>(f.rows.rows);
    Work work;
    // Slices with codes are those that stay in CSR: two bytes a lane, mostly.
    work.matrix_bytes = nnz * (value_bytes + 4.0 / 16 + std::min(4.0, 2 * f.code_bytes)) + rows * 4;
    work.gathers = nnz * f.sectors;
    work.bandwidth_share = 0.9;
    work.gather_share = 2;
    work.prepare_products = 6;
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_diagonals(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> diagonals()
{
    return {
        .info = {.family = "spmv",
                 .name = "diagonals",
                 .device = DeviceKind::host,
                 .determinism = Determinism::run,
                 .summary = "rows along diagonals or of the same columns without gathers, the rest as csr-openmp; a "
                            "copy of the values",
                 .keeps_floats = true},
        .body = prepare_diagonals<T>,
        .weighed = may_have_runs,
        .work = diagonals_work};
}
RMSP_ENTRY(SpmvKernel, diagonals)

}  // namespace rmsp::kernels
