#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/sort.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Rows of C with few products, in both phases: each product has a place in a group of lanes, where they are sorted by
/// column. Several rows a warp, of which each lane has several products, cost less to deal out, and to sort, than a
/// product a lane; the more a phase has to keep of a product, the fewer rows.

constexpr int few_threads = 128;

/// What the lanes of a group tell each other of the entries of a row of A whose rows of B are not empty.
template <int Capacity>
struct Entries {
    std::int64_t b[Capacity];  ///< the row of B begins so far from the entry's first product
    std::int32_t a[Capacity];  ///< number in the row of A
};

/// The entry of A of each product of a row, so that product r * Lanes + lane has one in of[r]; returns how many
/// products there are. note(n, i): entry n of those in `to` is entry i of the row. The whole warp takes part.
template <int Lanes, int Keys, class Note>
__device__ __forceinline__ int deal_products(const Pattern& a, const Extent* b_entries, const LaneGroup<Lanes>& group,
                                             Entries<Lanes * Keys>& to, int (&of)[Keys], const Note& note)
{
    const int lane = group.lane;
    const unsigned below = (1u << lane) - 1u;
    const std::int64_t begin = group.active ? a.row_ptr[group.row] : 0;
    const std::int64_t entries = group.active ? a.row_ptr[group.row + 1] - begin : 0;
    unsigned firsts[Keys] = {};  // of an entry, the place of its first product
    int products = 0;
    int found = 0;
    for (std::int64_t at = 0; __any_sync(whole_warp, at < entries); at += Lanes) {
        std::int64_t place = 0;
        int count = 0;
        if (at + lane < entries) {
            const Extent b_row = load(b_entries + __ldg(a.col_idx + begin + at + lane));
            place = b_row.place();
            count = b_row.count();
        }
        const int through = sum_through<Lanes>(count, lane);
        const int first = products + through - count;
        const unsigned there = group.ballot(count > 0);
        if (count > 0) {
            const int n = found + __popc(there & below);
            to.b[n] = place - first;
            to.a[n] = static_cast<std::int32_t>(at) + lane;
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

template <int Lanes, int Keys>
__global__ void __launch_bounds__(few_threads)
    count_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count)
{
    constexpr int groups = few_threads / Lanes;
    constexpr std::uint32_t capacity = Lanes * Keys;
    __shared__ Entries<capacity> shared[groups];
    let_next_begin();
    const LaneGroup<Lanes> group(list, count);
    const int own = group.own;
    const int lane = group.lane;
    const std::int64_t row = group.row;
    const std::int32_t first = job.bounds[row].first;
    int of[Keys];
    const int products =
        deal_products<Lanes, Keys>(job.a, job.b_entries, group, shared[own], of, [](int, std::int64_t) {});
    std::uint32_t key[Keys];
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const int product = r * Lanes + lane;
        key[r] = product < products
                     ? static_cast<std::uint32_t>(__ldg(job.b_columns + shared[own].b[of[r]] + product) - first)
                     : 0xffffffffu;
    }
    sort_group<Lanes>(key, lane);
    int entries = 0;
    std::uint32_t last = 0xffffffffu;  // of the products before
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const std::uint32_t left = __shfl_up_sync(whole_warp, key[r], 1, Lanes);
        const bool is_new = key[r] != 0xffffffffu && key[r] != (lane == 0 ? last : left);
        entries += __popc(group.ballot(is_new));
        last = __shfl_sync(whole_warp, key[r], Lanes - 1, Lanes);
    }
    if (group.active && lane == 0) {
        job.row_nnz[row] = entries;
        job.stored[row] = {-1, 0};
    }
    wait_for_previous();
}

