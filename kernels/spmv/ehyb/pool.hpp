#pragma once

#include <atomic>
#include <cstdint>

#ifdef __CUDACC__
#define RMSP_EHYB_BODY __host__ __device__
#define RMSP_EHYB_STEP __device__
#else
#define RMSP_EHYB_BODY  // a function that steps call
#define RMSP_EHYB_STEP  // a lambda that is a step
#endif

/// What parts and layouts of "ehyb" are made of: steps without an order among them, sums before, and sorting. A pool
/// does them where the matrix is, on cores in host_pool.hpp and on a GPU in device_pool.cuh, so that what is tested on
/// the host is what a GPU runs.
namespace rmsp::kernels::ehyb {

/// The structure of a shard, in the memory of its pool: edges lead from each row to those of its columns that are rows.
struct Structure {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t diagonal = 0;  ///< CsrShard::diagonal
    const void* row_ptr = nullptr;
    bool wide = false;  ///< row pointers of 64 bits
    const std::int32_t* col_idx = nullptr;
    std::int64_t nnz = 0;

    RMSP_EHYB_BODY std::int64_t first(std::int64_t row) const
    {
        return wide ? static_cast<const std::int64_t*>(row_ptr)[row] : static_cast<const std::int32_t*>(row_ptr)[row];
    }
    /// The row that a column belongs to, or -1.
    RMSP_EHYB_BODY std::int64_t row_of(std::int32_t column) const
    {
        const std::int64_t row = column - diagonal;
        return row >= 0 && row < rows ? row : -1;
    }
};

/// Read and written by steps that run at once, whose order does not matter.
template <class T>
RMSP_EHYB_BODY inline T load_shared(const T* p)
{
#ifdef __CUDA_ARCH__
    return *const_cast<const volatile T*>(p);
#else
    return std::atomic_ref<T>(*const_cast<T*>(p)).load(std::memory_order_relaxed);
#endif
}
template <class T>
RMSP_EHYB_BODY inline void store_shared(T* p, T value)
{
#ifdef __CUDA_ARCH__
    *const_cast<volatile T*>(p) = value;
#else
    std::atomic_ref<T>(*p).store(value, std::memory_order_relaxed);
#endif
}
RMSP_EHYB_BODY inline void add_shared(std::int32_t* p, std::int32_t value)
{
#ifdef __CUDA_ARCH__
    atomicAdd(p, value);
#else
    std::atomic_ref<std::int32_t>(*p).fetch_add(value, std::memory_order_relaxed);
#endif
}

/// Number of leading elements of an ascending array that are not above `value`.
template <class T>
RMSP_EHYB_BODY inline std::int64_t not_above(const T* array, std::int64_t n, T value)
{
    std::int64_t low = 0;
    for (std::int64_t high = n; low < high;) {
        const std::int64_t middle = (low + high) / 2;
        if (array[middle] <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// Bits that numbers below `n` need.
constexpr int bits_for(std::int64_t n)
{
    int bits = 0;
    for (; bits < 63 && (std::int64_t{1} << bits) < n; ++bits) {
    }
    return bits;
}

}  // namespace rmsp::kernels::ehyb
