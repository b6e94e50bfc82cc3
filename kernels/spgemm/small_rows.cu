#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <kernels/cuda_block.cuh>
#include <kernels/spgemm/direct_rows.cuh>
#include <kernels/spgemm/long_rows.cuh>
#include <kernels/spgemm/small_rows.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Rows of a block that its groups of lanes leave to the whole of it.
template <int Rows>
struct LongList {
    int rows[Rows];  ///< from the block's first on
    int count;
    /// All threads take part. `first`: there is one, the block's first row.
    __device__ __forceinline__ void begin(bool first)
    {
        if (threadIdx.x == 0) {
            count = first ? 1 : 0;
            rows[0] = 0;
        }
        __syncthreads();
    }
    __device__ __forceinline__ void add(int row) { rows[atomicAdd(&count, 1)] = row; }
};

/// Which of a lane's keys, sorted by sort_group(), begin an entry of C, as bits. The whole warp takes part.
template <int Lanes, int Keys>
__device__ __forceinline__ unsigned begins_of_lane(const std::uint32_t (&key)[Keys], int lane)
{
    constexpr std::uint32_t capacity = Lanes * Keys;
    const std::uint32_t left = __shfl_up_sync(whole_warp, key[Keys - 1], 1, Lanes);
    unsigned begins = 0;
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const std::uint32_t before = r > 0 ? key[r - 1] : left;
        begins |= key[r] != no_key && (r + lane == 0 || (key[r] ^ before) >= capacity) ? 1u << r : 0u;
    }
    return begins;
}

template <int Threads, int Keys>
using EntriesOfGroups = Entries<Threads * Keys>[small_threads / Threads];

/// Entries of each row of C, and its row pointers.
/// Dynamic shared memory: EntriesOfGroups, then, if there may be long rows, LongKeys.
template <int Lanes, int Keys>
__global__ void __launch_bounds__(small_threads)
    count_small_kernel(const Pattern a, const Pattern b, std::int64_t* __restrict__ row_ptr, TileEntries* tiles,
                       DirectFound* found)
{
    constexpr bool blocks = Lanes > 32;
    constexpr int lanes = blocks ? 32 : Lanes;
    constexpr int rows_a_block = small_threads / Lanes;
    constexpr std::uint32_t capacity = lanes * Keys;
    extern __shared__ __align__(16) unsigned char small_memory[];
    __shared__ int entries_of[rows_a_block];
    __shared__ LongList<rows_a_block> long_rows;
    __shared__ int of_warps[small_warps];
    long_rows.begin(blocks);
    const std::int64_t first_row = std::int64_t{blockIdx.x} * rows_a_block;
    unsigned products = 0;  // of this thread's rows, if it is the first of their lanes
    int most = 0;
    if constexpr (!blocks) {
        LaneGroup<lanes> group(a.rows);
        if (group.active && a.row_ptr[group.row + 1] - a.row_ptr[group.row] > most_small) {
            group.active = false;
            most = most_small + 1;
        }
        auto& room = (*reinterpret_cast<EntriesOfGroups<Lanes, Keys>*>(small_memory))[group.own];
        int of[Keys];
        int dealt = deal_products<lanes, Keys>(a, RowsOfB{b.row_ptr}, group, room, of, [](int, std::int64_t) {});
        most = max(most, dealt);
        if (dealt > static_cast<int>(capacity)) {
            if (group.lane == 0 && dealt <= most_small) {
                long_rows.add(group.own);
            }
            dealt = 0;
        }
        std::uint32_t key[Keys];
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            const int product = r * lanes + group.lane;
            key[r] = no_key;
            if (product < dealt) {
                const std::int64_t place = room.b[of[r]] + product;
                key[r] = static_cast<std::uint32_t>(__ldg(b.col_idx + place)) * capacity + product;
            }
        }
        sort_group<lanes>(key, group.lane);
        const int entries = sum_through<lanes>(__popc(begins_of_lane<lanes>(key, group.lane)), group.lane);
        if (group.lane == lanes - 1) {
            entries_of[group.own] = entries;
        }
        products = group.lane == 0 ? dealt : 0;
        if (most > most_small) {
            atomicMax(&found->most, most);
        }
    }
    __syncthreads();
    auto& keys = *reinterpret_cast<LongKeys*>(small_memory);
    for (int i = 0; i < long_rows.count; ++i) {
        // Nothing of this is used once a row is found that is too long, here or by another block.
        const bool others = threadIdx.x == 0 && *static_cast<volatile const int*>(&found->most) > most_small;
        if (__syncthreads_or(most > most_small || others) != 0) {
            break;
        }
        const std::int64_t row = first_row + long_rows.rows[i];
        const LongCount count = deal_long_row(a, b, row, keys.from, of_warps);
        const int dealt = count.weight() <= most_small ? count.products : 0;
        int entries = 0;
        if (dealt > 0) {
            const std::uint32_t* const sorted = sort_long_row(b, count, keys, [](int, int, std::int64_t) {});
            for (int at = static_cast<int>(threadIdx.x); at < dealt; at += small_threads) {
                entries += begins_entry(sorted, at) ? 1 : 0;
            }
        }
        entries = sum_block(entries, of_warps).y;
        if (threadIdx.x == 0) {
            entries_of[long_rows.rows[i]] = entries;
            products += dealt;
        }
        most = max(most, count.weight());
    }
    const int of_block = sum_block(static_cast<int>(products), of_warps).y;
    most = __reduce_max_sync(whole_warp, most);
    if (threadIdx.x < 32) {
        const int lane = static_cast<int>(threadIdx.x);
        const int own = lane < rows_a_block ? entries_of[lane] : 0;
        const int through = sum_through<32>(own, lane);
        const int all = __shfl_sync(whole_warp, through, 31);
        const long long before = entries_before_tile(tiles, all);
        if (lane < rows_a_block && first_row + lane < a.rows) {
            row_ptr[first_row + lane + 1] = before + through;
        }
        if (lane == 0) {
            if (blockIdx.x == 0) {
                row_ptr[0] = 0;
            }
            if (blockIdx.x + 1 == gridDim.x) {
                found->nnz = before + all;
            }
            atomicAdd(&found->products, static_cast<unsigned long long>(of_block));
        }
    }
    if (threadIdx.x % 32 == 0) {
        atomicMax(&found->most, most);
    }
}

