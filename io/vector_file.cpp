#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/parallel.hpp"
#include "core/reading.hpp"
#include "io/codec.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/read_matrix.hpp"

namespace rmsp {
namespace {

/// The entries of a matrix of one column, zeros where it stores nothing.
template <class T>
HostVector<T> column_of(const CsrMatrix<T>& a, core::ReadLimit& limit)
{
    if (a.cols != 1) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: a vector is one column; this is {} x {}", limit.file(), a.rows, a.cols));
    }
    limit.take(static_cast<core::uint128>(a.rows) * sizeof(T), "the vector");
    HostVector<T> out(static_cast<std::size_t>(a.rows));
    for (std::size_t row = 0; row < out.size(); ++row) {
        out[row] = T{0};
        for (auto k = static_cast<std::size_t>(a.row_ptr[row]); k < static_cast<std::size_t>(a.row_ptr[row + 1]); ++k) {
            out[row] += a.values[k];
        }
    }
    return out;
}

template <class T>
std::string lines_of(std::span<const T> entries)
{
    constexpr std::size_t longest_line = 24 + 1;
    std::string text(entries.size() * longest_line, '\0');
    char* p = text.data();
    for (const T entry : entries) {
        p = std::to_chars(p, text.data() + text.size(), entry).ptr;
        *p++ = '\n';
    }
    text.resize(static_cast<std::size_t>(p - text.data()));
    return text;
}

/// `columns`: of an array of two dimensions; none: a vector.
template <class T>
void write_dense(const std::string& path, std::span<const T> entries, std::optional<std::int64_t> columns)
{
    const auto endings = written_vector_endings();
    if (std::none_of(endings.begin(), endings.end(), [&](std::string_view ending) { return path.ends_with(ending); })) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot tell the format to write: the name must end in one of {}",
                                               path, fmt::join(endings, ", ")));
    }
    io::OutputFile file(path);
    const auto size = static_cast<std::int64_t>(entries.size());
    if (path.ends_with(".npy")) {
        file.write(io::npy_header(sizeof(T) == 4 ? "<f4" : "<f8", size, columns));
        file.write(entries.data(), entries.size_bytes());
    } else {
        const io::Codec codec = io::codec_of_name(path);
        const std::int64_t wide = columns.value_or(1);
        file.write(io::compress_member(
            codec, fmt::format("%%MatrixMarket matrix array real general\n{} {}\n", wide > 0 ? size / wide : 0, wide)));
        constexpr std::size_t piece = std::size_t{1} << 20;
        for (std::size_t first = 0; first < entries.size(); first += piece) {
            const auto part = entries.subspan(first, std::min(piece, entries.size() - first));
            file.write(io::compress_member(codec, lines_of(part)));
        }
    }
    file.commit();
}

}  // namespace

template <class T>
HostVector<T> read_vector(const std::string& path, const ReadOptions& options)
{
    return core::reading(path, [&]() -> HostVector<T> {
        core::ReadLimit limit(path, options.max_bytes);
        const io::InputFile file(limit);
        if (!io::begins_as_npy(file.bytes())) {
            if (path.ends_with(".npy")) {
                throw Error(ErrorCode::io, fmt::format("{}: not an .npy file: its {} bytes do not begin as one does",
                                                       path, file.size()));
            }
            return column_of(io::read_matrix<T>(file, options), limit);
        }
        const io::NpyArray array(file);
        limit.take(static_cast<core::uint128>(array.size()) * sizeof(T), "the vector");
        HostVector<T> out(static_cast<std::size_t>(array.size()));
        array.read(out.data(), core::thread_count(options.threads));
        return out;
    });
}

std::span<const std::string_view> written_vector_endings() noexcept
{
    static constexpr std::array<std::string_view, 5> endings{".npy", ".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst"};
    return endings;
}

template <class T>
void write_vector(const std::string& path, std::span<const T> entries)
{
    write_dense(path, entries, {});
}

template <class T>
void write_columns(const std::string& path, std::span<const T> entries, std::int64_t columns)
{
    const auto size = static_cast<std::int64_t>(entries.size());
    if (columns < 0 || (columns == 0 ? size != 0 : size % columns != 0)) {
        throw Error(ErrorCode::usage, fmt::format("{}: {} entries are not {} whole columns", path, size, columns));
    }
    write_dense(path, entries, columns);
}

#define RMSP_INSTANTIATE(T)                                                     \
    template HostVector<T> read_vector(const std::string&, const ReadOptions&); \
    template void write_vector(const std::string&, std::span<const T>);         \
    template void write_columns(const std::string&, std::span<const T>, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
