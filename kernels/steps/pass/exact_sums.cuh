#pragma once

#include <cstdint>

#include <kernels/steps/pass/exact_sum.hpp>
#include <kernels/steps/pass/pass.hpp>

/// Sums without rounding inside a kernel of blocks of pass_threads threads. A thread keeps its sum in a few doubles
/// that do not overlap much; what does not fit them goes to the digits of exact_sum.hpp, which are the block's, in
/// shared memory. Of the usual data nothing does, and a number costs two or three additions with their errors. (S.
/// Collange, D. Defour, S. Graillat, R. Iakymchuk: Numerical reproducibility for the parallel reduction on multi- and
/// many-core architectures, Parallel Computing 49, 2015)
namespace rmsp::kernels::cuda {

inline constexpr int pass_threads = 256;

/// The digits of a block's sums. 64-bit additions to shared memory are loops of the compiler's; two of 32 bits, of
/// which the second takes what the first carries, are not.
struct BlockDigits {
    unsigned low[most_pass_dots][exact::words];
    unsigned high[most_pass_dots][exact::words];
};

/// Adds a number to the digits of one sum. Not part of its callers, which rarely come here.
static __device__ __noinline__ void add_to_digits(BlockDigits& digits, int which, double value)
{
    if (const std::int64_t special = exact::special_of(value); special != 0) {
        atomicOr(&digits.low[which][exact::digits], static_cast<unsigned>(special));
        return;
    }
    const exact::Addend addend = exact::addend_of(value);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const auto part = static_cast<std::uint64_t>(addend.part[k]);
        const auto low = static_cast<unsigned>(part);
        auto high = static_cast<unsigned>(part >> 32);
        if (low != 0) {
            const unsigned before = atomicAdd(&digits.low[which][addend.at + k], low);
            high += before + low < low ? 1 : 0;
        }
        if (high != 0) {
            atomicAdd(&digits.high[which][addend.at + k], high);
        }
    }
}

/// sum += value, rounded; returns the error. (D. E. Knuth: The Art of Computer Programming 2, 4.2.2, theorem B)
__device__ __forceinline__ double add_with_error(double& sum, double value)
{
    const double before = sum;
    sum = __dadd_rn(before, value);
    const double added = __dsub_rn(sum, before);
    return __dadd_rn(__dsub_rn(before, __dsub_rn(sum, added)), __dsub_rn(value, added));
}

/// Sums of products of a thread, of as many inner products. Products are rounded, as on the host.
template <int Dots>
class ExactSums {
public:
    using Digits = BlockDigits;

    /// Each thread of the block calls it once, with the same digits in shared memory.
    __device__ __forceinline__ explicit ExactSums(Digits& digits) : digits_(&digits)
    {
        auto* const all = &digits.low[0][0];
        constexpr int count = sizeof(Digits) / sizeof(unsigned);
        for (int i = static_cast<int>(threadIdx.x); i < count; i += pass_threads) {
            all[i] = 0;
        }
        __syncthreads();
    }

    __device__ __forceinline__ void add_product(int d, double a, double b) { add(d, __dmul_rn(a, b)); }

    /// Moves the first `dots` sums of all threads to the digits. Each thread of the block calls it once; the digits are
    /// complete behind the next barrier.
    __device__ __forceinline__ void to_digits(int dots)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int d = 0; d < Dots; ++d) {
            if (d >= dots) {
                break;
            }
            for (int lanes = 16; lanes > 0; lanes /= 2) {
                double other[parts];
#pragma unroll
                for (int k = 0; k < parts; ++k) {
                    other[k] = __shfl_down_sync(0xffffffffu, part_[d][k], lanes);
                }
                if (lane < lanes) {
#pragma unroll
                    for (int k = 0; k < parts; ++k) {
                        add(d, other[k]);
                    }
                }
            }
            if (lane == 0) {
#pragma unroll
                for (int k = 0; k < parts; ++k) {
                    if (part_[d][k] != 0) {
                        add_to_digits(*digits_, d, part_[d][k]);
                    }
                }
            }
        }
    }

private:
    static constexpr int parts = 3;
    /// Numbers below it do not overflow in the sums of a thread.
    static constexpr double largest = 0x1p960;

    __device__ __forceinline__ void add(int d, double value)
    {
        if (fabs(value) < largest) {
            value = add_with_error(part_[d][0], value);
            value = add_with_error(part_[d][1], value);
            if (value != 0) {
                value = add_with_error(part_[d][2], value);
            }
        }
        if (value != 0) {  // NaN as well
            add_to_digits(*digits_, d, value);
        }
    }

    double part_[Dots][parts] = {};
    BlockDigits* digits_;
};

/// Adds to a word of a sum what other threads add to as well, also those of other blocks.
__device__ __forceinline__ void add_word(std::int64_t* sums, int at, std::int64_t word)
{
    auto* const to = reinterpret_cast<unsigned long long*>(sums + at);
    if (word == 0) {
        return;
    }
    if (at % exact::words == exact::digits) {
        atomicOr(to, static_cast<unsigned long long>(word));
    } else {
        atomicAdd(to, static_cast<unsigned long long>(word));
    }
}

/// Adds a block's digits to the device's sums, in global memory. Each digit passes on what is above 32 bits, so that as
/// many blocks as there may be leave room.
__device__ __forceinline__ void add_block(const BlockDigits& digits, int dots, std::int64_t* sums)
{
    const unsigned* const low = &digits.low[0][0];
    const unsigned* const high = &digits.high[0][0];
    for (int i = static_cast<int>(threadIdx.x); i < dots * exact::words; i += pass_threads) {
        const int digit = i % exact::words;
        const bool passes = digit > 0 && digit < exact::digits;
        add_word(sums, i, std::int64_t{low[i]} + (passes ? static_cast<std::int32_t>(high[i - 1]) : 0));
    }
}

/// Rounds the sums of a pass, whose words are in shared memory and are lost: a warp each. Behind it is a barrier.
__device__ __forceinline__ void round_words(std::int64_t* words, int dots, double* rounded)
{
    static_assert(pass_threads / 32 >= most_pass_dots);
    const int which = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (which < dots) {
        std::int64_t* const sum = words + which * exact::words;
        int first = exact::digits;
        int last = -1;
        for (int i = lane; i < exact::digits; i += 32) {
            if (sum[i] != 0) {
                first = min(first, i);
                last = i;
            }
        }
        first = __reduce_min_sync(0xffffffffu, first);
        last = __reduce_max_sync(0xffffffffu, last);
        if (lane == 0) {
            rounded[which] = exact::value(sum, first, last);
        }
    }
    __syncthreads();
}

}  // namespace rmsp::kernels::cuda