/// What a block needs to add up a long row, in shared memory. `P`: Kept.
template <class P>
struct LongSums {
    LongKeys keys;
    P products[most_small];
};

/// What is kept of a product until its column's others are found: its value, or where its factors are.
template <Work Of, class T>
using Kept = std::conditional_t<Of == Work::list, ProductRef, T>;
/// `of_a`: the value of the entry of A, or its place.
template <Work Of, class T, class E>
__device__ __forceinline__ Kept<Of, T> product_of(const NumericJob<T>& job, E of_a, std::int64_t place_in_b)
{
    if constexpr (Of == Work::list) {
        return {of_a, static_cast<std::int32_t>(place_in_b)};
    } else {
        return of_a * __ldg(job.b_values + place_in_b);
    }
}
/// The entry of C at `to` from the products of sorted keys [at, end), which have one column.
template <Work Of, class T>
__device__ __forceinline__ void finish_entry(const NumericJob<T>& job, std::int64_t to, const std::uint32_t* key,
                                             int at, int end, std::uint32_t capacity, const Kept<Of, T>* products)
{
    if constexpr (Of == Work::list) {
        ProductRef* place = job.products + job.offsets[to];
        for (; at < end; ++at) {
            *place++ = products[key[at] % capacity];
        }
    } else {
        if (job.col_idx != nullptr) {
            job.col_idx[to] = static_cast<std::int32_t>(key[at] / capacity);
        }
        T sum = products[key[at] % capacity];
        for (++at; at < end; ++at) {
            sum += products[key[at] % capacity];
        }
        job.values[to] = job.alpha * sum;
    }
}

template <Work Of, class T>
__device__ __forceinline__ void sum_long_row(const NumericJob<T>& job, const LongCount& count, std::int64_t to,
                                             LongSums<Kept<Of, T>>& room, int (&of_warps)[small_warps])
{
    const std::uint32_t* const key =
        sort_long_row(job.b, count, room.keys, [&](int product, int n, std::int64_t place) {
            if constexpr (Of == Work::list) {
                room.products[product] = product_of<Of>(job, static_cast<std::int32_t>(count.a + n), place);
            } else {
                room.products[product] = product_of<Of>(job, __ldg(job.a_values + count.a + n), place);
            }
        });
    const int share = (count.products + small_threads - 1) / small_threads;
    const int first = min(static_cast<int>(threadIdx.x) * share, count.products);
    const int end = min(first + share, count.products);
    int own = 0;
    for (int at = first; at < end; ++at) {
        own += begins_entry(key, at) ? 1 : 0;
    }
    to += sum_block(own, of_warps).x - own;
    for (int at = first; at < end; ++at) {
        if (begins_entry(key, at)) {
            int behind = at + 1;
            while (behind < count.products && !begins_entry(key, behind)) {
                ++behind;
            }
            finish_entry<Of>(job, to++, key, at, behind, most_small, room.products);
        }
    }
}

