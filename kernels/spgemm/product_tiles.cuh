#pragma once

#include <cstddef>
#include <cstdint>

#include <kernels/context.hpp>
#include <kernels/spgemm/product_source.cuh>

/// The list from which repeated values are computed: the products of neighbouring rows lie side by side in shared
/// memory, in the order of A and of the rows of B, and each entry of C knows which of them it is the sum of. No column
/// is read, and no place is looked up. A row with very many products is cut into parts, each a tile of its own; what
/// they have of an entry is added up afterwards, in the order of A.
namespace rmsp::kernels::spgemm {

/// Neighbouring rows that a block takes, or a part of a row.
struct alignas(16) ProductTile {
    std::int64_t a;          ///< first entry of A
    std::int64_t c;          ///< first entry of C; of a part, its first sum
    std::uint32_t list;      ///< where its numbers begin, in rows of 32
    std::int32_t list_rows;  ///< of 32 numbers
    std::int32_t a_entries;  ///< at most 65535, as all counts of a tile
    std::int32_t c_entries;  ///< of a part: that it has products of
    std::int32_t products;
    std::int32_t long_entries;  ///< entries of C with more than most_of_a_lane products, which a warp adds up
};

/// \name A tile's numbers, of 16 bits, each kind from a multiple of 32 on
/// 1. For each slice where its rows of products begin, and where the last ends. Each long entry is a slice; others
///    come 32 a slice, those with most products first.
/// 2. For each entry in the order of the slices its place in the tile's part of C.
/// 3. Rows of 32 products: step by step one of each entry of a slice, or 32 of a long entry.
/// @{
constexpr int slices_of_tile(int c_entries, int long_entries)
{
    return long_entries + (c_entries - long_entries + 31) / 32;
}
constexpr int rows_of_32(int n) { return (n + 31) / 32; }
/// @}

inline constexpr int most_of_a_lane = 32;

/// Bytes of shared memory that the products, the sums and the numbers of a tile take.
template <class T>
constexpr std::int64_t bytes_of_tile(int list_rows, int products, int c_entries)
{
    return std::int64_t{list_rows} * 64 +
           (std::int64_t{products} + 1 + c_entries) * static_cast<std::int64_t>(sizeof(T));
}

/// A row weighs as much as it has products, or entries of A if those are more. A tile has rows until it weighs
/// tile_weight. Heavy rows, of more than most_weight, are cut into parts; where few of the products are in rows of more
/// than some_weight, those are cut as well, so that all other tiles get by with little shared memory.
inline constexpr std::int64_t tile_weight = 1024;
inline constexpr std::int64_t some_weight = 1536;
inline constexpr std::int64_t most_weight = 12000;

/// What a heavy row weighs where tiles of rows are cut: its tile ends behind it, and leaves it out.
inline constexpr std::int64_t weight_of_heavy = 16 * tile_weight;
static_assert(weight_of_heavy > most_weight);

/// Tiles that one launch takes.
struct TileList {
    DeviceArray<ProductTile> tiles;      ///< empty: there are none
    DeviceArray<std::uint16_t> numbers;  ///< of all tiles
    std::int64_t shared_bytes = 0;       ///< of the largest tile
    int threads = 0;                     ///< that take a tile
    int lanes = 0;                       ///< that take an entry of A
    std::size_t bytes() const { return tiles.size() * sizeof(ProductTile) + numbers.size() * sizeof(std::uint16_t); }
};

/// Sums of parts, those of an entry of C side by side in the order of the parts.
struct PartSums {
    DeviceArray<std::uint32_t> places;   ///< of each sum, those of a part side by side
    DeviceArray<std::uint32_t> entries;  ///< of C: all of the heavy rows
    DeviceArray<std::uint32_t> begins;   ///< of each entry's sums, and where the last ends
    DeviceArray<std::byte> sums;
    std::size_t bytes() const
    {
        return (places.size() + entries.size() + begins.size()) * sizeof(std::uint32_t) + sums.size();
    }
};

struct ProductTiles {
    TileList rows;
    TileList parts;  ///< of heavy rows
    PartSums sums;
    bool overlaps = false;                ///< whether launches may, on this device
    DeviceArray<std::uint16_t> products;  ///< for each entry of A the number of its first product in the tile
    DeviceArray<std::int32_t> of_b;       ///< and what is added to a product's number to have its place in B
    bool empty() const { return rows.tiles.size() + parts.tiles.size() == 0; }
    std::size_t bytes() const
    {
        return rows.bytes() + parts.bytes() + sums.bytes() + products.size() * sizeof(std::uint16_t) +
               of_b.size() * sizeof(std::int32_t);
    }
};

/// Tiles of all rows, within so many bytes, and if the device has them. Waits for the stream. \return empty if a heavy
/// row touches a row of B that is too long for a part, if A or B has 2^31 entries or more, or C 2^32, or if there is no
/// room
template <class T>
ProductTiles make_tiles(const ProductSource& job, std::int64_t most_bytes, const Context& context);
struct HeavyCount {
    std::int64_t rows;
    std::int64_t a_entries;
};
/// Parts of heavy rows alone, those between whose sums in `before`, and the next, lies weight_of_heavy.
template <class T>
ProductTiles make_parts(const ProductSource& job, const std::int64_t* before, HeavyCount count, std::int64_t most_bytes,
                        const Context& context);
/// values = alpha times the sums of the products. The sums of parts are kept in `tiles`: one call at a time.
template <class T>
void sum_tiles(ProductTiles& tiles, T alpha, const T* a_values, const T* b_values, T* values, cudaStream_t stream);
/// In two steps, between which, or before which, others may compute the other rows: sums of parts, if there are any,
/// whose launch is the first of the phase, and what is added up of them, whose launch is the last.
/// @{
template <class T>
void sum_parts(ProductTiles& tiles, T alpha, const T* a_values, const T* b_values, Overlap& overlap,
               cudaStream_t stream);
template <class T>
void add_parts(const ProductTiles& tiles, T alpha, T* values, Overlap overlap, cudaStream_t stream);
/// @}

}  // namespace rmsp::kernels::spgemm
