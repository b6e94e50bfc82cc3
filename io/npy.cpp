#include "io/npy.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <zlib.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/parallel.hpp"
#include "core/value_types.hpp"

namespace rmsp::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view magic = "\x93NUMPY"sv;

/// What follows "'key':" in the literal dictionary of a header, up to the next key; NumPy writes the keys in alphabetic
/// order, others need not. Empty if the key is absent.
std::string_view value_of(std::string_view header, std::string_view key)
{
    for (const char quote : {'\'', '"'}) {
        const std::string quoted = quote + std::string(key) + quote;
        const std::size_t at = header.find(quoted);
        if (at == std::string_view::npos) {
            continue;
        }
        std::string_view rest = header.substr(at + quoted.size());
        const std::size_t begin = rest.find_first_not_of(": \t");
        return begin == std::string_view::npos ? std::string_view{} : rest.substr(begin);
    }
    return {};
}

template <class To, class From>
void convert(const char* from, To* to, std::size_t n)
{
    for (std::size_t i = 0; i < n; ++i) {
        From value;
        std::memcpy(&value, from + i * sizeof value, sizeof value);
        to[i] = static_cast<To>(value);
    }
}

template <class To>
using Converter = void (*)(const char*, To*, std::size_t);

/// Null where no conversion is offered.
template <class To>
Converter<To> find_converter(char kind, std::size_t bytes)
{
    switch (kind) {
        case 'b':
            return bytes == 1 ? convert<To, std::uint8_t> : nullptr;
        case 'i':
            if (bytes > sizeof(To) && std::is_integral_v<To>) {
                return nullptr;  // may not fit
            }
            return bytes == 1   ? convert<To, std::int8_t>
                   : bytes == 2 ? convert<To, std::int16_t>
                   : bytes == 4 ? convert<To, std::int32_t>
                   : bytes == 8 ? convert<To, std::int64_t>
                                : nullptr;
        case 'u':
            if (bytes >= sizeof(To) && std::is_integral_v<To>) {
                return nullptr;  // may not fit
            }
            return bytes == 1   ? convert<To, std::uint8_t>
                   : bytes == 2 ? convert<To, std::uint16_t>
                   : bytes == 4 ? convert<To, std::uint32_t>
                   : bytes == 8 ? convert<To, std::uint64_t>
                                : nullptr;
        case 'f':
            if constexpr (std::is_floating_point_v<To>) {
                return bytes == 4 ? convert<To, float> : bytes == 8 ? convert<To, double> : nullptr;
            }
            return nullptr;
        default:
            return nullptr;
    }
}

template <class T>
constexpr char kind_of = std::is_floating_point_v<T> ? 'f' : 'i';

}  // namespace

NpyArray::NpyArray(const InputFile& file, const ZipMember& member) : file_(file), member_(std::in_place, file, member)
{
    open();
}

NpyArray::NpyArray(const InputFile& file) : file_(file) { open(); }

void NpyArray::open()
{
    char start[12] = {};
    read_at(0, start, 10);
    if (std::string_view(start, magic.size()) != magic) {
        fail("is not a NumPy array");
    }
    std::uint32_t header_bytes = 0;
    if (start[6] == 1) {
        std::uint16_t narrow = 0;
        std::memcpy(&narrow, start + 8, sizeof narrow);
        header_bytes = narrow;
        offset_ = 10;
    } else if (start[6] == 2 || start[6] == 3) {
        read_at(0, start, 12);
        std::memcpy(&header_bytes, start + 8, sizeof header_bytes);
        offset_ = 12;
    } else {
        fail(fmt::format("has the unknown format version {}", static_cast<int>(start[6])));
    }
    if (header_bytes > bytes() - offset_) {
        fail(fmt::format("has a header of {} bytes in {}", header_bytes, bytes()));
    }
    std::string header(header_bytes, '\0');
    read_at(offset_, header.data(), header.size());
    offset_ += header_bytes;
    parse_header(header);
    const std::uint64_t left = bytes() - offset_;
    // Any number of elements without bytes would be in the file; an empty text is one.
    if (element_bytes_ == 0
            ? size_ > 1 || left != 0
            : left % element_bytes_ != 0 || left / element_bytes_ != static_cast<std::uint64_t>(size_)) {
        fail(fmt::format("states {} elements of {} bytes, but has {} bytes", size_, element_bytes_, left));
    }
}

void NpyArray::read_at(std::uint64_t offset, void* to, std::size_t n) const
{
    if (member_) {
        member_->read_at(offset, to, n);
    } else {
        file_.read_at(offset, to, n);
    }
}

void NpyArray::fail(const std::string& what) const
{
    throw Error(ErrorCode::io, fmt::format("{} {}", describe(), what));
}

