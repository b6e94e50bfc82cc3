#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/zip.hpp"

/// NumPy's array files (NEP 1), by themselves or as members of an .npz file.
namespace rmsp::io {

/// So many elements of an array, and the checksum of their bytes.
struct ArrayRange {
    std::int64_t count = 0;
    std::uint32_t crc = 0;
};

/// A one-dimensional array or a scalar in a file or in a member of an .npz file: header parsed, elements read on
/// demand.
class NpyArray {
public:
    /// \throws Error(io) if the member, or the file, is not such an array
    NpyArray(const InputFile& file, const ZipMember& member);
    explicit NpyArray(const InputFile& file);

    std::int64_t size() const noexcept { return size_; }
    /// 'i' signed, 'u' unsigned, 'f' floating, 'b' boolean, 'S' bytes, 'U' UTF-32 text; others are refused.
    char kind() const noexcept { return kind_; }
    std::size_t element_bytes() const noexcept { return element_bytes_; }
    std::string describe() const { return member_ ? member_->describe() : file_.path(); }

    /// Reads all elements, converted to T, by several threads, and checks a member's checksum. Elements that are T
    /// already go from the file straight to `to`. \throws Error(io) also if the elements are not integers that T can
    /// hold, where T is an integer
    template <class T>
    void read(T* to, int threads) const;
    /// Reads elements [first, first + count), converted in the same way. Returns the checksum of their bytes.
    template <class T>
    std::uint32_t read_range(std::int64_t first, std::int64_t count, T* to, int threads) const;
    /// \throws Error(io) if the checksums of the ranges, which are all elements in turn, are not those of the member
    void check_ranges(const std::vector<ArrayRange>& ranges) const;
    /// The text of a scalar of kind S or U. \throws Error(io)
    std::string read_text() const;

private:
    void open();
    void parse_header(const std::string& header);
    std::uint64_t bytes() const noexcept { return member_ ? member_->size() : file_.size(); }
    void read_at(std::uint64_t offset, void* to, std::size_t n) const;
    [[noreturn]] void fail(const std::string& what) const;

    const InputFile& file_;
    std::optional<ZipMemberData> member_;  ///< none: the file itself is the array
    std::uint64_t offset_ = 0;             ///< of the first element
    std::int64_t size_ = 1;
    char kind_ = 0;
    std::size_t element_bytes_ = 0;
};

/// Header of a one-dimensional array (size < 0: of a scalar), or of one with so many columns, one after the other;
/// padded so that the elements begin at a multiple of 64 bytes.
std::string npy_header(const std::string& descr, std::int64_t size, std::optional<std::int64_t> columns = {});

/// Whether that is how an array file begins.
bool begins_as_npy(std::string_view bytes) noexcept;

}  // namespace rmsp::io
