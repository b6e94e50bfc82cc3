#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <kernels/cuda_block.cuh>
#include <kernels/spgemm/direct_rows.cuh>
#include <kernels/spgemm/short_rows.cuh>
#include <kernels/spgemm/sort.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int short_threads = 128;
constexpr std::int32_t no_column = std::numeric_limits<std::int32_t>::max();
constexpr int most_rounds = 8;  ///< of short_threads rows, that a block counts one after the other

/// Where the products of a thread's row come from. All indices are constants once the loops are unrolled, so that these
/// arrays are registers, and loads do not wait for each other.
template <int Capacity>
struct ShortRow {
    std::int64_t a_begin = 0;
    std::int32_t entry[Capacity];  ///< of A, from a_begin on
    std::int32_t place[Capacity];  ///< in B; of as many products as there are
    int products = 0;
    int weight = 0;  ///< as DirectFound::most; above Capacity the rest is of no use

    /// `rows_of_b`: room for Capacity in each thread of a block.
    __device__ __forceinline__ ShortRow(const Pattern& a, const Pattern& b, std::int64_t row, int2* rows_of_b)
    {
        if (row >= a.rows) {
            return;
        }
        a_begin = a.row_ptr[row];
        const std::int64_t entries = a.row_ptr[row + 1] - a_begin;
        if (entries > Capacity) {
            weight = entries > most_short ? most_short + 1 : static_cast<int>(entries);
            return;
        }
        std::int32_t row_of_b[Capacity];
#pragma unroll
        for (int e = 0; e < Capacity; ++e) {
            row_of_b[e] = e < entries ? __ldg(a.col_idx + a_begin + e) : -1;
        }
#pragma unroll
        for (int e = 0; e < Capacity; ++e) {
            if (row_of_b[e] >= 0) {
                const std::int64_t begin = b.row_ptr[row_of_b[e]];
                const std::int64_t count = b.row_ptr[row_of_b[e] + 1] - begin;
                const int counted = count > most_short ? most_short + 1 : static_cast<int>(count);
                rows_of_b[e * short_threads + threadIdx.x] = {static_cast<int>(begin), counted};
                products += counted;
            }
        }
        weight = min(max(products, static_cast<int>(entries)), most_short + 1);
        if (weight > Capacity) {
            return;
        }
        int e = -1;
        int2 at{0, 0};
#pragma unroll
        for (int p = 0; p < Capacity; ++p) {
            if (p < products) {
                while (at.y == 0) {
                    ++e;
                    at = rows_of_b[e * short_threads + threadIdx.x];
                }
                entry[p] = e;
                place[p] = at.x;
                ++at.x;
                --at.y;
            }
        }
    }
};

/// Pairs of places that, compared and exchanged one after the other, put Size numbers in order (Batcher's odd-even
/// merge sort).
template <int Size>
struct Network {
    int pairs = 0;
    int low[Size * 4] = {};
    int high[Size * 4] = {};
    constexpr Network()
    {
        for (int sorted = 1; sorted < Size; sorted *= 2) {
            for (int stride = sorted; stride > 0; stride /= 2) {
                for (int first = stride % sorted; first + stride < Size; first += 2 * stride) {
                    for (int at = first; at < first + stride && at + stride < Size; ++at) {
                        if (at / (2 * sorted) == (at + stride) / (2 * sorted)) {
                            low[pairs] = at;
                            high[pairs++] = at + stride;
                        }
                    }
                }
            }
        }
    }
};
template <int Size>
constexpr Network<Size> network{};

/// exchange(low, high) of each pair. The places are template arguments, so that what they index stays in registers.
template <int Size, class Exchange, int... I>
__device__ __forceinline__ void run_network(const Exchange& exchange, std::integer_sequence<int, I...>)
{
    (exchange.template operator()<network<Size>.low[I], network<Size>.high[I]>(), ...);
}
template <int Size, class Exchange>
__device__ __forceinline__ void run_network(const Exchange& exchange)
{
    run_network<Size>(exchange, std::make_integer_sequence<int, network<Size>.pairs>());
}

template <int Size>
struct SortColumns {
    std::int32_t (&column)[Size];
    template <int Low, int High>
    __device__ __forceinline__ void operator()() const
    {
        const std::int32_t of_low = column[Low];
        const std::int32_t of_high = column[High];
        column[Low] = min(of_low, of_high);
        column[High] = max(of_low, of_high);
    }
};
template <int Size, class T>
struct SortEntries {
    std::int32_t (&column)[Size];
    T (&value)[Size];
    template <int Low, int High>
    __device__ __forceinline__ void operator()() const
    {
        const bool wrong = column[High] < column[Low];
        const T of_low = value[Low];
        const T of_high = value[High];
        value[Low] = wrong ? of_high : of_low;
        value[High] = wrong ? of_low : of_high;
        SortColumns<Size>{column}.template operator()<Low, High>();
    }
};

