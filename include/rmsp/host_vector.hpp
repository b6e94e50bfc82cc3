#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <rmsp/export.hpp>

namespace rmsp {

namespace detail {
/// Uninitialised host memory, aligned to 64 bytes; from some megabytes on to huge pages, which the system is advised to
/// use: they are touched and page-locked in a fraction of the time. \throws std::bad_alloc
RMSP_API void* allocate_host(std::size_t bytes);
/// Takes what allocate_host(bytes) returned.
RMSP_API void free_host(void* p, std::size_t bytes) noexcept;
}  // namespace detail

/// Allocator whose vectors leave new elements uninitialised, so that the threads that fill an array also touch its
/// pages first (first touch decides the NUMA node), and so that resize() of gigabytes costs nothing. Memory is 64-byte
/// aligned, large arrays to huge pages.
template <class T>
class UninitializedAllocator {
public:
    using value_type = T;
    UninitializedAllocator() = default;
    template <class U>
    UninitializedAllocator(const UninitializedAllocator<U>&) noexcept
    {
    }

    T* allocate(std::size_t n)
    {
        if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T*>(detail::allocate_host(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) noexcept { detail::free_host(p, n * sizeof(T)); }

    template <class U>
    void construct(U* p) noexcept
    {
        ::new (static_cast<void*>(p)) U;
    }
    template <class U, class... Args>
    void construct(U* p, Args&&... args)
    {
        ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
    }

    bool operator==(const UninitializedAllocator&) const noexcept { return true; }
};

/// A std::vector whose resize() does not write the new elements.
template <class T>
using HostVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace rmsp
