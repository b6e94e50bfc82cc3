#include <algorithm>

#include <kernels/steps/round/round.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

template <class From, class To>
void convert(const From* from, std::int64_t n, To* to, const Context& context)
{
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<To>(from[i]);
    }
}

}  // namespace
}  // namespace host

RMSP_ROW(Rounding, host, .narrow_entries = host::convert<double, float>, .widen_entries = host::convert<float, double>)

}  // namespace rmsp::kernels
