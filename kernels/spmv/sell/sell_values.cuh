#pragma once

#include <cstdint>

#include <cuda_runtime.h>
#include <kernels/spmv/sell/sell_build.cuh>
#include <kernels/values.hpp>

/// The kernels that find out how the values of kernel "sell" can be stored, and write their tables.
namespace rmsp::kernels::sell {

__device__ __forceinline__ std::uint32_t exchange_if(std::uint32_t* place, std::uint32_t expected, std::uint32_t bits)
{
    return atomicCAS(place, expected, bits);
}
__device__ __forceinline__ std::uint64_t exchange_if(std::uint64_t* place, std::uint64_t expected, std::uint64_t bits)
{
    return atomicCAS(reinterpret_cast<unsigned long long*>(place), expected, bits);
}

/// The distinct values of a slice, in shared memory, one set a warp: bit patterns with open addressing, at most half
/// full.
template <class T>
class ValueSet {
public:
    using Bits = BitsOf<T>;
    static constexpr int places = 2 * most_table_entries;
    /// What a free place holds. A slice with this pattern, a NaN's, gets no table.
    static constexpr Bits free = ~Bits{0};

    struct Storage {
        Bits bits[places];
        std::uint8_t index[places];
    };

    /// Empties the set; all lanes.
    __device__ ValueSet(Storage& storage, int lane) : bits_(storage.bits), index_(storage.index)
    {
        for (int i = lane; i < places; i += slice_rows) {
            bits_[i] = free;
        }
        __syncwarp();
    }

    /// Adds a value of each lane that has one; all lanes. Returns how many values were new, more than a table holds if
    /// one cannot be in a table. There must be room.
    __device__ int insert(T value, bool in)
    {
        const Bits bits = bits_of(value);
        bool added = false;
        if (in && bits != free) {
            int place = first_place(bits);
            Bits found = read(place);
            while (found != bits && !added) {
                if (found == free) {
                    found = exchange_if(bits_ + place, free, bits);
                    added = found == free;
                } else {
                    place = (place + 1) % places;
                    found = read(place);
                }
            }
        }
        const bool impossible = __any_sync(whole_warp, in && bits == free) != 0;
        return impossible ? most_table_entries + 1 : __popc(__ballot_sync(whole_warp, added));
    }

    /// Numbers the values and writes them to the table; all lanes. Nothing is inserted any more.
    __device__ void number(T* table, int lane)
    {
        __syncwarp();
        int before = 0;
        for (int i = lane; i < places; i += slice_rows) {
            const Bits bits = bits_[i];
            const unsigned taken = __ballot_sync(whole_warp, bits != free);
            if (bits != free) {
                const int index = before + __popc(taken & ((1u << lane) - 1));
                index_[i] = static_cast<std::uint8_t>(index);
                reinterpret_cast<Bits*>(table)[index] = bits;
            }
            before += __popc(taken);
        }
        __syncwarp();
    }

    /// The number of a value that was inserted.
    __device__ unsigned index_of(T value) const
    {
        const Bits bits = bits_of(value);
        int place = first_place(bits);
        while (bits_[place] != bits) {
            place = (place + 1) % places;
        }
        return index_[place];
    }

private:
    static __device__ int first_place(Bits bits)
    {
        return static_cast<int>((bits * Bits(0x9e3779b97f4a7c15u)) >> (8 * sizeof(Bits) - 9));
    }
    static_assert(places == 1 << 9);

    __device__ Bits read(int place) const { return static_cast<volatile Bits*>(bits_)[place]; }

