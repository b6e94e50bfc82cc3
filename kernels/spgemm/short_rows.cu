#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/device.cuh>
#include <kernels/spgemm/product_tiles.cuh>
#include <kernels/spgemm/short_rows.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int short_threads = 128;
constexpr std::int32_t no_column = std::numeric_limits<std::int32_t>::max();

/// What is found of all rows. Zero at first.
struct ShortFound {
    unsigned long long products;
    int most;  ///< products of a row, or entries of A if those are more; counted up to most_short + 1
};

/// Where the products of a thread's row come from. All indices are constants once the loops are unrolled, so that these
/// arrays are registers, and loads do not wait for each other.
template <int Capacity>
struct ShortRow {
    std::int64_t a_begin = 0;
    std::int32_t entry[Capacity];  ///< of A, from a_begin on
    std::int32_t place[Capacity];  ///< in B; of as many products as there are
    int products = 0;
    int weight = 0;  ///< as ShortFound::most; above Capacity the rest is of no use

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

/// Entries of each row of C, 0 behind the last.
template <int Capacity>
__global__ void __launch_bounds__(short_threads)
    count_short_kernel(const Pattern a, const Pattern b, std::int64_t* __restrict__ row_nnz, ShortFound* found)
{
    __shared__ int2 rows_of_b[short_threads * Capacity];
    __shared__ unsigned long long of_warps[short_threads / 32];
    unsigned long long all_products = 0;
    int most = 0;
    for (std::int64_t first = std::int64_t{blockIdx.x} * short_threads; first <= a.rows;
         first += std::int64_t{gridDim.x} * short_threads) {
        // Nothing of this is used once a row is found that is not short, here or by another block.
        const bool others = threadIdx.x == 0 && *static_cast<volatile const int*>(&found->most) > most_short;
        if (__syncthreads_or(most > most_short || others) != 0) {
            break;
        }
        const std::int64_t row = first + threadIdx.x;
        const ShortRow<Capacity> from(a, b, row, rows_of_b);
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
        if (row <= a.rows) {
            row_nnz[row] = entries;
        }
        all_products += static_cast<unsigned>(products);
        most = max(most, from.weight);
    }
    most = __reduce_max_sync(whole_warp, most);
    if (threadIdx.x % 32 == 0 && most > 0) {
        atomicMax(&found->most, most);
    }
    all_products = cuda::block_sum<short_threads>(all_products, of_warps);
    if (threadIdx.x == 0) {
        atomicAdd(&found->products, all_products);
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

template <class T>
class ShortRows final : public SpgemmOperator<T> {
public:
    ShortRows(const Pattern& a, const Pattern& b, std::int64_t a_nnz, std::int64_t b_nnz, int capacity,
              std::int64_t nnz, std::int64_t products, std::int64_t workspace_limit, DeviceArray<std::int64_t> row_ptr)
        : a_(a),
          b_(b),
          a_nnz_(a_nnz),
          b_nnz_(b_nnz),
          capacity_(capacity),
          nnz_(nnz),
          products_(products),
          workspace_limit_(workspace_limit),
          row_ptr_(std::move(row_ptr))
    {
    }
    std::int64_t nnz() const override { return nnz_; }
    std::int64_t products() const override { return products_; }
    const std::int64_t* row_ptr() const override { return row_ptr_.data(); }
    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(row_ptr_.size() * sizeof(std::int64_t) + tiles_.bytes());
    }
    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& context) override
    {
        sum<true>(alpha, a_values, b_values, col_idx, values, context);
    }
    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& context) override
    {
        const auto sum_anew = [&] { sum<false>(alpha, a_values, b_values, nullptr, values, context); };
        if (!tiles_tried_ && nnz_ > 0) {
            tiles_tried_ = true;
            const std::int64_t left =
                workspace_limit_ > 0 ? workspace_limit_ - workspace_bytes() : std::numeric_limits<std::int64_t>::max();
            tiles_ = make_faster_tiles({a_, b_, row_ptr_.data(), col_idx, a_nnz_, b_nnz_, nnz_, products_}, left, alpha,
                                       a_values, b_values, values, context, sum_anew);
        }
        if (tiles_.empty()) {
            sum_anew();
        } else {
            sum_tiles(tiles_, alpha, a_values, b_values, values, static_cast<cudaStream_t>(context.stream));
        }
    }

private:
    template <bool Fills>
    void sum(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values, const Context& context)
    {
        if (nnz_ == 0) {
            return;
        }
        const auto kernel = capacity_ == 4   ? sum_short_kernel<4, Fills, T>
                            : capacity_ == 8 ? sum_short_kernel<8, Fills, T>
                                             : sum_short_kernel<most_short, Fills, T>;
        kernel<<<blocks_for(a_.rows, short_threads), short_threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
            a_, b_, row_ptr_.data(), alpha, a_values, b_values, col_idx, values);
        RMSP_CUDA_CHECK_LAUNCH("sum_short_kernel");
    }

    Pattern a_;
    Pattern b_;
    std::int64_t a_nnz_;
    std::int64_t b_nnz_;
    int capacity_;  ///< of a thread, in products
    std::int64_t nnz_;
    std::int64_t products_;
    std::int64_t workspace_limit_;
    bool tiles_tried_ = false;
    ProductTiles tiles_;  ///< for repeated values
    DeviceArray<std::int64_t> row_ptr_;
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> try_short_rows(const CsrShard<T>& a, const CsrShard<T>& b,
                                                  const SpgemmOptions& options, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    const auto mean = [](std::int64_t entries, std::int64_t rows) {
        return static_cast<double>(entries) / static_cast<double>(std::max<std::int64_t>(rows, 1));
    };
    const double mean_products =
        mean(a.nnz, a.rows) * mean(b.nnz, options.touched.end < 0 ? b.rows : options.touched_rows);
    const auto bytes = (a.rows + 1) * static_cast<std::int64_t>(sizeof(std::int64_t));
    if (options.accumulator != "auto" || mean_products > most_short ||
        (options.workspace_limit > 0 && bytes > options.workspace_limit) ||
        std::max(a.nnz, b.nnz) > std::numeric_limits<std::int32_t>::max()) {
        return nullptr;
    }
    const Pattern of_a{a.rows, a.cols, RowPtr(a.row_ptr), a.col_idx};
    const Pattern of_b{b.rows, b.cols, RowPtr(b.row_ptr), b.col_idx};
    auto row_ptr = try_array<std::int64_t>(context, a.rows + 1);
    const auto found = try_array<ShortFound>(context, 1);
    if (row_ptr.size() == 0 || found.size() == 0) {
        return nullptr;
    }
    const auto capacity_for = [](double products) { return products <= 4 ? 4 : products <= 8 ? 8 : most_short; };
    ShortFound known{};
    std::int64_t nnz = 0;
    // Where rows have about as many products each, the first attempt has room for all of them.
    for (int capacity = capacity_for(mean_products);; capacity = capacity_for(known.most)) {
        RMSP_CUDA_CHECK(cudaMemsetAsync(found.data(), 0, sizeof(ShortFound), stream));
        const auto kernel = capacity == 4   ? count_short_kernel<4>
                            : capacity == 8 ? count_short_kernel<8>
                                            : count_short_kernel<most_short>;
        // So many that each multiprocessor is full, and few that add to the same number.
        const unsigned blocks = std::min(blocks_for(a.rows + 1, short_threads),
                                         32u * static_cast<unsigned>(std::max(context.compute_units, 1)));
        kernel<<<blocks, short_threads, 0, stream>>>(of_a, of_b, row_ptr.data(), found.data());
        RMSP_CUDA_CHECK_LAUNCH("count_short_kernel");
        cuda::exclusive_sum(row_ptr.data(), a.rows + 1, context);
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&known, found.data(), sizeof known, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&nnz, row_ptr.data() + a.rows, sizeof nnz, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        if (known.most <= capacity) {
            return std::make_unique<ShortRows<T>>(of_a, of_b, a.nnz, b.nnz, capacity, nnz,
                                                  static_cast<std::int64_t>(known.products), options.workspace_limit,
                                                  std::move(row_ptr));
        }
        if (known.most > most_short) {
            return nullptr;
        }
    }
}

#define RMSP_INSTANTIATE(T)                                                                            \
    template std::unique_ptr<SpgemmOperator<T>> try_short_rows(const CsrShard<T>&, const CsrShard<T>&, \
                                                               const SpgemmOptions&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