/// Entries of each row of C, and its row pointers.
template <int Capacity>
__global__ void __launch_bounds__(short_threads)
    count_short_kernel(const Pattern a, const Pattern b, int rounds, std::int64_t* __restrict__ row_ptr,
                       TileEntries* tiles, DirectFound* found)
{
    __shared__ int2 rows_of_b[short_threads * Capacity];
    __shared__ std::uint8_t entries_of[most_rounds * short_threads];
    __shared__ long long sums_of_warps[short_threads / 32];
    __shared__ int of_warps[short_threads / 32];
    __shared__ long long before;
    const std::int64_t first_row = std::int64_t{blockIdx.x} * rounds * short_threads;
    const auto thread = static_cast<int>(threadIdx.x);
    int all_products = 0;
    int all_entries = 0;
    int most = 0;
    for (int round = 0; round < rounds; ++round) {
        // Nothing of this is used once a row is found that is not short, here or by another block.
        const bool others = thread == 0 && *static_cast<volatile const int*>(&found->most) > most_short;
        if (__syncthreads_or(most > most_short || others) != 0) {
            break;
        }
        const ShortRow<Capacity> from(a, b, first_row + round * short_threads + thread, rows_of_b);
        const int products = from.weight <= Capacity ? from.products : 0;
        std::int32_t column[Capacity];
#pragma unroll
        for (int p = 0; p < Capacity; ++p) {
            column[p] = p < products ? __ldg(b.col_idx + from.place[p]) : no_column;
        }
        run_network<Capacity>(SortColumns<Capacity>{column});
        int entries = 0;
#pragma unroll
        for (int p = 0; p < Capacity; ++p) {
            entries += p < products && (p == 0 || column[p] != column[p - 1]) ? 1 : 0;
        }
        entries_of[round * short_threads + thread] = static_cast<std::uint8_t>(entries);
        all_products += products;
        all_entries += entries;
        most = max(most, from.weight);
    }
    most = __reduce_max_sync(whole_warp, most);
    if (thread % 32 == 0 && most > 0) {
        atomicMax(&found->most, most);
    }
    // Both fit half of the number.
    const long long both =
        cuda::block_sum<short_threads>(static_cast<long long>(all_products) << 32 | all_entries, sums_of_warps);
    if (thread < 32) {
        const long long of_block = __shfl_sync(whole_warp, both, 0);
        const long long own = of_block & 0xffffffff;
        const long long others = entries_before_tile(tiles, own);
        if (thread == 0) {
            before = others;
            atomicAdd(&found->products, static_cast<unsigned long long>(of_block >> 32));
            if (blockIdx.x + 1 == gridDim.x) {
                found->nnz = others + own;
            }
            if (blockIdx.x == 0) {
                row_ptr[0] = 0;
            }
        }
    }
    __syncthreads();
    // Where a row is not short, what is written here is not used either.
    long long start = before;
    for (int round = 0; round < rounds; ++round) {
        const std::int64_t row = first_row + round * short_threads + thread;
        const int2 sum = sum_block(entries_of[round * short_threads + thread], of_warps);
        if (row < a.rows) {
            row_ptr[row + 1] = start + sum.x;
        }
        start += sum.y;
    }
}

