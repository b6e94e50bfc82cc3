#include "io/zip.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string_view>

#include <zlib.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/parallel.hpp"

static_assert(std::endian::native == std::endian::little, ".npz files are read and written without swapping bytes");

namespace rmsp::io {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t local_bytes = 30;
constexpr std::size_t directory_bytes = 46;
constexpr std::size_t end_bytes = 22;
constexpr std::size_t end64_bytes = 56;
constexpr std::size_t locator64_bytes = 20;
constexpr std::uint16_t zip64_field = 1;
constexpr std::uint16_t stored = 0;
constexpr std::uint16_t deflated = 8;
constexpr std::uint32_t in_zip64 = 0xffffffff;  // a 32-bit field whose value is in the zip64 field

template <class U>
U load(const char* from) noexcept
{
    U value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class U>
void append(std::string& to, U value)
{
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

[[noreturn]] void fail_zip(const InputFile& file, const std::string& what)
{
    throw Error(ErrorCode::io, fmt::format("{}: bad zip file of {} bytes: {}", file.path(), file.size(), what));
}

}  // namespace

ZipArchive::ZipArchive(const InputFile& file) : file_(file)
{
    // The end record is followed by a comment of at most 65535 bytes.
    const std::size_t tail_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), end_bytes + 65535));
    const std::uint64_t tail_offset = file.size() - tail_bytes;
    std::string tail(tail_bytes, '\0');
    file.read_at(tail_offset, tail.data(), tail_bytes);
    std::string signature;
    append(signature, end_signature);
    const std::size_t at = tail_bytes < end_bytes ? std::string::npos : tail.rfind(signature, tail_bytes - end_bytes);
    if (at == std::string::npos) {
        fail_zip(file, "there is no end of a directory; the file may be truncated");
    }
    const char* end = tail.data() + at;
    std::uint64_t count = load<std::uint16_t>(end + 10);
    std::uint64_t bytes = load<std::uint32_t>(end + 12);
    std::uint64_t offset = load<std::uint32_t>(end + 16);
    if (at >= locator64_bytes && load<std::uint32_t>(end - locator64_bytes) == locator64_signature) {
        char end64[end64_bytes];
        file.read_at(load<std::uint64_t>(end - locator64_bytes + 8), end64, sizeof end64);
        if (load<std::uint32_t>(end64) != end64_signature) {
            fail_zip(file, "its zip64 directory is not where it should be");
        }
        count = load<std::uint64_t>(end64 + 32);
        bytes = load<std::uint64_t>(end64 + 40);
        offset = load<std::uint64_t>(end64 + 48);
    }
    if (offset > file.size() || bytes > file.size() - offset) {
        fail_zip(file, fmt::format("its directory of {} bytes at {} is outside of it", bytes, offset));
    }
    read_directory(offset, bytes, count);
}

void ZipArchive::read_directory(std::uint64_t offset, std::uint64_t bytes, std::uint64_t count)
{
    std::string directory(static_cast<std::size_t>(bytes), '\0');
    file_.read_at(offset, directory.data(), directory.size());
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (directory.size() - at < directory_bytes ||
            load<std::uint32_t>(directory.data() + at) != directory_signature) {
            fail_zip(file_, fmt::format("entry {} of {} in its directory is damaged", i, count));
        }
        const char* record = directory.data() + at;
        const std::size_t name_bytes = load<std::uint16_t>(record + 28);
        const std::size_t extra_bytes = load<std::uint16_t>(record + 30);
        const std::size_t record_bytes = directory_bytes + name_bytes + extra_bytes + load<std::uint16_t>(record + 32);
        if (directory.size() - at < record_bytes) {
            fail_zip(file_, fmt::format("entry {} of {} in its directory is cut", i, count));
        }
        members_.push_back(read_record(record, {record + directory_bytes + name_bytes, extra_bytes}));
        at += record_bytes;
    }
    // Which of two a reader takes is a matter of taste, and SciPy's is another than ours was.
    std::set<std::string_view> names;
    for (const ZipMember& member : members_) {
        if (!names.insert(member.name).second) {
            fail_zip(file_, fmt::format("member '{}' is there twice", member.name));
        }
    }
}

