#include <limits>

#include <kernels/spgemm/spgemm.hpp>

namespace rmsp::kernels {
namespace {

template <class T>
const char* unsupported(const CsrShard<T>& a, const CsrShard<T>& b)
{
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    return a.rows > limit || b.rows > limit ? "it takes at most 2^31 - 1 rows a device" : nullptr;
}

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_openmp(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&,
                                                         const Context&);

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_reference(const CsrShard<T>&, const CsrShard<T>&,
                                                            const SpgemmOptions&, const Context&);

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cuda(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&,
                                                       const Context&);

template <class T>
SpgemmKernel<T> spgemm_openmp()
{
    return {.info = {.family = "spgemm",
                     .name = "spgemm-openmp",
                     .device = DeviceKind::host,
                     .determinism = Determinism::device_count,
                     .summary = "rows in blocks of equal products; hash or dense rows"},
            .body = prepare_spgemm_openmp<T>,
            .automatic = true};
}
RMSP_ENTRY(SpgemmKernel, spgemm_openmp)

template <class T>
SpgemmKernel<T> spgemm_reference()
{
    return {.info = {.family = "spgemm",
                     .name = "spgemm-reference",
                     .device = DeviceKind::host,
                     .determinism = Determinism::device_count,
                     .summary = "serial, in the next wider type, to compare with"},
            .body = prepare_spgemm_reference<T>};
}
RMSP_ENTRY(SpgemmKernel, spgemm_reference)

template <class T>
SpgemmKernel<T> spgemm_cuda()
{
    return {.info = {.family = "spgemm",
                     .name = "spgemm",
                     .device = DeviceKind::cuda,
                     .determinism = Determinism::none,
                     .compiled = cuda_compiled,
                     .summary = "rows binned by products and column span; hash tables or windows"},
            .body = RMSP_CUDA_BODY(prepare_spgemm_cuda<T>),
            .unsupported = unsupported<T>,
            .automatic = true};
}
RMSP_ENTRY(SpgemmKernel, spgemm_cuda)

}  // namespace rmsp::kernels
