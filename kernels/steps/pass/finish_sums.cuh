#pragma once

#include <cstdint>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_lines.cuh>
#include <kernels/steps/pass/exact_sums.cuh>
#include <kernels/steps/pass/pass.hpp>

/// The end of a kernel that computes inner products: the blocks' sums, then those of the devices, then the program.
namespace rmsp::kernels::cuda {

/// Where a device keeps its own sums between a kernel that sends them and the one that waits for those of the others.
__device__ __forceinline__ double* own_sums(const PassPlace& place)
{
    return reinterpret_cast<double*>(static_cast<char*>(place.workspace) + 64);
}

/// Leaves a number in a line there, of another device.
__device__ __forceinline__ void send_number(const PassPlace& place, int other, int line, std::uint64_t bits)
{
    const auto tag = static_cast<std::uint32_t>(place.epoch);
    store_line(static_cast<Line*>(place.lines_out[other]) + line,
               {{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), 0}, tag});
}

/// Waits for what another device leaves in a line here.
__device__ __forceinline__ std::uint64_t receive_number(const PassPlace& place, int line)
{
    const auto tag = static_cast<std::uint32_t>(place.epoch);
    // A look at the host's memory takes about as long as a thousand at a line.
    constexpr unsigned looks_between = 1u << 12;
    for (unsigned looks = 1;; ++looks) {
        const Line found = load_line(static_cast<const Line*>(place.lines_in) + line);
        if (found.tag == tag || (looks % looks_between == 0 && *place.given_up >= place.epoch)) {
            return std::uint64_t{found.word[1]} << 32 | found.word[0];
        }
    }
}

/// Leaves what this device found in every other's lines. By pass_threads threads; `total` is in shared memory.
__device__ __forceinline__ void send_sums(const double* total, int dots, const PassPlace& place)
{
    const int words = place.devices * most_pass_dots;
    for (int i = static_cast<int>(threadIdx.x); i < words; i += pass_threads) {
        const int other = i / most_pass_dots;
        const int d = i % most_pass_dots;
        if (d < dots && other != place.device) {
            send_number(place, other, place.device * most_pass_dots + d,
                        static_cast<std::uint64_t>(__double_as_longlong(total[d])));
        }
    }
}

