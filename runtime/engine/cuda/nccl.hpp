#pragma once

#include <string>

#include <nccl.h>

/// NCCL, opened when it is first needed. Only builds that saw its header have it.
namespace rmsp::engine {

/// The functions of NCCL that librmsp calls: all that it knows of the library.
#define RMSP_NCCL_FUNCTIONS(F) \
    F(ncclAllGather)           \
    F(ncclCommAbort)           \
    F(ncclCommGetAsyncError)   \
    F(ncclCommInitRankConfig)  \
    F(ncclCommSplit)           \
    F(ncclGetErrorString)      \
    F(ncclGetLastError)        \
    F(ncclGetUniqueId)         \
    F(ncclGetVersion)          \
    F(ncclGroupEnd)            \
    F(ncclGroupStart)          \
    F(ncclRecv)                \
    F(ncclReduceScatter)       \
    F(ncclSend)

struct Nccl {
#define RMSP_NCCL_POINTER(name) decltype(&::name) name;
    RMSP_NCCL_FUNCTIONS(RMSP_NCCL_POINTER)
#undef RMSP_NCCL_POINTER
};

/// Opens NCCL at the first call, which any thread may make. \throws core::MissingLibrary
const Nccl& nccl();

/// "2.28.3": of the NCCL that is used, which this opens. Needs no GPU. \throws core::MissingLibrary
std::string nccl_version();

}  // namespace rmsp::engine
