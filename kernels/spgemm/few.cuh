#pragma once

#include <kernels/spgemm/sort.cuh>

/// Rows of C with few products. Each product has a place in a group of lanes, several rows a warp; that each lane has
/// several products costs less to deal out, and to sort, than a product a lane. The symbolic phase sorts a row's
/// products by column and, where there is room, keeps their order, a byte for each, for the numeric phase. Where there
/// is none that sorts them again.
namespace rmsp::kernels::spgemm {

inline constexpr int few_threads = 128;

/// What the lanes of a group tell each other of the entries of a row of A whose rows of B are not empty.
template <int Capacity>
struct Entries {
    std::int64_t b[Capacity];  ///< the row of B begins so far from the entry's first product
};
/// Of an order: the product, and whether its column is another one than that of the product before.
inline constexpr unsigned order_product = 127;
inline constexpr unsigned order_begins = 128;
static_assert(most_few_scattered <= order_product + 1);

/// Rows of B that are known, of rows of C that surely fit their group.
struct KnownRows {
    static constexpr bool fit = true;
    const Extent* entries;
    __device__ __forceinline__ Extent operator()(std::int32_t row) const { return load(entries + row); }
};

/// The entry of A of each product of a row, so that product r * Lanes + lane has one in of[r]; returns how many
/// products there are. note(n, i): entry n of those in `to` is entry i of A. The whole warp takes part.
/// \param row_of_b  where a row of B is, as KnownRows; if rows may not fit, of those that do not their number is told
///                  alone, which is no longer counted once it is more than RowOfB::most
template <int Lanes, int Keys, class RowOfB, class Note>
__device__ __forceinline__ int deal_products(const Pattern& a, const RowOfB& row_of_b, const LaneGroup<Lanes>& group,
                                             Entries<Lanes * Keys>& to, int (&of)[Keys], const Note& note)
{
    constexpr int capacity = Lanes * Keys;
    const int lane = group.lane;
    const unsigned below = (1u << lane) - 1u;
    const std::int64_t begin = group.active ? a.row_ptr[group.row] : 0;
    const std::int64_t entries = group.active ? a.row_ptr[group.row + 1] - begin : 0;
    unsigned firsts[Keys] = {};  // of an entry, the place of its first product
    int products = 0;
    int found = 0;
    const auto goes_on = [&](std::int64_t at) {
        if constexpr (RowOfB::fit) {
            return at < entries;
        } else {
            return at < entries && products <= RowOfB::most;
        }
    };
    for (std::int64_t at = 0; __any_sync(whole_warp, goes_on(at)); at += Lanes) {
        std::int64_t place = 0;
        int count = 0;
        if (at + lane < entries && goes_on(at)) {
            const Extent b_row = row_of_b(__ldg(a.col_idx + begin + at + lane));
            place = b_row.place();
            count = b_row.count();
        }
        const int through = sum_through<Lanes>(count, lane);
        const int first = products + through - count;
        const unsigned there = group.ballot(count > 0);
        if (const int n = found + __popc(there & below); count > 0 && (RowOfB::fit || n < capacity)) {
            to.b[n] = place - first;
            note(n, begin + at + lane);
        }
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            firsts[r] |= __reduce_or_sync(whole_warp,
                                          count > 0 && first / Lanes == r ? 1u << (group.first + first % Lanes) : 0u);
        }
        products += __shfl_sync(whole_warp, through, Lanes - 1, Lanes);
        found += __popc(there);
    }
    int before = -1;
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const unsigned own = (firsts[r] & group.mask()) >> group.first;
        of[r] = before + __popc(own & (below << 1 | 1u));
        before += __popc(own);
    }
    __syncwarp();
    return products;
}

}  // namespace rmsp::kernels::spgemm
