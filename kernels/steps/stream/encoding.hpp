#pragma once

#include <cstddef>
#include <cstdint>

/// How a piece of a CSR matrix crosses a link in fewer bytes than its arrays have, without loss. Plain C++, so that the
/// host tests it.
///
/// Every array becomes integers, and integers are packed in blocks of 256, each with the fewest bits that its codes
/// need (frame of reference: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", SPE
/// 2015). A block is a line plus codes, so that row pointers of equal rows and runs of neighbouring columns need none.
/// Entries are decoded independently of each other: no prefix sums, and any number of threads.
///
/// - row pointers: the integers themselves, from 0.
/// - columns: the integers themselves; or one integer a row, which names the list of its columns less the row's own
/// number, as
///   most rows of a stencil share few such lists.
/// - values: integers if all are such; or the bits of floats if all doubles are floats; or indices into the few that
/// occur.
namespace rmsp::kernels {

inline constexpr int packed_block = 256;
/// Rows whose columns one warp writes.
inline constexpr int pattern_rows = 32;

/// Integer i of the block is base + slope i + code i, modulo 2^32.
struct PackedBlock {
    std::uint32_t base = 0;
    std::uint32_t slope = 0;
    std::uint32_t word = 0;   ///< where the codes begin among the piece's words
    std::uint32_t width = 0;  ///< bits of a code, 0 to 32
    bool operator==(const PackedBlock&) const = default;
};

enum class ColumnCode : std::uint8_t {
    raw,       ///< not encoded
    packed,    ///< the columns
    patterns,  ///< one list a row
};

enum class ValueCode : std::uint8_t {
    raw,
    integers,
    floats,      ///< the bits of a float
    dictionary,  ///< index into a table of bit patterns
};

/// What a packet holds and where, in bytes from its start: plain data that a kernel takes by value.
struct PacketLayout {
    std::int64_t first_row = 0;  ///< number of local row 0 in the matrix, as patterns count
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
    ColumnCode columns = ColumnCode::raw;
    ValueCode values = ValueCode::raw;
    std::int64_t row_ptr_blocks = 0;
    std::int64_t column_blocks = 0;  ///< of columns, or of the rows' patterns
    std::int64_t value_blocks = 0;
    std::int64_t pattern_start = 0;    ///< 32-bit: where each pattern begins among the offsets
    std::int64_t pattern_offsets = 0;  ///< 32-bit: column - row, modulo 2^32
    std::int64_t dictionary = 0;       ///< of values
    std::int64_t words = 0;            ///< 32-bit words of codes, and one more that may be read
    std::int64_t bytes = 0;            ///< of the packet; 0: nothing is encoded, and there is none
    bool operator==(const PacketLayout&) const = default;

    bool encoded() const { return bytes > 0; }
};

constexpr std::int64_t packed_blocks(std::int64_t n) { return (n + packed_block - 1) / packed_block; }

/// Code i of a block whose first word is words[0].
constexpr std::uint32_t unpack(const std::uint32_t* words, std::uint32_t i, std::uint32_t width)
{
    if (width == 0) {
        return 0;
    }
    const std::uint32_t bit = i * width;
    const std::uint64_t pair = std::uint64_t{words[bit / 32 + 1]} << 32 | words[bit / 32];
    return static_cast<std::uint32_t>(pair >> bit % 32 & ((std::uint64_t{1} << width) - 1));
}

/// Integer i < 256 of a block.
constexpr std::uint32_t unpack(const PackedBlock& block, const std::uint32_t* words, std::uint32_t i)
{
    return block.base + block.slope * i + unpack(words + block.word, i, block.width);
}

/// Integer i of the array that the blocks hold.
constexpr std::uint32_t unpack(const PackedBlock* blocks, const std::uint32_t* words, std::int64_t i)
{
    return unpack(blocks[i / packed_block], words, static_cast<std::uint32_t>(i % packed_block));
}

}  // namespace rmsp::kernels
