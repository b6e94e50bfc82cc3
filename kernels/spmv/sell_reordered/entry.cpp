#include <algorithm>
#include <cmath>
#include <limits>

#include <kernels/spmv/choose/meshes.hpp>
#include <kernels/spmv/sell/policy.hpp>
#include <kernels/spmv/sell/work.hpp>
#include <kernels/spmv/sell_blocks/work.hpp>

namespace rmsp::kernels {
namespace {

/// What becomes of a mesh whose numbering is bad.
struct ReorderedMesh {
    double sectors = 0.1;        ///< Features::sectors
    double block_sectors = 0.4;  ///< the same in dense blocks, of those that there were before
    double code_bytes = 1.6;     ///< of kernel "sell"
    /// Columns for each entry of a row. Of fewer such neighbourhoods a level of the order has a tenth of all rows, so
    /// that neighbours stay far apart. (Of random orders in the fitting half of the corpus 250 and 570 gain nothing,
    /// 8,000 and more do.)
    double least_neighbourhoods = 1000;
};
constexpr ReorderedMesh reordered_mesh{};

const char* sell_reordered_unsupported(std::int64_t rows, std::int64_t /*cols*/, std::int64_t /*nnz*/)
{
    return rows > std::numeric_limits<std::int32_t>::max()
               ? "sell-reordered numbers rows in 31 bits, so at most 2^31 - 1 rows a device"
               : nullptr;
}

bool sell_reordered_suits(const Features& f)
{
    const auto rows = static_cast<double>(std::max<std::int64_t>(f.rows.rows, 1));
    // The precision of x is not known here, and where values are kept in fewer bytes, it counts as theirs.
    return (numbered_badly(f) || blocks_numbered_badly(f, std::max(f.stored_value_bytes, 4.0))) &&
           x_entries(f) * rows >= reordered_mesh.least_neighbourhoods * static_cast<double>(f.rows.nnz);
}

Work sell_reordered_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    const auto rows = static_cast<double>(f.rows.rows);
    // Rows of a part of the mesh are farther apart, by its share of the columns.
    const double apart = std::sqrt(std::max(1.0, x_entries(f) / rows));
    const bool blocks = blocks_numbered_badly(f, value_bytes);
    Work work =
        blocks ? blocked_work(f, value_bytes) : sliced_work(f, std::min(4.0, reordered_mesh.code_bytes * apart));
    work.matrix_bytes += 4 * (rows + x_entries(f));
    const double least = blocks ? reordered_mesh.block_sectors * f.sectors : reordered_mesh.sectors;
    work.gathers = nnz * std::min(f.sectors, least * apart);
    work.prepare_products = 90;
    work.start_seconds += blocks ? 1.8e-6 : 1.1e-6;
    // x and the sums on their way.
    work.permuted = rows + x_entries(f);
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_reordered(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> sell_reordered()
{
    return {.info = {.family = "spmv",
                     .name = "sell-reordered",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "the same after Cuthill and McKee's order of rows and columns, for badly numbered "
                                "meshes; two copies of the matrix",
                     .keeps_floats = true},
            .body = RMSP_CUDA_BODY(prepare_sell_reordered<T>),
            .unsupported = sell_reordered_unsupported,
            .weighed = [](const RowStatistics& rows) { return prefers_sell(rows, weighed_sliced_rows); },
            .suits = sell_reordered_suits,
            .work = sell_reordered_work};
}
RMSP_ENTRY(SpmvKernel, sell_reordered)

}  // namespace rmsp::kernels
