#ifdef RMSP_HAVE_NCCL
#include "runtime/engine/cuda/nccl.hpp"

#include <fmt/format.h>

#include <core/shared_library.hpp>
#include <rmsp_build.hpp>

#define RMSP_TEXT_OF(value) #value
#define RMSP_TEXT(macro) RMSP_TEXT_OF(macro)

namespace rmsp::engine {
namespace {

constexpr core::OptionalLibrary nccl_library{
    .name = "NCCL",
    .file = "libnccl.so." RMSP_TEXT(NCCL_MAJOR),
    .purpose = "transport \"nccl\"",
    .source = "NVIDIA's packages (libnccl2, or pip install nvidia-nccl-cu13, for CUDA 12: nvidia-nccl-cu12)",
    .folder = RMSP_NCCL_LIBRARY_DIR,
};

Nccl load_nccl()
{
    const core::SharedLibrary open(nccl_library);
    Nccl all{};
#define RMSP_NCCL_FIND(name) open.find(#name, all.name);
    RMSP_NCCL_FUNCTIONS(RMSP_NCCL_FIND)
#undef RMSP_NCCL_FIND
    return all;
}

}  // namespace

const Nccl& nccl()
{
    static const Nccl loaded = load_nccl();
    return loaded;
}

std::string nccl_version()
{
    int number = 0;
    return nccl().ncclGetVersion(&number) == ncclSuccess
               ? fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100)
               : "unknown";
}

}  // namespace rmsp::engine
#endif
