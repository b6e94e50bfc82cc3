#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include <cuda_runtime.h>

#include <kernels/cuda_check.cuh>

namespace rmsp::kernels::cuda {

/// Has kernels loaded once on each device: what is loaded stays so, and to ask for a kernel that is takes 15 to 80 us.
/// As a variable with static storage. Any thread.
class LoadedKernels {
public:
    /// Calls `load`, which asks for the attributes of kernels, unless that was done on the current device.
    template <class Load>
    void need(const Load& load)
    {
        int device = 0;
        check(cudaGetDevice(&device), "cudaGetDevice");
        const auto d = static_cast<std::size_t>(device);
        if (d < on_.size() && on_[d].load(std::memory_order_acquire)) {
            return;
        }
        load();
        if (d < on_.size()) {
            on_[d].store(true, std::memory_order_release);
        }
    }

private:
    static constexpr std::size_t most_devices = 64;  ///< others ask each time
    std::array<std::atomic<bool>, most_devices> on_{};
};

}  // namespace rmsp::kernels::cuda