    Bits* bits_;
    std::uint8_t* index_;
};

/// Finds how the values of each slice are stored, one warp a slice, and adds up their blocks: encoded, and as they are.
template <class T, class Pointers>
__global__ void __launch_bounds__(threads)
    examine_kernel(const Matrix<T, Pointers> a, std::int64_t slices, bool encode, ValueSize* sizes,
                   unsigned long long* encoded_blocks, unsigned long long* raw_blocks)
{
    __shared__ typename ValueSet<T>::Storage storage[slices_per_block];
    const int warp = static_cast<int>(threadIdx.x) / slice_rows;
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + warp;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    const Slice slice = a.slices[index];
    if (slice.code == SliceCode::csr) {
        if (lane == 0) {
            sizes[index] = {0, SliceValues::raw};
        }
        return;
    }
    const LaneEntries entries = lane_entries(a, index, slice, lane);
    const int width = slice.width;
    ValueTraits traits;
    if (encode) {
        ValueSet<T> set(storage[warp], lane);
        for (int k = 0; k < width; ++k) {
            const bool in = entries.in(k);
            const T value = in ? __ldg(a.entries + entries.place(k)) : T{0};
            const unsigned has = __ballot_sync(whole_warp, in);
            const T first = __shfl_sync(whole_warp, value, __ffs(static_cast<int>(has)) - 1);
            traits.uniform = traits.uniform && __all_sync(whole_warp, !in || bits_of(value) == bits_of(first)) != 0;
            traits.floats = traits.floats && __all_sync(whole_warp, !in || is_float(value)) != 0;
            if (traits.distinct <= most_table_entries) {
                traits.distinct += set.insert(value, in);
            } else if (!traits.uniform && (!traits.floats || sizeof(T) == sizeof(float))) {
                break;
            }
        }
    } else {
        traits = {false, false, most_table_entries + 1};
    }
    if (lane == 0) {
        const SliceValues stored = slice_storage(traits, width, sizeof(T));
        const int blocks = value_blocks(stored, width, traits.distinct, sizeof(T));
        sizes[index] = {static_cast<std::uint16_t>(blocks), stored};
        atomicAdd(encoded_blocks, static_cast<unsigned long long>(blocks));
        atomicAdd(raw_blocks, static_cast<unsigned long long>(value_blocks(SliceValues::raw, width, 0, sizeof(T))));
    }
}

/// Writes the values of the slices that are stored uniformly or with a table, one warp a slice.
template <class T, class Pointers>
__global__ void __launch_bounds__(threads) encode_kernel(const Matrix<T, Pointers> a, std::int64_t slices)
{
    __shared__ typename ValueSet<T>::Storage storage[slices_per_block];
    const int warp = static_cast<int>(threadIdx.x) / slice_rows;
    const std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + warp;
    const int lane = static_cast<int>(threadIdx.x) % slice_rows;
    if (index >= slices) {
        return;
    }
    const Slice slice = a.slices[index];
    if (slice.code == SliceCode::csr || slice.stored == SliceValues::raw || slice.stored == SliceValues::floats) {
        return;
    }
    const LaneEntries entries = lane_entries(a, index, slice, lane);
    const int width = slice.width;
    unsigned char* const at = slice_values(a, slice);
    const auto value = [&](int k) { return entries.in(k) ? __ldg(a.entries + entries.place(k)) : T{0}; };
    if (slice.stored == SliceValues::uniform) {
        T* const table = reinterpret_cast<T*>(at);
        for (int k = 0; k < width; ++k) {
            const unsigned has = __ballot_sync(whole_warp, entries.in(k));
            const T own = value(k);
            const T common = __shfl_sync(whole_warp, own, __ffs(static_cast<int>(has)) - 1);
            if (lane == 0) {
                table[k] = common;
            }
        }
        return;
    }
    ValueSet<T> set(storage[warp], lane);
    for (int k = 0; k < width; ++k) {
        set.insert(value(k), entries.in(k));
    }
    set.number(reinterpret_cast<T*>(at + whole_blocks(index_bytes(slice.stored, width)) * slice_block_bytes), lane);
    const int bits = slice.stored == SliceValues::nibbles ? 4 : 8;
    for (int k = 0; k < width; k += slice_group) {
        unsigned indices = 0;
        for (int j = 0; j < slice_group; ++j) {
            indices |= entries.in(k + j) ? set.index_of(value(k + j)) << bits * j : 0u;
        }
        const int group = k / slice_group;
        if (bits == 4) {
            reinterpret_cast<std::uint16_t*>(at)[group * slice_rows + lane] = static_cast<std::uint16_t>(indices);
        } else {
            reinterpret_cast<std::uint32_t*>(at)[group * slice_rows + lane] = indices;
        }
    }
}

}  // namespace rmsp::kernels::sell
