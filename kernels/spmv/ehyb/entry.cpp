#include <limits>

#include <kernels/spmv/choose/meshes.hpp>
#include <kernels/spmv/ehyb/graph_parts.hpp>
#include <kernels/spmv/ehyb/layout.hpp>
#include <kernels/spmv/sell/policy.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

const char* ehyb_unsupported(std::int64_t rows, std::int64_t /*cols*/, std::int64_t nnz)
{
    return rows > std::numeric_limits<std::int32_t>::max() || nnz >= ehyb::no_entry
               ? "ehyb numbers rows in 31 and nonzeros in 32 bits, so at most 2^31 - 1 rows and 2^32 - 2 nonzeros a "
                 "device"
               : nullptr;
}

/// Meshes of tetrahedra and the like: in the plane searches go through more levels, and gain less.
constexpr double least_mean = 13;

bool ehyb_ghosts_suits(const Features& f)
{
    return numbered_badly(f) && f.two_step_columns <= bad_numbering.most_two_step_columns_of_mesh &&
           f.rows.mean >= least_mean;
}

/// Of parts that keep foreign columns too, whose x lies in shared memory but for a hundredth of the entries. Fitted to
/// meshes of tetrahedra in random order (docs/lab/2026-11-22-ehyb.md).
Work ehyb_ghosts_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    const auto rows = static_cast<double>(f.rows.rows);
    Work work;
    work.matrix_bytes = nnz * (value_bytes + 2);
    work.bandwidth_share = 0.96;
    // 120 to 870, of the more the fewer rows there are; a guess too low spends more than a thousand products get back.
    work.prepare_products = 800;
    // x and the sums on their way, and the foreign columns.
    work.permuted = 2 * rows + x_entries(f);
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_host(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts_host(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_metis_host(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural_host(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_metis(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> ehyb_host()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "explicit caching HYB, rows in parts of the mesh; a copy of the matrix"},
            .body = prepare_ehyb_host<T>,
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_host)

template <class T>
SpmvKernel<T> ehyb_ghosts_host()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb-ghosts",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "explicit caching HYB whose parts keep foreign columns too; a copy of the matrix"},
            .body = prepare_ehyb_ghosts_host<T>,
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_ghosts_host)

template <class T>
SpmvKernel<T> ehyb_metis_host()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb-metis",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .compiled = has_metis(),
                     .summary = "explicit caching HYB as published, parts by METIS; a copy of the matrix"},
            .body = prepare_ehyb_metis_host<T>,
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_metis_host)

template <class T>
SpmvKernel<T> ehyb_natural_host()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb-natural",
                     .device = DeviceKind::host,
                     .determinism = Determinism::run,
                     .summary = "explicit caching HYB, rows in parts as they come; a copy of the matrix"},
            .body = prepare_ehyb_natural_host<T>,
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_natural_host)

template <class T>
SpmvKernel<T> ehyb_cuda()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "explicit caching HYB: the x of a part of the mesh in shared memory; a copy of the "
                                "matrix"},
            .body = RMSP_CUDA_BODY(prepare_ehyb<T>),
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_cuda)

template <class T>
SpmvKernel<T> ehyb_ghosts_cuda()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb-ghosts",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "explicit caching HYB whose parts keep foreign columns too, for badly numbered meshes; "
                                "a copy of the matrix"},
            .body = RMSP_CUDA_BODY(prepare_ehyb_ghosts<T>),
            .unsupported = ehyb_unsupported,
            .weighed = [](const RowStatistics& rows) { return prefers_sell(rows); },
            .suits = ehyb_ghosts_suits,
            .work = ehyb_ghosts_work};
}
RMSP_ENTRY(SpmvKernel, ehyb_ghosts_cuda)

template <class T>
SpmvKernel<T> ehyb_metis_cuda()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb-metis",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled && has_metis(),
                     .summary = "explicit caching HYB as published, parts by METIS; a copy of the matrix"},
            .body = RMSP_CUDA_BODY(prepare_ehyb_metis<T>),
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_metis_cuda)

template <class T>
SpmvKernel<T> ehyb_natural_cuda()
{
    return {.info = {.family = "spmv",
                     .name = "ehyb-natural",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "explicit caching HYB, rows in parts as they come; a copy of the matrix"},
            .body = RMSP_CUDA_BODY(prepare_ehyb_natural<T>),
            .unsupported = ehyb_unsupported};
}
RMSP_ENTRY(SpmvKernel, ehyb_natural_cuda)

}  // namespace rmsp::kernels
