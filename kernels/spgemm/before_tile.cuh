#pragma once

#include <kernels/cuda_block.cuh>
#include <kernels/spgemm/device.cuh>

/// Row pointers in the pass that counts the rows: each block has a tile of rows, says how many entries they have, and
/// looks back at what the blocks before it have said (Merrill and Garland, "Single-pass parallel prefix scan with
/// decoupled look-back", 2016). Blocks begin in the order of their numbers, so that nobody waits for one that cannot.
namespace rmsp::kernels::spgemm {

/// What is known of a tile: in the upper bits whether it is its own entries, or those of all tiles up to it. Zero at
/// first.
using TileEntries = unsigned long long;
inline constexpr int tile_entries_bits = 62;
inline constexpr TileEntries own_entries = TileEntries{1} << tile_entries_bits;
inline constexpr TileEntries all_entries = TileEntries{2} << tile_entries_bits;

/// Entries of all tiles before this block's, which has `own`. A whole warp calls it, one of each block, one tile a
/// block.
__device__ __forceinline__ long long entries_before_tile(TileEntries* tiles, long long own)
{
    constexpr TileEntries counts = own_entries - 1;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto tile = static_cast<int>(blockIdx.x);
    const auto say = [&](TileEntries is) {
        if (lane == 0) {
            *static_cast<volatile TileEntries*>(tiles + tile) = is;
        }
    };
    say((tile == 0 ? all_entries : own_entries) | static_cast<TileEntries>(own));
    long long before = 0;
    for (int end = tile; end > 0; end -= 32) {
        const int at = end - 1 - lane;
        TileEntries seen = all_entries;
        do {
            if (at >= 0) {
                seen = *static_cast<volatile const TileEntries*>(tiles + at);
            }
        } while (__any_sync(whole_warp, seen < own_entries) != 0);
        const unsigned alls = __ballot_sync(whole_warp, seen >= all_entries);
        const bool counts_in = alls == 0 || lane < __ffs(static_cast<int>(alls));
        const auto own_part = counts_in ? static_cast<long long>(seen & counts) : 0LL;
        before += __shfl_sync(whole_warp, cuda::group_sum(own_part, 32), 0);
        if (alls != 0) {
            break;
        }
    }
    if (tile > 0) {
        say(all_entries | static_cast<TileEntries>(before + own));
    }
    return before;
}

}  // namespace rmsp::kernels::spgemm