/// What the groups of a block need, in shared memory.
template <int Groups, int Capacity, Work Of, class T>
struct GroupSums {
    Entries<Capacity> entries[Groups];
    union OfGroup {
        std::conditional_t<Of == Work::list, std::int32_t, T> of_a[Capacity];  ///< place, or value, of an entry
        Kept<Of, T> products[Capacity];                                        ///< once they are computed
    };
    OfGroup kept[Groups];
    std::uint32_t keys[Groups][Capacity];
    std::uint16_t starts[Groups][Capacity + 1];  ///< of each entry of C, its first key, and the end of the last one
};
template <int Threads, int Keys, Work Of, class T>
using SumsOfGroups = GroupSums<small_threads / Threads, Threads * Keys, Of, T>;

/// Dynamic shared memory: SumsOfGroups, then, if there are long rows, LongSums.
template <int Lanes, int Keys, Work Of, class T>
__global__ void __launch_bounds__(small_threads) sum_small_kernel(const __grid_constant__ NumericJob<T> job)
{
    constexpr bool blocks = Lanes > 32;
    constexpr int lanes = blocks ? 32 : Lanes;
    constexpr int rows_a_block = small_threads / Lanes;
    extern __shared__ __align__(16) unsigned char small_memory[];
    __shared__ LongList<rows_a_block> long_rows;
    __shared__ int of_warps[small_warps];
    long_rows.begin(blocks);
    if constexpr (!blocks) {
        constexpr int capacity = lanes * Keys;
        const LaneGroup<lanes> group(job.a.rows);
        const int own = group.own;
        const int lane = group.lane;
        auto& groups = *reinterpret_cast<SumsOfGroups<Lanes, Keys, Of, T>*>(small_memory);
        auto& dealt_to = groups.entries[own];
        auto& of_a = groups.kept[own].of_a;
        auto& products_of_row = groups.kept[own].products;
        auto& keys = groups.keys[own];
        auto& starts = groups.starts[own];
        const std::int64_t to = job.row_ptr[group.row];
        int of[Keys];
        int products = deal_products<lanes, Keys>(job.a, RowsOfB{job.b.row_ptr}, group, dealt_to, of,
                                                  [&](int n, std::int64_t entry) {
                                                      if constexpr (Of == Work::list) {
                                                          of_a[n] = static_cast<std::int32_t>(entry);
                                                      } else {
                                                          of_a[n] = __ldg(job.a_values + entry);
                                                      }
                                                  });
        if (products > capacity) {
            if (lane == 0) {
                long_rows.add(own);
            }
            products = 0;
        }
        std::uint32_t key[Keys];
        Kept<Of, T> kept[Keys];
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            const int product = r * lanes + lane;
            key[r] = no_key;
            kept[r] = {};
            if (product < products) {
                const std::int64_t place = dealt_to.b[of[r]] + product;
                key[r] = static_cast<std::uint32_t>(__ldg(job.b.col_idx + place)) * capacity + product;
                kept[r] = product_of<Of>(job, of_a[of[r]], place);
            }
        }
        sort_group<lanes>(key, lane);
        unsigned begins = begins_of_lane<lanes>(key, lane);
        const int through = sum_through<lanes>(__popc(begins), lane);
        const int entries = __shfl_sync(whole_warp, through, lanes - 1, lanes);
        __syncwarp();
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            keys[lane * Keys + r] = key[r];
            products_of_row[r * lanes + lane] = kept[r];
        }
        int entry = through - __popc(begins);
        for (; begins != 0; begins &= begins - 1, ++entry) {
            starts[entry] = static_cast<std::uint16_t>(lane * Keys + __ffs(static_cast<int>(begins)) - 1);
        }
        if (lane == 0) {
            starts[entries] = static_cast<std::uint16_t>(products);
        }
        __syncwarp();
        for (int e = lane; e < entries; e += lanes) {
            finish_entry<Of>(job, to + e, keys, starts[e], starts[e + 1], capacity, products_of_row);
        }
    }
    __syncthreads();
    auto& room = *reinterpret_cast<LongSums<Kept<Of, T>>*>(small_memory);
    for (int i = 0; i < long_rows.count; ++i) {
        const std::int64_t row = std::int64_t{blockIdx.x} * rows_a_block + long_rows.rows[i];
        const LongCount count = deal_long_row(job.a, job.b, row, room.keys.from, of_warps);
        sum_long_row<Of>(job, count, job.row_ptr[row], room, of_warps);
        __syncthreads();
    }
}

