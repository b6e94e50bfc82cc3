#include <kernels/spgemm/bodies.hpp>
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
