#include <limits>

#include <kernels/spgemm/spgemm.hpp>

namespace rmsp::kernels {
namespace {

template <class T>
const char* unsupported(const CsrShard<T>& a, const CsrShard<T>& b)
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

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg1(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&);

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg2(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&);

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_alg3(const CsrShard<T>&, const CsrShard<T>&,
                                                                const SpgemmOptions&, const Context&);

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cusparse_reuse(const CsrShard<T>&, const CsrShard<T>&,
                                                                 const SpgemmOptions&, const Context&);

template <class T>
SpgemmKernel<T> cusparse_spgemm_alg1()
{
    return {.info = {.family = "spgemm",
                     .name = "cusparse-spgemm-alg1",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPGEMM_ALG1, all products at once",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_spgemm_cusparse_alg1<T>),
            .unsupported = unsupported<T>};
}
RMSP_ENTRY(SpgemmKernel, cusparse_spgemm_alg1)

template <class T>
SpgemmKernel<T> cusparse_spgemm_alg2()
{
    return {.info = {.family = "spgemm",
                     .name = "cusparse-spgemm-alg2",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPGEMM_ALG2",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_spgemm_cusparse_alg2<T>),
            .unsupported = unsupported<T>};
}
RMSP_ENTRY(SpgemmKernel, cusparse_spgemm_alg2)

template <class T>
SpgemmKernel<T> cusparse_spgemm_alg3()
{
    return {.info = {.family = "spgemm",
                     .name = "cusparse-spgemm-alg3",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, CUSPARSE_SPGEMM_ALG3, in chunks",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_spgemm_cusparse_alg3<T>),
            .unsupported = unsupported<T>};
}
RMSP_ENTRY(SpgemmKernel, cusparse_spgemm_alg3)

template <class T>
SpgemmKernel<T> cusparse_spgemm_reuse()
{
    return {.info = {.family = "spgemm",
                     .name = "cusparse-spgemm-reuse",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "cuSPARSE, SpGEMMreuse: structure once, then values",
                     .vendor = true},
            .body = RMSP_CUDA_BODY(prepare_spgemm_cusparse_reuse<T>),
            .unsupported = unsupported<T>};
}
RMSP_ENTRY(SpgemmKernel, cusparse_spgemm_reuse)

}  // namespace rmsp::kernels
