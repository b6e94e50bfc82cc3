#pragma once

#include <kernels/spgemm/device.cuh>

/// The hash table of a row that a block takes.
namespace rmsp::kernels::spgemm {

/// From a column to its place in the row of C, with linear probing.
struct ColumnTable {
    static constexpr unsigned free_slot = 0xffffffffu;
    uint2* slots;
    unsigned count;

    __device__ __forceinline__ unsigned first_slot(unsigned column) const
    {
        // The upper bits of a product with 2^32 over the golden ratio spread neighbours evenly.
        return __umulhi(column * 0x9e3779b1u, count);
    }
    __device__ __forceinline__ unsigned next_slot(unsigned slot) const { return slot + 1 < count ? slot + 1 : 0; }
    __device__ __forceinline__ void clear(int thread, int threads)
    {
        for (unsigned i = thread; i < count; i += threads) {
            slots[i] = {free_slot, 0};
        }
    }
    __device__ __forceinline__ void insert(unsigned column, unsigned place)
    {
        unsigned slot = first_slot(column);
        while (atomicCAS(&slots[slot].x, free_slot, column) != free_slot) {
            slot = next_slot(slot);
        }
        slots[slot].y = place;
    }
    /// Of a column that is there.
    __device__ __forceinline__ unsigned find(unsigned column) const
    {
        unsigned slot = first_slot(column);
        while (true) {
            const uint2 s = slots[slot];
            if (s.x == column || s.x == free_slot) {
                return s.y;
            }
            slot = next_slot(slot);
        }
    }
};

}  // namespace rmsp::kernels::spgemm
