#pragma once

#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_lines.cuh>
#include <kernels/steps/pass/pass.hpp>

/// The end of a kernel that computes inner products: the blocks' sums, then those of the devices, then the program.
namespace rmsp::kernels::cuda {

inline constexpr int pass_threads = 256;

/// Where a device keeps its own sums between a kernel that sends them and the one that waits for those of the others.
__device__ __forceinline__ double* own_sums(const PassPlace& place)
{
    return reinterpret_cast<double*>(static_cast<char*>(place.workspace) + 64);
}

/// Leaves what this device found in every other's lines. By pass_threads threads; `total` is in shared memory.
__device__ __forceinline__ void send_sums(const double* total, int dots, const PassPlace& place)
{
    const auto tag = static_cast<std::uint32_t>(place.epoch);
    const int words = place.devices * most_pass_dots;
    for (int i = static_cast<int>(threadIdx.x); i < words; i += pass_threads) {
        const int other = i / most_pass_dots;
        const int d = i % most_pass_dots;
        if (d < dots && other != place.device) {
            const auto bits = static_cast<std::uint64_t>(__double_as_longlong(total[d]));
            const Line line{{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), 0}, tag};
            store_line(static_cast<Line*>(place.lines_out[other]) + place.device * most_pass_dots + d, line);
        }
    }
}

/// Adds what the others leave in the lines here, in the order of the devices. By pass_threads threads; `total` is in
/// shared memory.
__device__ __forceinline__ void add_devices(double* total, int dots, const PassPlace& place)
{
    __shared__ double from[most_pass_devices * most_pass_dots];
    const auto tag = static_cast<std::uint32_t>(place.epoch);
    const int words = place.devices * most_pass_dots;
    // A look at the host's memory takes about as long as a thousand at a line.
    constexpr unsigned looks_between = 1u << 12;
    for (int i = static_cast<int>(threadIdx.x); i < words; i += pass_threads) {
        const int other = i / most_pass_dots;
        const int d = i % most_pass_dots;
        if (d < dots) {
            double value = total[d];
            if (other != place.device) {
                Line line{};
                for (unsigned looks = 1;; ++looks) {
                    line = load_line(static_cast<const Line*>(place.lines_in) + i);
                    if (line.tag == tag || (looks % looks_between == 0 && *place.given_up >= place.epoch)) {
                        break;
                    }
                }
                value = __longlong_as_double(static_cast<long long>(std::uint64_t{line.word[1]} << 32 | line.word[0]));
            }
            from[i] = value;
        }
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < dots) {
        double sum = 0;
        for (int device = 0; device < place.devices; ++device) {
            sum += from[device * most_pass_dots + threadIdx.x];
        }
        total[threadIdx.x] = sum;
    }
    __syncthreads();
}

inline constexpr int shared_ops = 64;

/// Puts the sums into the bank and runs the program, on shared memory where it fits: its steps wait for each other. By
/// pass_threads threads.
__device__ __forceinline__ void run_with_sums(const double* total, int dots, const std::int16_t* into,
                                              const PassPlace& place)
{
    __shared__ double bank[pass_threads];
    __shared__ ScalarOp ops[shared_ops];
    const int thread = static_cast<int>(threadIdx.x);
    const bool fits = place.numbers <= pass_threads && place.ops <= shared_ops;
    if (fits) {
        if (thread < place.numbers) {
            bank[thread] = place.bank[thread];
        }
        if (thread < place.ops) {
            ops[thread] = place.program[thread];
        }
        __syncthreads();
    }
    if (thread == 0) {
        double* const numbers = fits ? bank : place.bank;
        for (int d = 0; d < dots; ++d) {
            numbers[into[d]] = total[d];
        }
        run_program(numbers, place.progress, fits ? ops : place.program, place.ops);
    }
    if (fits) {
        __syncthreads();
        if (thread < place.numbers) {
            place.bank[thread] = bank[thread];
        }
    }
}

/// Each thread of a kernel of blocks of pass_threads threads calls it once, with its sums. The last block to come adds
/// those of all blocks, in an order that depends on their number alone.
template <int Dots>
__device__ __forceinline__ void finish_sums(const double (&sums)[Dots > 0 ? Dots : 1], int dots,
                                            const std::int16_t* into, const PassPlace& place)
{
    __shared__ double warp_sums[pass_threads / 32];
    __shared__ double total[most_pass_dots];
    __shared__ bool last;
    auto* const finished = static_cast<unsigned*>(place.workspace);
    auto* const partial = reinterpret_cast<double*>(static_cast<char*>(place.workspace) + 128);
    const unsigned blocks = gridDim.x;
#pragma unroll
    for (int d = 0; d < Dots; ++d) {
        const double sum = block_sum<pass_threads>(sums[d], warp_sums);
        if (threadIdx.x == 0) {
            partial[d * 2048 + blockIdx.x] = sum;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(finished, 1u) + 1 == blocks;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
#pragma unroll
    for (int d = 0; d < Dots; ++d) {
        double sum = 0;
        for (unsigned b = threadIdx.x; b < blocks; b += pass_threads) {
            sum += __ldcg(partial + d * 2048 + b);
        }
        sum = block_sum<pass_threads>(sum, warp_sums);
        if (threadIdx.x == 0) {
            total[d] = sum;
        }
        __syncthreads();
    }
    if (place.sums == PassSums::left) {
        if (static_cast<int>(threadIdx.x) < dots) {
            place.left[place.device * most_pass_dots + threadIdx.x] = total[threadIdx.x];
        }
        if (threadIdx.x == 0) {
            *finished = 0;
        }
        return;
    }
    if (place.sums == PassSums::sent) {
        send_sums(total, dots, place);
        if (static_cast<int>(threadIdx.x) < dots) {
            own_sums(place)[threadIdx.x] = total[threadIdx.x];
        }
        if (threadIdx.x == 0) {
            *finished = 0;
        }
        return;
    }
    if (place.sums == PassSums::lines && dots > 0) {
        send_sums(total, dots, place);
        add_devices(total, dots, place);
    }
    if (threadIdx.x == 0) {
        *finished = 0;
    }
    run_with_sums(total, dots, into, place);
}

}  // namespace rmsp::kernels::cuda
