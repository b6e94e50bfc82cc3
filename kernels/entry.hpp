#pragma once

#include <core/value_types.hpp>
#include <rmsp/kernel_info.hpp>

/// What the entries of all kernels share. An entry is compiled in every build, so that a build without CUDA lists the
/// same kernels; it then refers to none of the bodies in CUDA sources.
namespace rmsp::kernels {

#ifdef RMSP_HAVE_CUDA
inline constexpr bool cuda_compiled = true;
#define RMSP_CUDA_BODY(...) (__VA_ARGS__)
#else
inline constexpr bool cuda_compiled = false;
#define RMSP_CUDA_BODY(...) nullptr
#endif

/// An entry's function for all value types.
#define RMSP_ENTRY_OF(T, Kernel, name) template Kernel<T> name();
#define RMSP_ENTRY(Kernel, name) RMSP_FOR_EACH_VALUE_TYPE(RMSP_ENTRY_OF, Kernel, name)

/// \throws NotCompiled naming the kernel
[[noreturn]] void throw_not_compiled(const KernelInfo& kernel);

/// body(args...), an operator made ready. \throws NotCompiled where this build has no body
template <class Body, class... Args>
auto prepare_with(const KernelInfo& kernel, Body body, const Args&... args)
{
    if (body == nullptr) {
        throw_not_compiled(kernel);
    }
    return body(args...);
}

}  // namespace rmsp::kernels
