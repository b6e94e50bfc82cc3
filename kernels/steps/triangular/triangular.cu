#include <algorithm>
#include <bit>
#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_load.cuh>
#include <kernels/cuda_slots.cuh>
#include <kernels/steps/triangular/triangular.hpp>

namespace rmsp::kernels {
namespace cuda::triangular {
namespace {

constexpr int threads = 256;
constexpr unsigned whole_warp = 0xffffffffu;
constexpr int in_flight = 4;  // entries of a long row that a lane asks for at the same time

/// At the beginning of the workspace, zero before the first launch.
struct Turn {
    unsigned taken;     ///< blocks of this launch that have rows; 0 between launches
    unsigned finished;  ///< blocks of this launch that are done; 0 between launches
    unsigned launches;  ///< so far: says which of the two sets of slots is in use
};

/// A result on its way to the rows that wait for it, as it is in memory: 0 until it is there.
template <class T>
using SlotBits = typename slots::EmptySlot<T>::Bits;

template <class T>
__device__ __forceinline__ SlotBits<T> look(const SlotBits<T>* slot)
{
    return *static_cast<const volatile SlotBits<T>*>(slot);
}

template <class T>
__device__ __forceinline__ T number_in(SlotBits<T> bits)
{
    return slots::from_bits(bits ^ slots::EmptySlot<T>::bits);
}

template <class T>
__device__ __forceinline__ void publish(SlotBits<T>* slot, T result)
{
    SlotBits<T> bits = slots::to_bits(result) ^ slots::EmptySlot<T>::bits;
    bits = bits == 0 ? 1 : bits;
    *static_cast<volatile SlotBits<T>*>(slot) = bits;
}

/// Adds what the next `count` entries of a lane contribute, one after the other, as far as their results are there;
/// `entry` becomes the first one that was not added. Whether all were there.
template <int count, int lanes, class T>
__device__ __forceinline__ bool take_entries(const TriangleShard<T>& triangle, const SlotBits<T>* filled,
                                             std::int64_t& entry, T& sum)
{
    T value[count];
    SlotBits<T> bits[count];
#pragma unroll
    for (int k = 0; k < count; ++k) {
        value[k] = __ldg(triangle.values + entry + k * lanes);
        bits[k] = look<T>(filled + __ldg(triangle.col_idx + entry + k * lanes));
    }
    bool there = true;
#pragma unroll
    for (int k = 0; k < count; ++k) {
        there = there && bits[k] != 0;
        if (there) {
            sum += value[k] * number_in<T>(bits[k]);
            entry += lanes;
        }
    }
    return there;
}

/// `lanes` neighbouring threads solve a row each time. Rows wait for the results of others in their slots, without a
/// barrier between levels. (Liu, Li, Hogg, Duff, Vinter: A synchronization-free algorithm for parallel sparse
/// triangular solves, Euro-Par 2016)
///
/// Blocks take rows in the order of the places, by a ticket when they begin to run, so that a row waits only for rows
/// of blocks that run, or are done. A thread never stays with one entry while its warp has other rows whose entries are
/// there: rows of one warp may wait for each other.
///
/// A launch fills one set of slots and empties the other one, which the launch before filled.
template <class T, int lanes>
__global__ void __launch_bounds__(threads) solve_kernel(const __grid_constant__ TriangleShard<T> triangle, const T* b,
                                                        T* x, Turn* turn, SlotBits<T>* all_slots, const double* skip)
{
    if (skip != nullptr && *skip != 0) {
        return;
    }
    __shared__ unsigned ticket;
    __shared__ unsigned set;
    if (threadIdx.x == 0) {
        ticket = atomicAdd(&turn->taken, 1u);
        set = __ldcg(&turn->launches) % 2;
    }
    __syncthreads();
    SlotBits<T>* const filled = all_slots + (set == 0 ? 0 : triangle.rows);
    SlotBits<T>* const emptied = all_slots + (set == 0 ? triangle.rows : 0);

    constexpr int rows_each = threads / lanes;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const unsigned group = (whole_warp >> (32 - lanes)) << (threadIdx.x % 32 / lanes * lanes);
    const std::int64_t place = std::int64_t{ticket} * rows_each + threadIdx.x / lanes;
    bool waits = place < triangle.rows;
    std::int64_t row = 0;
    std::int64_t entry = 0;
    std::int64_t end = 0;
    if (waits) {
        row = __ldg(triangle.row + place);
        entry = __ldg(triangle.row_ptr + place) + lane;
        end = __ldg(triangle.row_ptr + place + 1);
    }
    T right = 0;
    T scale = 1;
    if (waits && lane == 0) {
        right = b[row];
        scale = triangle.inverse_diagonal != nullptr ? __ldg(triangle.inverse_diagonal + place) : T{1};
    }
    T sum = 0;
    while (true) {
        bool there = true;
        while (there && end - entry > (in_flight - 1) * lanes) {
            there = take_entries<in_flight, lanes>(triangle, filled, entry, sum);
        }
        while (there && entry < end) {
            there = take_entries<1, lanes>(triangle, filled, entry, sum);
        }
        const unsigned missing = __ballot_sync(whole_warp, entry < end);
        const bool complete = waits && (missing & group) == 0;
        if (__any_sync(whole_warp, complete)) {
            const T total = group_sum(sum, lanes);
            if (complete && lane == 0) {
                const T result = (right - total) * scale;
                publish(filled + row, result);
                x[row] = result;
                emptied[row] = 0;
            }
            waits = waits && !complete;
        }
        if (!__any_sync(whole_warp, waits)) {
            break;
        }
    }

    __syncthreads();
    if (threadIdx.x == 0 && atomicInc(&turn->finished, gridDim.x - 1) == gridDim.x - 1) {  // wraps to 0
        turn->taken = 0;
        ++turn->launches;
    }
}

template <class T>
using SolveKernel = void (*)(TriangleShard<T>, const T*, T*, Turn*, SlotBits<T>*, const double*);

/// The kernel for rows of so many entries on average.
template <class T>
SolveKernel<T> kernel_for(std::int64_t mean)
{
    return mean <= 4    ? solve_kernel<T, 4>
           : mean <= 8  ? solve_kernel<T, 8>
           : mean <= 16 ? solve_kernel<T, 16>
                        : solve_kernel<T, 32>;
}
int lanes_for(std::int64_t mean) { return mean <= 4 ? 4 : mean <= 8 ? 8 : mean <= 16 ? 16 : 32; }

template <class T>
void solve_levels(const TriangleShard<T>& triangle, const T* b, T* x, void* workspace, const double* skip,
                  const Context& context)
{
    if (triangle.rows == 0) {
        return;
    }
    static_assert(sizeof(Turn) <= 64);
    const std::int64_t mean = (triangle.nnz + triangle.rows - 1) / triangle.rows;
    const std::int64_t rows_each = threads / lanes_for(mean);
    const auto blocks = static_cast<unsigned>((triangle.rows + rows_each - 1) / rows_each);
    auto* const slots = reinterpret_cast<SlotBits<T>*>(static_cast<char*>(workspace) + 64);
    kernel_for<T>(mean)<<<blocks, threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
        triangle, b, x, static_cast<Turn*>(workspace), slots, skip);
    RMSP_CUDA_CHECK_LAUNCH("solve_levels");
}

template <class T>
void load_kernels()
{
    for (const std::int64_t mean : {4, 8, 16, 32}) {
        cudaFuncAttributes attributes{};
        RMSP_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel_for<T>(mean)));
    }
}

void load_triangular(const Context& /*context*/)
{
    static cuda::LoadedKernels loaded;
    loaded.need([] {
#define RMSP_LOAD(T) load_kernels<T>();
        RMSP_FOR_EACH_VALUE_TYPE(RMSP_LOAD)
#undef RMSP_LOAD
    });
}

}  // namespace
}  // namespace cuda::triangular

RMSP_ROW(TriangularLoading, cuda, .load_triangular = cuda::triangular::load_triangular)

RMSP_VALUE_ROW(TriangularSolves, cuda, .solve_levels = cuda::triangular::solve_levels<T>)

}  // namespace rmsp::kernels