/// Values of C and, where `Fills`, its columns. The rows of a block lie side by side in C: they are put together in
/// shared memory and written from there.
template <int Capacity, bool Fills, class T>
__global__ void __launch_bounds__(short_threads)
    sum_short_kernel(const Pattern a, const Pattern b, const std::int64_t* __restrict__ row_ptr, T alpha,
                     const T* __restrict__ a_values, const T* __restrict__ b_values, std::int32_t* __restrict__ col_idx,
                     T* __restrict__ values)
{
    __shared__ union {
        int2 rows_of_b[short_threads * Capacity];
        T sums[short_threads * Capacity];
    } room;
    __shared__ std::int32_t columns[Fills ? short_threads * Capacity : 1];
    const std::int64_t first_row = std::int64_t{blockIdx.x} * short_threads;
    const std::int64_t row = first_row + threadIdx.x;
    const std::int64_t begin = row_ptr[first_row];
    const std::int64_t end = row_ptr[min(first_row + short_threads, a.rows)];
    const ShortRow<Capacity> from(a, b, row, room.rows_of_b);
    std::int32_t column[Capacity];
    T value[Capacity];
#pragma unroll
    for (int p = 0; p < Capacity; ++p) {
        const bool in = p < from.products;
        column[p] = in ? __ldg(b.col_idx + from.place[p]) : no_column;
        value[p] = in ? __ldg(a_values + from.a_begin + from.entry[p]) * __ldg(b_values + from.place[p]) : T{0};
    }
    run_network<Capacity>(SortEntries<Capacity, T>{column, value});
    __syncthreads();
    int at = row < a.rows ? static_cast<int>(row_ptr[row] - begin) - 1 : 0;
    T sum{0};
#pragma unroll
    for (int p = 0; p < Capacity; ++p) {
        if (p < from.products) {
            const bool is_new = p == 0 || column[p] != column[p - 1];
            sum = is_new ? value[p] : sum + value[p];
            at += is_new ? 1 : 0;
            room.sums[at] = sum;
            if constexpr (Fills) {
                columns[at] = column[p];
            }
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(end - begin); i += short_threads) {
        values[begin + i] = alpha * room.sums[i];
        if constexpr (Fills) {
            col_idx[begin + i] = columns[i];
        }
    }
}

template <class F>
void with_capacity(int capacity, const F& f)
{
    switch (capacity) {
        case 4:
            f.template operator()<4>();
            break;
        case 8:
            f.template operator()<8>();
            break;
        default:
            f.template operator()<most_short>();
    }
}

template <class T>
class ShortRows final : public DirectRows<T> {
public:
    ShortRows(const CsrShard<T>& a, const CsrShard<T>& b, const DirectFound& found, DirectCount count,
              std::int64_t workspace_limit, int capacity)
        : DirectRows<T>(a, b, found, std::move(count), workspace_limit), capacity_(capacity)
    {
    }

private:
    void run(const NumericJob<T>& job, Work /*work*/, cudaStream_t stream) const override
    {
        with_capacity(capacity_, [&]<int Capacity>() {
            const auto kernel =
                job.col_idx != nullptr ? sum_short_kernel<Capacity, true, T> : sum_short_kernel<Capacity, false, T>;
            kernel<<<blocks_for(job.a.rows, short_threads), short_threads, 0, stream>>>(
                job.a, job.b, job.row_ptr, job.alpha, job.a_values, job.b_values, job.col_idx, job.values);
        });
        RMSP_CUDA_CHECK_LAUNCH("sum_short_kernel");
    }
    bool lists() const override { return false; }

    int capacity_;  ///< of a thread, in products
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> try_short_rows(const CsrShard<T>& a, const CsrShard<T>& b,
                                                  const SpgemmOptions& options, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const ExpectedRows expected = expected_rows(a, b, options);
    if (options.accumulator != "auto" || expected.mean() > most_short || expected.most > most_short || a.rows == 0 ||
        std::max(a.nnz, b.nnz) > std::numeric_limits<std::int32_t>::max()) {
        return nullptr;
    }
    // As many blocks as keep each multiprocessor full, or more: few that add to the same number.
    const std::int64_t full = std::int64_t{32} * std::max(context.compute_units, 1) * short_threads;
    const auto rounds = static_cast<int>(std::clamp<std::int64_t>((a.rows + full - 1) / full, 1, most_rounds));
    const unsigned blocks = blocks_for(a.rows, std::int64_t{rounds} * short_threads);
    DirectCount count(a.rows, blocks, options.workspace_limit, context);
    if (count.bytes() == 0) {
        return nullptr;
    }
    const auto capacity_for = [](double products) { return products <= 4 ? 4 : products <= 8 ? 8 : most_short; };
    // Where rows have about as many products each, the first attempt has room for all of them.
    const double at_first = expected.most >= 0 ? static_cast<double>(expected.most) : expected.mean();
    for (int capacity = capacity_for(at_first);;) {
        count.clear(stream);
        with_capacity(capacity, [&]<int Capacity>() {
            count_short_kernel<Capacity><<<blocks, short_threads, 0, stream>>>(
                {a.rows, a.cols, RowPtr(a.row_ptr), a.col_idx}, {b.rows, b.cols, RowPtr(b.row_ptr), b.col_idx}, rounds,
                count.row_ptr, count.tile_entries, count.found);
        });
        RMSP_CUDA_CHECK_LAUNCH("count_short_kernel");
        const DirectFound found = count.read(stream);
        if (found.most <= capacity) {
            return std::make_unique<ShortRows<T>>(a, b, found, std::move(count), options.workspace_limit, capacity);
        }
        if (found.most > most_short) {
            return nullptr;
        }
        capacity = capacity_for(found.most);
    }
}

#define RMSP_INSTANTIATE(T)                                                                            \
    template std::unique_ptr<SpgemmOperator<T>> try_short_rows(const CsrShard<T>&, const CsrShard<T>&, \
                                                               const SpgemmOptions&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
