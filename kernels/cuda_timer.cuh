#pragma once

#include <kernels/cuda_check.cuh>

namespace rmsp::kernels::cuda {

/// Time that a stream takes.
class StreamTimer {
public:
    StreamTimer()
    {
        RMSP_CUDA_CHECK(cudaEventCreate(&begin_));
        if (const cudaError_t error = cudaEventCreate(&end_); error != cudaSuccess) {
            cudaEventDestroy(begin_);
            RMSP_CUDA_CHECK(error);
        }
    }
    ~StreamTimer()
    {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
    }
    StreamTimer(const StreamTimer&) = delete;
    StreamTimer& operator=(const StreamTimer&) = delete;
    /// Of what f() queues; waits for it.
    template <class F>
    float milliseconds(cudaStream_t stream, const F& f)
    {
        RMSP_CUDA_CHECK(cudaEventRecord(begin_, stream));
        f();
        RMSP_CUDA_CHECK(cudaEventRecord(end_, stream));
        RMSP_CUDA_CHECK(cudaEventSynchronize(end_));
        float result = 0;
        RMSP_CUDA_CHECK(cudaEventElapsedTime(&result, begin_, end_));
        return result;
    }

    /// The least of a few runs, of more if they are short.
    template <class F>
    float least_milliseconds(cudaStream_t stream, const F& f)
    {
        constexpr float enough = 0.5f;
        constexpr int most_runs = 8;
        float least = milliseconds(stream, f);
        float all = least;
        for (int run = 1; run < most_runs && all < enough; ++run) {
            const float time = milliseconds(stream, f);
            least = time < least ? time : least;
            all += time;
        }
        return least;
    }

private:
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

}  // namespace rmsp::kernels::cuda
