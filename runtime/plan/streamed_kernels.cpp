#include "runtime/plan/streamed_kernels.hpp"

#include <fmt/format.h>

namespace rmsp::plan {
template <class T>
const kernels::SpmvKernel<T>& choose_streamed_spmv(DeviceKind kind, const std::string& name, Determinism determinism,
                                                   const RowStatistics& rows, std::int64_t cols)
{
    const auto& chosen = kernels::choose_spmv<T>(kind, name, determinism, rows, cols);
    if (chosen.info.streams) {
        return chosen;
    }
    if (name == "auto") {
        for (const auto& kernel : kernels::spmv_kernels<T>()) {
            if (kernel.info.device == kind && kernel.info.streams && kernel.info.determinism >= determinism &&
                kernel.automatic(rows)) {
                return kernels::choose_spmv<T>(kind, kernel.info.name, determinism, rows, cols);
            }
        }
    }
    std::string names;
    for (const auto& kernel : kernels::spmv_kernels<T>()) {
        if (kernel.info.device == kind && kernel.info.streams) {
            names += ", " + kernel.info.name;
        }
    }
    throw Error(
        ErrorCode::usage,
        fmt::format("SpMV kernel \"{}\" needs the entries of the matrix on the device before an apply; a streamed "
                    "matrix is multiplied by: auto{}",
                    name, names));
}

template <class T>
const kernels::CscKernel<T>& choose_streamed_csc(DeviceKind kind, const std::string& name, Determinism determinism)
{
    std::string names;
    for (const auto& kernel : kernels::spmv_csc_kernels<T>()) {
        if (kernel.info.device != kind || !kernel.info.streams) {
            continue;
        }
        if (kernel.info.name == name || (name == "auto" && kernel.info.determinism >= determinism)) {
            return kernels::choose_spmv_csc<T>(kind, kernel.info.name, determinism);
        }
        names += (names.empty() ? "" : ", ") + kernel.info.name;
    }
    throw Error(
        ErrorCode::usage,
        fmt::format("streamed columns are multiplied without having them on the device before: no kernel \"{}\" "
                    "that keeps determinism \"{}\" does; there are: {}",
                    name, to_string(determinism), names));
}

template <class T>
const kernels::CooKernel<T>& choose_streamed_coo(DeviceKind kind, const std::string& name, Determinism determinism,
                                                 CooOrder order)
{
    std::string names;
    for (const auto& kernel : kernels::spmv_coo_kernels<T>()) {
        if (kernel.info.device != kind || !kernel.info.streams || !kernel.supports(order)) {
            continue;
        }
        if (kernel.info.name == name || (name == "auto" && kernel.info.determinism >= determinism)) {
            return kernels::choose_spmv_coo<T>(kind, kernel.info.name, determinism, order);
        }
        names += (names.empty() ? "" : ", ") + kernel.info.name;
    }
    throw Error(
        ErrorCode::usage,
        fmt::format("streamed coordinates are multiplied without having them on the device before: no kernel \"{}\" "
                    "that keeps determinism \"{}\" does; there are: {}. Sorted ones are streamed with row pointers by "
                    "stream.coordinates \"pointers\"",
                    name, to_string(determinism), names));
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template const kernels::SpmvKernel<T>& choose_streamed_spmv(DeviceKind, const std::string&, Determinism, \
                                                                const RowStatistics&, std::int64_t);         \
    template const kernels::CscKernel<T>& choose_streamed_csc(DeviceKind, const std::string&, Determinism);  \
    template const kernels::CooKernel<T>& choose_streamed_coo(DeviceKind, const std::string&, Determinism, CooOrder);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::plan
