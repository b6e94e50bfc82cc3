#include "io/codec.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <fmt/format.h>

#include "core/parallel.hpp"

namespace rmsp::io {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t input_step = std::size_t{8} << 20;
constexpr std::size_t output_step = std::size_t{1} << 20;

[[noreturn]] void fail_data(const std::string& name, const char* kind, std::size_t at, std::string_view what)
{
    throw Error(ErrorCode::io, fmt::format("{}: bad {} data near compressed byte {}: {}", name, kind, at, what));
}

[[noreturn]] void fail_truncated(const std::string& name, const char* kind, std::size_t size)
{
    throw Error(ErrorCode::io,
                fmt::format("{}: truncated {} file: the data end inside a stream, after {} compressed bytes", name,
                            kind, size));
}

[[noreturn]] void fail_memory(const std::string& name, const char* kind)
{
    throw Error(ErrorCode::out_of_memory, fmt::format("{}: no memory for a {} stream", name, kind));
}

/// What comes out of a file, which a few bytes can make endless.
class WholeText final : public Unpacked {
public:
    explicit WholeText(core::ReadLimit& limit) : limit_(limit) {}

    std::span<char> room() override
    {
        char* const to = buffer_.reserve(output_step);
        return {to, std::min(buffer_.free_bytes(), input_step)};
    }
    bool take(std::size_t bytes, std::size_t /*position*/) override
    {
        limit_.take(bytes, "what it unpacks");
        buffer_.use(bytes);
        require_matrix_market(buffer_.view(), limit_.file());
        return true;
    }
    core::GrowingBuffer text() { return std::move(buffer_); }

private:
    core::ReadLimit& limit_;
    core::GrowingBuffer buffer_;
};

void decompress_gzip(std::string_view data, const std::string& name, const Progress& progress, Unpacked& out)
{
    z_stream stream{};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) {
        fail_memory(name, "gzip");
    }
    const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
    core::ProgressMeter meter(progress, "decompress", static_cast<std::int64_t>(data.size()));
    std::size_t at = 0;
    int state = Z_OK;
    while (at < data.size()) {
        if (state == Z_STREAM_END) {
            const std::string_view rest = data.substr(at);
            if (rest.find_first_not_of('\0') == std::string_view::npos) {
                break;  // zero padding, as tar and tapes leave it
            }
            if (!rest.starts_with("\x1f\x8b"sv)) {
                fail_data(name, "gzip", at, "bytes behind the last member");
            }
            inflateReset(&stream);
        }
        const std::size_t step = std::min(data.size() - at, input_step);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + at));
        stream.avail_in = static_cast<uInt>(step);
        do {
            const std::span<char> room = out.room();
            stream.next_out = reinterpret_cast<Bytef*>(room.data());
            stream.avail_out = static_cast<uInt>(room.size());
            state = inflate(&stream, Z_NO_FLUSH);
            if (!out.take(room.size() - stream.avail_out, at + step - stream.avail_in)) {
                return;
            }
            if (state == Z_MEM_ERROR) {
                fail_memory(name, "gzip");
            }
            if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
                fail_data(name, "gzip", at + step - stream.avail_in,
                          stream.msg != nullptr ? stream.msg : "unknown error");
            }
        } while (state != Z_STREAM_END && (stream.avail_in > 0 || stream.avail_out == 0));
        at += step - stream.avail_in;
        meter.advance(static_cast<std::int64_t>(step - stream.avail_in));
    }
    if (state != Z_STREAM_END) {
        fail_truncated(name, "gzip", data.size());
    }
}

const char* describe_xz(lzma_ret code) noexcept
{
    switch (code) {
        case LZMA_FORMAT_ERROR:
            return "not in the .xz format";
        case LZMA_OPTIONS_ERROR:
            return "unsupported compression options";
        case LZMA_DATA_ERROR:
            return "corrupt data";
        default:
            return "unknown error";
    }
}

void decompress_xz(std::string_view data, const std::string& name, const Progress& progress, Unpacked& out)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) {
        fail_memory(name, "xz");
    }
    const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> guard(&stream, lzma_end);
    core::ProgressMeter meter(progress, "decompress", static_cast<std::int64_t>(data.size()));
    stream.next_in = reinterpret_cast<const std::uint8_t*>(data.data());
    stream.avail_in = data.size();
    for (;;) {
        const std::uint64_t before = stream.total_in;
        const std::span<char> room = out.room();
        stream.next_out = reinterpret_cast<std::uint8_t*>(room.data());
        stream.avail_out = room.size();
        const lzma_ret code = lzma_code(&stream, LZMA_FINISH);
        const bool more = out.take(room.size() - stream.avail_out, static_cast<std::size_t>(stream.total_in));
        meter.advance(static_cast<std::int64_t>(stream.total_in - before));
        if (code == LZMA_STREAM_END || !more) {
            return;
        }
        if (code == LZMA_BUF_ERROR) {
            fail_truncated(name, "xz", data.size());
        }
        if (code == LZMA_MEM_ERROR) {
            fail_memory(name, "xz");
        }
        if (code != LZMA_OK) {
            fail_data(name, "xz", static_cast<std::size_t>(stream.total_in), describe_xz(code));
        }
    }
}

