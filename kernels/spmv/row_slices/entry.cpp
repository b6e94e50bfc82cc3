#include <algorithm>

#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/row_slices/policy.hpp>

namespace rmsp::kernels {
namespace {

/// Fewer are multiplied before another kernel has been made ready.
constexpr std::int64_t fewest_of_row_slices = 1'000;
/// A row is one thread's: a longer one would keep the others waiting.
constexpr double longest_row_share = 1.0 / 8;

bool row_slices_gain(const RowStatistics& rows)
{
    return rows.nnz >= fewest_of_row_slices &&
           static_cast<double>(rows.longest_row) <=
               std::max(static_cast<double>(longest_sliced_row), longest_row_share * static_cast<double>(rows.nnz));
}

Work row_slices_work(const Features& f, int value_bytes)
{
    Work work = csr_work(f, narrowed_bytes(f, value_bytes));
    work.bandwidth_share = 1;
    work.gather_share = 1.5;
    work.prepare_products = 6;
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_slices(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> row_slices()
{
    return {.info = {.family = "spmv",
                     .name = "row-slices",
                     .device = DeviceKind::host,
                     .determinism = Determinism::device_count,
                     .summary = "eight rows of a length at a time, which are sorted by it among 1,024; a copy of the "
                                "matrix",
                     .keeps_floats = true},
            .body = prepare_row_slices<T>,
            .weighed = row_slices_gain,
            .work = row_slices_work};
}
RMSP_ENTRY(SpmvKernel, row_slices)

}  // namespace rmsp::kernels
