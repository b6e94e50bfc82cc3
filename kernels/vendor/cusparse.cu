#include <kernels/vendor/cusparse.cuh>

#include <core/shared_library.hpp>
#include <kernels/vendor/cusparse_version.hpp>
#include <rmsp_build.hpp>

#define RMSP_TEXT_OF(value) #value
#define RMSP_TEXT(macro) RMSP_TEXT_OF(macro)

namespace rmsp::kernels::cusparse {
namespace {

constexpr core::OptionalLibrary library{
    .name = "cuSPARSE",
    .file = "libcusparse.so." RMSP_TEXT(CUSPARSE_VER_MAJOR),
    .purpose = "the vendor's kernels",
    .source = "NVIDIA's CUDA toolkit, or pip install nvidia-cusparse (for CUDA 12: nvidia-cusparse-cu12)",
    .folder = RMSP_CUDA_LIBRARY_DIR,
};

Functions load()
{
    const core::SharedLibrary open(library);
    Functions all{};
#define RMSP_CUSPARSE_FIND(name) open.find(#name, all.name);
    RMSP_CUSPARSE_FUNCTIONS(RMSP_CUSPARSE_FIND)
    return all;
}

#if RMSP_HAVE_SPMVOP
OpFunctions load_op()
{
    const core::SharedLibrary open(library);
    if (!version().starts_with(RMSP_TEXT(CUSPARSE_VER_MAJOR) "." RMSP_TEXT(CUSPARSE_VER_MINOR) ".")) {
        throw core::MissingLibrary(
            "SpMVOp, which is experimental, needs the cuSPARSE that librmsp was built with, " RMSP_TEXT(
                CUSPARSE_VER_MAJOR) "." RMSP_TEXT(CUSPARSE_VER_MINOR) "; " +
            open.path() + " is " + version());
    }
    OpFunctions all{};
    RMSP_SPMVOP_FUNCTIONS(RMSP_CUSPARSE_FIND)
    return all;
}
#endif
#undef RMSP_CUSPARSE_FIND

}  // namespace

const Functions& functions()
{
    static const Functions loaded = load();
    return loaded;
}

#if RMSP_HAVE_SPMVOP
const OpFunctions& op_functions()
{
    static const OpFunctions loaded = load_op();
    return loaded;
}
#endif

bool has_spmvop() noexcept { return RMSP_HAVE_SPMVOP; }

std::string version()
{
    int major = 0;
    int minor = 0;
    int patch = 0;
    RMSP_CUSPARSE_CHECK(cusparseGetProperty(MAJOR_VERSION, &major));
    RMSP_CUSPARSE_CHECK(cusparseGetProperty(MINOR_VERSION, &minor));
    RMSP_CUSPARSE_CHECK(cusparseGetProperty(PATCH_LEVEL, &patch));
    return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

}  // namespace rmsp::kernels::cusparse
