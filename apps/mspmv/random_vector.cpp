#include "apps/mspmv/random_vector.hpp"

#include <rmsp/value_types.hpp>

namespace rmsp::mspmv {

template <class T>
HostVector<T> random_vector(std::int64_t n, std::int64_t seed, std::uint64_t stream, std::int64_t first)
{
    HostVector<T> v(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) {
        std::uint64_t z = static_cast<std::uint64_t>(seed) * 0xd1342543de82ef95U + (stream << 56) +
                          static_cast<std::uint64_t>(first + i + 1) * 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
        // As many bits as fit the type, so that rounding cannot reach 1.
        constexpr int bits = sizeof(T) == 8 ? 53 : 24;
        v[static_cast<std::size_t>(i)] =
            static_cast<T>(z >> (64 - bits)) * (T{2} / static_cast<T>(std::uint64_t{1} << bits)) - T{1};
    }
    return v;
}

#define RMSP_INSTANTIATE(T) \
    template HostVector<T> random_vector(std::int64_t, std::int64_t, std::uint64_t, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::mspmv
