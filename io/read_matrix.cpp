#include <string_view>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "io/codec.hpp"
#include "io/file.hpp"
#include "io/matrix_market.hpp"
#include "io/npz.hpp"

namespace rmsp {

template <class T>
CsrMatrix<T> read_matrix(const std::string& path, const ReadOptions& options)
{
    using namespace std::string_view_literals;
    const io::InputFile file(path);
    const std::string_view bytes = file.bytes();
    // "PK" begins a member, or the end record of an archive without members.
    if (bytes.starts_with("PK\3\4"sv) || bytes.starts_with("PK\5\6"sv)) {
        return io::read_npz<T>(file, options);
    }
    if (path.ends_with(".npz") && !bytes.starts_with("%%"sv)) {
        throw Error(ErrorCode::io, fmt::format("{}: not an .npz file: its {} bytes do not begin as a zip file does",
                                               path, bytes.size()));
    }
    const io::Codec codec = io::detect_codec(bytes);
    if (codec == io::Codec::none) {
        return parse_matrix_market<T>(bytes, path, options);
    }
    const io::GrowingBuffer text = io::decompress(codec, bytes, path, options.progress);
    return parse_matrix_market<T>(text.view(), path, options);
}

template <class T>
CsrMatrix<T> parse_matrix_market(std::string_view text, const std::string& name, const ReadOptions& options)
{
    return io::parse_matrix_market<T>(io::Source{text, name}, options, 0);
}

template <class T>
void write_matrix(const std::string& path, const CsrView<T>& a, const WriteOptions& options)
{
    const io::Codec codec = io::codec_of_name(path);
    std::string_view stem = path;
    if (codec != io::Codec::none) {
        stem = stem.substr(0, stem.rfind('.'));
    }
    const bool npz = codec == io::Codec::none && stem.ends_with(".npz");
    if (!npz && !stem.ends_with(".mtx")) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: cannot tell the format to write: the name must end in .mtx, .mtx.gz, "
                                ".mtx.xz, .mtx.zst or .npz",
                                path));
    }
    validate(a);
    io::OutputFile file(path);
    if (npz) {
        io::write_npz(file, a, options);
    } else {
        io::write_matrix_market(file, codec, a, options);
    }
    file.commit();
}

#define RMSP_INSTANTIATE(T)                                                                              \
    template CsrMatrix<T> read_matrix(const std::string&, const ReadOptions&);                           \
    template CsrMatrix<T> parse_matrix_market(std::string_view, const std::string&, const ReadOptions&); \
    template void write_matrix(const std::string&, const CsrView<T>&, const WriteOptions&);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
