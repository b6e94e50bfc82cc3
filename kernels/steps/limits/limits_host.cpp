#include <algorithm>
#include <cmath>
#include <cstdint>

#include <kernels/steps/limits/limits.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

#ifdef __FLT16_MAX__
__extension__ using Half = _Float16;
constexpr bool has_half = true;
#else
using Half = float;
constexpr bool has_half = false;
#endif

/// f(a pointer to entries of the width) for each of the arrays' types.
template <class F>
void visit(Width width, const F& f)
{
    switch (width) {
        case Width::half_precision:
            return f(Half{});
        case Width::single_precision:
            return f(float{});
        case Width::double_precision:
            return f(double{});
    }
}

template <class T>
struct Typed {
    explicit Typed(const LimitArrays& arrays)
        : a(static_cast<T*>(arrays.a)), b(static_cast<T*>(arrays.b)), c(static_cast<T*>(arrays.c))
    {
    }
    T* __restrict a;
    T* __restrict b;
    T* __restrict c;
};

void limit_fill(const LimitArrays& arrays, const Context& context)
{
    visit(arrays.width, [&](auto type) {
        using T = decltype(type);
        const Typed<T> of(arrays);
#pragma omp parallel for simd num_threads(std::max(context.threads, 1)) schedule(static)
        for (std::int64_t i = 0; i < arrays.n; ++i) {
            of.a[i] = static_cast<T>(0.1);
            of.b[i] = static_cast<T>(0.2);
            of.c[i] = static_cast<T>(0.0);
        }
    });
}

template <class T>
void run_babel(Babel kernel, const LimitArrays& arrays, int threads)
{
    const Typed<T> of(arrays);
    const T s = static_cast<T>(0.4);
    const auto each = [&](const auto& body) {
#pragma omp parallel for simd num_threads(threads) schedule(static)
        for (std::int64_t i = 0; i < arrays.n; ++i) {
            body(i);
        }
    };
    switch (kernel) {
        case Babel::copy:
            return each([&](std::int64_t i) { of.c[i] = of.a[i]; });
        case Babel::mul:
            return each([&](std::int64_t i) { of.b[i] = static_cast<T>(s * of.c[i]); });
        case Babel::add:
            return each([&](std::int64_t i) { of.c[i] = static_cast<T>(of.a[i] + of.b[i]); });
        case Babel::triad:
            return each([&](std::int64_t i) { of.a[i] = static_cast<T>(of.b[i] + s * of.c[i]); });
        case Babel::dot: {
            double sum = 0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+ : sum)
            for (std::int64_t i = 0; i < arrays.n; ++i) {
                sum += static_cast<double>(of.a[i]) * static_cast<double>(of.b[i]);
            }
            *arrays.sums = sum;
            return;
        }
    }
}

void babel(Babel kernel, const LimitArrays& arrays, const Context& context)
{
    visit(arrays.width, [&](auto type) { run_babel<decltype(type)>(kernel, arrays, std::max(context.threads, 1)); });
}

/// Blocks of entries go through the chain together, so that the compiler has independent chains to interleave.
template <class T>
void run_chain(int length, const LimitArrays& arrays, int threads)
{
    constexpr std::int64_t block = 64;
    T* const a = static_cast<T*>(arrays.a);
    const T s = static_cast<T>(0.5);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t first = 0; first < arrays.n; first += block) {
        const std::int64_t n = std::min(block, arrays.n - first);
        T value[block];
        std::copy_n(a + first, n, value);
        std::fill(value + n, value + block, T{});
        for (int k = 0; k < length; ++k) {
#pragma omp simd
            for (std::int64_t i = 0; i < block; ++i) {
                value[i] = static_cast<T>(value[i] * s + s);
            }
        }
        std::copy_n(value, n, a + first);
    }
}

void chain(int length, const LimitArrays& arrays, const Context& context)
{
    visit(arrays.width, [&](auto type) { run_chain<decltype(type)>(length, arrays, std::max(context.threads, 1)); });
}

bool has_width(Width width, const Context&) { return has_half || width != Width::half_precision; }

}  // namespace
}  // namespace host

RMSP_ROW(Limits, host, .limit_fill = host::limit_fill, .babel = host::babel, .chain = host::chain,
         .has_width = host::has_width)

}  // namespace rmsp::kernels
