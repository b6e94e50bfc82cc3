#include <limits>

#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/packed_tiles/layout.hpp>

namespace rmsp::kernels {
namespace {

const char* packed_tiles_unsupported(std::int64_t rows, std::int64_t /*cols*/, std::int64_t /*nnz*/)
{
    return rows > std::numeric_limits<std::int32_t>::max()
               ? "packed-tiles numbers rows in 31 bits, so at most 2^31 - 1 rows a device"
               : nullptr;
}

bool packed_tiles_weighed(const RowStatistics& rows) { return rows.empty_rows <= rows.nnz; }

Work packed_tiles_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    Work work;
    // An entry without a value for each empty row; a bit and a share of a lane's count and of the header for each.
    work.matrix_bytes =
        (nnz + static_cast<double>(f.rows.empty_rows)) *
        (uniform_bytes(f, value_bytes) + 0.3 + (packed_low_bits + (1 - f.narrow) * packed_high_bits(f.cols)) / 8);
    work.gathers = nnz * f.sectors;
    work.bandwidth_share = 0.76;
    work.prepare_products = 20;
    work.start_seconds = 0.95e-6;
    work.entry_bytes = 9;
    return work;
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_packed_tiles(const CsrShard<T>&, const RowStatistics&, const Context&);

template <class T>
SpmvKernel<T> packed_tiles()
{
    return {.info = {.family = "spmv",
                     .name = "packed-tiles",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::run,
                     .compiled = cuda_compiled,
                     .summary = "tiles of equal entries with row ends as bits and columns in 2 or 4 bytes, for small "
                                "graphs; a copy of the matrix",
                     .keeps_floats = true},
            .body = RMSP_CUDA_BODY(prepare_packed_tiles<T>),
            .unsupported = packed_tiles_unsupported,
            .weighed = packed_tiles_weighed,
            .work = packed_tiles_work};
}
RMSP_ENTRY(SpmvKernel, packed_tiles)

}  // namespace rmsp::kernels
