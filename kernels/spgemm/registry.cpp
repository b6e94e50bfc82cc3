#include <array>
#include <limits>

#include <kernels/choose.hpp>
#include <kernels/spgemm/spgemm.hpp>

namespace rmsp::kernels {
namespace {

#ifdef RMSP_HAVE_CUDA
constexpr bool have_cuda = true;
#else
constexpr bool have_cuda = false;
#endif

constexpr std::array<const char*, 8> accumulators{"scatter",   "scatter-1", "scatter-2", "scatter-4",
                                                  "scatter-8", "hash",      "window",    "chunks"};

template <class T>
const char* unsupported_by_cusparse(const CsrShard<T>& a, const CsrShard<T>& b)
{
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    if (a.nnz > limit || b.nnz > limit || a.rows > limit || b.rows > limit) {
        return "cuSPARSE's SpGEMM takes 32-bit row pointers, so at most 2^31 - 1 rows and nonzeros a device";
    }
    if (b.cols > limit / 2) {
        return "cuSPARSE's SpGEMM finds no resources for that many columns";
    }
    return nullptr;
}

template <class T>
const char* unsupported_rows(const CsrShard<T>& a, const CsrShard<T>& b)
{
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    return a.rows > limit || b.rows > limit ? "it takes at most 2^31 - 1 rows a device" : nullptr;
}

KernelInfo host(const char* name, Determinism level, const char* summary)
{
    return {"spgemm", name, DeviceKind::host, level, true, summary};
}

KernelInfo cuda(const char* name, Determinism level, const char* summary)
{
    return {"spgemm", name, DeviceKind::cuda, level, have_cuda, summary};
}

}  // namespace

template <class T>
std::span<const SpgemmKernel<T>> spgemm_kernels()
{
    static const std::array<SpgemmKernel<T>, 7> table{{
        {host("spgemm-openmp", Determinism::device_count, "rows in blocks of equal products; hash or dense rows"),
         nullptr, prepare_spgemm_openmp<T>},
        {host("spgemm-reference", Determinism::device_count, "serial, in the next wider type, to compare with"),
         nullptr, prepare_spgemm_reference<T>},
        {cuda("spgemm", Determinism::none, "rows binned by products and column span; hash tables or windows"),
         unsupported_rows<T>, prepare_spgemm_cuda<T>},
        {cuda("cusparse-spgemm-alg1", Determinism::none, "cuSPARSE, CUSPARSE_SPGEMM_ALG1, all products at once"),
         unsupported_by_cusparse<T>, prepare_spgemm_cusparse_alg1<T>},
        {cuda("cusparse-spgemm-alg2", Determinism::none, "cuSPARSE, CUSPARSE_SPGEMM_ALG2"), unsupported_by_cusparse<T>,
         prepare_spgemm_cusparse_alg2<T>},
        {cuda("cusparse-spgemm-alg3", Determinism::none, "cuSPARSE, CUSPARSE_SPGEMM_ALG3, in chunks"),
         unsupported_by_cusparse<T>, prepare_spgemm_cusparse_alg3<T>},
        {cuda("cusparse-spgemm-reuse", Determinism::none, "cuSPARSE, SpGEMMreuse: structure once, then values"),
         unsupported_by_cusparse<T>, prepare_spgemm_cusparse_reuse<T>},
    }};
    return table;
}

template <class T>
const SpgemmKernel<T>& choose_spgemm(DeviceKind kind, const std::string& name, Determinism determinism)
{
    return choose_kernel(
        spgemm_kernels<T>(), "SpGEMM", kind, name, determinism,
        [](const KernelInfo& info) { return info.name == "spgemm-openmp" || info.name == "spgemm"; },
        [](const SpgemmKernel<T>&) { return std::string(); });
}

std::span<const char* const> spgemm_accumulators() { return accumulators; }

#define RMSP_INSTANTIATE(T)                                     \
    template std::span<const SpgemmKernel<T>> spgemm_kernels(); \
    template const SpgemmKernel<T>& choose_spgemm(DeviceKind, const std::string&, Determinism);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::kernels
