#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace rmsp {

/// Allocator whose vectors leave new elements uninitialised, so that the threads that fill an array also touch its pages first
/// (first touch decides the NUMA node), and so that resize() of gigabytes costs nothing. Memory is 64-byte aligned.
template <class T>
class UninitializedAllocator {
public:
    using value_type = T;
    static constexpr std::align_val_t alignment{64};

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
        return static_cast<T*>(::operator new(n * sizeof(T), alignment));
    }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, alignment); }

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
