#pragma once

#include <cstdint>

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#include <kernels/cuda_block.cuh>
#include <kernels/spmv/common/pieces.cuh>
#include <kernels/spmv/packed_tiles/layout.hpp>

/// Sums of rows whose ends are bits, for kernels whose warps multiply tiles of consecutive entries, 8 a lane
/// (layout.hpp).
namespace rmsp::kernels::row_ends {

inline constexpr unsigned whole_warp = 0xffffffffu;
inline constexpr int lane_entries = packed_tuning.lane_entries;
inline constexpr int warps = packed_tuning.warps();

template <bool Overwrite, class T>
__device__ __forceinline__ void write_row(T alpha, T sum, T beta, T* y)
{
    *y = Overwrite ? alpha * sum : alpha * sum + beta * *y;
}

/// Sums over the lanes since the last one in `ending`, that one and the own included: `rest` is what a lane has behind
/// the last row that ends in it, or all of it if none does.
template <class T>
__device__ __forceinline__ T running_sum(T rest, unsigned ending, int lane)
{
    const unsigned before = ending & ((2u << lane) - 1);
    const int reach = before != 0 ? lane - (31 - __clz(static_cast<int>(before))) : lane;
    const int longest = __reduce_max_sync(whole_warp, reach);
#pragma unroll 1
    for (int offset = 1; offset <= longest; offset *= 2) {
        const T left = __shfl_up_sync(whole_warp, rest, offset);
        if (offset <= reach) {
            rest += left;
        }
    }
    return rest;
}

/// What the lanes before have of the row that is the first to end in this one.
template <class T>
__device__ __forceinline__ T from_before(T running, int lane)
{
    const T before = __shfl_up_sync(whole_warp, running, 1);
    return lane == 0 ? T{0} : before;
}

/// What the warps of a block tell each other.
template <class T>
struct Shared {
    T heads[warps];  ///< of the first row that ends in a warp, what the warp has
    T rests[warps];
    std::int32_t head_rows[warps];
    int4 cuts[warps];

    __device__ __forceinline__ PackedCuts own_cuts() const
    {
        const int4 own = cuts[threadIdx.x / 32];
        return {own.x, own.y, own.z, own.w};
    }
};
static_assert(sizeof(PackedCuts) == sizeof(int4));

/// The rows of a warp. All lanes call together.
template <class T>
struct Rows {
    T rest = 0;                  ///< of this warp: behind the last row that ended
    std::int32_t head_row = -1;  ///< the first that ended

    /// Adds a tile.
    /// \param ends  bit k: entry k of the lane ends a row
    /// \param first_row  number of the first row that ends in this lane
    /// \param product  of entry k
    /// \param meanwhile  called when the products are summed
    /// \param write  row and sum, of rows that began in this warp
    template <class Product, class Meanwhile, class Write>
    __device__ __forceinline__ void add(unsigned ends, std::int32_t first_row, Shared<T>& shared, Product&& product,
                                        Meanwhile&& meanwhile, Write&& write)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const unsigned other_ends = ends & (ends - 1);
        T first = 0;
        T sum = lane == 0 ? rest : T{0};
        if (!__any_sync(whole_warp, other_ends != 0)) {
            const int end = __ffs(static_cast<int>(ends)) - 1;
#pragma unroll
            for (int k = 0; k < lane_entries; ++k) {
                sum += product(k);
                if (k == end) {
                    first = sum;
                    sum = 0;
                }
            }
        } else {
            const unsigned first_end = ends ^ other_ends;
            std::int32_t row = first_row;
#pragma unroll
            for (int k = 0; k < lane_entries; ++k) {
                sum += product(k);
                if ((other_ends >> k & 1u) != 0) {
                    ++row;
                    write(row, sum);
                }
                if ((first_end >> k & 1u) != 0) {
                    first = sum;
                }
                if ((ends >> k & 1u) != 0) {
                    sum = 0;
                }
            }
        }
        meanwhile();
        const unsigned ending = __ballot_sync(whole_warp, ends != 0);
        sum = running_sum(sum, ending, lane);
        first += from_before(sum, lane);
        rest = __shfl_sync(whole_warp, sum, 31);
        bool writes = ends != 0;
        if (head_row < 0 && ending != 0) {
            const int head_lane = __ffs(static_cast<int>(ending)) - 1;
            head_row = __shfl_sync(whole_warp, first_row, head_lane);
            if (lane == head_lane) {
                shared.heads[threadIdx.x / 32] = first;
                writes = false;
            }
        }
        if (writes) {
            write(first_row, first);
        }
    }

    /// Writes the first row that ended in this warp, which may have begun in others, and hands over what it has of the
    /// block's last one. All threads of the block call together.
    /// \param slots  of pieces, one a warp
    template <class Write>
    __device__ __forceinline__ void finish(Shared<T>& shared, T* slots, Write&& write) const
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        if (lane == 0) {
            shared.rests[warp] = rest;
            shared.head_rows[warp] = head_row;
            __pipeline_wait_prior(0);
            const PackedCuts cuts = shared.own_cuts();
            if (cuts.own_piece >= 0) {
                pieces::store(slots + cuts.own_piece * warps + warp, warp >= cuts.first_warp ? rest : T{0});
            }
        }
        __syncthreads();
        if (head_row < 0) {
            return;
        }
        // What the warps before have of the row, back to the last one in which a row ended.
        const unsigned ended = __ballot_sync(whole_warp, lane < warp && shared.head_rows[lane] >= 0);
        const int from = 31 - __clz(static_cast<int>(ended | 1));
        T before = lane >= from && lane < warp ? shared.rests[lane] : T{0};
        if (ended == 0) {
            const PackedCuts cuts = shared.own_cuts();
            before += pieces::take_share(slots + cuts.first_piece * warps, cuts.pieces * warps, lane);
            before = cuda::group_sum(before, 32);
        } else {
            before = cuda::group_sum(before, warps);
        }
        if (lane == 0) {
            write(head_row, shared.heads[warp] + before);
        }
    }
};

/// Asks for what the warp has to know of its block's cuts: not needed before the end, until then in no registers.
template <class T>
__device__ __forceinline__ void request_cuts(Shared<T>& shared, const PackedCuts* cuts)
{
    if (threadIdx.x % 32 == 0) {
        __pipeline_memcpy_async(&shared.cuts[threadIdx.x / 32], cuts + blockIdx.x, sizeof(PackedCuts));
        __pipeline_commit();
    }
}

}  // namespace rmsp::kernels::row_ends
