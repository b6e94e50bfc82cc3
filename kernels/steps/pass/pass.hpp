#pragma once

#include <cstdint>

#include <kernels/steps/pass/exact_sum.hpp>
#include <kernels/steps/pass/program.hpp>
#include <kernels/steps/step.hpp>

/// One pass over the slices of some vectors on one device: linear combinations, inner products of what they gave, the
/// sums of those over all devices, and a program of scalars. The unit that iterative methods are made of: each vector
/// is read and written once, and the host waits for nothing.
namespace rmsp::kernels {

inline constexpr int most_pass_terms = 12;
inline constexpr int most_pass_updates = 3;
inline constexpr int most_pass_dots = 8;

/// scalar * v[i], or scalar * v[i] * times[i]
template <class T>
struct PassTerm {
    const T* v = nullptr;      ///< read from memory if `from` is -1
    const T* times = nullptr;  ///< null: 1
    std::int16_t scalar = 0;   ///< of the bank; a term whose scalar is 0 is not read
    std::int8_t sign = 1;      ///< of the scalar
    std::int8_t from = -1;     ///< the update of this pass whose result is v; -1: none
};

/// out[i] = the sum of the terms [first, end)
template <class T>
struct PassUpdate {
    T* out = nullptr;
    std::int16_t first = 0;
    std::int16_t end = 0;
};

/// bank[into] = the sum of a[i] b[i] over all devices, in double
template <class T>
struct PassDot {
    const T* a = nullptr;
    const T* b = nullptr;
    std::int8_t a_from = -1;  ///< as PassTerm::from
    std::int8_t b_from = -1;
    std::int16_t into = 0;
    /// Not null: the sum of these numbers instead, rounded; not with PassPlace::exact.
    const double* parts = nullptr;
    std::int64_t count = 0;
};

/// Updates are done one after the other for each i, then the inner products, then the program.
template <class T>
struct Pass {
    std::int64_t n = 0;  ///< entries of this device's slices
    PassTerm<T> term[most_pass_terms];
    PassUpdate<T> update[most_pass_updates];
    PassDot<T> dot[most_pass_dots];
    int updates = 0;
    int dots = 0;
    /// Also done once the bank says that the iteration has stopped.
    bool always = false;
};

/// How the sums of the devices come together.
enum class PassSums : std::uint8_t {
    alone,  ///< one device
    lines,  ///< through lines in each other's memory, inside the kernel
    left,   ///< each device leaves its sums in PassPlace::left for finish_pass(), which adds them
    sent,   ///< through such lines; the kernel fills those of the others, finish_pass() waits for its own and adds
};

inline constexpr int most_pass_devices = 32;
/// Of the exact sums of a device (exact_sum.hpp).
inline constexpr std::int64_t pass_words = std::int64_t{most_pass_dots} * exact::words;
/// Bytes of one set of lines: two sets, used in turn. \param exact  of sums without rounding
constexpr std::int64_t pass_line_bytes(int devices, bool exact)
{
    return std::int64_t{16} * devices * (exact ? pass_words : most_pass_dots);
}
/// Bytes of PassPlace::workspace, zero before the first pass.
inline constexpr std::int64_t pass_workspace_bytes = 128 + std::int64_t{8} * most_pass_dots * 2048;
/// The first ones of them, which are zero between passes.
inline constexpr std::int64_t pass_workspace_zeros = 128 + std::int64_t{8} * pass_words;

/// What passes of one device need besides vectors.
struct PassPlace {
    double* bank = nullptr;              ///< of this device; every device's holds the same numbers
    ScalarProgress* progress = nullptr;  ///< pinned host memory; null: another device writes it
    void* workspace = nullptr;
    const ScalarOp* program = nullptr;  ///< in this device's memory
    int ops = 0;
    int numbers = 0;  ///< of the bank, the first ones, that the program has to do with
    /// Whether the program changes nothing that this pass reads, and needs nothing of it: it may be run meanwhile.
    bool beside = false;
    PassSums sums = PassSums::alone;
    int device = 0;
    int devices = 1;
    int group = 1;  ///< so many devices' sums are added to each other first, with `left`: those of a process
    /// Where each device leaves its sums, most_pass_dots of each: host memory that all can read, or
    /// what was gathered in the device's own.
    double* left = nullptr;
    /// Not null: inner products are summed without rounding (exact_sum.hpp). Where each device leaves its sums,
    /// pass_words of each: host memory that all can read.
    std::int64_t* exact = nullptr;
    // `lines` only:
    void* lines_in = nullptr;                 ///< one set here
    void* lines_out[most_pass_devices] = {};  ///< the same set there, of each device
    std::uint64_t epoch = 0;                  ///< larger each time; the low 32 bits, not all 0, tell lines apart
    const volatile std::uint64_t* given_up = nullptr;  ///< host memory: sums up to this epoch are given up
};

template <class T>
struct Passes {
    /// Queues a pass. With PassSums::left and sent its program is left to finish_pass().
    void (*run_pass)(const Pass<T>& pass, const PassPlace& place, const Context& context) = nullptr;
    /// Queues what is left to do once the sums of all devices are there: adds them in the order of the devices, and
    /// runs the program. `pass`: as run_pass() had it.
    void (*finish_pass)(const Pass<T>& pass, const PassPlace& place, const Context& context) = nullptr;

    static const Passes& host();
    static const Passes& cuda();
};
struct PassLoading {
    /// Loads the kernels on the current device: the first launch of a kernel may wait for those that run, and with it
    /// for one that waits for it. \param exact  those of sums without rounding as well
    void (*load_passes)(bool exact, const Context& context) = nullptr;

    static const PassLoading& host();
    static const PassLoading& cuda();
};
inline constexpr Step load_passes{&PassLoading::load_passes, "load_passes"};
RMSP_VALUE_STEP(Passes, run_pass);
RMSP_VALUE_STEP(Passes, finish_pass);

}  // namespace rmsp::kernels
