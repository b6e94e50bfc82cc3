#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>
#include <kernels/context.hpp>

/// Sums, extremes and sorts over whole arrays of a device, by CUB, whose headers take longer to compile than most
/// kernels here: cuda_primitives.cu alone includes those of what a whole device does. Everything is queued; work space
/// is of the context's memory where it is not given. \throws Error(out_of_memory), Error(device)
namespace rmsp::kernels::cuda {

/// Each of n numbers (int32_t, uint32_t, int64_t) becomes the sum of those before it.
template <class T>
void exclusive_sum(T* numbers, std::int64_t n, const Context& context);
/// \param work  as many bytes as exclusive_sum_bytes<T>(n) says
template <class T>
void exclusive_sum(T* numbers, std::int64_t n, void* work, std::size_t work_bytes, cudaStream_t stream);
template <class T>
std::size_t exclusive_sum_bytes(std::int64_t n);

/// The least of n numbers (int32_t), the largest (int32_t, uint64_t) and the sum (uint64_t, double), to *result on the
/// device.
template <class T>
void least(const T* numbers, std::int64_t n, T* result, const Context& context);
template <class T>
void largest(const T* numbers, std::int64_t n, T* result, const Context& context);
template <class T>
void sum(const T* numbers, std::int64_t n, T* result, const Context& context);

/// Sorts n pairs by the lowest `bits` bits of their keys; those with equal ones stay in order. Signed keys are not
/// negative. Keys and values: uint32_t and uint32_t or int32_t, int32_t and int32_t or int64_t.
template <class Key, class Value>
void sort_pairs(const Key* keys, Key* sorted_keys, const Value* values, Value* sorted_values, std::int64_t n, int bits,
                const Context& context);
/// sort_pairs() without more work space than the other arrays: where the result is in these, the pointers change
/// places.
void sort_pairs_in_turn(std::uint64_t*& keys, std::uint64_t*& other_keys, std::int32_t*& values,
                        std::int32_t*& other_values, std::int64_t n, int bits, const Context& context);
void sort_keys(const std::uint64_t* keys, std::uint64_t* sorted_keys, std::int64_t n, const Context& context);
/// As sort_pairs(), the largest key first. \param work  as many bytes as sort_pairs_descending_bytes(n, bits) says
void sort_pairs_descending(const std::uint32_t* keys, std::uint32_t* sorted_keys, const std::uint32_t* values,
                           std::uint32_t* sorted_values, std::int64_t n, int bits, void* work, std::size_t work_bytes,
                           cudaStream_t stream);
std::size_t sort_pairs_descending_bytes(std::int64_t n, int bits);

}  // namespace rmsp::kernels::cuda
