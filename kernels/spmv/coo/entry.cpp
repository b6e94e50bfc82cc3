#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {
namespace {

/// Entries that are sorted by row are multiplied by others: row pointers cost one pass and 8 bytes a row, and spare
/// reading the row indices in every apply.
bool not_by_row(CooOrder order) { return order != CooOrder::by_row; }

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_openmp(const CooShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_scatter(const CooShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_reference(const CooShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>&, const Context&);

template <class T>
CooKernel<T> coo_openmp()
{
    return {.info = {.family = "spmv",
                     .name = "coo-openmp",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "ranges of equal nonzeros, one a thread, for entries sorted by row",
                     .format = Format::coo,
                     .streams = true},
            .body = prepare_coo_openmp<T>,
            .supports = by_row_only};
}
RMSP_ENTRY(CooKernel, coo_openmp)

template <class T>
CooKernel<T> coo_openmp_scatter()
{
    return {.info = {.family = "spmv",
                     .name = "coo-openmp-scatter",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "ranges of equal nonzeros, one a thread, with a partial y each, for any order",
                     .format = Format::coo},
            .body = prepare_coo_scatter<T>};
}
RMSP_ENTRY(CooKernel, coo_openmp_scatter)

// Serial references keep Determinism::run only: where a device's part ends changes which partial results are added.
template <class T>
CooKernel<T> coo_reference()
{
    return {.info = {.family = "spmv",
                     .name = "coo-reference",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "one serial loop in the next wider type, to compare with",
                     .format = Format::coo,
                     .streams = true},
            .body = prepare_coo_reference<T>,
            .automatic = no_order};
}
RMSP_ENTRY(CooKernel, coo_reference)

template <class T>
CooKernel<T> coo_atomic()
{
    return {.info = {.family = "spmv",
                     .name = "coo-atomic",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "8 nonzeros a lane, added to y atomically, for any order",
                     .format = Format::coo,
                     .streams = true},
            .body = RMSP_CUDA_BODY(prepare_coo_atomic<T>),
            .automatic = not_by_row};
}
RMSP_ENTRY(CooKernel, coo_atomic)

template <class T>
CooKernel<T> coo_to_csr()
{
    return {.info = {.family = "spmv",
                     .name = "coo-to-csr",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "row pointers made once (other orders: a copy sorted by row), then csr-nnz-split",
                     .format = Format::coo},
            .body = RMSP_CUDA_BODY(prepare_coo_to_csr<T>),
            .sorts = true};
}
RMSP_ENTRY(CooKernel, coo_to_csr)

}  // namespace rmsp::kernels
