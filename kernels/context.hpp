#pragma once

#include <cstddef>
#include <cstdint>

#include <rmsp/kernel_info.hpp>
#include <rmsp/matrix.hpp>

namespace rmsp::kernels {

/// Memory of the device that a kernel runs on. Freed memory is not reused before the work queued so far on that device
/// is done.
class Memory {
public:
    virtual ~Memory() = default;
    /// \throws Error(out_of_memory) naming bytes and device
    virtual void* allocate(std::size_t bytes) = 0;
    virtual void deallocate(void* p, std::size_t bytes) noexcept = 0;
};

/// Kernels that are to be launched one behind the other on one stream, kept until several are launched at once.
class LaunchList {
public:
    virtual ~LaunchList() = default;
    /// Launches what is kept, in order, on the current device; nothing is kept afterwards, also where this throws.
    /// \throws Error(device) naming the kernel
    virtual void launch_all() = 0;
    /// Keeps nothing any more. Returns whether something was never launched.
    virtual bool drop() noexcept = 0;
};

/// Where a kernel runs. The caller has made the device current on this thread.
struct Context {
    DeviceKind kind = DeviceKind::host;
    void* stream = nullptr;  ///< cudaStream_t; null on host devices, which run at once
    int threads = 1;         ///< size of the OpenMP team: of host devices, and of what is prepared on the host for GPUs
    int compute_units = 1;   ///< GPUs: multiprocessors
    Memory* memory = nullptr;  ///< for prepare() and update_values(); apply() never allocates
    /// GPUs: what may keep launches by cuda::launch_early(); null: they happen at once.
    LaunchList* launches = nullptr;
    bool wakes_team = true;  ///< host devices: whether what is prepared is worth waking a team that sleeps
};

/// An array in the memory of a device, owned.
template <class T>
class DeviceArray {
public:
    DeviceArray() = default;
    DeviceArray(Memory& memory, std::size_t n)
        : memory_(&memory), size_(n), data_(n > 0 ? static_cast<T*>(memory.allocate(n * sizeof(T))) : nullptr)
    {
    }
    DeviceArray(DeviceArray&& other) noexcept : memory_(other.memory_), size_(other.size_), data_(other.data_)
    {
        other.data_ = nullptr;
        other.size_ = 0;
    }
    DeviceArray& operator=(DeviceArray&& other) noexcept
    {
        if (this != &other) {
            reset();
            memory_ = other.memory_;
            size_ = other.size_;
            data_ = other.data_;
            other.data_ = nullptr;
            other.size_ = 0;
        }
        return *this;
    }
    ~DeviceArray() { reset(); }

    void reset() noexcept
    {
        if (data_ != nullptr) {
            memory_->deallocate(data_, size_ * sizeof(T));
        }
        data_ = nullptr;
        size_ = 0;
    }
    T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    Memory* memory_ = nullptr;
    std::size_t size_ = 0;
    T* data_ = nullptr;
};

/// The part of a matrix that one device holds, in that device's memory: local row pointers (32-bit where nnz allows),
/// 32-bit columns into the x that the device sees. Not owned.
template <class T>
struct CsrShard {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    IndexView row_ptr;  ///< rows + 1 entries, from 0 to nnz
    const std::int32_t* col_idx = nullptr;
    const T* values = nullptr;
    std::int64_t diagonal =
        0;  ///< the column that belongs to the first row: x and y of a square matrix have one numbering
    std::int64_t early_cols =
        0;                ///< entries of x that may be there before the others, the first ones; 0: they come together
    bool floats = false;  ///< all values are exactly floats, also later ones: an operator's own copy may be of floats
    bool entries_later = false;  ///< only the row pointers are there before an apply, which others may follow: streamed
};

}  // namespace rmsp::kernels