ZipMember ZipArchive::read_record(const char* record, std::string_view fields) const
{
    ZipMember member;
    member.name.assign(record + directory_bytes, load<std::uint16_t>(record + 28));
    member.method = load<std::uint16_t>(record + 10);
    member.crc = load<std::uint32_t>(record + 16);
    member.compressed_size = load<std::uint32_t>(record + 20);
    member.size = load<std::uint32_t>(record + 24);
    std::uint64_t header_offset = load<std::uint32_t>(record + 42);
    if ((load<std::uint16_t>(record + 8) & 1U) != 0) {
        fail_zip(file_, fmt::format("member '{}' is encrypted", member.name));
    }
    while (fields.size() >= 4) {
        const std::size_t n = load<std::uint16_t>(fields.data() + 2);
        if (n > fields.size() - 4) {
            fail_zip(file_, fmt::format("an extra field of member '{}' is cut", member.name));
        }
        if (load<std::uint16_t>(fields.data()) == zip64_field) {
            // Holds only the values that did not fit, in this order.
            std::string_view values = fields.substr(4, n);
            for (std::uint64_t* value : {&member.size, &member.compressed_size, &header_offset}) {
                if (*value == in_zip64) {
                    if (values.size() < 8) {
                        fail_zip(file_, fmt::format("the zip64 sizes of member '{}' are cut", member.name));
                    }
                    *value = load<std::uint64_t>(values.data());
                    values.remove_prefix(8);
                }
            }
        }
        fields.remove_prefix(4 + n);
    }
    locate_data(member, header_offset);
    return member;
}

void ZipArchive::locate_data(ZipMember& member, std::uint64_t header_offset) const
{
    char header[local_bytes];
    file_.read_at(header_offset, header, sizeof header);
    if (load<std::uint32_t>(header) != local_signature) {
        fail_zip(file_, fmt::format("member '{}' is not at byte {}", member.name, header_offset));
    }
    member.data_offset =
        header_offset + local_bytes + load<std::uint16_t>(header + 26) + load<std::uint16_t>(header + 28);
    if (member.data_offset > file_.size() || member.compressed_size > file_.size() - member.data_offset) {
        fail_zip(file_, fmt::format("member '{}' of {} bytes at {} reaches beyond its end", member.name,
                                    member.compressed_size, member.data_offset));
    }
    // Deflate gives at most 1032 bytes for one; a larger claim is refused before memory is taken for it.
    const bool plausible = member.method == stored     ? member.size == member.compressed_size
                           : member.method == deflated ? member.size / 1032 <= member.compressed_size
                                                       : true;
    if (!plausible) {
        fail_zip(file_, fmt::format("member '{}' claims {} bytes from {} stored ones", member.name, member.size,
                                    member.compressed_size));
    }
}

const ZipMember* ZipArchive::find(std::string_view name) const noexcept
{
    const auto found =
        std::find_if(members_.begin(), members_.end(), [&](const ZipMember& m) { return m.name == name; });
    return found == members_.end() ? nullptr : &*found;
}

