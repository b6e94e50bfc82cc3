#pragma once

#include <cstdint>

#include <kernels/context.hpp>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spgemm/product_tiles.cuh>

/// How tiles are made: rows are weighed and cut, those that are too heavy into parts, and each tile's products are
/// listed.
namespace rmsp::kernels::spgemm {

inline constexpr int tile_threads = 256;                   ///< of the blocks that make them
inline constexpr std::int64_t static_shared_bytes = 1024;  ///< that a block has besides

/// What is found on the way. Zero at first.
struct Found {
    unsigned long long bytes;            ///< of shared memory that a tile takes, at most
    unsigned long long middle_products;  ///< of rows that weigh more than some_weight and at most most_weight
    unsigned long long heavy_entries;    ///< of A in heavy rows
    int weight;                          ///< of a row, at most; counted up to most_weight + 1
    int heavy;                           ///< rows
    int tiles;                           ///< that are not empty
    int used;                            ///< of them, so far
};

/// What a part weighs: much, so that few sums are left to add up, unless a device of so many multiprocessors has few
/// parts then.
constexpr std::int64_t weight_of_parts(std::int64_t products, int units)
{
    constexpr std::int64_t much = 3 * tile_weight;
    constexpr std::int64_t parts_a_unit = 4;
    return products < much * parts_a_unit * units ? tile_weight : much;
}

/// Neighbouring entries of A in one row.
struct RowPart {
    std::int64_t a;  ///< the first
    std::int32_t row;
    std::int32_t first;  ///< its number among those of all heavy rows
};

struct RowParts {
    DeviceArray<RowPart> parts;  ///< and one more behind the last: what follows it
    std::int64_t count = 0;
    std::int64_t a_entries = 0;
    std::int64_t products = 0;
    std::int64_t most = 0;  ///< products of a part, or entries of A, at most
};

/// Cuts `rows` heavy rows with so many entries of A together: those between whose sums in `before`, and the next, lies
/// weight_of_heavy. Waits for the stream. \return none if there is no room
RowParts cut_heavy_rows(const ProductSource& job, const std::int64_t* before, std::int64_t rows, std::int64_t a_entries,
                        const Context& context);

/// From the entry of C that each of n sums is a part of, all of a part being different, where each sum belongs. Waits
/// for the stream. \return none if there is no room
PartSums order_sums(DeviceArray<std::uint32_t> entries, std::int64_t c_entries, std::int64_t value_bytes,
                    const Context& context);
/// Bytes of what it returns and of what it works with.
constexpr std::int64_t bytes_of_order(std::int64_t n, std::int64_t value_bytes) { return n * (40 + value_bytes); }

/// What all of a matrix's lists share.
struct Making {
    const ProductSource& job;
    Found* device_known;
    std::int64_t most_bytes;  ///< that are left
    std::int64_t shared_limit;
    const Context& context;
    cudaStream_t stream() const { return static_cast<cudaStream_t>(context.stream); }
    Found read() const { return cuda::read(device_known, stream()); }
    /// \return whether there is so much
    bool take(std::int64_t bytes)
    {
        most_bytes -= bytes;
        return most_bytes >= 0;
    }
};

/// What is read and written where products are listed.
struct ListJob {
    const std::int32_t* first_rows;  ///< of tiles of rows
    const std::int64_t* before;      ///< weights before each row; null: none is heavy
    const RowPart* parts;            ///< of tiles that are parts
    int slots;                       ///< of a part's hash table
    std::uint32_t* first_sums;       ///< sums of each part, 0 at first, then where they begin
    std::uint32_t* entries;          ///< of C, of each sum
    int most;                        ///< entries of A, of C, and products of a tile, at most
    std::uint32_t* list;             ///< rows of 32 numbers of each tile, 0 at first, then where they begin
    Found* found;
    ProductTile* tiles;
    std::uint16_t* numbers;
    std::uint16_t* products;
    std::int32_t* of_b;
};

/// Tiles of rows, or of parts, at most `count` of them with at most so many entries of A, of C and products each, into
/// `found`. Waits for the stream. \return whether there was room
template <class T, bool Parts>
bool list_tiles(Making& making, std::int64_t count, std::int64_t most, ListJob to, ProductTiles& found);

}  // namespace rmsp::kernels::spgemm
