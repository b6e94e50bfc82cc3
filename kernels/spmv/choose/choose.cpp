#include <fmt/format.h>

#include <kernels/choose.hpp>
#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {

template <class T>
const SpmvKernel<T>& choose_spmv(DeviceKind kind, const std::string& name, Determinism determinism,
                                 const RowStatistics& rows, std::int64_t cols)
{
    return choose_kernel(
        spmv_kernels<T>(), "SpMV", kind, name, determinism,
        [&](const SpmvKernel<T>& kernel) { return kernel.automatic(rows); },
        [&](const SpmvKernel<T>& kernel) {
            const char* const reason =
                kernel.unsupported == nullptr ? nullptr : kernel.unsupported(rows.rows, cols, rows.nnz);
            return reason == nullptr
                       ? std::string()
                       : fmt::format("a shard of {} x {} with {} nonzeros: {}", rows.rows, cols, rows.nnz, reason);
        });
}

template <class T>
std::vector<const SpmvKernel<T>*> automatic_spmv(DeviceKind kind, Determinism determinism, const RowStatistics& rows,
                                                 std::int64_t cols)
{
    choose_spmv<T>(kind, "auto", determinism, rows, cols);  // for its errors
    std::vector<const SpmvKernel<T>*> kernels;
    for (const SpmvKernel<T>& kernel : spmv_kernels<T>()) {
        if (kernel.info.device == kind && kernel.info.determinism >= determinism &&
            (kernel.automatic(rows) || kernel.weighed(rows)) &&
            (kernel.unsupported == nullptr || kernel.unsupported(rows.rows, cols, rows.nnz) == nullptr)) {
            kernels.push_back(&kernel);
        }
    }
    return kernels;
}

Beside beside_exchange(DeviceKind kind, const std::string& name)
{
    for (const SpmvKernel<double>& kernel : spmv_kernels<double>()) {
        if (kernel.info.device == kind && kernel.info.name == name) {
            return kernel.beside;
        }
    }
    return Beside::nothing;
}

template <class T>
const CscKernel<T>& choose_spmv_csc(DeviceKind kind, const std::string& name, Determinism determinism)
{
    return choose_kernel(
        spmv_csc_kernels<T>(), "CSC SpMV", kind, name, determinism,
        [](const CscKernel<T>& kernel) { return kernel.automatic; }, [](const CscKernel<T>&) { return std::string(); });
}

template <class T>
const CooKernel<T>& choose_spmv_coo(DeviceKind kind, const std::string& name, Determinism determinism, CooOrder order)
{
    return choose_kernel(
        spmv_coo_kernels<T>(), "COO SpMV", kind, name, determinism,
        [&](const CooKernel<T>& kernel) { return kernel.automatic(order); },
        [&](const CooKernel<T>& kernel) {
            return kernel.supports(order)
                       ? std::string()
                       : fmt::format("a shard whose order is \"{}\": its entries must be sorted by row",
                                     to_string(order));
        });
}

#define RMSP_INSTANTIATE(T)                                                                                      \
    template const SpmvKernel<T>& choose_spmv(DeviceKind, const std::string&, Determinism, const RowStatistics&, \
                                              std::int64_t);                                                     \
    template std::vector<const SpmvKernel<T>*> automatic_spmv(DeviceKind, Determinism, const RowStatistics&,     \
                                                              std::int64_t);                                     \
    template const CscKernel<T>& choose_spmv_csc(DeviceKind, const std::string&, Determinism);                   \
    template const CooKernel<T>& choose_spmv_coo(DeviceKind, const std::string&, Determinism, CooOrder);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
