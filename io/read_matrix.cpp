#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/reading.hpp"
#include "io/codec.hpp"
#include "io/file.hpp"
#include "io/matrix_market.hpp"
#include "io/npz.hpp"
#include "io/read_matrix.hpp"
#include "io/zip.hpp"

namespace rmsp {
namespace {

/// As a file of one of the formats does, or one that is compressed.
bool begins_as_matrix(std::string_view bytes)
{
    return bytes.starts_with("%%") || bytes.starts_with("PK") || io::detect_codec(bytes) != io::Codec::none;
}

}  // namespace

template <class T>
CsrMatrix<T> io::read_matrix(const InputFile& file, const ReadOptions& options)
{
    using namespace std::string_view_literals;
    const std::string& path = file.path();
    const std::string_view bytes = file.bytes();
    if (begins_as_zip(bytes)) {
        return read_npz<T>(file, options);
    }
    if (path.ends_with(".npz") && !bytes.starts_with("%%"sv)) {
        throw Error(ErrorCode::io, fmt::format("{}: not an .npz file: its {} bytes do not begin as a zip file does",
                                               path, bytes.size()));
    }
    const Codec codec = detect_codec(bytes);
    if (codec == Codec::none) {
        return parse_matrix_market<T>(Source{bytes, path}, options, file.limit(), 0);
    }
    const core::GrowingBuffer text = decompress(codec, bytes, file.limit(), options.progress);
    return parse_matrix_market<T>(Source{text.view(), path}, options, file.limit(), 0);
}

template <class T>
CsrMatrix<T> read_matrix(const std::string& path, const ReadOptions& options)
{
    return core::reading(path, [&] {
        core::ReadLimit limit(path, options.max_bytes);
        return io::read_matrix<T>(io::InputFile(limit, begins_as_matrix), options);
    });
}

template <class T>
CsrMatrix<T> parse_matrix_market(std::string_view text, const std::string& name, const ReadOptions& options)
{
    return core::reading(name, [&] {
        core::ReadLimit limit(name, options.max_bytes);
        return io::parse_matrix_market<T>(io::Source{text, name}, options, limit, 0);
    });
}

std::span<const std::string_view> written_endings() noexcept
{
    static constexpr std::array<std::string_view, 5> endings{".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst", ".npz"};
    return endings;
}

template <class T>
void write_matrix(const std::string& path, const CsrView<T>& a, const WriteOptions& options)
{
    const auto endings = written_endings();
    if (std::none_of(endings.begin(), endings.end(), [&](std::string_view ending) { return path.ends_with(ending); })) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot tell the format to write: the name must end in one of {}",
                                               path, fmt::join(endings, ", ")));
    }
    validate(a);
    io::OutputFile file(path);
    if (path.ends_with(".npz")) {
        io::write_npz(file, a, options);
    } else {
        io::write_matrix_market(file, io::codec_of_name(path), a, options);
    }
    file.commit();
}

#define RMSP_INSTANTIATE(T)                                                                              \
    template CsrMatrix<T> io::read_matrix(const io::InputFile&, const ReadOptions&);                     \
    template CsrMatrix<T> read_matrix(const std::string&, const ReadOptions&);                           \
    template CsrMatrix<T> parse_matrix_market(std::string_view, const std::string&, const ReadOptions&); \
    template void write_matrix(const std::string&, const CsrView<T>&, const WriteOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
