#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

/// Sums of rows of CSR on the host. V: type that values are stored in.
namespace rmsp::kernels::csr {

/// A row is summed in chunks of so many nonzeros counted from its start, and the chunks' sums are added in order.
/// Threads share a long row by cutting it between chunks, so the result depends neither on the number of threads nor on
/// the shard.
inline constexpr std::int64_t chunk = 4096;

/// What a row costs besides its nonzeros (pointer, loop, y), in nonzeros.
inline constexpr std::int64_t row_weight = 4;

/// Nonzeros + row_weight * rows below which a team of threads takes longer to start than it saves.
inline constexpr std::int64_t least_shared = 4096;

/// A chunk is added up in so many sums, by the place of an entry in it; rows of as many nonzeros need no loop.
inline constexpr int parallel_sums = 8;
inline constexpr std::int64_t short_row = parallel_sums;

/// N values in vector registers.
template <class T, int N>
using Lanes __attribute__((vector_size(N * sizeof(T)))) = T;

/// N stored values one after the other.
template <class T, int N, class V>
void load(Lanes<T, N>& lanes, const V* values)
{
    Lanes<V, N> stored;
    std::memcpy(&stored, values, sizeof stored);
    lanes = __builtin_convertvector(stored, Lanes<T, N>);
}

template <class V, class T>
void add_four(Lanes<T, 4>& sums, const V* values, const std::int32_t* cols, const T* x)
{
    Lanes<T, 4> entries;
    load<T, 4>(entries, values);
    const Lanes<T, 4> gathered{x[cols[0]], x[cols[1]], x[cols[2]], x[cols[3]]};
    sums += entries * gathered;
}

/// Of which only the first N are not zero. What is zero comes without a sign.
template <int N, class T>
T add_up(const T (&s)[parallel_sums])
{
    const auto add = [](bool there, T first, T second) { return there ? first + second : first; };
    const T s0 = add(N > 4, s[0], s[4]);
    const T s1 = add(N > 5, s[1], s[5]);
    const T s2 = add(N > 6, s[2], s[6]);
    const T s3 = add(N > 7, s[3], s[7]);
    return add(N > 1, add(N > 2, s0, s2), add(N > 3, s1, s3)) + T{0};
}

template <class V, class T>
T dot_chunk(const V* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    Lanes<T, 4> first{};
    Lanes<T, 4> second{};
    std::int64_t i = 0;
    for (; i + parallel_sums <= n; i += parallel_sums) {
        add_four<V, T>(first, values + i, cols + i, x);
        add_four<V, T>(second, values + i + 4, cols + i + 4, x);
    }
    if (i + 4 <= n) {
        add_four<V, T>(first, values + i, cols + i, x);
        i += 4;
        for (int k = 0; i < n; ++i, ++k) {
            second[k] += static_cast<T>(values[i]) * x[cols[i]];
        }
    } else {
        for (int k = 0; i < n; ++i, ++k) {
            first[k] += static_cast<T>(values[i]) * x[cols[i]];
        }
    }
    return add_up<parallel_sums, T>(
        {first[0], first[1], first[2], first[3], second[0], second[1], second[2], second[3]});
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

/// Whether a thread's share of so many bytes is asked for ahead: less stays in its caches from call to call.
inline bool fetches_ahead(std::int64_t bytes)
{
    constexpr std::int64_t cached = 2 << 20;
    return bytes > cached;
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

/// The arrays of CSR, and what they are multiplied by.
template <class T, class V, class Index>
struct Product {
    const Index* row_ptr;
    const std::int32_t* cols;
    const V* values;
    T alpha;
    const T* x;
    T beta;
    T* y;
};

/// Multiplies from a row of N nonzeros on, as far as each has as many; the row behind. N <= short_row.
template <int N, bool ahead, class T, class V, class Index>
std::int64_t multiply_alike(const Product<T, V, Index>& p, std::int64_t row, std::int64_t end)
{
    const T alpha = p.alpha;
    const T beta = p.beta;
    const T* const x = p.x;
    std::int64_t at = p.row_ptr[row];
    do {
        if constexpr (ahead && N > 0) {
            prefetch_lines(p.values + at, 1);
            prefetch_lines(p.cols + at, 1);
        }
        T products[parallel_sums] = {};
        for (int k = 0; k < N; ++k) {
            products[k] = static_cast<T>(p.values[at + k]) * x[p.cols[at + k]];
        }
        write_row(alpha, add_up<N, T>(products), beta, p.y[row]);
        at += N;
        ++row;
    } while (row < end && p.row_ptr[row + 1] - at == N);
    return row;
}

/// Multiplies from a row on, up to the first that is not short; that row.
template <bool ahead, class T, class V, class Index>
std::int64_t multiply_short(const Product<T, V, Index>& p, std::int64_t row, std::int64_t end)
{
    while (row < end) {
        switch (p.row_ptr[row + 1] - p.row_ptr[row]) {
            case 0:
                row = multiply_alike<0, ahead>(p, row, end);
                break;
            case 1:
                row = multiply_alike<1, ahead>(p, row, end);
                break;
            case 2:
                row = multiply_alike<2, ahead>(p, row, end);
                break;
            case 3:
                row = multiply_alike<3, ahead>(p, row, end);
                break;
            case 4:
                row = multiply_alike<4, ahead>(p, row, end);
                break;
            case 5:
                row = multiply_alike<5, ahead>(p, row, end);
                break;
            case 6:
                row = multiply_alike<6, ahead>(p, row, end);
                break;
            case 7:
                row = multiply_alike<7, ahead>(p, row, end);
                break;
            case 8:
                row = multiply_alike<8, ahead>(p, row, end);
                break;
            default:
                return row;
        }
    }
    return row;
}

/// Multiplies rows [row, end). `ahead`: asks for their arrays a page before they are needed.
template <bool ahead, class T, class V, class Index>
void multiply_rows(const Product<T, V, Index>& p, std::int64_t row, std::int64_t end)
{
    for (row = multiply_short<ahead>(p, row, end); row < end; row = multiply_short<ahead>(p, row + 1, end)) {
        const std::int64_t first = p.row_ptr[row];
        const std::int64_t n = p.row_ptr[row + 1] - first;
        if constexpr (ahead) {
            prefetch(p.values + first, p.cols + first, n);
        }
        write_row(p.alpha, dot_row(p.values + first, p.cols + first, n, p.x), p.beta, p.y[row]);
    }
}

}  // namespace rmsp::kernels::csr
