#pragma once

#include <kernels/cuda_words.cuh>
#include <kernels/steps/coarsening/aggregates.hpp>
#include <kernels/steps/coarsening/edges.cuh>

/// Rows that several devices have, as kernels see them: `Most` devices at most. With one nothing is asked for.
namespace rmsp::kernels::cuda::coarsening {

/// AggregatePart::words. What is counted, and what many threads look at until it changes, is in lines of the cache
/// apart: else who counts waits for those who look. Begins where a line does.
struct RootWords {
    static constexpr int line = 256;

    alignas(line) unsigned long long roots;    ///< in the queue, from its front
    unsigned long long closed;                 ///< rows in the queue, from its back
    unsigned long long decided;                ///< of the roots, those around which rows are closed
    alignas(line) unsigned long long arrived;  ///< blocks of the device, in all meetings so far
    alignas(line) std::uint64_t found;         ///< the last meeting before which a block of the device found a root
    alignas(line) std::uint64_t go;            ///< the last meeting that has ended, and what it told
    alignas(line) std::uint64_t told[2][most_aggregate_parts];  ///< by each device, in odd and even meetings
};
static_assert(sizeof(RootWords) == aggregate_words * sizeof(std::uint64_t));

/// The neighbours of a row, in a list in which some places are empty.
struct Neighbours {
    const std::int32_t* columns;
    const std::uint8_t* strong;  ///< null: all are neighbours that are not below 0
    std::int32_t size;

    /// -1: none there.
    __device__ __forceinline__ std::int32_t operator[](std::int32_t i) const
    {
        return strong == nullptr || strong[i] == matrix::mark::strong ? columns[i] : -1;
    }
};

/// Arrays begin with the device's first row.
template <int Most>
struct Part {
    static constexpr std::int32_t too_many = -2;  ///< in the first slot of a row that has more neighbours than slots

    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    Edges edges;  ///< by marks of symmetrise()
    const std::uint8_t* strong = nullptr;
    std::uint8_t* alike = nullptr;
    std::int32_t* number = nullptr;
    std::int32_t* missing = nullptr;  ///< of each open row: itself and its neighbours around which another open row is
                                      ///< before it; 0: a root; less: closed
    std::int32_t* first = nullptr;    ///< of each row: of it and its neighbours, the first that is open, or their root;
                                      ///< -1: none
    std::int32_t* queue = nullptr;    ///< roots from the front, closed rows from the back
    std::uint8_t* state = nullptr;
    RootWords* words = nullptr;
    std::int32_t* slots = nullptr;
    int slots_each = 0;

    __device__ __forceinline__ Neighbours neighbours(std::int64_t row) const
    {
        const std::int64_t i = from_first(row);
        const std::int32_t* const own = slots + i * slots_each;
        if (slots_each > 0 && *own != too_many) {
            return {own, nullptr, slots_each};
        }
        const std::int64_t begin = edges.row_ptr[i];
        return {edges.columns + begin, edges.strong + begin, static_cast<std::int32_t>(edges.row_ptr[i + 1] - begin)};
    }
    /// An entry of one of its rows in an array of this one.
    template <class X>
    __device__ __forceinline__ X* at(X* array, std::int64_t row) const
    {
        return array + from_first(row);
    }
    __device__ __forceinline__ std::int64_t from_first(std::int64_t row) const
    {
        return Most == 1 ? row : row - first_row;
    }
    __device__ __forceinline__ std::int64_t begin(std::int64_t row) const { return edges.row_ptr[from_first(row)]; }
    __device__ __forceinline__ std::int64_t end(std::int64_t row) const { return edges.row_ptr[from_first(row) + 1]; }
    __device__ __forceinline__ bool is_strong(std::int64_t k) const { return edges.strong[k] == matrix::mark::strong; }
};

template <int Most>
struct Parts {
    explicit Parts(const AggregateParts& parts) : own_number(parts.own), count(parts.count)
    {
        for (int i = 0; i < count; ++i) {
            const AggregatePart& from = parts.part[i];
            part[i] = {from.first_row,
                       from.rows,
                       {RowPointers(from.row_ptr), from.col_idx, from.alike},
                       from.strong,
                       from.alike,
                       from.number,
                       from.missing,
                       from.first,
                       from.queue,
                       from.state,
                       reinterpret_cast<RootWords*>(from.words),
                       from.slots,
                       from.slots_each};
        }
        own = part[own_number];
    }
    /// Whose row that is.
    __device__ __forceinline__ const Part<Most>& of(std::int64_t row) const
    {
        if (Most == 1 || (row >= own.first_row && row < own.first_row + own.rows)) {
            return own;
        }
        int i = 0;
        while (i + 1 < count && row >= part[i + 1].first_row) {
            ++i;
        }
        return part[i];
    }

    Part<Most> own;  ///< the device's: part[own_number], where kernels find it soonest
    Part<Most> part[Most];
    int own_number;
    int count;
};

/// f(parts) with the least room that kernels are compiled for.
template <class F>
auto with_parts(const AggregateParts& parts, const F& f)
{
    return parts.count == 1 ? f(Parts<1>(parts)) : f(Parts<most_aggregate_parts>(parts));
}

}  // namespace rmsp::kernels::cuda::coarsening
