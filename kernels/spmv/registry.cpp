#include <limits>
#include <vector>

#include <fmt/format.h>
#include <kernels/choose.hpp>
#include <kernels/spgemm/spgemm.hpp>
#include <kernels/spmv/ehyb/ehyb.hpp>
#include <kernels/spmv/ehyb/graph_parts.hpp>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/policy.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp {

namespace kernels {
namespace {

#ifdef RMSP_HAVE_CUDA
constexpr bool have_cuda = true;
#else
constexpr bool have_cuda = false;
#endif

const char* unsupported_by_cusparse(std::int64_t rows, std::int64_t cols, std::int64_t nnz)
{
    if (rows > 0 && nnz / rows > cols - (nnz % rows == 0 ? 0 : 1)) {
        return "cuSPARSE takes at most rows x columns nonzeros, so not this many at repeated places";
    }
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    if (rows > limit) {
        return "cuSPARSE takes row pointers and columns of one width, so at most 2^31 - 1 rows a device";
    }
    if (nnz > limit) {
        return "cuSPARSE takes row pointers and columns of one width, so at most 2^31 - 1 nonzeros a device";
    }
    return nullptr;
}

const char* unsupported_by_column_blocks(std::int64_t /*rows*/, std::int64_t /*cols*/, std::int64_t nnz)
{
    return nnz > 2'000'000'000
               ? "column-blocks numbers stretches of rows in 31 bits, so at most 2 * 10^9 nonzeros a device"
               : nullptr;
}

const char* unsupported_by_ehyb(std::int64_t rows, std::int64_t /*cols*/, std::int64_t nnz)
{
    return rows > std::numeric_limits<std::int32_t>::max() || nnz >= ehyb::no_entry
               ? "ehyb numbers rows in 31 and nonzeros in 32 bits, so at most 2^31 - 1 rows and 2^32 - 2 nonzeros a "
                 "device"
               : nullptr;
}

const char* unsupported_by_sell_reordered(std::int64_t rows, std::int64_t /*cols*/, std::int64_t /*nnz*/)
{
    return rows > std::numeric_limits<std::int32_t>::max()
               ? "sell-reordered numbers rows in 31 bits, so at most 2^31 - 1 rows a device"
               : nullptr;
}

const char* unsupported_by_packed_tiles(std::int64_t rows, std::int64_t /*cols*/, std::int64_t /*nnz*/)
{
    return rows > std::numeric_limits<std::int32_t>::max()
               ? "packed-tiles numbers rows in 31 bits, so at most 2^31 - 1 rows a device"
               : nullptr;
}

KernelInfo host(const char* name, Determinism level, const char* summary)
{
    return {"spmv", name, DeviceKind::host, level, true, summary};
}

KernelInfo cuda(const char* name, Determinism level, const char* summary)
{
    return {"spmv", name, DeviceKind::cuda, level, have_cuda, summary};
}

/// Kernels that need METIS are not there without it.
KernelInfo with_metis(KernelInfo info)
{
    info.compiled = info.compiled && has_metis();
    return info;
}

/// "auto" goes through the table in order; it passes over what is there to compare with, and over what suits other
/// matrices.
bool automatic(const KernelInfo& info, const RowStatistics& rows)
{
    if (info.name == "sell") {
        return prefers_sell(rows);
    }
    if (info.name == "csr-row-vector") {
        return prefers_row_vector(rows);
    }
    return info.name == "csr-openmp" || info.name == "csr-nnz-split" || info.name == "csr-row-warp";
}

/// What the model weighs besides: formats that pay only for a structure that row lengths do not show.
bool worth_weighing(const KernelInfo& info, const RowStatistics& rows)
{
    return automatic(info, rows) || (info.name == "sell-blocks" && prefers_sell(rows, blocked_rows)) ||
           (info.name == "diagonals" && prefers_sell(rows)) || (info.name == "sell-reordered" && prefers_sell(rows)) ||
           (info.name == "packed-tiles" && rows.empty_rows <= rows.nnz) ||
           (info.name == "column-blocks" && rows.nnz >= sliced_rows.fewest_nonzeros);
}

}  // namespace

template <class T>
std::span<const SpmvKernel<T>> spmv_kernels()
{
    static const std::vector<SpmvKernel<T>> table{
        {host("csr-openmp", Determinism::device_count,
              "ranges of equal nonzeros and rows, one a thread; long rows shared"),
         nullptr, prepare_openmp<T>, true, true},
        {host("csr-reference", Determinism::device_count, "one serial loop in the next wider type, to compare with"),
         nullptr, prepare_reference<T>, true},
        {host("diagonals", Determinism::run,
              "slices of 16 rows along diagonals without gathers, the rest as csr-openmp; a copy of the values"),
         nullptr, prepare_diagonals<T>, false, true},
        {with_metis(
             host("ehyb", Determinism::run, "explicit caching HYB, rows in parts by METIS; a copy of the matrix")),
         unsupported_by_ehyb, prepare_ehyb_host<T>, false},
        {with_metis(host("ehyb-ghosts", Determinism::run,
                         "explicit caching HYB whose parts keep foreign columns too; a copy of the matrix")),
         unsupported_by_ehyb, prepare_ehyb_ghosts_host<T>, false},
        {host("ehyb-natural", Determinism::run,
              "explicit caching HYB, rows in parts as they come; a copy of the matrix"),
         unsupported_by_ehyb, prepare_ehyb_natural_host<T>, false},
        {cuda(
             "sell-blocks", Determinism::run,
             "sliced rows with one code for each small dense block, for several unknowns a node; a copy of the matrix"),
         nullptr, prepare_sell_blocks<T>, false, true},
        {cuda("sell", Determinism::device_count,
              "sliced rows with columns in 0 to 4 bytes, for rows of similar length; a copy of the matrix"),
         nullptr, prepare_sell<T>, false, true},
        {cuda("sell-reordered", Determinism::run,
              "the same after Cuthill and McKee's order of rows and columns, for badly numbered meshes; two copies of "
              "the matrix"),
         unsupported_by_sell_reordered, prepare_sell_reordered<T>, false, true},
        {cuda("column-blocks", Determinism::run,
              "blocks of columns whose slice of x stays in shared memory, for power laws; a copy of the matrix"),
         unsupported_by_column_blocks, prepare_column_blocks<T>, false, true},
        {cuda("packed-tiles", Determinism::run,
              "tiles of equal entries with row ends as bits and columns in 2 or 4 bytes, for small graphs; a copy of "
              "the matrix"),
         unsupported_by_packed_tiles, prepare_packed_tiles<T>, false, true},
        {cuda("csr-row-vector", Determinism::run, "1 to 32 lanes a row, for rows of similar length"), nullptr,
         prepare_row_vector<T>, true},
        {cuda("csr-nnz-split", Determinism::run, "tiles of equal nonzeros with row ends as bits, for any row lengths"),
         nullptr, prepare_nnz_split<T>, true},
        {cuda("csr-row-warp", Determinism::device_count, "one warp a row, the same bits on any number of GPUs"),
         nullptr, prepare_row_warp<T>, true},
        {with_metis(cuda("ehyb", Determinism::run,
                         "explicit caching HYB: a part's x in shared memory, parts by METIS; a copy of the matrix")),
         unsupported_by_ehyb, prepare_ehyb<T>, false},
        {with_metis(
             cuda("ehyb-ghosts", Determinism::run,
                  "explicit caching HYB whose parts keep foreign columns too, for badly numbered meshes; a copy of "
                  "the matrix")),
         unsupported_by_ehyb, prepare_ehyb_ghosts<T>, false},
        {cuda("ehyb-natural", Determinism::run,
              "explicit caching HYB, rows in parts as they come; a copy of the matrix"),
         unsupported_by_ehyb, prepare_ehyb_natural<T>, false},
        {cuda("cusparse-csr-alg1", Determinism::none, "cuSPARSE, CUSPARSE_SPMV_CSR_ALG1 with preprocessing"),
         unsupported_by_cusparse, prepare_cusparse_csr_alg1<T>, false},
        {cuda("cusparse-csr-alg2", Determinism::run, "cuSPARSE, CUSPARSE_SPMV_CSR_ALG2 with preprocessing"),
         unsupported_by_cusparse, prepare_cusparse_csr_alg2<T>, false},
        {cuda("cusparse-coo-alg1", Determinism::none,
              "cuSPARSE, CUSPARSE_SPMV_COO_ALG1; row indices beside the matrix"),
         unsupported_by_cusparse, prepare_cusparse_coo_alg1<T>, false},
        {cuda("cusparse-coo-alg2", Determinism::run, "cuSPARSE, CUSPARSE_SPMV_COO_ALG2; row indices beside the matrix"),
         unsupported_by_cusparse, prepare_cusparse_coo_alg2<T>, false},
        {cuda("cusparse-sell", Determinism::none, "cuSPARSE, CUSPARSE_SPMV_SELL_ALG1 with slices of 32; a copy"),
         unsupported_by_cusparse, prepare_cusparse_sell<T>, false},
        {cuda("cusparse-bsr", Determinism::none,
              "cuSPARSE, CUSPARSE_SPMV_BSR_ALG1 where blocks of 2 to 4 fill; a copy"),
         unsupported_by_cusparse, prepare_cusparse_bsr<T>, false},
    };
    return table;
}

template <class T>
const SpmvKernel<T>& choose_spmv(DeviceKind kind, const std::string& name, Determinism determinism,
                                 const RowStatistics& rows, std::int64_t cols)
{
    return choose_kernel(
        spmv_kernels<T>(), "SpMV", kind, name, determinism,
        [&](const KernelInfo& info) { return automatic(info, rows); },
        [&](const SpmvKernel<T>& kernel) {
            const char* const reason =
                kernel.unsupported == nullptr ? nullptr : kernel.unsupported(rows.rows, cols, rows.nnz);
            return reason == nullptr
                       ? std::string()
                       : fmt::format("a shard of {} x {} with {} nonzeros: {}", rows.rows, cols, rows.nnz, reason);
        });
}

template <class T>
std::vector<const SpmvKernel<T>*> automatic_spmv(DeviceKind kind, Determinism determinism, const RowStatistics& rows,
                                                 std::int64_t cols)
{
    choose_spmv<T>(kind, "auto", determinism, rows, cols);  // for its errors
    std::vector<const SpmvKernel<T>*> kernels;
    for (const SpmvKernel<T>& kernel : spmv_kernels<T>()) {
        if (kernel.info.device == kind && kernel.info.determinism >= determinism && worth_weighing(kernel.info, rows) &&
            (kernel.unsupported == nullptr || kernel.unsupported(rows.rows, cols, rows.nnz) == nullptr)) {
            kernels.push_back(&kernel);
        }
    }
    return kernels;
}

template std::span<const SpmvKernel<float>> spmv_kernels();
template std::span<const SpmvKernel<double>> spmv_kernels();
template const SpmvKernel<float>& choose_spmv(DeviceKind, const std::string&, Determinism, const RowStatistics&,
                                              std::int64_t);
template const SpmvKernel<double>& choose_spmv(DeviceKind, const std::string&, Determinism, const RowStatistics&,
                                               std::int64_t);

template std::vector<const SpmvKernel<float>*> automatic_spmv(DeviceKind, Determinism, const RowStatistics&,
                                                              std::int64_t);
template std::vector<const SpmvKernel<double>*> automatic_spmv(DeviceKind, Determinism, const RowStatistics&,
                                                               std::int64_t);

}  // namespace kernels

std::vector<KernelInfo> list_kernels()
{
    std::vector<KernelInfo> all;
    for (const auto& kernel : kernels::spmv_kernels<double>()) {
        all.push_back(kernel.info);
    }
    for (const auto& kernel : kernels::spmv_csc_kernels<double>()) {
        all.push_back(kernel.info);
    }
    for (const auto& kernel : kernels::spmv_coo_kernels<double>()) {
        all.push_back(kernel.info);
    }
    for (const auto& kernel : kernels::spgemm_kernels<double>()) {
        all.push_back(kernel.info);
    }
    return all;
}

}  // namespace rmsp
