#pragma once

#include <cfloat>
#include <cstdint>

#include <kernels/steps/sparse_inverse/system.cuh>

/// Least squares by Householder's reflections (Golub, Van Loan: Matrix Computations, algorithm 5.3.2), as
/// matrix::least_squares(), by a thread block for a row of M.
namespace rmsp::kernels::cuda::inverse {

/// Of lanes that lie side by side, all of a warp taking part; each gets the same bits.
template <int lanes>
__device__ __forceinline__ double sum_of_lanes(double v)
{
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, distance);
    }
    return v;
}

/// What reflects a column to (r, 0, ..., 0) behind its first k entries.
struct Reflection {
    double r = 0;       ///< with the sign that does not cancel
    double v = 0;       ///< entry k of what it is reflected along, whose others are the column's
    double factor = 0;  ///< 2 / |v|^2; 0: the column depends on those before it, to working precision
};

/// \param own  entry k of the column \param below  squares of the entries from k on \param above  of those before it:
/// reflections keep the norm of the whole column
__device__ __forceinline__ Reflection reflection_of(double own, double below, double above, int rows)
{
    const double norm = sqrt(below);
    Reflection h;
    h.r = own > 0 ? -norm : norm;
    h.v = own - h.r;
    const double squares = below - 2 * h.r * own + h.r * h.r;
    const bool regular = norm > sqrt(below + above) * rows * DBL_EPSILON && isfinite(norm);
    h.factor = regular ? 2 / squares : 0;
    return h;
}

/// Systems whose columns lie in registers, PerLane entries in each of Lanes threads. A column more is the right-hand
/// side.
template <int Threads, int Lanes, int PerLane>
struct Tile {
    static constexpr int threads = Threads;
    static constexpr int lanes = Lanes;
    static constexpr int per_lane = PerLane;
    static constexpr int most_cols = Threads / Lanes - 1;
    static constexpr int most_rows = Lanes * PerLane;
    static constexpr int stride = most_rows + Lanes;  // lanes of neighbouring columns are in different banks
    static constexpr int slots = 2 * most_rows;
};

template <class T, class Class>
__global__ void __launch_bounds__(Class::threads, 512 / Class::threads)
    solve_in_registers(Source<T> a, Target m, bool least_squares, const std::int32_t* __restrict__ list,
                       std::int64_t count, T* __restrict__ values, Status* status)
{
    constexpr int lanes = Class::lanes;
    constexpr int per_lane = Class::per_lane;
    __shared__ double entries[(Class::most_cols + 1) * Class::stride];
    __shared__ double along[2][Class::most_rows];
    __shared__ double factor[2];
    __shared__ std::int32_t keys[Class::slots];
    __shared__ std::int32_t numbers[Class::slots];
    __shared__ std::int32_t found[Class::most_rows];
    __shared__ int found_count;
    const Room room{entries, Class::stride, keys, numbers, found, Class::slots, &found_count};
    const int thread = static_cast<int>(threadIdx.x);
    const int column = thread / lanes;
    const int lane = thread % lanes;
    const int warp = thread / 32;
    constexpr int columns_per_warp = 32 / lanes;
    for (std::int64_t item = blockIdx.x; item < count; item += gridDim.x) {
        const std::int64_t begin = m.row_ptr[list[item]];
        const int n = static_cast<int>(m.row_ptr[list[item] + 1] - begin);
        const std::int64_t row = m.first + list[item];
        const int rows = make_system(a, least_squares, row, m.col_idx + begin, n, lanes, room);
        double c[per_lane];
#pragma unroll
        for (int q = 0; q < per_lane; ++q) {
            c[q] = column <= n ? entries[column * Class::stride + q * lanes + lane] : 0.0;
        }
        bool solved = true;
        for (int k = 0; k < n; ++k) {
            double* const v = along[k % 2];
            if (warp == k / columns_per_warp) {
                double own = 0;
                double below = 0;
                double above = 0;
#pragma unroll
                for (int q = 0; q < per_lane; ++q) {
                    const int i = q * lanes + lane;
                    const double square = c[q] * c[q];
                    own += i == k ? c[q] : 0.0;
                    below += i >= k ? square : 0.0;
                    above += i < k ? square : 0.0;
                }
                const Reflection h = reflection_of(sum_of_lanes<lanes>(own), sum_of_lanes<lanes>(below),
                                                   sum_of_lanes<lanes>(above), rows);
                if (column == k) {
#pragma unroll
                    for (int q = 0; q < per_lane; ++q) {
                        const int i = q * lanes + lane;
                        v[i] = i > k ? c[q] : i == k ? h.v : 0.0;
                        c[q] = i == k ? h.r : c[q];
                    }
                    if (lane == 0) {
                        factor[k % 2] = h.factor;
                    }
                }
            }
            // Two of `along` and `factor`: who comes here for k + 1 has read those of k.
            __syncthreads();
            solved = factor[k % 2] != 0;
            if (!solved) {
                break;
            }
            if ((warp + 1) * columns_per_warp > k + 1) {
                double sum = 0;
#pragma unroll
                for (int q = 0; q < per_lane; ++q) {
                    sum += v[q * lanes + lane] * c[q];
                }
                sum = sum_of_lanes<lanes>(sum) * factor[k % 2];
                sum = column > k ? sum : 0.0;
#pragma unroll
                for (int q = 0; q < per_lane; ++q) {
                    c[q] -= sum * v[q * lanes + lane];
                }
            }
        }
        if (column <= n) {
#pragma unroll
            for (int q = 0; q < per_lane; ++q) {
                entries[column * Class::stride + q * lanes + lane] = c[q];
            }
        }
        __syncthreads();
        if (solved) {
            solve_triangle(room, n);
        }
        __syncthreads();
        write_row(a, solved, row, m.col_idx + begin, n, room, values + begin, status);
    }
}

