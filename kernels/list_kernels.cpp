#include <kernels/entry.hpp>
#include <kernels/spgemm/spgemm.hpp>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/error.hpp>

namespace rmsp {

std::vector<KernelInfo> list_kernels()
{
    std::vector<KernelInfo> all;
    const auto add = [&](const auto& table) {
        for (const auto& kernel : table) {
            all.push_back(kernel.info);
        }
    };
    add(kernels::spmv_kernels<double>());
    add(kernels::spmv_csc_kernels<double>());
    add(kernels::spmv_coo_kernels<double>());
    add(kernels::spgemm_kernels<double>());
    return all;
}

void kernels::throw_not_compiled(const KernelInfo& kernel)
{
    const std::string family = kernel.family == "spmv" ? "SpMV" : "SpGEMM";
    throw NotCompiled(family + " kernel \"" + kernel.name + "\" (CUDA)");
}

}  // namespace rmsp