ZipMemberData::ZipMemberData(const InputFile& file, const ZipMember& member) : file_(file), member_(member)
{
    if (member.method == stored) {
        return;
    }
    if (member.method != deflated) {
        throw Error(ErrorCode::io, fmt::format("{}: compression method {} is not supported (stored and deflated are)",
                                               describe(), member.method));
    }
    z_stream stream{};
    if (inflateInit2(&stream, -15) != Z_OK) {
        throw Error(ErrorCode::out_of_memory, fmt::format("{}: no memory for a deflate stream", describe()));
    }
    const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
    file.limit().take(member.size, fmt::format("what member '{}' unpacks", member.name));
    constexpr std::uint64_t step = std::uint64_t{1} << 26;  // zlib counts in 32 bits
    const char* from = file.bytes().data() + member.data_offset;
    std::uint64_t left = member.compressed_size;
    int state = Z_OK;
    // One byte more than it should give, to notice a member that gives more.
    while (state == Z_OK && inflated_.size() <= member.size) {
        if (stream.avail_in == 0) {
            const std::uint64_t n = std::min(left, step);
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from));
            stream.avail_in = static_cast<uInt>(n);
            from += n;
            left -= n;
        }
        const std::uint64_t room = std::min(member.size + 1 - inflated_.size(), step);
        stream.next_out = reinterpret_cast<Bytef*>(inflated_.reserve(static_cast<std::size_t>(room)));
        stream.avail_out = static_cast<uInt>(room);
        state = inflate(&stream, Z_NO_FLUSH);
        inflated_.use(static_cast<std::size_t>(room - stream.avail_out));
    }
    if (state != Z_STREAM_END || inflated_.size() != member.size) {
        throw Error(ErrorCode::io, fmt::format("{}: bad deflate data: {} of {} bytes, {}", describe(), inflated_.size(),
                                               member.size, stream.msg != nullptr ? stream.msg : "wrong length"));
    }
}

std::string ZipMemberData::describe() const { return fmt::format("{}: member '{}'", file_.path(), member_.name); }

void ZipMemberData::read_at(std::uint64_t offset, void* to, std::size_t n) const
{
    if (offset > size() || n > size() - offset) {
        throw Error(ErrorCode::io, fmt::format("{} ends at byte {}, but {} bytes are expected from byte {}", describe(),
                                               size(), n, offset));
    }
    if (member_.method == stored) {
        file_.read_at(member_.data_offset + offset, to, n);
    } else {
        std::copy_n(inflated_.view().data() + offset, n, static_cast<char*>(to));
    }
}

void ZipMemberData::check_crc(std::uint32_t crc) const
{
    if (crc != member_.crc) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: checksum {:08x} of its {} bytes differs from the directory's {:08x}", describe(),
                                crc, size(), member_.crc));
    }
}

std::uint32_t parallel_crc32(const void* data, std::size_t bytes, int threads)
{
    constexpr std::size_t block = std::size_t{1} << 22;
    const auto blocks = static_cast<std::int64_t>((bytes + block - 1) / block);
    std::vector<std::uint32_t> crcs(static_cast<std::size_t>(blocks));
    const auto length = [&](std::size_t i) { return std::min(block, bytes - i * block); };
    core::parallel_for(threads, blocks, [&](std::int64_t b) {
        const auto i = static_cast<std::size_t>(b);
        crcs[i] = static_cast<std::uint32_t>(crc32_z(0, static_cast<const Bytef*>(data) + i * block, length(i)));
    });
    uLong crc = 0;
    for (std::size_t i = 0; i < crcs.size(); ++i) {
        crc = crc32_combine(crc, crcs[i], static_cast<z_off_t>(length(i)));
    }
    return static_cast<std::uint32_t>(crc);
}

namespace {

// 1980-01-01, the first date that ZIP can tell: equal matrices then give equal files.
constexpr std::uint32_t fixed_date = 0x00210000;

/// Version needed, flags, method, date, checksum, sizes, name length: the fields that both kinds of headers share.
void append_common(std::string& to, bool zip64, std::uint32_t crc, std::uint64_t size, std::size_t name_bytes)
{
    append<std::uint16_t>(to, zip64 ? 45 : 20);
    append<std::uint16_t>(to, 0);
    append<std::uint16_t>(to, stored);
    append<std::uint32_t>(to, fixed_date);
    append<std::uint32_t>(to, crc);
    append<std::uint32_t>(to, zip64 ? in_zip64 : static_cast<std::uint32_t>(size));
    append<std::uint32_t>(to, zip64 ? in_zip64 : static_cast<std::uint32_t>(size));
    append<std::uint16_t>(to, static_cast<std::uint16_t>(name_bytes));
}

}  // namespace