template <class F>
void with_threads(int threads, const F& f)
{
    switch (threads) {
        case 8:
            f.template operator()<8, products_a_lane>();
            break;
        case 16:
            f.template operator()<16, products_a_lane>();
            break;
        case 32:
            f.template operator()<32, products_a_lane>();
            break;
        default:
            f.template operator()<block_of_small, 1>();
    }
}

/// Dynamic shared memory of a kernel whose rows have up to `most` products.
template <int Threads, int Keys, class OfGroups, class OfLongRows>
constexpr std::size_t shared_bytes(std::int64_t most)
{
    const std::size_t of_groups = Threads > 32 ? 0 : sizeof(OfGroups);
    const bool may_be_long = Threads > 32 || most > Threads * Keys;
    return may_be_long ? std::max(of_groups, sizeof(OfLongRows)) : of_groups;
}

template <class T>
class SmallRows final : public DirectRows<T> {
public:
    SmallRows(const CsrShard<T>& a, const CsrShard<T>& b, const DirectFound& found, DirectCount count,
              std::int64_t workspace_limit, int threads)
        : DirectRows<T>(a, b, found, std::move(count), workspace_limit), threads_(threads), most_(found.most)
    {
    }

private:
    void run(const NumericJob<T>& job, Work work, cudaStream_t stream) const override
    {
        work == Work::list ? run<Work::list>(job, stream) : run<Work::sum>(job, stream);
    }
    bool lists() const override { return true; }

    template <Work Of>
    void run(const NumericJob<T>& job, cudaStream_t stream) const
    {
        with_threads(threads_, [&]<int Threads, int Keys>() {
            using OfGroups = SumsOfGroups<Threads, Keys, Of, T>;
            const std::size_t bytes = shared_bytes<Threads, Keys, OfGroups, LongSums<Kept<Of, T>>>(most_);
            sum_small_kernel<Threads, Keys, Of, T>
                <<<blocks_for(job.a.rows, small_threads / Threads), small_threads, bytes, stream>>>(job);
        });
        RMSP_CUDA_CHECK_LAUNCH("sum_small_kernel");
    }

    int threads_;  ///< of a row
    int most_;     ///< products of a row
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> try_small_rows(const CsrShard<T>& a, const CsrShard<T>& b,
                                                  const SpgemmOptions& options, const Context& context)
{
    const ExpectedRows expected = expected_rows(a, b, options);
    const int threads = threads_of_small(expected, options.small_products);
    if (options.accumulator != "auto" || threads == 0 || a.rows == 0 ||
        b.nnz > std::numeric_limits<std::int32_t>::max()) {
        return nullptr;
    }
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const unsigned blocks = blocks_for(a.rows, small_threads / threads);
    DirectCount count(a.rows, blocks, options.workspace_limit, context);
    if (count.bytes() == 0) {
        return nullptr;
    }
    count.clear(stream);
    with_threads(threads, [&]<int Threads, int Keys>() {
        const std::int64_t most = expected.most >= 0 ? expected.most : most_small;
        const std::size_t bytes = shared_bytes<Threads, Keys, EntriesOfGroups<Threads, Keys>, LongKeys>(most);
        count_small_kernel<Threads, Keys><<<blocks, small_threads, bytes, stream>>>(
            {a.rows, a.cols, RowPtr(a.row_ptr), a.col_idx}, {b.rows, b.cols, RowPtr(b.row_ptr), b.col_idx},
            count.row_ptr, count.tile_entries, count.found);
    });
    RMSP_CUDA_CHECK_LAUNCH("count_small_kernel");
    const DirectFound found = count.read(stream);
    if (found.most > most_small) {
        return nullptr;
    }
    return std::make_unique<SmallRows<T>>(a, b, found, std::move(count), options.workspace_limit, threads);
}

#define RMSP_INSTANTIATE(T)                                                                            \
    template std::unique_ptr<SpgemmOperator<T>> try_small_rows(const CsrShard<T>&, const CsrShard<T>&, \
                                                               const SpgemmOptions&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
