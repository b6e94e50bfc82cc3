#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/zip.hpp"

/// NumPy's array files (NEP 1), as members of an .npz file.
namespace rmsp::io {

/// A one-dimensional array or a scalar in a member of an .npz file: header parsed, elements read on demand.
class NpyArray {
public:
    /// \throws Error(io) if the member is not such an array
    NpyArray(const InputFile& file, const ZipMember& member);

    std::int64_t size() const noexcept { return size_; }
    /// 'i' signed, 'u' unsigned, 'f' floating, 'b' boolean, 'S' bytes, 'U' UTF-32 text; others are refused.
    char kind() const noexcept { return kind_; }
    std::size_t element_bytes() const noexcept { return element_bytes_; }
    std::string describe() const { return data_.describe(); }

    /// Reads all elements, converted to T, by several threads, and checks the checksum. Elements that are T already go
    /// from the file straight to `to`. \throws Error(io) also if the elements are not integers that T can hold, where T
    /// is an integer
    template <class T>
    void read(T* to, int threads) const;
    /// The text of a scalar of kind S or U. \throws Error(io)
    std::string read_text() const;

private:
    void parse_header(const std::string& header);
    [[noreturn]] void fail(const std::string& what) const;

    ZipMemberData data_;
    std::uint64_t offset_ = 0;  ///< of the first element in the member
    std::int64_t size_ = 1;
    char kind_ = 0;
    std::size_t element_bytes_ = 0;
};

/// Header of a one-dimensional array (size < 0: of a scalar), padded so that the elements begin at a multiple of 64
/// bytes.
std::string npy_header(const std::string& descr, std::int64_t size);

}  // namespace rmsp::io
