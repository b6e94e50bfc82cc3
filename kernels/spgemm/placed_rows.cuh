#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kernels/context.hpp>
#include <kernels/spgemm/product_tiles.cuh>

/// The places from which repeated values are computed: a few threads add up a row of C in shared memory, one row of B
/// after the other, and each product knows where in the row its sum is. No column is read, and no place is looked up.
/// Heavy rows, of very many products or entries of C, are tiles' parts instead.
namespace rmsp::kernels::spgemm {

/// Of an entry of A: its row of B.
struct alignas(8) PlacedEntry {
    std::int32_t begin;      ///< in B
    std::uint32_t products;  ///< number of the first in the row of C, and how many there are in the upper half
    __device__ __forceinline__ int first() const { return static_cast<int>(products & 0xffff); }
    __device__ __forceinline__ int count() const { return static_cast<int>(products >> 16); }
};

/// A row of so few products is a thread's, if all are: then a word has all places of a row.
inline constexpr unsigned most_of_a_thread = 16;
inline constexpr int bits_of_a_place = 4;

/// \name What a row has in shared memory: entries of A and their values, as many as lanes, and sums. From one row of a
/// warp to the next both are a bit farther, so that they are in other banks: what neighbouring rows read and write
/// together is in the same places of each
/// @{
inline constexpr int placed_factor_bytes = 16;
constexpr int placed_factors(int lanes) { return lanes < 32 ? lanes + 1 : lanes; }
constexpr int placed_sums_bytes(int room, int lanes, int value_bytes)
{
    constexpr int all_banks = 128;
    return (room * value_bytes + all_banks - 1) / all_banks * all_banks + (lanes < 32 ? lanes * 4 : 0);
}
constexpr int placed_row_bytes(int room, int lanes, int value_bytes)
{
    return placed_factors(lanes) * placed_factor_bytes + placed_sums_bytes(room, lanes, value_bytes);
}
/// @}

/// Rows of C that one launch takes.
struct PlacedLaunch {
    std::int64_t first;  ///< in the list
    std::int64_t rows;
    int room;  ///< entries of C in a row, at most
};

struct PlacedRows {
    DeviceArray<PlacedEntry> entries;   ///< of A; empty: there are none
    DeviceArray<std::uint32_t> begins;  ///< the first product of each row, and where the last ends
    DeviceArray<std::uint16_t> places;  ///< of each product: in its row of C
    DeviceArray<std::int32_t> list;     ///< of rows, by their room
    DeviceArray<std::uint64_t> words;   ///< in place of the three before, where all rows are short: places, 4 bits each
    std::vector<PlacedLaunch> launches;
    int lanes = 32;      ///< that take a row
    int room = 0;        ///< entries of a short row of C, at most
    ProductTiles heavy;  ///< rows that would hold up the others, cut into parts
    bool overlaps = false;
    bool empty() const { return entries.size() == 0; }
    std::size_t bytes() const
    {
        return entries.size() * sizeof(PlacedEntry) + begins.size() * sizeof(std::uint32_t) +
               places.size() * sizeof(std::uint16_t) + list.size() * sizeof(std::int32_t) +
               words.size() * sizeof(std::uint64_t) + heavy.bytes();
    }
};

/// Places of all products, within so many bytes, and if the device has them. Waits for the stream. \return empty if the
/// columns of a row of B do not rise, if all rows are heavy, if counts are too large for the arrays, or if there is no
/// room
template <class T>
PlacedRows place_rows(const ProductSource& job, std::int64_t most_bytes, const Context& context);
/// values = alpha times the sums of the products, in the order of A. The sums of parts are kept in `placed`: one call
/// at a time.
template <class T>
void sum_placed(PlacedRows& placed, const ProductSource& job, T alpha, const T* a_values, const T* b_values, T* values,
                cudaStream_t stream);

}  // namespace rmsp::kernels::spgemm
