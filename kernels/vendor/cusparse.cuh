#pragma once

#include <source_location>
#include <string>

#define CUSPARSE_ENABLE_EXPERIMENTAL_API  // SpMVOp
#include <cusparse.h>
#include <kernels/cuda_check.cuh>

/// Whether the headers have cusparseSpMVOp with its algorithms.
#define RMSP_HAVE_SPMVOP (CUSPARSE_VERSION >= 12800)

/// What the kernels that call cuSPARSE share.
namespace rmsp::kernels::cusparse {

/// The functions of cuSPARSE that kernels call: all that librmsp knows of the library. A function is called through
/// this table, or the program is not linked.
#define RMSP_CUSPARSE_FUNCTIONS(F)        \
    F(cusparseCreate)                     \
    F(cusparseCreateBsr)                  \
    F(cusparseCreateCoo)                  \
    F(cusparseCreateCsr)                  \
    F(cusparseCreateDnVec)                \
    F(cusparseCreateSlicedEll)            \
    F(cusparseCsrSetPointers)             \
    F(cusparseDestroy)                    \
    F(cusparseDestroyDnVec)               \
    F(cusparseDestroySpMat)               \
    F(cusparseDnVecSetValues)             \
    F(cusparseGetErrorName)               \
    F(cusparseGetErrorString)             \
    F(cusparseGetProperty)                \
    F(cusparseSetStream)                  \
    F(cusparseSpGEMM_compute)             \
    F(cusparseSpGEMM_copy)                \
    F(cusparseSpGEMM_createDescr)         \
    F(cusparseSpGEMM_destroyDescr)        \
    F(cusparseSpGEMM_estimateMemory)      \
    F(cusparseSpGEMM_workEstimation)      \
    F(cusparseSpGEMMreuse_compute)        \
    F(cusparseSpGEMMreuse_copy)           \
    F(cusparseSpGEMMreuse_nnz)            \
    F(cusparseSpGEMMreuse_workEstimation) \
    F(cusparseSpMatGetSize)               \
    F(cusparseSpMatSetValues)             \
    F(cusparseSpMV)                       \
    F(cusparseSpMV_bufferSize)            \
    F(cusparseSpMV_preprocess)            \
    F(cusparseXcsr2coo)

// cuSPARSE 13 deprecates cusparseSpGEMMreuse_*, but offers nothing else that computes values anew in a known structure.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct Functions {
#define RMSP_CUSPARSE_POINTER(name) decltype(&::name) name;
    RMSP_CUSPARSE_FUNCTIONS(RMSP_CUSPARSE_POINTER)
#undef RMSP_CUSPARSE_POINTER
};
#pragma GCC diagnostic pop

/// Opens cuSPARSE at the first call, which any thread may make. \throws core::MissingLibrary
const Functions& functions();

#if RMSP_HAVE_SPMVOP
#define RMSP_SPMVOP_FUNCTIONS(F)   \
    F(cusparseSpMVOp)              \
    F(cusparseSpMVOp_bufferSize)   \
    F(cusparseSpMVOp_createDescr)  \
    F(cusparseSpMVOp_createPlan)   \
    F(cusparseSpMVOp_destroyDescr) \
    F(cusparseSpMVOp_destroyPlan)

struct OpFunctions {
#define RMSP_CUSPARSE_POINTER(name) decltype(&::name) name;
    RMSP_SPMVOP_FUNCTIONS(RMSP_CUSPARSE_POINTER)
#undef RMSP_CUSPARSE_POINTER
};

/// As functions(). The interface is experimental: its functions differ from version to version.
/// \throws core::MissingLibrary also where cuSPARSE is of another version than the headers
const OpFunctions& op_functions();
#endif

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
                    functions().cusparseGetErrorName(status) + ", " + functions().cusparseGetErrorString(status),
                where);
}
/// Of a call of a function of the table: RMSP_CUSPARSE_CHECK(cusparseSetStream(handle, stream)).
#define RMSP_CUSPARSE_CHECK(call) ::rmsp::kernels::cusparse::check(::rmsp::kernels::cusparse::functions().call, #call)

template <class Function>
const Functions& table_of(Function Functions::*)
{
    return functions();
}
#if RMSP_HAVE_SPMVOP
template <class Function>
const OpFunctions& table_of(Function OpFunctions::*)
{
    return op_functions();
}
#endif

/// Owns one cuSPARSE handle or descriptor, which `Destroy`, of a table, destroys.
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
            static_cast<void>((table_of(Destroy).*Destroy)(handle_));
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
