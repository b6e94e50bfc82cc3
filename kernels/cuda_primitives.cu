#include <kernels/cuda_primitives.cuh>

#include <type_traits>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <kernels/cuda_check.cuh>

namespace rmsp::kernels::cuda {
namespace {

/// f(work, bytes, stream) twice, as CUB has it: without work space it says how many bytes of it are needed.
template <class F>
void with_work_space(const Context& context, const F& f)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    std::size_t bytes = 0;
    RMSP_CUDA_CHECK(f(nullptr, bytes, stream));
    const DeviceArray<std::byte> work(*context.memory, bytes);
    RMSP_CUDA_CHECK(f(work.data(), bytes, stream));
}

/// What is not negative has the order of its bits, so that one sort does for signed and unsigned numbers.
template <class T>
const std::make_unsigned_t<T>* bits_of(const T* p)
{
    return reinterpret_cast<const std::make_unsigned_t<T>*>(p);
}
template <class T>
std::make_unsigned_t<T>* bits_of(T* p)
{
    return reinterpret_cast<std::make_unsigned_t<T>*>(p);
}

}  // namespace

template <class T>
void exclusive_sum(T* numbers, std::int64_t n, const Context& context)
{
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceScan::ExclusiveSum(work, bytes, numbers, numbers, n, stream);
    });
}

template <class T>
void exclusive_sum(T* numbers, std::int64_t n, void* work, std::size_t work_bytes, cudaStream_t stream)
{
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(work, work_bytes, numbers, numbers, n, stream));
}

template <class T>
std::size_t exclusive_sum_bytes(std::int64_t n)
{
    std::size_t bytes = 0;
    T* const none = nullptr;
    RMSP_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, n));
    return bytes;
}

#define RMSP_INSTANTIATE(T)                                                          \
    template void exclusive_sum(T*, std::int64_t, const Context&);                   \
    template void exclusive_sum(T*, std::int64_t, void*, std::size_t, cudaStream_t); \
    template std::size_t exclusive_sum_bytes<T>(std::int64_t);
RMSP_INSTANTIATE(std::int32_t)
RMSP_INSTANTIATE(std::uint32_t)
RMSP_INSTANTIATE(std::int64_t)
#undef RMSP_INSTANTIATE

template <class T>
void least(const T* numbers, std::int64_t n, T* result, const Context& context)
{
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceReduce::Min(work, bytes, numbers, result, n, stream);
    });
}

template <class T>
void largest(const T* numbers, std::int64_t n, T* result, const Context& context)
{
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceReduce::Max(work, bytes, numbers, result, n, stream);
    });
}

template <class T>
void sum(const T* numbers, std::int64_t n, T* result, const Context& context)
{
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceReduce::Sum(work, bytes, numbers, result, n, stream);
    });
}

template void least(const std::int32_t*, std::int64_t, std::int32_t*, const Context&);
template void largest(const std::int32_t*, std::int64_t, std::int32_t*, const Context&);
template void largest(const std::uint64_t*, std::int64_t, std::uint64_t*, const Context&);
template void sum(const std::uint64_t*, std::int64_t, std::uint64_t*, const Context&);
template void sum(const double*, std::int64_t, double*, const Context&);

template <class Key, class Value>
void sort_pairs(const Key* keys, Key* sorted_keys, const Value* values, Value* sorted_values, std::int64_t n, int bits,
                const Context& context)
{
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceRadixSort::SortPairs(work, bytes, bits_of(keys), bits_of(sorted_keys), bits_of(values),
                                               bits_of(sorted_values), n, 0, bits, stream);
    });
}

#define RMSP_INSTANTIATE(Key, Value) \
    template void sort_pairs(const Key*, Key*, const Value*, Value*, std::int64_t, int, const Context&);
RMSP_INSTANTIATE(std::uint32_t, std::uint32_t)
RMSP_INSTANTIATE(std::uint32_t, std::int32_t)
RMSP_INSTANTIATE(std::int32_t, std::int32_t)
RMSP_INSTANTIATE(std::int32_t, std::int64_t)
#undef RMSP_INSTANTIATE

void sort_pairs_in_turn(std::uint64_t*& keys, std::uint64_t*& other_keys, std::int32_t*& values,
                        std::int32_t*& other_values, std::int64_t n, int bits, const Context& context)
{
    cub::DoubleBuffer<std::uint64_t> both_keys(keys, other_keys);
    cub::DoubleBuffer<std::int32_t> both_values(values, other_values);
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceRadixSort::SortPairs(work, bytes, both_keys, both_values, n, 0, bits, stream);
    });
    keys = both_keys.Current();
    other_keys = both_keys.Alternate();
    values = both_values.Current();
    other_values = both_values.Alternate();
}

void sort_keys(const std::uint64_t* keys, std::uint64_t* sorted_keys, std::int64_t n, const Context& context)
{
    with_work_space(context, [&](void* work, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceRadixSort::SortKeys(work, bytes, keys, sorted_keys, n, 0, 64, stream);
    });
}

void sort_pairs_descending(const std::uint32_t* keys, std::uint32_t* sorted_keys, const std::uint32_t* values,
                           std::uint32_t* sorted_values, std::int64_t n, int bits, void* work, std::size_t work_bytes,
                           cudaStream_t stream)
{
    RMSP_CUDA_CHECK(cub::DeviceRadixSort::SortPairsDescending(work, work_bytes, keys, sorted_keys, values,
                                                              sorted_values, n, 0, bits, stream));
}

std::size_t sort_pairs_descending_bytes(std::int64_t n, int bits)
{
    std::size_t bytes = 0;
    std::uint32_t* const none = nullptr;
    RMSP_CUDA_CHECK(cub::DeviceRadixSort::SortPairsDescending(nullptr, bytes, none, none, none, none, n, 0, bits));
    return bytes;
}

}  // namespace rmsp::kernels::cuda
