#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include <kernels/spmv/spmv.hpp>

/// Sums of rows of CSR on the host. V: type that values are stored in.
namespace rmsp::kernels::csr {

/// A row is summed in chunks of so many nonzeros counted from its start, and the chunks' sums are added in order.
/// Threads share a long row by cutting it between chunks, so the result depends neither on the number of threads nor on
/// the shard.
inline constexpr std::int64_t chunk = 4096;

/// What a row costs besides its nonzeros (pointer, loop, y), in nonzeros.
inline constexpr std::int64_t row_weight = 4;

/// A chunk is added up in so many sums, by the place of an entry in it; rows of as many nonzeros need no loop.
inline constexpr int parallel_sums = 8;
inline constexpr std::int64_t short_row = parallel_sums;

/// Rows whose lengths change are multiplied without a branch on them up to this length, so many rows at a time.
inline constexpr std::int64_t unlike_row = 32;
inline constexpr std::int64_t unlike_rows = 16;
/// So many rows of a length in turn are worth the jump to their body.
inline constexpr std::int64_t alike_rows = 4;

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

/// Adds the products of the last n < parallel_sums entries to the sums of their places.
template <class V, class T>
void add_rest(T (&s)[parallel_sums], const V* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    const auto product = [&](int k) { return static_cast<T>(values[k]) * x[cols[k]]; };
    switch (n) {
        case 7:
            s[6] += product(6);
            [[fallthrough]];
        case 6:
            s[5] += product(5);
            [[fallthrough]];
        case 5:
            s[4] += product(4);
            [[fallthrough]];
        case 4:
            s[3] += product(3);
            [[fallthrough]];
        case 3:
            s[2] += product(2);
            [[fallthrough]];
        case 2:
            s[1] += product(1);
            [[fallthrough]];
        case 1:
            s[0] += product(0);
            [[fallthrough]];
        default:
            break;
    }
}

template <class V, class T>
T dot_chunk(const V* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    T s[parallel_sums] = {};
    std::int64_t i = 0;
    if constexpr (sizeof(T) == sizeof(float)) {
        Lanes<T, 4> first{};
        Lanes<T, 4> second{};
        for (; i + parallel_sums <= n; i += parallel_sums) {
            add_four<V, T>(first, values + i, cols + i, x);
            add_four<V, T>(second, values + i + 4, cols + i + 4, x);
        }
        for (int k = 0; k < 4; ++k) {
            s[k] = first[k];
            s[k + 4] = second[k];
        }
    } else {
        // To gather doubles takes as many instructions as to multiply them one by one.
        for (; i + parallel_sums <= n; i += parallel_sums) {
            for (int k = 0; k < parallel_sums; ++k) {
                s[k] += static_cast<T>(values[i + k]) * x[cols[i + k]];
            }
        }
    }
    add_rest(s, values + i, cols + i, n - i, x);
    return add_up<parallel_sums, T>(s);
}

/// The same sum for n <= unlike_row entries, by whole vectors: those behind the n are read, and left out.
template <class V, class T>
T dot_unlike(const V* values, const std::int32_t* cols, std::int64_t n, const T* x)
{
    using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    static constexpr Bits kept[2 * parallel_sums] = {-1, -1, -1, -1, -1, -1, -1, -1};
    Lanes<T, 4> first{};
    Lanes<T, 4> second{};
    std::int64_t i = 0;
    for (; i + parallel_sums <= n; i += parallel_sums) {
        add_four<V, T>(first, values + i, cols + i, x);
        add_four<V, T>(second, values + i + 4, cols + i + 4, x);
    }
    Lanes<T, 4> last{};
    Lanes<T, 4> rest{};
    add_four<V, T>(last, values + i, cols + i, x);
    add_four<V, T>(rest, values + i + 4, cols + i + 4, x);
    const auto add_kept = [&](Lanes<T, 4>& sums, const Lanes<T, 4>& products, std::int64_t behind) {
        Lanes<Bits, 4> mask;
        Lanes<Bits, 4> bits;
        Lanes<T, 4> left;
        std::memcpy(&mask, kept + behind, sizeof mask);
        std::memcpy(&bits, &products, sizeof bits);
        bits &= mask;
        std::memcpy(&left, &bits, sizeof left);
        sums += left;
    };
    add_kept(first, last, parallel_sums - (n - i));
    add_kept(second, rest, parallel_sums - (n - i) + 4);
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

/// Asks ahead for what follows a row. Long ones keep the hardware busy by themselves.
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

/// Multiplies up to unlike_rows rows, whatever their lengths, as far as these and the rows behind them allow; the row
/// behind.
template <bool ahead, class T, class V, class Index>
std::int64_t multiply_unlike(const Product<T, V, Index>& p, std::int64_t row, std::int64_t end)
{
    const std::int64_t stop = std::min(end, row + unlike_rows);
    const std::int64_t readable = static_cast<std::int64_t>(p.row_ptr[end]) - parallel_sums;
    while (row < stop) {
        const std::int64_t at = p.row_ptr[row];
        const std::int64_t n = p.row_ptr[row + 1] - at;
        if (n > unlike_row || at + n > readable) {
            break;
        }
        if constexpr (ahead) {
            prefetch_lines(p.values + at, n);
            prefetch_lines(p.cols + at, n);
        }
        write_row(p.alpha, dot_unlike(p.values + at, p.cols + at, n, p.x), p.beta, p.y[row]);
        ++row;
    }
    return row;
}

/// Multiplies from a row on, up to the first that is not short; that row.
template <bool ahead, class T, class V, class Index>
std::int64_t multiply_short(const Product<T, V, Index>& p, std::int64_t row, std::int64_t end)
{
    bool short_before = false;  // one is the end of a line of a grid
    while (row < end) {
        const std::int64_t begin = row;
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
        const bool is_short = row - begin < alike_rows;
        if (is_short && short_before) {
            row = multiply_unlike<ahead>(p, row, end);
        }
        short_before = is_short;
    }
    return row;
}

/// Multiplies rows [row, end). `ahead`: asks for their arrays a page before they are needed.
template <bool ahead, class T, class V, class Index>
void multiply_rows(const Product<T, V, Index>& p, std::int64_t row, std::int64_t end)
{
    std::int64_t before = 0;
    std::int64_t alike = 0;  // rows in turn that are as long
    for (row = multiply_short<ahead>(p, row, end); row < end; row = multiply_short<ahead>(p, row + 1, end)) {
        const std::int64_t first = p.row_ptr[row];
        const std::int64_t n = p.row_ptr[row + 1] - first;
        if constexpr (ahead) {
            prefetch(p.values + first, p.cols + first, n);
        }
        alike = n == before ? alike + 1 : 1;
        before = n;
        const bool by_whole_vectors =
            alike < alike_rows && n <= unlike_row && first + n + parallel_sums <= std::int64_t{p.row_ptr[end]};
        const T sum = by_whole_vectors ? dot_unlike(p.values + first, p.cols + first, n, p.x)
                                       : dot_row(p.values + first, p.cols + first, n, p.x);
        write_row(p.alpha, sum, p.beta, p.y[row]);
    }
}

/// The operator of values as the shard has them: of floats where they are kept so for sums in double.
template <template <class, class> class Operator, class T>
std::unique_ptr<SpmvOperator<T>> of_kept_values(const CsrShard<T>& shard, const Context& context)
{
    if (std::is_same_v<T, double> && shard.floats) {
        return std::make_unique<Operator<T, float>>(shard, context);
    }
    return std::make_unique<Operator<T, T>>(shard, context);
}

}  // namespace rmsp::kernels::csr
