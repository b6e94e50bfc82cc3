#pragma once

#include <source_location>
#include <string>

#include <cusparse.h>
#include <kernels/cuda_check.cuh>

/// What the kernels that call cuSPARSE share.
namespace rmsp::kernels::cusparse {

/// \throws Error(out_of_memory), else Error(device), naming the call, the status, file and line
inline void check(cusparseStatus_t status, const char* call,
                  const std::source_location& where = std::source_location::current())
{
    if (status == CUSPARSE_STATUS_SUCCESS) {
        return;
    }
    static_cast<void>(cudaGetLastError());
    const bool memory = status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES;
    throw Error(memory ? ErrorCode::out_of_memory : ErrorCode::device,
                std::string(call) + " failed at " + kernels::cuda::file_line(where) + ": " +
                    cusparseGetErrorName(status) + ", " + cusparseGetErrorString(status),
                where);
}
#define RMSP_CUSPARSE_CHECK(call) ::rmsp::kernels::cusparse::check((call), #call)

/// Owns one cuSPARSE handle or descriptor.
template <class Handle, auto Destroy>
class Owned {
public:
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { reset(); }
    void reset()
    {
        if (handle_ != nullptr) {
            static_cast<void>(Destroy(handle_));
        }
        handle_ = nullptr;
    }
    /// Empty, to be filled.
    Handle* renew()
    {
        reset();
        return &handle_;
    }
    Handle get() const { return handle_; }

private:
    Handle handle_ = nullptr;
};

template <class T>
inline constexpr cudaDataType data_type = sizeof(T) == sizeof(float) ? CUDA_R_32F : CUDA_R_64F;

}  // namespace rmsp::kernels::cusparse
