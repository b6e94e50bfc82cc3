#include <fstream>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <core/shared_library.hpp>
#include <kernels/vendor/cusparse_version.hpp>

#include "runtime/engine/cuda/cuda_backend.hpp"
#ifdef RMSP_HAVE_NCCL
#include "runtime/engine/cuda/nccl.hpp"
#endif

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

CudaLibrary opened(const char* name, std::string (*version)())
{
    try {
        return {name, version(), ""};
    } catch (const core::MissingLibrary& e) {
        return {name, "", e.what()};
    }
}

}  // namespace

std::map<std::string, std::string> cuda_versions()
{
    std::map<std::string, std::string> versions;
    if (std::string driver = driver_version(); !driver.empty()) {
        versions["driver"] = std::move(driver);
    }
    int number = 0;
    // 0 where there is no driver, which is no error of this call.
    if (cudaDriverGetVersion(&number) == cudaSuccess) {
        versions["CUDA driver"] = number > 0 ? cuda_version(number) : "not found";
    }
    if (cudaRuntimeGetVersion(&number) == cudaSuccess) {
        versions["CUDA runtime"] = cuda_version(number);
    }
    (void)cudaGetLastError();
    for (CudaLibrary& library : cuda_libraries()) {
        versions[library.name] = library.version.empty() ? "not found" : std::move(library.version);
    }
    return versions;
}

std::vector<CudaLibrary> cuda_libraries()
{
    std::vector<CudaLibrary> libraries{opened("cuSPARSE", kernels::cusparse::version)};
#ifdef RMSP_HAVE_NCCL
    libraries.push_back(opened("NCCL", nccl_version));
#endif
    return libraries;
}

}  // namespace rmsp::engine