void ZipWriter::add(const std::string& name, const std::vector<Piece>& pieces)
{
    uLong crc = 0;
    std::uint64_t size = 0;
    for (const Piece& piece : pieces) {
        crc = crc32_combine(crc, parallel_crc32(piece.data, piece.bytes, core::thread_count(0)),
                            static_cast<z_off_t>(piece.bytes));
        size += piece.bytes;
    }
    members_.push_back({name, static_cast<std::uint32_t>(crc), size, file_.written()});
    const bool zip64 = always_zip64_ || size >= in_zip64;
    std::string header;
    append<std::uint32_t>(header, local_signature);
    append_common(header, zip64, members_.back().crc, size, name.size());
    append<std::uint16_t>(header, zip64 ? 20 : 0);
    header += name;
    if (zip64) {
        append<std::uint16_t>(header, zip64_field);
        append<std::uint16_t>(header, 16);
        append<std::uint64_t>(header, size);
        append<std::uint64_t>(header, size);
    }
    file_.write(header);
    for (const Piece& piece : pieces) {
        file_.write(piece.data, piece.bytes);
    }
}

void ZipWriter::finish()
{
    const std::uint64_t directory_offset = file_.written();
    std::string out;
    for (const Written& member : members_) {
        const bool zip64 = always_zip64_ || member.size >= in_zip64 || member.offset >= in_zip64;
        append<std::uint32_t>(out, directory_signature);
        append<std::uint16_t>(out, zip64 ? 45 : 20);
        append_common(out, zip64, member.crc, member.size, member.name.size());
        append<std::uint16_t>(out, zip64 ? 28 : 0);
        append<std::uint16_t>(out, 0);  // comment
        append<std::uint16_t>(out, 0);  // disk
        append<std::uint16_t>(out, 0);  // internal attributes
        append<std::uint32_t>(out, 0);  // external attributes
        append<std::uint32_t>(out, zip64 ? in_zip64 : static_cast<std::uint32_t>(member.offset));
        out += member.name;
        if (zip64) {
            append<std::uint16_t>(out, zip64_field);
            append<std::uint16_t>(out, 24);
            append<std::uint64_t>(out, member.size);
            append<std::uint64_t>(out, member.size);
            append<std::uint64_t>(out, member.offset);
        }
    }
    const std::uint64_t directory_size = out.size();
    const auto count = static_cast<std::uint64_t>(members_.size());
    const bool zip64 = always_zip64_ || directory_offset >= in_zip64;
    if (zip64) {
        append<std::uint32_t>(out, end64_signature);
        append<std::uint64_t>(out, end64_bytes - 12);
        append<std::uint16_t>(out, 45);
        append<std::uint16_t>(out, 45);
        append<std::uint32_t>(out, 0);
        append<std::uint32_t>(out, 0);
        append<std::uint64_t>(out, count);
        append<std::uint64_t>(out, count);
        append<std::uint64_t>(out, directory_size);
        append<std::uint64_t>(out, directory_offset);
        append<std::uint32_t>(out, locator64_signature);
        append<std::uint32_t>(out, 0);
        append<std::uint64_t>(out, directory_offset + directory_size);
        append<std::uint32_t>(out, 1);
    }
    append<std::uint32_t>(out, end_signature);
    append<std::uint16_t>(out, 0);
    append<std::uint16_t>(out, 0);
    append<std::uint16_t>(out, static_cast<std::uint16_t>(count));
    append<std::uint16_t>(out, static_cast<std::uint16_t>(count));
    append<std::uint32_t>(out, static_cast<std::uint32_t>(directory_size));
    append<std::uint32_t>(out, zip64 ? in_zip64 : static_cast<std::uint32_t>(directory_offset));
    append<std::uint16_t>(out, 0);
    file_.write(out);
}

}  // namespace rmsp::io
