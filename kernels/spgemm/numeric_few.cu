#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/few.cuh>
#include <kernels/spgemm/numeric.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Rows whose products the symbolic phase has put in order.
template <int Lanes, int Keys, class T>
__global__ void __launch_bounds__(few_threads)
    add_few_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count)
{
    constexpr int groups = few_threads / Lanes;
    constexpr std::uint32_t capacity = Lanes * Keys;
    __shared__ Entries<capacity> shared[groups];
    __shared__ T values[groups][capacity];  // of the entries of A, then of the products
    __shared__ std::int32_t columns[groups][capacity];
    __shared__ std::uint8_t orders[groups][capacity];
    __shared__ std::uint8_t begins[groups][capacity + 1];  // of each entry of C, and the end of the last one
    let_next_begin();
    const LaneGroup<Lanes> group(list, count);
    const int own = group.own;
    const int lane = group.lane;
    const std::int64_t row = group.row;
    const std::int64_t to = job.row_ptr[row];
    const std::uint8_t* const order = job.orders + job.stored[row].place();
    int of[Keys];
    const int products =
        deal_products<Lanes, Keys>(job.a, KnownRows{job.b_entries}, group, shared[own], of,
                                   [&](int n, std::int64_t entry) { values[own][n] = __ldg(job.a_values + entry); });
    T value[Keys];
    int entries = 0;
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const int at = r * Lanes + lane;
        value[r] = T{0};
        unsigned ordered = 0;
        if (at < products) {
            const std::int64_t place = shared[own].b[of[r]] + at;
            value[r] = values[own][of[r]] * __ldg(job.b_values + place);
            if (job.fills) {
                columns[own][at] = __ldg(job.b.col_idx + place);
            }
            ordered = __ldg(order + at);
            orders[own][at] = static_cast<std::uint8_t>(ordered & order_product);
        }
        const unsigned new_ones = group.ballot((ordered & order_begins) != 0);
        if ((ordered & order_begins) != 0) {
            begins[own][entries + __popc(new_ones & ((1u << lane) - 1u))] = static_cast<std::uint8_t>(at);
        }
        entries += __popc(new_ones);
    }
    if (lane == 0) {
        begins[own][entries] = static_cast<std::uint8_t>(products);
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        values[own][r * Lanes + lane] = value[r];
    }
    __syncwarp();
    for (int e = lane; e < entries; e += Lanes) {
        int at = begins[own][e];
        const int end = begins[own][e + 1];
        const unsigned first = orders[own][at];
        T sum = values[own][first];
        for (++at; at < end; ++at) {
            sum += values[own][orders[own][at]];
        }
        job.values[to + e] = job.alpha * sum;
        if (job.fills) {
            job.col_idx[to + e] = columns[own][first];
        }
    }
    wait_for_previous();
}

/// Rows whose products are to be sorted, or listed.
template <Work Of, int Lanes, int Keys, class T>
__global__ void __launch_bounds__(few_threads)
    sort_few_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list,
                    std::int64_t count)
{
    constexpr int groups = few_threads / Lanes;
    constexpr std::uint32_t capacity = Lanes * Keys;
    constexpr bool lists = Of == Work::list;
    __shared__ Entries<capacity> shared[groups];
    __shared__ T values[groups][capacity];  // of the entries of A, then of the products
    __shared__ std::uint32_t keys[groups][capacity];
    __shared__ ProductRef refs[lists ? groups : 1][lists ? capacity : 1];
    __shared__ std::int32_t entries_of_a[lists ? groups : 1][lists ? capacity : 1];
    let_next_begin();
    const LaneGroup<Lanes> group(list, count);
    const int own = group.own;
    const int lane = group.lane;
    const std::int64_t row = group.row;
    const std::int32_t first = job.bounds[row].first;
    std::int64_t to = job.row_ptr[row];
    int of[Keys];
    const int products = deal_products<Lanes, Keys>(job.a, KnownRows{job.b_entries}, group, shared[own], of,
                                                    [&](int n, std::int64_t entry) {
                                                        if constexpr (lists) {
                                                            entries_of_a[own][n] = static_cast<std::int32_t>(entry);
                                                        } else {
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
                refs[own][product] = {entries_of_a[own][of[r]], static_cast<std::int32_t>(place)};
            } else {
                value[r] = values[own][of[r]] * __ldg(job.b_values + place);
            }
        }
    }
    sort_group<Lanes>(key, lane);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        keys[own][lane * Keys + r] = key[r];
        values[own][r * Lanes + lane] = value[r];
    }
    __syncwarp();
    const std::uint32_t offset = lists ? job.offsets[to] : 0u;
#pragma unroll
    for (int r = 0; r < Keys; ++r) {
        const int at = r * Lanes + lane;
        const bool there = at < products;
        const std::uint32_t sorted = keys[own][at];
        if constexpr (lists) {
            if (there) {
                job.products[offset + at] = refs[own][sorted % capacity];
            }
            continue;
        }
        const std::uint32_t column = sorted / capacity;
        const bool head = there && (at == 0 || keys[own][max(at - 1, 0)] / capacity != column);
        const unsigned heads = group.ballot(head);
        if (head) {
            T sum = values[own][sorted % capacity];
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

template <int Lanes, int Keys, class T>
void launch(const NumericJob<T>& job, Work work, const std::int32_t* list, std::int64_t count, Overlap overlap,
            cudaStream_t stream)
{
    constexpr int groups = few_threads / Lanes;
    const auto kernel = work == Work::list      ? sort_few_kernel<Work::list, Lanes, Keys, T>
                        : job.orders == nullptr ? sort_few_kernel<Work::sum, Lanes, Keys, T>
                                                : add_few_kernel<Lanes, Keys, T>;
    launch_overlapping(kernel, (count + groups - 1) / groups, few_threads, 0, overlap, stream, job, list, count);
}

}  // namespace

template <class T>
void run_numeric_few(const NumericJob<T>& job, NumericClass c, Work work, const std::int32_t* list, std::int64_t count,
                     Overlap overlap, cudaStream_t stream)
{
    const auto run = c == NumericClass::few8    ? launch<4, 2, T>
                     : c == NumericClass::few16 ? launch<8, 2, T>
                     : c == NumericClass::few32 ? launch<16, 2, T>
                     : c == NumericClass::few64 ? launch<16, 4, T>
                                                : launch<32, 4, T>;
    run(job, work, list, count, overlap, stream);
}

#define RMSP_INSTANTIATE(T)                                                                                    \
    template void run_numeric_few(const NumericJob<T>&, NumericClass, Work, const std::int32_t*, std::int64_t, \
                                  Overlap, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
