#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory.hpp"
#include "io/file.hpp"

/// The parts of the ZIP format (PKWARE APPNOTE 6.3.10) that .npz files use: stored and deflated members, zip64.
/// By hand, because stored members are read in place by all threads; libzip and libarchive give a stream.
namespace rmsp::io {

/// As a member begins, or the end record of an archive without members.
constexpr bool begins_as_zip(std::string_view bytes) noexcept
{
    using namespace std::string_view_literals;
    return bytes.starts_with("PK\3\4"sv) || bytes.starts_with("PK\5\6"sv);
}

struct ZipMember {
    std::string name;
    std::uint16_t method = 0;  ///< 0 stored, 8 deflated
    std::uint32_t crc = 0;
    std::uint64_t compressed_size = 0;
    std::uint64_t size = 0;
    std::uint64_t data_offset = 0;
};

/// Directory of a ZIP file, checked against the file's size.
class ZipArchive {
public:
    /// \throws Error(io)
    explicit ZipArchive(const InputFile& file);
    const InputFile& file() const noexcept { return file_; }
    const std::vector<ZipMember>& members() const noexcept { return members_; }
    /// Null if there is no such member.
    const ZipMember* find(std::string_view name) const noexcept;

private:
    void read_directory(std::uint64_t offset, std::uint64_t bytes, std::uint64_t count);
    ZipMember read_record(const char* record, std::string_view fields) const;
    void locate_data(ZipMember& member, std::uint64_t header_offset) const;

    const InputFile& file_;
    std::vector<ZipMember> members_;
};

/// Bytes of one member: stored ones come straight from the file, deflated ones are inflated (and checked) when it is
/// opened.
class ZipMemberData {
public:
    /// \throws Error(io)
    ZipMemberData(const InputFile& file, const ZipMember& member);
    const ZipMember& member() const noexcept { return member_; }
    std::uint64_t size() const noexcept { return member_.size; }
    /// "FILE: member 'NAME'", for messages.
    std::string describe() const;
    /// Any thread. \throws Error(io)
    void read_at(std::uint64_t offset, void* to, std::size_t n) const;
    /// \throws Error(io) if the checksum of the whole member differs from the directory's
    void check_crc(std::uint32_t crc) const;

private:
    const InputFile& file_;
    const ZipMember& member_;
    core::GrowingBuffer inflated_;
};

/// Writes a ZIP file of stored members, with zip64 fields where sizes ask for them.
class ZipWriter {
public:
    struct Piece {
        const void* data;
        std::size_t bytes;
    };

    /// `always_zip64` writes the zip64 fields even where they are not needed.
    explicit ZipWriter(OutputFile& file, bool always_zip64 = false) : file_(file), always_zip64_(always_zip64) {}
    /// Adds a member made of the pieces, one behind the other. The checksum is computed in parallel before.
    void add(const std::string& name, const std::vector<Piece>& pieces);
    /// Writes the directory.
    void finish();

private:
    struct Written {
        std::string name;
        std::uint32_t crc;
        std::uint64_t size;
        std::uint64_t offset;
    };

    OutputFile& file_;
    bool always_zip64_;
    std::vector<Written> members_;
};

/// CRC-32 of a large block, computed by all threads.
std::uint32_t parallel_crc32(const void* data, std::size_t bytes, int threads);

}  // namespace rmsp::io
