#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "runtime/engine/device.hpp"

/// Streams and events of a GPU.
namespace rmsp::engine {

class CudaEvent final : public Event {
public:
    explicit CudaEvent(bool timing);
    ~CudaEvent() override;
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;

    bool ready() const override;
    void synchronize() const override;
    double seconds_since(const Event& earlier) const override;
    cudaEvent_t get() const noexcept { return event_; }

private:
    cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
public:
    explicit CudaStream(StreamPriority priority);
    ~CudaStream() override;
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;

    void copy(void* dst, const void* src, std::size_t bytes) override;
    void record(Event& event) override;
    void wait(const Event& event) override;
    void synchronize() override;
    void* native() const override { return stream_; }
    std::unique_ptr<kernels::LaunchList> make_launch_list() override;

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace rmsp::engine
