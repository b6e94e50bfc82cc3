#include <fstream>

#include <cuda_runtime.h>
#include <cusparse.h>
#include <fmt/format.h>
#ifdef RMSP_HAVE_NCCL
#include <nccl.h>
#endif

#include "runtime/engine/cuda/cuda_backend.hpp"

namespace rmsp::engine {
namespace {

/// 13020 -> "13.2".
std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// Of the kernel's module: the word after "Kernel Module" that begins with a digit.
std::string driver_version()
{
    std::ifstream file("/proc/driver/nvidia/version");
    for (std::string word; file >> word && word != "GCC";) {
        if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) {
            return word;
        }
    }
    return "";
}

}  // namespace

std::map<std::string, std::string> cuda_versions()
{
    std::map<std::string, std::string> versions;
    if (std::string driver = driver_version(); !driver.empty()) {
        versions["driver"] = std::move(driver);
    }
    int number = 0;
    if (cudaDriverGetVersion(&number) == cudaSuccess && number > 0) {
        versions["CUDA driver"] = cuda_version(number);
    }
    if (cudaRuntimeGetVersion(&number) == cudaSuccess) {
        versions["CUDA runtime"] = cuda_version(number);
    }
    (void)cudaGetLastError();
    int major = 0;
    int minor = 0;
    int patch = 0;
    if (cusparseGetProperty(MAJOR_VERSION, &major) == CUSPARSE_STATUS_SUCCESS &&
        cusparseGetProperty(MINOR_VERSION, &minor) == CUSPARSE_STATUS_SUCCESS &&
        cusparseGetProperty(PATCH_LEVEL, &patch) == CUSPARSE_STATUS_SUCCESS) {
        versions["cuSPARSE"] = fmt::format("{}.{}.{}", major, minor, patch);
    }
#ifdef RMSP_HAVE_NCCL
    if (ncclGetVersion(&number) == ncclSuccess) {
        versions["NCCL"] = fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
    }
#endif
    return versions;
}

}  // namespace rmsp::engine
