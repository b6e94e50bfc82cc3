#pragma once

#include <cuda_runtime.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/engine/copy_team.hpp"
#include "runtime/engine/cuda/cuda_check.hpp"
#include "runtime/engine/cuda/cuda_stream.hpp"
#include "runtime/engine/device.hpp"
#include "runtime/engine/worker.hpp"

namespace rmsp::engine {

/// CUDA ordinals of the workers' devices.
std::vector<int> ordinals_of(std::span<const std::unique_ptr<Worker>> workers);
/// Whether one of them stands for several devices.
bool share_gpus(std::span<const int> ordinals);

class CudaDevice final : public Device {
public:
    CudaDevice(DeviceInfo info, int ordinal, int sharers);
    ~CudaDevice() override;

    int ordinal() const noexcept { return ordinal_; }
    /// Lets these GPUs, which can reach this one's memory, reach what comes from its pool too. Each may be named
    /// several times.
    void share_pool(std::span<const int> ordinals);

    void make_current() override;
    int visit() noexcept override;
    void leave(int had) noexcept override;
    std::unique_ptr<Stream> make_stream(StreamPriority priority) override;
    std::unique_ptr<Event> make_event(bool timing) override;

    std::int64_t free_bytes() override;
    void free_pinned(void* p, std::size_t bytes) noexcept override;
    bool is_pinned(const void* p, std::size_t bytes) const override;
    bool pin(void* p, std::size_t bytes) override;
    void unpin(void* p) noexcept override;

    void upload(Stream& stream, void* dst, const void* src, std::size_t bytes, const Between& between) override;
    void upload(Stream& stream, void* dst, std::size_t bytes, const Filler& fill, const Between& between) override;
    void download(Stream& stream, std::span<const Download> parts) override;

protected:
    std::string fault() override;
    void remember_loss() override;
    void* obtain(std::size_t bytes) override;
    void give_back(void* p, std::size_t bytes) noexcept override;
    std::unique_ptr<kernels::Memory> make_uncounted_pool(Stream& stream) override;
    void* obtain_pinned(std::size_t bytes) override;

private:
    struct Slot {
        PinnedBuffer memory;
        std::unique_ptr<Event> free;  // the copy engine is done with the slot
    };
    void open_ring();
    void open_pool();

    int ordinal_;
    int sharers_;
    std::vector<Slot> ring_;  // made at the first pageable copy
    std::unique_ptr<CopyTeam> team_;
    cudaMemPool_t pool_ = nullptr;
    bool pool_shared_ = false;
    std::size_t next_ = 0;  // the slot that was used longest ago
};

}  // namespace rmsp::engine