template <Work Of, int Lanes, int Keys, class T>
__global__ void __launch_bounds__(few_threads)
    sum_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count)
{
    constexpr int groups = few_threads / Lanes;
    constexpr std::uint32_t capacity = Lanes * Keys;
    constexpr bool lists = Of == Work::list;
    __shared__ Entries<capacity> shared[groups];
    __shared__ T values[groups][capacity];  // of the entries of A, then of the products
    __shared__ std::uint32_t keys[groups][capacity];
    __shared__ ProductRef refs[lists ? groups : 1][lists ? capacity : 1];
    let_next_begin();
    const LaneGroup<Lanes> group(list, count);
    const int own = group.own;
    const int lane = group.lane;
    const std::int64_t row = group.row;
    const std::int32_t first = job.bounds[row].first;
    std::int64_t to = job.row_ptr[row];
    int of[Keys];
    const int products =
        deal_products<Lanes, Keys>(job.a, job.b_entries, group, shared[own], of, [&](int n, std::int64_t entry) {
            if (!lists) {
                values[own][n] = __ldg(job.a_values + entry);
            }
        });
    std::uint32_t key[Keys];
    T value[Keys];
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const int product = r * Lanes + lane;
        key[r] = 0xffffffffu;
        value[r] = T{0};
        if (product < products) {
            const std::int64_t place = shared[own].b[of[r]] + product;
            key[r] = static_cast<std::uint32_t>(__ldg(job.b.col_idx + place) - first) * capacity + product;
            if constexpr (lists) {
                refs[own][product] = {static_cast<std::int32_t>(job.a.row_ptr[row]) + shared[own].a[of[r]],
                                      static_cast<std::int32_t>(place)};
            } else {
                value[r] = values[own][of[r]] * __ldg(job.b_values + place);
            }
        }
    }
    sort_group<Lanes>(key, lane);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        keys[own][r * Lanes + lane] = key[r];
        values[own][r * Lanes + lane] = value[r];
    }
    __syncwarp();
    const std::uint32_t offset = lists ? job.offsets[to] : 0u;
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const int at = r * Lanes + lane;
        const bool there = at < products;
        if constexpr (lists) {
            if (there) {
                job.products[offset + at] = refs[own][key[r] % capacity];
            }
            continue;
        }
        const std::uint32_t column = key[r] / capacity;
        const bool head = there && (at == 0 || keys[own][max(at - 1, 0)] / capacity != column);
        const unsigned heads = group.ballot(head);
        if (head) {
            T sum = values[own][key[r] % capacity];
            for (int i = at + 1; i < products; ++i) {
                const std::uint32_t next = keys[own][i];
                if (next / capacity != column) {
                    break;
                }
                sum += values[own][next % capacity];
            }
            const std::int64_t place = to + __popc(heads & ((1u << lane) - 1u));
            job.values[place] = job.alpha * sum;
            if (job.fills) {
                job.col_idx[place] = first + static_cast<std::int32_t>(column);
            }
        }
        to += __popc(heads);
    }
    wait_for_previous();
}

template <int Lanes, int Keys>
void launch_count(const StructureJob& job, const std::int32_t* list, std::int64_t count, Overlap overlap,
                  cudaStream_t stream)
{
    constexpr int groups = few_threads / Lanes;
    launch_overlapping(count_kernel<Lanes, Keys>, (count + groups - 1) / groups, few_threads, 0, overlap, stream, job,
                       list, count);
}

template <int Lanes, int Keys, class T>
void launch_sum(const NumericJob<T>& job, Work work, const std::int32_t* list, std::int64_t count, Overlap overlap,
                cudaStream_t stream)
{
    constexpr int groups = few_threads / Lanes;
    launch_overlapping(
        work == Work::list ? sum_kernel<Work::list, Lanes, Keys, T> : sum_kernel<Work::sum, Lanes, Keys, T>,
        (count + groups - 1) / groups, few_threads, 0, overlap, stream, job, list, count);
}

}  // namespace

void run_structure_few(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
                       Overlap overlap, cudaStream_t stream)
{
    const auto launch = c == StructureClass::few8    ? launch_count<4, 2>
                        : c == StructureClass::few16 ? launch_count<4, 4>
                        : c == StructureClass::few32 ? launch_count<8, 4>
                        : c == StructureClass::few64 ? launch_count<8, 8>
                                                     : launch_count<16, 8>;
    launch(job, list, count, overlap, stream);
}

template <class T>
void run_numeric_few(const NumericJob<T>& job, NumericClass c, Work work, const std::int32_t* list, std::int64_t count,
                     Overlap overlap, cudaStream_t stream)
{
    const auto launch = c == NumericClass::few8    ? launch_sum<4, 2, T>
                        : c == NumericClass::few16 ? launch_sum<8, 2, T>
                        : c == NumericClass::few32 ? launch_sum<16, 2, T>
                        : c == NumericClass::few64 ? launch_sum<16, 4, T>
                                                   : launch_sum<32, 4, T>;
    launch(job, work, list, count, overlap, stream);
}

#define RMSP_INSTANTIATE(T)                                                                                    \
    template void run_numeric_few(const NumericJob<T>&, NumericClass, Work, const std::int32_t*, std::int64_t, \
                                  Overlap, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
