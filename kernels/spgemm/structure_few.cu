#include <type_traits>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/few.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// A lane's part of an order: a byte for each of its products.
template <int Keys>
using OrderOfLane =
    std::conditional_t<Keys == 2, std::uint16_t, std::conditional_t<Keys == 4, std::uint32_t, std::uint64_t>>;

/// Counts the entries of each row of C. `first_order`: where the order of the list's first row is, if they are kept.
template <int Lanes, int Keys>
__global__ void __launch_bounds__(few_threads)
    count_few_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list,
                     std::int64_t count, std::int64_t first_order)
{
    constexpr int groups = few_threads / Lanes;
    constexpr std::uint32_t capacity = Lanes * Keys;
    constexpr std::uint32_t none = 0xffffffffu;
    using Order = OrderOfLane<Keys>;
    static_assert(sizeof(Order) == Keys);
    __shared__ Entries<capacity> shared[groups];
    let_next_begin();
    const LaneGroup<Lanes> group(list, count);
    const int own = group.own;
    const int lane = group.lane;
    const std::int64_t row = group.row;
    const std::int32_t first = job.bounds[row].first;
    int of[Keys];
    const int products =
        deal_products<Lanes, Keys>(job.a, KnownRows{job.b_entries}, group, shared[own], of, [](int, std::int64_t) {});
    std::uint32_t key[Keys];
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const int product = r * Lanes + lane;
        key[r] = none;
        if (product < products) {
            const std::int32_t column = __ldg(job.b_columns + shared[own].b[of[r]] + product);
            key[r] = static_cast<std::uint32_t>(column - first) * capacity + product;
        }
    }
    sort_group<Lanes>(key, lane);
    const std::uint32_t left = __shfl_up_sync(whole_warp, key[Keys - 1], 1, Lanes);
    std::uint32_t order[2] = {};
    int entries = 0;
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const std::uint32_t before = r > 0 ? key[r - 1] : left;
        const bool begins = key[r] != none && (r + lane == 0 || (key[r] ^ before) >= capacity);
        entries += begins ? 1 : 0;
        order[r / 4] |= (key[r] % capacity | (begins ? order_begins : 0u)) << 8 * (r % 4);
    }
    entries = __shfl_sync(whole_warp, sum_through<Lanes>(entries, lane), Lanes - 1, Lanes);
    const bool keeps = job.orders != nullptr;
    const std::int64_t place = first_order + (std::int64_t{blockIdx.x} * groups + own) * capacity;
    if (group.active && keeps) {
        reinterpret_cast<Order*>(job.orders + place)[lane] =
            static_cast<Order>(std::uint64_t{order[1]} << 32 | order[0]);
    }
    if (group.active && lane == 0) {
        job.row_nnz[row] = entries;
        job.stored[row] = {keeps ? place : -1, 0};
    }
    wait_for_previous();
}

template <int Lanes, int Keys>
void launch_count(const StructureJob& job, const std::int32_t* list, std::int64_t count, std::int64_t first_order,
                  Overlap overlap, cudaStream_t stream)
{
    constexpr int groups = few_threads / Lanes;
    launch_overlapping(count_few_kernel<Lanes, Keys>, (count + groups - 1) / groups, few_threads, 0, overlap, stream,
                       job, list, count, first_order);
}

}  // namespace

void run_structure_few(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
                       std::int64_t first_order, Overlap overlap, cudaStream_t stream)
{
    const auto launch = c == StructureClass::few8    ? launch_count<4, 2>
                        : c == StructureClass::few16 ? launch_count<4, 4>
                        : c == StructureClass::few32 ? launch_count<4, 8>
                        : c == StructureClass::few64 ? launch_count<8, 8>
                                                     : launch_count<16, 8>;
    launch(job, list, count, first_order, overlap, stream);
}

}  // namespace rmsp::kernels::spgemm