/// Adds what the others leave in the lines here, in the order of the devices. By pass_threads threads; `total` is in
/// shared memory.
__device__ __forceinline__ void add_devices(double* total, int dots, const PassPlace& place)
{
    __shared__ double from[most_pass_devices * most_pass_dots];
    const int words = place.devices * most_pass_dots;
    for (int i = static_cast<int>(threadIdx.x); i < words; i += pass_threads) {
        const int other = i / most_pass_dots;
        const int d = i % most_pass_dots;
        if (d < dots) {
            from[i] = other == place.device ? total[d]
                                            : __longlong_as_double(static_cast<long long>(receive_number(place, i)));
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

/// As send_sums(), the words of exact sums.
__device__ __forceinline__ void send_words(const std::int64_t* words, int dots, const PassPlace& place)
{
    const int count = dots * exact::words;
    for (int i = static_cast<int>(threadIdx.x); i < place.devices * count; i += pass_threads) {
        const int other = i / count;
        if (other != place.device) {
            send_number(place, other, static_cast<int>(place.device * pass_words) + i % count,
                        static_cast<std::uint64_t>(words[i % count]));
        }
    }
}

/// As add_devices(), the words of exact sums, in any order.
__device__ __forceinline__ void add_words(std::int64_t* words, int dots, const PassPlace& place)
{
    __syncthreads();  // send_words() has read them
    const int count = dots * exact::words;
    for (int i = static_cast<int>(threadIdx.x); i < place.devices * count; i += pass_threads) {
        const int other = i / count;
        if (other != place.device) {
            add_word(
                words, i % count,
                static_cast<std::int64_t>(receive_number(place, static_cast<int>(other * pass_words) + i % count)));
        }
    }
    __syncthreads();
}

inline constexpr int shared_ops = 64;

/// A program and the numbers that it has to do with, in shared memory where they fit: its steps wait for each other.
struct ProgramRoom {
    double bank[pass_threads];
    ScalarOp ops[shared_ops];
};

__device__ __forceinline__ bool fits_room(const PassPlace& place)
{
    return place.numbers <= pass_threads && place.ops <= shared_ops;
}

/// A thread's part of what goes into a ProgramRoom: read early, beside other loads.
struct ProgramPart {
    __device__ __forceinline__ explicit ProgramPart(const PassPlace& place)
    {
        const int thread = static_cast<int>(threadIdx.x);
        if (fits_room(place)) {
            number = thread < place.numbers ? place.bank[thread] : 0.0;
            if (thread < place.ops) {
                op = place.program[thread];
            }
        }
    }
    /// Behind the next barrier all of it is there.
    __device__ __forceinline__ void put(ProgramRoom& room) const
    {
        const int thread = static_cast<int>(threadIdx.x);
        room.bank[thread] = number;
        if (thread < shared_ops) {
            room.ops[thread] = op;
        }
    }

    double number = 0;
    ScalarOp op;
};

/// Puts the sums into the bank and runs the program. By pass_threads threads, with a barrier behind what filled the
/// room and `total`.
__device__ __forceinline__ void run_with_sums(ProgramRoom& room, const double* total, int dots,
                                              const std::int16_t* into, const PassPlace& place)
{
    const int thread = static_cast<int>(threadIdx.x);
    const bool fits = fits_room(place);
    if (thread == 0) {
        double* const numbers = fits ? room.bank : place.bank;
        for (int d = 0; d < dots; ++d) {
            numbers[into[d]] = total[d];
        }
        run_program(numbers, place.progress, fits ? room.ops : place.program, place.ops);
    }
    if (fits) {
        __syncthreads();
        if (thread < place.numbers) {
            place.bank[thread] = room.bank[thread];
        }
    }
}

/// Adds one, after all that this thread, and what it has met at a barrier, wrote; what the threads wrote that added
/// before can be seen after. Returns what was there.
__device__ __forceinline__ unsigned add_one(unsigned* count)
{
#if __CUDA_ARCH__ >= 700
    unsigned before = 0;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(count))
                 : "memory");
    return before;
#else
    __threadfence();
    const unsigned before = atomicAdd(count, 1u);
    __threadfence();
    return before;
#endif
}

/// Whether this is the last block to come, which then sees what the others left in global memory: before a barrier, but
/// for thread 0. Each thread of the block calls it once.
__device__ __forceinline__ bool comes_last(const PassPlace& place)
{
    __shared__ bool last;
    auto* const finished = static_cast<unsigned*>(place.workspace);
    if (threadIdx.x == 0) {
        last = add_one(finished) + 1 == gridDim.x;
        if (last) {
            *finished = 0;
        }
    }
    __syncthreads();
    return last;
}

/// Each thread of a kernel of blocks of pass_threads threads calls it once, with its sums. The last block to come adds
/// those of all blocks, in an order that depends on their number alone.
template <int Dots>
__device__ __forceinline__ void finish_sums(const double (&sums)[Dots > 0 ? Dots : 1], int dots,
                                            const std::int16_t* into, ProgramRoom& room, const PassPlace& place)
{
    constexpr int most = Dots > 0 ? Dots : 1;
    __shared__ double warp_sums[most][pass_threads / 32];
    __shared__ double total[most_pass_dots];
    auto* const partial = reinterpret_cast<double*>(static_cast<char*>(place.workspace) + 128);
    const int blocks = static_cast<int>(gridDim.x);
    const int thread = static_cast<int>(threadIdx.x);
    const int d_of_warp = thread / 32;
    const bool has_sum = thread % 32 == 0 && d_of_warp < dots;
    const double of_block = block_sums<pass_threads, most>(sums, dots, warp_sums);
    if (has_sum) {
        partial[d_of_warp * 2048 + static_cast<int>(blockIdx.x)] = of_block;
    }
    if (dots > 1) {
        __syncthreads();  // the first thread has left its own
    }
    if (!comes_last(place)) {
        return;
    }
    double of_blocks[most] = {};
#pragma unroll
    for (int d = 0; d < Dots; ++d) {
        if (d < dots) {
            for (int b = thread; b < blocks; b += pass_threads) {
                of_blocks[d] += __ldcg(partial + d * 2048 + b);
            }
        }
    }
    const double of_device = block_sums<pass_threads, most>(of_blocks, dots, warp_sums);
    if (has_sum) {
        total[d_of_warp] = of_device;
    }
    __syncthreads();
    if (place.sums == PassSums::left) {
        if (thread < dots) {
            place.left[place.device * most_pass_dots + thread] = total[thread];
        }
        return;
    }
    if (place.sums == PassSums::sent) {
        send_sums(total, dots, place);
        if (thread < dots) {
            own_sums(place)[thread] = total[thread];
        }
        return;
    }
    if (place.sums == PassSums::lines && dots > 0) {
        send_sums(total, dots, place);
        add_devices(total, dots, place);
    }
    run_with_sums(room, total, dots, into, place);
}

/// The words of this device's exact sums: of all its blocks, 0 between passes, then those that it keeps as own_sums().
__device__ __forceinline__ std::int64_t* device_words(const PassPlace& place)
{
    return reinterpret_cast<std::int64_t*>(static_cast<char*>(place.workspace) + 128);
}
__device__ __forceinline__ std::int64_t* own_words(const PassPlace& place) { return device_words(place) + pass_words; }

/// As finish_sums(), of exact sums. `digits`: in shared memory, what they were made with.
template <int Dots>
__device__ __forceinline__ void finish_exact_sums(ExactSums<Dots>& sums, const BlockDigits& digits, int dots,
                                                  const std::int16_t* into, ProgramRoom& room, const PassPlace& place)
{
    __shared__ std::int64_t words[pass_words];
    __shared__ double total[most_pass_dots];
    const int thread = static_cast<int>(threadIdx.x);
    const int count = dots * exact::words;
    sums.to_digits(dots);
    __syncthreads();
    add_block(digits, dots, device_words(place));
    __syncthreads();
    if (!comes_last(place)) {
        return;
    }
    for (int i = thread; i < count; i += pass_threads) {
        words[i] = __ldcg(device_words(place) + i);
        device_words(place)[i] = 0;
    }
    __syncthreads();
    if (place.sums == PassSums::left) {
        for (int i = thread; i < count; i += pass_threads) {
            place.exact[place.device * pass_words + i] = words[i];
        }
        if (thread < most_pass_dots) {
            place.left[place.device * most_pass_dots + thread] = 0;
        }
        return;
    }
    if (place.sums == PassSums::sent) {
        send_words(words, dots, place);
        for (int i = thread; i < count; i += pass_threads) {
            own_words(place)[i] = words[i];
        }
        return;
    }
    if (place.sums == PassSums::lines) {
        send_words(words, dots, place);
        add_words(words, dots, place);
    }
    round_words(words, dots, total);
    run_with_sums(room, total, dots, into, place);
}

}  // namespace rmsp::kernels::cuda
