#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define RMSP_HOST_DEVICE __host__ __device__
#else
#define RMSP_HOST_DEVICE
#endif

/// Programs of scalars: numbers that live on the devices, in a bank, and what is computed from them there.
namespace rmsp::kernels {

/// a and b are numbers of the bank, and so is dst, unless it is said otherwise.
enum class ScalarCode : std::int16_t {
    copy,                ///< dst = a
    add,                 ///< dst = a + b
    subtract,            ///< dst = a - b
    multiply,            ///< dst = a b
    divide,              ///< dst = a / b
    add_product,         ///< dst += a b
    subtract_product,    ///< dst -= a b
    square_root,         ///< dst = sqrt(a); of what rounding made negative: 0
    hypotenuse,          ///< dst = sqrt(a a + b b)
    absolute,            ///< dst = |a|
    larger,              ///< dst = max(a, b); NaN if one is
    smaller,             ///< dst = min(a, b); NaN if one is
    less,                ///< dst = a < b ? 1 : 0
    select,              ///< dst = dst != 0 ? a : b
    record,              ///< counts an iteration, whose residual norm is a
    stop_if_less,        ///< dst is an outcome: stops with it if a < b
    stop_unless_more,    ///< ... unless a > b, also if one is NaN
    stop_if_not_more,    ///< ... if a <= b
    stop_unless_finite,  ///< ... unless a is finite
};

struct ScalarOp {
    ScalarCode code = ScalarCode::copy;
    std::int16_t dst = 0;
    std::int16_t a = 0;
    std::int16_t b = 0;
};

/// The first numbers of a bank have a meaning.
inline constexpr std::int16_t scalar_stopped = 0;     ///< 0 while the iteration goes on, then its outcome
inline constexpr std::int16_t scalar_iterations = 1;  ///< recorded so far
inline constexpr std::int16_t scalar_zero = 2;
inline constexpr std::int16_t scalar_one = 3;
inline constexpr std::int16_t first_free_scalar = 4;
inline constexpr std::int16_t most_scalars = 16384;

/// What the first device tells the host.
struct ScalarProgress {
    static constexpr std::int64_t kept = 4096;  ///< iterations whose residual norms are kept
    double iterations = 0;
    double outcome = 0;
    double residual[kept] = {};  ///< that of iteration i is at i % kept
};

/// Stores what the host may read at the same time.
RMSP_HOST_DEVICE inline void tell(double* place, double value)
{
#ifdef __CUDA_ARCH__
    *static_cast<volatile double*>(place) = value;
#else
    __atomic_store(place, &value, __ATOMIC_RELEASE);
#endif
}

/// Runs a program on a bank.
RMSP_HOST_DEVICE inline void run_program(double* bank, ScalarProgress* progress, const ScalarOp* op, int ops)
{
    for (int i = 0; i < ops; ++i) {
        const ScalarOp o = op[i];
        const double a = bank[o.a];
        const double b = bank[o.b];
        bool stops = false;
        switch (o.code) {
            case ScalarCode::copy:
                bank[o.dst] = a;
                break;
            case ScalarCode::add:
                bank[o.dst] = a + b;
                break;
            case ScalarCode::subtract:
                bank[o.dst] = a - b;
                break;
            case ScalarCode::multiply:
                bank[o.dst] = a * b;
                break;
            case ScalarCode::divide:
                bank[o.dst] = a / b;
                break;
            case ScalarCode::add_product:
                bank[o.dst] += a * b;
                break;
            case ScalarCode::subtract_product:
                bank[o.dst] -= a * b;
                break;
            case ScalarCode::square_root:
                bank[o.dst] = a < 0 ? 0.0 : ::sqrt(a);
                break;
            case ScalarCode::hypotenuse:
                bank[o.dst] = ::hypot(a, b);
                break;
            case ScalarCode::absolute:
                bank[o.dst] = ::fabs(a);
                break;
            case ScalarCode::larger:
                bank[o.dst] = a > b || a != a ? a : b;
                break;
            case ScalarCode::smaller:
                bank[o.dst] = a < b || a != a ? a : b;
                break;
            case ScalarCode::less:
                bank[o.dst] = a < b ? 1.0 : 0.0;
                break;
            case ScalarCode::select:
                bank[o.dst] = bank[o.dst] != 0 ? a : b;
                break;
            case ScalarCode::record:
                bank[scalar_iterations] += 1;
                if (progress != nullptr) {
                    tell(progress->residual + static_cast<std::int64_t>(bank[scalar_iterations]) % ScalarProgress::kept,
                         a);
                    tell(&progress->iterations, bank[scalar_iterations]);
                }
                break;
            case ScalarCode::stop_if_less:
                stops = a < b;
                break;
            case ScalarCode::stop_unless_more:
                stops = !(a > b);
                break;
            case ScalarCode::stop_if_not_more:
                stops = a <= b;
                break;
            case ScalarCode::stop_unless_finite:
                stops = !(::fabs(a) <= 1.7976931348623157e308);
                break;
        }
        if (stops && bank[scalar_stopped] == 0) {
            bank[scalar_stopped] = o.dst;
            if (progress != nullptr) {
                tell(&progress->outcome, o.dst);
            }
        }
    }
}

}  // namespace rmsp::kernels