void decompress_zstd(std::string_view data, const std::string& name, const Progress& progress, Unpacked& out)
{
    const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    if (!context) {
        fail_memory(name, "zstd");
    }
    // Archives of large matrices are often made with --long, whose window is above the default limit.
    ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
    core::ProgressMeter meter(progress, "decompress", static_cast<std::int64_t>(data.size()));
    ZSTD_inBuffer in{data.data(), data.size(), 0};
    std::size_t expected = 1;
    for (;;) {
        const std::span<char> room = out.room();
        ZSTD_outBuffer block{room.data(), room.size(), 0};
        const std::size_t before = in.pos;
        expected = ZSTD_decompressStream(context.get(), &block, &in);
        if (ZSTD_isError(expected) != 0) {
            fail_data(name, "zstd", in.pos, ZSTD_getErrorName(expected));
        }
        if (!out.take(block.pos, in.pos)) {
            return;
        }
        meter.advance(static_cast<std::int64_t>(in.pos - before));
        if (in.pos == in.size && (expected == 0 || block.pos < block.size)) {
            break;
        }
    }
    if (expected != 0) {
        fail_truncated(name, "zstd", data.size());
    }
}

std::string compress_gzip(std::string_view text)
{
    z_stream stream{};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        fail_memory("output", "gzip");
    }
    const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
        throw Error(ErrorCode::internal, fmt::format("deflate did not finish a block of {} bytes", text.size()));
    }
    out.resize(out.size() - stream.avail_out);
    return out;
}

std::string compress_xz(std::string_view text)
{
    std::string out(lzma_stream_buffer_bound(text.size()), '\0');
    std::size_t used = 0;
    const lzma_ret code = lzma_easy_buffer_encode(LZMA_PRESET_DEFAULT, LZMA_CHECK_CRC64, nullptr,
                                                  reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                                  reinterpret_cast<std::uint8_t*>(out.data()), &used, out.size());
    if (code == LZMA_MEM_ERROR) {
        fail_memory("output", "xz");
    }
    if (code != LZMA_OK) {
        throw Error(ErrorCode::internal,
                    fmt::format("liblzma error {} for a block of {} bytes", static_cast<int>(code), text.size()));
    }
    out.resize(used);
    return out;
}

std::string compress_zstd(std::string_view text)
{
    std::string out(ZSTD_compressBound(text.size()), '\0');
    const std::size_t used = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT);
    if (ZSTD_isError(used) != 0) {
        throw Error(ErrorCode::internal,
                    fmt::format("zstd: {} for a block of {} bytes", ZSTD_getErrorName(used), text.size()));
    }
    out.resize(used);
    return out;
}

}  // namespace

Codec detect_codec(std::string_view bytes) noexcept
{
    if (bytes.starts_with("\x1f\x8b"sv)) {
        return Codec::gzip;
    }
    if (bytes.starts_with("\xfd"
                          "7zXZ\0"sv)) {
        return Codec::xz;
    }
    // A frame, or a skippable frame in front of one (pzstd writes them).
    const bool skippable = bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) & 0xf0U) == 0x50U &&
                           bytes.substr(1, 3) == "\x2a\x4d\x18"sv;
    if (skippable || bytes.starts_with("\x28\xb5\x2f\xfd"sv)) {
        return Codec::zstd;
    }
    return Codec::none;
}

Codec codec_of_name(std::string_view name) noexcept
{
    return name.ends_with(".gz")    ? Codec::gzip
           : name.ends_with(".xz")  ? Codec::xz
           : name.ends_with(".zst") ? Codec::zstd
                                    : Codec::none;
}

void decompress(Codec codec, std::string_view data, const std::string& name, const Progress& progress, Unpacked& out)
{
    switch (codec) {
        case Codec::gzip:
            return decompress_gzip(data, name, progress, out);
        case Codec::xz:
            return decompress_xz(data, name, progress, out);
        case Codec::zstd:
            return decompress_zstd(data, name, progress, out);
        case Codec::none:
            break;
    }
    throw Error(ErrorCode::internal, name + ": decompress() called for plain data");
}

core::GrowingBuffer decompress(Codec codec, std::string_view data, core::ReadLimit& limit, const Progress& progress)
{
    WholeText out(limit);
    decompress(codec, data, limit.file(), progress, out);
    return out.text();
}

void require_matrix_market(std::string_view beginning, const std::string& name)
{
    constexpr std::string_view expected = "%%";
    if (beginning.substr(0, 2) != expected.substr(0, beginning.size())) {
        throw Error(ErrorCode::io, fmt::format("{}: what it decompresses to does not begin with %%MatrixMarket", name));
    }
}

std::string compress_member(Codec codec, std::string text)
{
    switch (codec) {
        case Codec::gzip:
            return compress_gzip(text);
        case Codec::xz:
            return compress_xz(text);
        case Codec::zstd:
            return compress_zstd(text);
        case Codec::none:
            break;
    }
    return text;
}

}  // namespace rmsp::io