inline constexpr int wide_threads = 256;

/// The parts of a thread block's memory for a system of `rows` rows and n columns, and the bytes of all.
struct WideLayout {
    __host__ __device__ WideLayout(std::int64_t n, std::int64_t rows)
        : stride(rows | 1),
          slots(slots_for(rows)),
          bytes(static_cast<std::int64_t>(sizeof(double)) * ((n + 1) * stride + n) +
                static_cast<std::int64_t>(sizeof(std::int32_t)) * (2 * slots + rows))
    {
    }
    std::int64_t stride;
    std::int64_t slots;
    std::int64_t bytes;
};

/// Systems of any size, in shared memory or, where `workspace` is not null, in that: `workspace_bytes` a thread block.
/// A column is a warp's at a time.
template <class T>
__global__ void __launch_bounds__(wide_threads)
    solve_in_memory(Source<T> a, Target m, bool least_squares, const std::int32_t* __restrict__ system_rows,
                    const std::int32_t* __restrict__ list, std::int64_t count, char* workspace,
                    std::int64_t workspace_bytes, T* __restrict__ values, Status* status)
{
    extern __shared__ double shared_room[];
    __shared__ double factor;
    __shared__ int found_count;
    double* const place = workspace == nullptr
                              ? shared_room
                              : reinterpret_cast<double*>(workspace + std::int64_t{blockIdx.x} * workspace_bytes);
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    const int warp = thread / 32;
    for (std::int64_t item = blockIdx.x; item < count; item += gridDim.x) {
        const std::int64_t begin = m.row_ptr[list[item]];
        const int n = static_cast<int>(m.row_ptr[list[item] + 1] - begin);
        const std::int64_t row = m.first + list[item];
        const WideLayout layout(n, system_rows[list[item]]);
        double* const diagonal = place + (std::int64_t{n} + 1) * layout.stride;
        auto* const keys = reinterpret_cast<std::int32_t*>(diagonal + n);
        const Room room{place,
                        static_cast<int>(layout.stride),
                        keys,
                        keys + layout.slots,
                        keys + 2 * layout.slots,
                        static_cast<int>(layout.slots),
                        &found_count};
        const int rows = make_system(a, least_squares, row, m.col_idx + begin, n, 32, room);
        bool solved = true;
        for (int k = 0; k < n; ++k) {
            double* const v = place + k * layout.stride;
            if (warp == 0) {
                double below = 0;
                double above = 0;
                for (int i = lane; i < rows; i += 32) {
                    const double square = v[i] * v[i];
                    (i >= k ? below : above) += square;
                }
                const Reflection h =
                    reflection_of(k < rows ? v[k] : 0.0, sum_of_lanes<32>(below), sum_of_lanes<32>(above), rows);
                __syncwarp();
                if (lane == 0) {
                    factor = h.factor;
                    diagonal[k] = h.r;
                    if (k < rows) {
                        v[k] = h.v;
                    }
                }
            }
            __syncthreads();
            const double of_all = factor;
            solved = of_all != 0;
            if (!solved) {
                break;
            }
            for (int j = k + 1 + warp; j <= n; j += wide_threads / 32) {
                double* const c = place + j * layout.stride;
                double sum = 0;
                for (int i = k + lane; i < rows; i += 32) {
                    sum += v[i] * c[i];
                }
                sum = sum_of_lanes<32>(sum) * of_all;
                for (int i = k + lane; i < rows; i += 32) {
                    c[i] -= sum * v[i];
                }
            }
            __syncthreads();
        }
        for (int k = thread; k < n && solved; k += wide_threads) {
            place[k * layout.stride + k] = diagonal[k];
        }
        __syncthreads();
        if (solved) {
            solve_triangle(room, n);
        }
        __syncthreads();
        write_row(a, solved, row, m.col_idx + begin, n, room, values + begin, status);
    }
}

}  // namespace rmsp::kernels::cuda::inverse
