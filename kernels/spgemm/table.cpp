#include <array>
#include <vector>

#include <kernels/choose.hpp>
#include <kernels/spgemm/accumulators.hpp>
#include <kernels/spgemm/spgemm.hpp>

// The SpGEMM kernels, as kernels/spmv/table.cpp has those of SpMV.
#define RMSP_SPGEMM_TABLE(row)                                                                                    \
    row(spgemm_openmp) row(spgemm_reference) row(spgemm_cuda) row(cusparse_spgemm_alg1) row(cusparse_spgemm_alg2) \
        row(cusparse_spgemm_alg3) row(cusparse_spgemm_reuse)

namespace rmsp::kernels {

#define RMSP_DECLARE(entry) \
    template <class T>      \
    SpgemmKernel<T> entry();
RMSP_SPGEMM_TABLE(RMSP_DECLARE)

#define RMSP_CALL(entry) entry<T>(),

template <class T>
std::span<const SpgemmKernel<T>> spgemm_kernels()
{
    static const std::vector<SpgemmKernel<T>> table{RMSP_SPGEMM_TABLE(RMSP_CALL)};
    return table;
}

template <class T>
const SpgemmKernel<T>& choose_spgemm(DeviceKind kind, const std::string& name, Determinism determinism)
{
    return choose_kernel(
        spgemm_kernels<T>(), "SpGEMM", kind, name, determinism,
        [](const SpgemmKernel<T>& kernel) { return kernel.automatic; },
        [](const SpgemmKernel<T>&) { return std::string(); });
}

std::span<const char* const> spgemm_accumulators()
{
    static constexpr auto all_but_auto = [] {
        std::array<const char*, std::size(spgemm::named_accumulators) - 1> names{};
        for (std::size_t i = 0; i < names.size(); ++i) {
            names[i] = spgemm::named_accumulators[i + 1].name;
        }
        return names;
    }();
    return all_but_auto;
}

#define RMSP_INSTANTIATE(T)                                     \
    template std::span<const SpgemmKernel<T>> spgemm_kernels(); \
    template const SpgemmKernel<T>& choose_spgemm(DeviceKind, const std::string&, Determinism);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
