#include <kernels/spgemm/bodies.hpp>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/sell_reordered/reorder.hpp>
#include <kernels/spmv/spmv.hpp>
#include <kernels/steps/exchange/exchange.hpp>
#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/stream/stream.hpp>
#include <kernels/steps/support/bodies.hpp>
#include <rmsp/error.hpp>

// What stands in for the CUDA sources in a build without CUDA.
namespace rmsp::kernels {
namespace {

[[noreturn]] void missing(const char* what) { throw NotCompiled(what); }

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_nnz_split(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"csr-nnz-split\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"sell\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_reordered(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"sell-reordered\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_blocks(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"sell-blocks\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_packed_tiles(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"packed-tiles\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_column_blocks(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"column-blocks\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_vector(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"csr-row-vector\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_warp(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"csr-row-warp\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"ehyb\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"ehyb-ghosts\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"ehyb-natural\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg1(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-csr-alg1\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_csr_alg2(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-csr-alg2\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_coo_alg1(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-coo-alg1\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_coo_alg2(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-coo-alg2\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_sell(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-sell\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_cusparse_bsr(const CsrShard<T>&, const RowStatistics&, const Context&)
{
    missing("SpMV kernel \"cusparse-bsr\" (CUDA)");
}

template <class T>
Ordering order_rows(const CsrShard<T>&, const Context&, const ReorderTuning&)
{
    missing("order of rows (CUDA)");
}
template Ordering order_rows(const CsrShard<float>&, const Context&, const ReorderTuning&);
template Ordering order_rows(const CsrShard<double>&, const Context&, const ReorderTuning&);
template <class T>
ColumnNumbers number_columns(const CsrShard<T>&, const Ordering&, const Context&)
{
    missing("numbers of columns (CUDA)");
}
template ColumnNumbers number_columns(const CsrShard<float>&, const Ordering&, const Context&);
template ColumnNumbers number_columns(const CsrShard<double>&, const Ordering&, const Context&);

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_atomic(const CscShard<T>&, const Context&)
{
    missing("SpMV kernel \"csc-atomic\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_csc_to_csr(const CscShard<T>&, const Context&)
{
    missing("SpMV kernel \"csc-to-csr\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_segmented(const CooShard<T>&, const Context&)
{
    missing("SpMV kernel \"coo-segmented\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_atomic(const CooShard<T>&, const Context&)
{
    missing("SpMV kernel \"coo-atomic\" (CUDA)");
}
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_coo_to_csr(const CooShard<T>&, const Context&)
{
    missing("SpMV kernel \"coo-to-csr\" (CUDA)");
}

template std::unique_ptr<SpmvOperator<float>> prepare_csc_atomic(const CscShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_csc_atomic(const CscShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_csc_to_csr(const CscShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_csc_to_csr(const CscShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_segmented(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_segmented(const CooShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_atomic(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_atomic(const CooShard<double>&, const Context&);
template std::unique_ptr<SpmvOperator<float>> prepare_coo_to_csr(const CooShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_coo_to_csr(const CooShard<double>&, const Context&);

#define RMSP_INSTANTIATE(prepare, T) \
    template std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>&, const RowStatistics&, const Context&)
RMSP_INSTANTIATE(prepare_nnz_split, float);
RMSP_INSTANTIATE(prepare_nnz_split, double);
RMSP_INSTANTIATE(prepare_sell, float);
RMSP_INSTANTIATE(prepare_sell, double);
RMSP_INSTANTIATE(prepare_sell_reordered, float);
RMSP_INSTANTIATE(prepare_sell_reordered, double);
RMSP_INSTANTIATE(prepare_sell_blocks, float);
RMSP_INSTANTIATE(prepare_sell_blocks, double);
RMSP_INSTANTIATE(prepare_packed_tiles, float);
RMSP_INSTANTIATE(prepare_packed_tiles, double);
RMSP_INSTANTIATE(prepare_column_blocks, float);
RMSP_INSTANTIATE(prepare_column_blocks, double);
RMSP_INSTANTIATE(prepare_row_vector, float);
RMSP_INSTANTIATE(prepare_row_vector, double);
RMSP_INSTANTIATE(prepare_row_warp, float);
RMSP_INSTANTIATE(prepare_row_warp, double);
RMSP_INSTANTIATE(prepare_ehyb, float);
RMSP_INSTANTIATE(prepare_ehyb, double);
RMSP_INSTANTIATE(prepare_ehyb_ghosts, float);
RMSP_INSTANTIATE(prepare_ehyb_ghosts, double);
RMSP_INSTANTIATE(prepare_ehyb_natural, float);
RMSP_INSTANTIATE(prepare_ehyb_natural, double);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg1, float);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg1, double);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg2, float);
RMSP_INSTANTIATE(prepare_cusparse_csr_alg2, double);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg1, float);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg1, double);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg2, float);
RMSP_INSTANTIATE(prepare_cusparse_coo_alg2, double);
RMSP_INSTANTIATE(prepare_cusparse_sell, float);
RMSP_INSTANTIATE(prepare_cusparse_sell, double);
RMSP_INSTANTIATE(prepare_cusparse_bsr, float);
RMSP_INSTANTIATE(prepare_cusparse_bsr, double);
#undef RMSP_INSTANTIATE

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cuda(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&,
                                                       const Context&)
{
    missing("SpGEMM kernel \"spgemm\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg1(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-alg1\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg2(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-alg2\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg3(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-alg3\" (CUDA)");
}
template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_reuse(const CsrShard<T>&, const CsrShard<T>&,
                                                                 const SpgemmOptions&, const Context&)
{
    missing("SpGEMM kernel \"cusparse-spgemm-reuse\" (CUDA)");
}

#define RMSP_INSTANTIATE(prepare, T)                                                                                  \
    template std::unique_ptr<SpgemmOperator<T>> prepare(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&, \
                                                        const Context&)
RMSP_INSTANTIATE(prepare_spgemm_cuda, float);
RMSP_INSTANTIATE(prepare_spgemm_cuda, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg1, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg1, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg2, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg2, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg3, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_alg3, double);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_reuse, float);
RMSP_INSTANTIATE(prepare_spgemm_cusparse_reuse, double);
#undef RMSP_INSTANTIATE

void load_exchanges() { missing("load_exchanges"); }
void exchange_with_peers(const PeerExchange&, const Context&) { missing("exchange_with_peers"); }
void exchange_lines(const LineExchange&, const Context&) { missing("exchange_lines"); }

namespace cuda {

template <class Out>
void localize_row_ptr(IndexView, std::int64_t, std::int64_t, std::int64_t, Out*, const Context&)
{
    missing("localize_row_ptr for CUDA devices");
}
template void localize_row_ptr(IndexView, std::int64_t, std::int64_t, std::int64_t, std::int32_t*, const Context&);
template void localize_row_ptr(IndexView, std::int64_t, std::int64_t, std::int64_t, std::int64_t*, const Context&);

template <class T>
void count_products(const CsrShard<T>&, const CsrShard<T>&, std::int64_t*, const Context&)
{
    missing("count_products for CUDA devices");
}
template void count_products(const CsrShard<float>&, const CsrShard<float>&, std::int64_t*, const Context&);
template void count_products(const CsrShard<double>&, const CsrShard<double>&, std::int64_t*, const Context&);

void narrow_indices(const std::int64_t*, std::int64_t, std::int32_t*, const Context&)
{
    missing("narrow_indices for CUDA devices");
}

template <class T>
void fill(T*, std::int64_t, T, const Context&)
{
    missing("fill for CUDA devices");
}
template void fill(float*, std::int64_t, float, const Context&);
template void fill(double*, std::int64_t, double, const Context&);

template <class T>
void add_carries(T*, const T*, int, const Context&)
{
    missing("add_carries for CUDA devices");
}
template void add_carries(float*, const float*, int, const Context&);
template void add_carries(double*, const double*, int, const Context&);

template <class T>
void add_partials(T*, std::int64_t, std::int64_t, T, const PartialSums<T>*, int, const Context&)
{
    missing("add_partials for CUDA devices");
}
template void add_partials(float*, std::int64_t, std::int64_t, float, const PartialSums<float>*, int, const Context&);
template void add_partials(double*, std::int64_t, std::int64_t, double, const PartialSums<double>*, int,
                           const Context&);

template <class T>
void decode_packet(const PacketLayout&, const std::byte*, std::int32_t*, std::int32_t*, T*, const Context&)
{
    missing("decode_packet for CUDA devices");
}
template <class T>
void multiply_packet(const PacketLayout&, const std::byte*, T, const T*, T, T*, const Context&)
{
    missing("multiply_packet for CUDA devices");
}
template void multiply_packet(const PacketLayout&, const std::byte*, float, const float*, float, float*,
                              const Context&);
template void multiply_packet(const PacketLayout&, const std::byte*, double, const double*, double, double*,
                              const Context&);
template void decode_packet(const PacketLayout&, const std::byte*, std::int32_t*, std::int32_t*, float*,
                            const Context&);
template void decode_packet(const PacketLayout&, const std::byte*, std::int32_t*, std::int32_t*, double*,
                            const Context&);

void copy_parts(const CopyPart*, int, const Context&) { missing("copy_parts for CUDA devices"); }

void clear_words(std::uint32_t*, std::size_t, const Context&) { missing("column sets for CUDA devices"); }
void add_outside(ColumnSet&, const std::int32_t*, std::int64_t, std::int64_t, std::int64_t, const Context&)
{
    missing("column sets for CUDA devices");
}
std::int64_t count_columns(ColumnSet&, const Context&) { missing("column sets for CUDA devices"); }
void add_uses(ColumnUses&, const std::int32_t*, std::int64_t, std::int64_t, std::int64_t, const Context&)
{
    missing("column sets for CUDA devices");
}
void count_buckets(const ColumnUses&, std::span<UseBucket>, const Context&) { missing("column sets for CUDA devices"); }
void take_columns(ColumnSet&, ColumnSet&, const ColumnUses&, int, const Context&)
{
    missing("column sets for CUDA devices");
}
void renumber_columns(const ColumnSet&, const ColumnSet&, std::int32_t*, std::int64_t, std::int64_t, std::int64_t,
                      const Context&)
{
    missing("column sets for CUDA devices");
}
void restore_columns(const std::int32_t*, std::int64_t, std::int64_t, std::int64_t, const std::int32_t*, std::int64_t,
                     std::int32_t*, const Context&)
{
    missing("column sets for CUDA devices");
}
void list_columns(const ColumnSet&, std::int32_t*, const Context&) { missing("column sets for CUDA devices"); }
template <class T>
void pack(const T*, const std::int32_t*, std::int64_t, T*, const Context&)
{
    missing("pack for CUDA devices");
}
template void pack(const float*, const std::int32_t*, std::int64_t, float*, const Context&);
template void pack(const double*, const std::int32_t*, std::int64_t, double*, const Context&);

void interior_rows(IndexView, std::int64_t, const std::int32_t*, std::int64_t, std::int64_t, std::int64_t*,
                   const Context&)
{
    missing("interior_rows for CUDA devices");
}

void read_all(const double*, std::int64_t, double*, const Context&) { missing("read_all for CUDA devices"); }

}  // namespace cuda
}  // namespace rmsp::kernels
