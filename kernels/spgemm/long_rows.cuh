#pragma once

#include <utility>

#include <kernels/spgemm/few.cuh>
#include <kernels/spgemm/small_policy.hpp>

/// Rows of small products that have more products than a few lanes sort: a block takes such a row.
namespace rmsp::kernels::spgemm {

inline constexpr int small_threads = block_of_small;
inline constexpr int small_warps = small_threads / 32;
inline constexpr std::uint32_t no_key = 0xffffffffu;

/// Rows of B by its row pointers, of rows of C that may not fit.
struct RowsOfB {
    static constexpr bool fit = false;
    static constexpr int most = most_small;
    RowPtr row_ptr;
    __device__ __forceinline__ Extent operator()(std::int32_t row) const
    {
        const std::int64_t begin = row_ptr[row];
        return {begin, static_cast<std::int32_t>(min(row_ptr[row + 1] - begin, std::int64_t{most_small + 1}))};
    }
};

/// Where the products of a row that a block takes come from.
struct LongRow {
    std::uint16_t first[most_small];  ///< of each entry of A: the number of its first product
    std::int32_t b[most_small];       ///< its row of B begins so far from that
};
struct LongCount {
    std::int64_t a;  ///< first entry of A
    int entries;     ///< of A
    int products;
    __device__ __forceinline__ int weight() const { return max(entries, products); }
};

/// deal_products() by a block. A row whose weight is above most_small is not dealt to the end.
__device__ __forceinline__ LongCount deal_long_row(const Pattern& a, const Pattern& b, std::int64_t row, LongRow& to,
                                                   int (&of_warps)[small_warps])
{
    const RowsOfB row_of_b{b.row_ptr};
    const std::int64_t begin = a.row_ptr[row];
    LongCount count{begin, static_cast<int>(min(a.row_ptr[row + 1] - begin, std::int64_t{most_small + 1})), 0};
    if (count.entries > most_small) {
        return count;
    }
    for (int at = 0; at < count.entries && count.products <= most_small; at += small_threads) {
        const int e = at + static_cast<int>(threadIdx.x);
        Extent of_b(0, 0);
        if (e < count.entries) {
            of_b = row_of_b(__ldg(a.col_idx + begin + e));
        }
        const int2 sum = sum_block(of_b.count(), of_warps);
        if (e < count.entries) {
            const int first = count.products + sum.x - of_b.count();
            to.first[e] = static_cast<std::uint16_t>(first);
            to.b[e] = static_cast<std::int32_t>(of_b.place() - first);
        }
        count.products += sum.y;
    }
    __syncthreads();
    return count;
}

/// Room for the keys of a long row. The products are no longer asked where they come from when the second half is used.
struct LongKeys {
    std::uint32_t first[most_small];
    union {
        LongRow from;
        std::uint32_t second[most_small];
    };
};

/// Numbers that a thread looks up at a time.
inline constexpr int looked_up_at_once = 4;

/// Of each of these products the entry of A.
__device__ __forceinline__ void find_entries(const LongRow& from, int entries, const int (&product)[looked_up_at_once],
                                             int (&entry)[looked_up_at_once])
{
    int size = 1;
    while (size < entries) {
        size *= 2;
    }
#pragma unroll
    for (int u = 0; u < looked_up_at_once; ++u) {
        entry[u] = 0;
    }
#pragma unroll 1
    for (int step = size / 2; step > 0; step /= 2) {
#pragma unroll
        for (int u = 0; u < looked_up_at_once; ++u) {
            const int at = entry[u] + step;
            entry[u] = at < entries && from.first[at] <= product[u] ? at : entry[u];
        }
    }
}

/// Sorts the products of a row by column, those of a column in the order of A. each(product, entry of A, place in B)
/// before that. Returns where the keys are. The loops stay loops: unrolled, with the keys in registers, it took several
/// times as long.
template <class Each>
__device__ __forceinline__ const std::uint32_t* sort_long_row(const Pattern& b, const LongCount& count, LongKeys& keys,
                                                              const Each& each)
{
    constexpr int segment = 64;  // that a warp sorts
    const auto thread = static_cast<int>(threadIdx.x);
    int size = segment;
    while (size < count.products) {
        size *= 2;
    }
#pragma unroll 1
    for (int first = thread; first < size; first += looked_up_at_once * small_threads) {
        int product[looked_up_at_once];
        int n[looked_up_at_once];
#pragma unroll
        for (int u = 0; u < looked_up_at_once; ++u) {
            product[u] = first + u * small_threads;
        }
        find_entries(keys.from, count.entries, product, n);
        std::int32_t column[looked_up_at_once];
#pragma unroll
        for (int u = 0; u < looked_up_at_once; ++u) {
            if (product[u] < count.products) {
                const std::int64_t place = keys.from.b[n[u]] + product[u];
                column[u] = __ldg(b.col_idx + place);
                each(product[u], n[u], place);
            }
        }
#pragma unroll
        for (int u = 0; u < looked_up_at_once; ++u) {
            if (product[u] < size) {
                keys.first[product[u]] = product[u] < count.products
                                             ? static_cast<std::uint32_t>(column[u]) * most_small + product[u]
                                             : no_key;
            }
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int at = thread / 32 * segment; at < size; at += small_warps * segment) {
        auto& own = *reinterpret_cast<uint2*>(keys.first + at + thread % 32 * 2);
        std::uint32_t key[2] = {own.x, own.y};
        sort_group<32>(key, thread % 32);
        own = make_uint2(key[0], key[1]);
    }
    __syncthreads();
    // Two runs become one: a key goes behind its predecessors in its run and those in the other one.
    const std::uint32_t* from = keys.first;
    std::uint32_t* to = keys.second;
#pragma unroll 1
    for (int run = segment; run < size; run *= 2) {
#pragma unroll 1
        for (int first = thread; first < size; first += looked_up_at_once * small_threads) {
            std::uint32_t own[looked_up_at_once];
            int other[looked_up_at_once];  // where the other run begins
            int before[looked_up_at_once];
#pragma unroll
            for (int u = 0; u < looked_up_at_once; ++u) {
                const int at = first + u * small_threads;
                own[u] = at < size ? from[at] : 0;
                other[u] = at < size ? (at ^ run) & ~(run - 1) : 0;
                before[u] = 0;
            }
#pragma unroll 1
            for (int step = run; step > 0; step /= 2) {
#pragma unroll
                for (int u = 0; u < looked_up_at_once; ++u) {
                    const int next = before[u] + step;
                    if (next <= run) {
                        // Of equal ones, which are no products, those of the first run come first.
                        const std::uint32_t key = from[other[u] + next - 1];
                        const bool is_second = (first + u * small_threads & run) != 0;
                        before[u] = key < own[u] || (is_second && key == own[u]) ? next : before[u];
                    }
                }
            }
#pragma unroll
            for (int u = 0; u < looked_up_at_once; ++u) {
                const int at = first + u * small_threads;
                if (at < size) {
                    to[(at & ~(2 * run - 1)) + (at & (run - 1)) + before[u]] = own[u];
                }
            }
        }
        __syncthreads();
        to = const_cast<std::uint32_t*>(std::exchange(from, to));
    }
    return from;
}

/// Whether an entry of C begins at a sorted key.
__device__ __forceinline__ bool begins_entry(const std::uint32_t* key, int at)
{
    return at == 0 || key[at] / most_small != key[at - 1] / most_small;
}

}  // namespace rmsp::kernels::spgemm
