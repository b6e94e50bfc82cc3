#include "io/matrix_market.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/matrix_market_body.hpp"
#include "matrix/csr_build.hpp"

namespace rmsp::io {
namespace {

template <class I, class T>
CsrMatrix<T> parse_body(const Source& source, const MatrixMarketHeader& header, const ReadOptions& options,
                        core::ReadLimit& limit, std::size_t chunk_bytes, int threads)
{
    BodyPart<I, T> body(source, header, {0, 1}, options, limit, chunk_bytes, threads);
    body.read();
    auto entries = body.finish(0);
    return matrix::build_csr<I, T>(entries, header.rows, header.cols, options.sum_duplicates, threads, options.progress,
                                   limit);
}

}  // namespace

template <class T>
CsrMatrix<T> parse_matrix_market(const Source& source, const ReadOptions& options, core::ReadLimit& limit,
                                 std::size_t chunk_bytes)
{
    const int threads = core::thread_count(options.threads);
    const MatrixMarketHeader header = parse_matrix_market_header(source);
    limit.require((static_cast<core::uint128>(header.rows) + 1) * 8,
                  fmt::format("the row pointers of {} rows", header.rows));
    constexpr std::int64_t narrow = INT32_MAX;
    return header.rows <= narrow && header.cols <= narrow
               ? parse_body<std::int32_t, T>(source, header, options, limit, chunk_bytes, threads)
               : parse_body<std::int64_t, T>(source, header, options, limit, chunk_bytes, threads);
}

#define RMSP_INSTANTIATE(T) \
    template CsrMatrix<T> parse_matrix_market(const Source&, const ReadOptions&, core::ReadLimit&, std::size_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::io
