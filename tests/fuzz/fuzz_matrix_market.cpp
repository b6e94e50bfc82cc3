#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <rmsp/error.hpp>

#include "io/matrix_market.hpp"

namespace {

/// Any bytes give a matrix or Error(io); anything else is a crash.
template <class T>
void parse(std::string_view text, int threads, std::size_t chunk_bytes)
{
    try {
        const rmsp::io::Source source{text, "fuzz"};
        // A header may well ask for the row pointers of billions of rows, which is not what is tested here.
        if (rmsp::io::parse_matrix_market_header(source).rows > (1 << 20)) {
            return;
        }
        rmsp::ReadOptions options;
        options.threads = threads;
        rmsp::core::ReadLimit limit(source.name, options.max_bytes);
        const auto a = rmsp::io::parse_matrix_market<T>(source, options, limit, chunk_bytes);
        if (a.row_ptr.back() != a.nnz()) {
            std::abort();
        }
    } catch (const rmsp::Error& error) {
        if (error.code() != rmsp::ErrorCode::io) {
            std::abort();
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    parse<double>(text, 1, 0);
    parse<float>(text, 2, 16);
    return 0;
}
