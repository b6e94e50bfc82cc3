#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// What measures a device's limits: the five kernels of BabelStream, and chains of multiplications whose length sets
/// the intensity, as mixbench has them. Queued on the context's stream; all pointers are memory of the context's
/// device, aligned to 16 bytes.
namespace rmsp::kernels {

/// Of entries.
enum class Width : std::uint8_t { half_precision, single_precision, double_precision };

enum class Babel : std::uint8_t {
    copy,   ///< c = a
    mul,    ///< b = s c
    add,    ///< c = a + b
    triad,  ///< a = b + s c
    dot,    ///< sum of a b
};

/// Arrays of n entries of `width`. `sums`: room for limit_sums floats or doubles, what dot leaves.
struct LimitArrays {
    Width width = Width::double_precision;
    std::int64_t n = 0;
    void* a = nullptr;
    void* b = nullptr;
    void* c = nullptr;
    double* sums = nullptr;
};
inline constexpr std::int64_t limit_sums = 8192;

struct Limits {
    /// a = 0.1, b = 0.2, c = 0.
    void (*limit_fill)(const LimitArrays& arrays, const Context& context) = nullptr;
    void (*babel)(Babel kernel, const LimitArrays& arrays, const Context& context) = nullptr;
    /// Each entry of a becomes that of a chain of fused multiply-adds, of 2 operations each, which reads it once and
    /// writes it once. `length` is a power of two up to longest_chain.
    void (*chain)(int length, const LimitArrays& arrays, const Context& context) = nullptr;
    /// Whether entries of that width are numbers on the device.
    bool (*has_width)(Width width, const Context& context) = nullptr;

    static const Limits& host();
    static const Limits& cuda();
};
inline constexpr Step limit_fill{&Limits::limit_fill, "limit_fill"};
inline constexpr Step babel{&Limits::babel, "babel"};
inline constexpr Step chain{&Limits::chain, "chain"};
inline constexpr Step has_width{&Limits::has_width, "has_width"};
inline constexpr int longest_chain = 1024;

}  // namespace rmsp::kernels