void NpyArray::parse_header(const std::string& header)
{
    std::string_view descr = value_of(header, "descr");
    if (descr.size() < 2 || (descr[0] != '\'' && descr[0] != '"')) {
        fail("has no plain element type in its header");
    }
    const std::size_t closing = descr.find(descr[0], 1);
    descr = descr.substr(1, closing == std::string_view::npos ? closing : closing - 1);
    if (descr.size() < 2 || "<|=>"sv.find(descr[0]) == std::string_view::npos) {
        fail(fmt::format("has the unknown element type '{}'", descr));
    }
    if (descr[0] == '>') {
        fail(fmt::format("has big-endian elements ('{}'), which are not supported", descr));
    }
    kind_ = descr[1];
    if (kind_ == 'c') {
        fail(fmt::format("holds complex values ('{}'), which are not supported", descr));
    }
    const auto parsed = std::from_chars(descr.data() + 2, descr.data() + descr.size(), element_bytes_);
    if ("iufbSU"sv.find(kind_) == std::string_view::npos || parsed.ec != std::errc{} ||
        parsed.ptr != descr.data() + descr.size() || element_bytes_ > (std::size_t{1} << 20)) {
        fail(fmt::format("has the unsupported element type '{}'", descr));
    }
    element_bytes_ *= kind_ == 'U' ? 4 : 1;

    std::string_view shape = value_of(header, "shape");
    shape = shape.substr(0, shape.find(')'));
    std::string digits;
    int dimensions = 0;
    for (const char c : shape.substr(std::min<std::size_t>(shape.size(), 1))) {
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            dimensions += digits.empty() || digits.back() == ',' ? 1 : 0;
            digits += c;
        } else if (c == ',') {
            digits += c;
        } else if (c != ' ' && c != 'L') {  // Python 2 wrote 3L
            fail("has a damaged shape in its header");
        }
    }
    if (!shape.starts_with('(') || dimensions > 1) {
        fail(
            fmt::format("is not a one-dimensional array (shape {})", shape.empty() ? "(missing" : shape.substr(0, 40)));
    }
    if (dimensions == 1) {
        const auto length = std::from_chars(digits.data(), digits.data() + digits.size(), size_);
        if (length.ec != std::errc{}) {
            fail(fmt::format("has the impossible shape {})", shape.substr(0, 40)));
        }
    }
}

template <class T>
std::uint32_t NpyArray::read_range(std::int64_t first, std::int64_t count, T* to, int threads) const
{
    const bool straight = kind_ == kind_of<T> && element_bytes_ == sizeof(T);
    const Converter<T> converter = find_converter<T>(kind_, element_bytes_);
    if (converter == nullptr) {
        fail(fmt::format("holds elements of kind '{}' and {} bytes, not {}", kind_, element_bytes_,
                         std::is_floating_point_v<T> ? "real numbers" : "indices"));
    }
    constexpr std::int64_t block = std::int64_t{1} << 19;
    const std::int64_t blocks = (count + block - 1) / block;
    const auto length = [&](std::int64_t b) { return static_cast<std::size_t>(std::min(block, count - b * block)); };
    std::vector<std::uint32_t> crcs(static_cast<std::size_t>(blocks));
    core::parallel_for(threads, blocks, [&](std::int64_t b) {
        const std::size_t n = length(b);
        const std::size_t bytes = n * element_bytes_;
        const std::uint64_t from = offset_ + static_cast<std::uint64_t>(first + b * block) * element_bytes_;
        std::string buffer(straight ? 0 : bytes, '\0');
        char* raw = straight ? reinterpret_cast<char*>(to + b * block) : buffer.data();
        read_at(from, raw, bytes);
        crcs[static_cast<std::size_t>(b)] =
            static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(raw), bytes));
        if (!straight) {
            converter(raw, to + b * block, n);
        }
    });
    uLong crc = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
        crc = crc32_combine(crc, crcs[static_cast<std::size_t>(b)], static_cast<z_off_t>(length(b) * element_bytes_));
    }
    return static_cast<std::uint32_t>(crc);
}

void NpyArray::check_ranges(const std::vector<ArrayRange>& ranges) const
{
    if (!member_) {
        return;
    }
    std::string header(static_cast<std::size_t>(offset_), '\0');
    read_at(0, header.data(), header.size());
    uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
    for (const ArrayRange& range : ranges) {
        crc =
            crc32_combine(crc, range.crc, static_cast<z_off_t>(static_cast<std::size_t>(range.count) * element_bytes_));
    }
    member_->check_crc(static_cast<std::uint32_t>(crc));
}

template <class T>
void NpyArray::read(T* to, int threads) const
{
    check_ranges({{size_, read_range(0, size_, to, threads)}});
}

template void NpyArray::read(std::int32_t*, int) const;
template void NpyArray::read(std::int64_t*, int) const;
template std::uint32_t NpyArray::read_range(std::int64_t, std::int64_t, std::int64_t*, int) const;
#define RMSP_INSTANTIATE(T)                      \
    template void NpyArray::read(T*, int) const; \
    template std::uint32_t NpyArray::read_range(std::int64_t, std::int64_t, T*, int) const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

std::string NpyArray::read_text() const
{
    if ((kind_ != 'S' && kind_ != 'U') || size_ != 1) {
        fail("is not a text");
    }
    std::string raw(element_bytes_, '\0');
    read_at(offset_, raw.data(), raw.size());
    std::string text;
    for (std::size_t i = 0; i < raw.size(); i += kind_ == 'U' ? 4 : 1) {
        if (raw[i] != '\0') {
            text += raw[i];
        }
    }
    return text;
}

std::string npy_header(const std::string& descr, std::int64_t size, std::optional<std::int64_t> columns)
{
    const std::string shape = size < 0  ? "()"
                              : columns ? fmt::format("({}, {})", *columns > 0 ? size / *columns : 0, *columns)
                                        : fmt::format("({},)", size);
    std::string text =
        fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, columns ? "True" : "False", shape);
    constexpr std::size_t prefix = 10;
    text.append(63 - (prefix + text.size()) % 64, ' ');
    text += '\n';
    std::string out(magic);
    out += '\1';
    out += '\0';
    out += static_cast<char>(text.size() & 0xff);
    out += static_cast<char>(text.size() >> 8);
    return out + text;
}

bool begins_as_npy(std::string_view bytes) noexcept { return bytes.starts_with(magic); }

}  // namespace rmsp::io
