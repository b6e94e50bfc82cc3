#pragma once

#include <span>
#include <string>

#include <fmt/format.h>
#include <rmsp/error.hpp>
#include <rmsp/kernel_info.hpp>

namespace rmsp::kernels {

/// The choice from one table that choose_spmv() and its kin share. `automatic(kernel)`: whether "auto" may take that
/// kernel; `obstacle(kernel)`: the shard that it cannot multiply and why, "" if it can. `family` is its name in
/// messages. \throws Error(usage) as choose_spmv()
template <class Kernel, class Automatic, class Obstacle>
const Kernel& choose_kernel(std::span<const Kernel> table, const char* family, DeviceKind kind, const std::string& name,
                            Determinism determinism, const Automatic& automatic, const Obstacle& obstacle)
{
    std::string names;
    const KernelInfo* elsewhere = nullptr;
    for (const Kernel& kernel : table) {
        const KernelInfo& info = kernel.info;
        if (info.device != kind) {
            elsewhere = info.name == name ? &info : elsewhere;
            continue;
        }
        names += (names.empty() ? "" : ", ") + info.name;
        if (name == "auto") {
            if (automatic(kernel) && info.determinism >= determinism && obstacle(kernel).empty()) {
                return kernel;
            }
        } else if (info.name == name) {
            if (const std::string why = obstacle(kernel); !why.empty()) {
                throw Error(ErrorCode::usage, fmt::format("{} kernel \"{}\" cannot multiply {}", family, name, why));
            }
            if (info.determinism < determinism) {
                throw Error(ErrorCode::usage,
                            fmt::format("{} kernel \"{}\" keeps determinism \"{}\", but \"{}\" was asked for", family,
                                        name, to_string(info.determinism), to_string(determinism)));
            }
            return kernel;
        }
    }
    if (elsewhere != nullptr) {
        throw Error(ErrorCode::usage, fmt::format("{} kernel \"{}\" runs on {} devices; for {} devices there are: {}",
                                                  family, name, to_string(elsewhere->device), to_string(kind), names));
    }
    if (name == "auto") {
        throw Error(ErrorCode::usage, fmt::format("no {} kernel for {} devices keeps determinism \"{}\"; there are: {}",
                                                  family, to_string(kind), to_string(determinism), names));
    }
    throw Error(ErrorCode::usage, fmt::format("no {} kernel \"{}\" for {} devices; there are: auto, {}", family, name,
                                              to_string(kind), names));
}

}  // namespace rmsp::kernels
