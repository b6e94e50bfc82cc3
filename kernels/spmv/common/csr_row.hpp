#pragma once

#include <algorithm>
#include <cstdint>

/// Sums of rows of CSR on the host. V: type that values are stored in.
namespace rmsp::kernels::csr {

/// A row is summed in chunks of so many nonzeros counted from its start, and the chunks' sums are added in order.
/// Threads share a long row by cutting it between chunks, so the result depends neither on the number of threads nor on
/// the shard.
inline constexpr std::int64_t chunk = 4096;

/// What a row costs besides its nonzeros (pointer, loop, y), in nonzeros.
inline constexpr std::int64_t row_weight = 4;

template <class V, class T>
T dot_chunk(const V* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    // Four independent sums: one chain of additions would be slower than memory.
    T s0 = 0;
    T s1 = 0;
    T s2 = 0;
    T s3 = 0;
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += static_cast<T>(values[i]) * x[cols[i]];
        s1 += static_cast<T>(values[i + 1]) * x[cols[i + 1]];
        s2 += static_cast<T>(values[i + 2]) * x[cols[i + 2]];
        s3 += static_cast<T>(values[i + 3]) * x[cols[i + 3]];
    }
    for (; i < n; ++i) {
        s0 += static_cast<T>(values[i]) * x[cols[i]];
    }
    return (s0 + s1) + (s2 + s3);
}

template <class V, class T>
T dot_row(const V* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    T sum = dot_chunk(values, cols, std::min(n, chunk), x);
    for (std::int64_t i = chunk; i < n; i += chunk) {
        sum += dot_chunk(values + i, cols + i, std::min(n - i, chunk), x);
    }
    return sum;
}

/// Asks for the lines that lie a page behind n entries, which a thread needs soon: what the hardware fetches ahead of
/// few threads is less than the memory delivers. Nothing happens beyond the arrays.
template <class V>
void prefetch_lines(const V* entries, std::int64_t n)
{
    constexpr std::int64_t ahead = 512;
    constexpr auto line = 64 / static_cast<std::int64_t>(sizeof(V));
    for (std::int64_t i = 0; i < n; i += line) {
        __builtin_prefetch(entries + ahead + i);
    }
}

/// The same for a row. Long ones keep the hardware busy by themselves.
template <class V>
void prefetch(const V* values, const std::int32_t* cols, std::int64_t n)
{
    constexpr std::int64_t most = 128;
    prefetch_lines(values, std::min(n, most));
    prefetch_lines(cols, std::min(n, most));
}

template <class T>
void write_row(T alpha, T sum, T beta, T& y)
{
    y = beta == T{0} ? alpha * sum : alpha * sum + beta * y;
}

}  // namespace rmsp::kernels::csr
