#include <algorithm>
#include <vector>

#include <kernels/steps/blas1/blas1.hpp>

#include "core/parallel.hpp"
#include "core/team.hpp"

namespace rmsp::kernels {
namespace host {
namespace {

/// Sum over [begin, end), in eight chains that the processor works on at the same time.
template <class T>
double dot_range(const T* x, const T* y, std::int64_t begin, std::int64_t end)
{
    constexpr int chains = 8;
    double sums[chains] = {};
    std::int64_t i = begin;
    for (; i + chains <= end; i += chains) {
        for (int k = 0; k < chains; ++k) {
            sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(y[i + k]);
        }
    }
    for (; i < end; ++i) {
        sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// f(i) for 0 <= i < n, in a range for each thread that has enough to do.
template <class F>
void for_each(std::int64_t n, const Context& context, const F& f)
{
    constexpr std::int64_t least = 4096;
    core::share_ranges(n, context.threads, least, n >= core::least_parallel, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            f(i);
        }
    });
}

template <class T>
void axpy(T alpha, const T* x, T* y, std::int64_t n, const Context& context)
{
    if (alpha == T{0}) {
        return;
    }
    for_each(n, context, [=](std::int64_t i) { y[i] += alpha * x[i]; });
}

template <class T>
void scal(T alpha, T* x, std::int64_t n, const Context& context)
{
    for_each(n, context, [=](std::int64_t i) { x[i] = alpha == T{0} ? T{0} : alpha * x[i]; });
}

template <class T>
void copy(const T* x, T* y, std::int64_t n, const Context& context)
{
    for_each(n, context, [=](std::int64_t i) { y[i] = x[i]; });
}

template <class T>
void dot(const T* x, const T* y, std::int64_t n, void* workspace, double* result, const Context& context)
{
    // A part for each thread, and the parts in order: the sum does not depend on which thread comes first.
    const std::int64_t parts = std::clamp<std::int64_t>(context.threads, 1, 2048);
    auto* const sums = static_cast<double*>(workspace);
    core::share(static_cast<int>(parts), n >= core::least_parallel, [&](std::int64_t p) {
        sums[p] =
            dot_range(x, y, n / parts * p + std::min(p, n % parts), n / parts * (p + 1) + std::min(p + 1, n % parts));
    });
    double sum = 0;
    for (std::int64_t p = 0; p < parts; ++p) {
        sum += sums[p];
    }
    *result = sum;
}

}  // namespace
}  // namespace host

RMSP_VALUE_ROW(Blas1, host, .axpy = host::axpy<T>, .scal = host::scal<T>, .copy = host::copy<T>, .dot = host::dot<T>)

}  // namespace rmsp::kernels
