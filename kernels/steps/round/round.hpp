#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Vectors of one precision from those of the other. Queued on the context's stream; all pointers are memory of the
/// context's device.
namespace rmsp::kernels {

struct Rounding {
    /// to[i] = from[i], rounded to the nearest float
    void (*narrow_entries)(const double* from, std::int64_t n, float* to, const Context& context) = nullptr;
    /// to[i] = from[i]
    void (*widen_entries)(const float* from, std::int64_t n, double* to, const Context& context) = nullptr;

    static const Rounding& host();
    static const Rounding& cuda();
};
inline constexpr Step narrow_entries{&Rounding::narrow_entries, "narrow_entries"};
inline constexpr Step widen_entries{&Rounding::widen_entries, "widen_entries"};

}  // namespace rmsp::kernels
