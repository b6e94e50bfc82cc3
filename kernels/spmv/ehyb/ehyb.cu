#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/ehyb/ehyb.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace ehyb;
using cuda::unpack;
using cuda::Vector;

constexpr unsigned whole_warp = 0xffffffffu;
constexpr int build_threads = 256;

/// The columns of a group.
template <class Column>
struct Group;
template <>
struct Group<std::uint16_t> {
    using type = uint2;
};
template <>
struct Group<std::int32_t> {
    using type = int4;
};
__device__ __forceinline__ void unpack(const uint2& v, std::int32_t* p)
{
    p[0] = static_cast<std::int32_t>(v.x & 0xffffu);
    p[1] = static_cast<std::int32_t>(v.x >> 16);
    p[2] = static_cast<std::int32_t>(v.y & 0xffffu);
    p[3] = static_cast<std::int32_t>(v.y >> 16);
}

template <class T, class Column>
struct Slices {
    const Slice* slices;
    const typename Group<Column>::type* columns;
    const T* values;
};

template <class T>
struct Matrix {
    const std::int32_t* order;
    const std::int32_t* first_row;
    const std::int32_t* first_slice;
    const std::int32_t* first_column;
    const std::int32_t* columns;
    Slices<T, std::uint16_t> inside;
    Slices<T, std::int32_t> er;
    const std::int32_t* er_piece;
    std::int32_t pieces;
    T* sums;
    std::int32_t* queue;  ///< the next slice of ER
};

/// Adds `Count` entries from the k-th on to `sum`, whose columns and values are all loaded before the first is used;
/// all of them are inside the slice if `Whole`.
template <int Count, bool Whole, class T, class Column, class Gather>
__device__ __forceinline__ T add_entries(T sum, const T* values, const typename Group<Column>::type* columns, int k,
                                         int width, int lane, const Gather& x_of)
{
    constexpr int vector = Vector<T>::width;
    T value[Count];
    std::int32_t column[Count];
#pragma unroll
    for (int j = 0; j < Count; j += group) {
        if (Whole || k + j < width) {
            unpack(__ldcs(columns + (k + j) / group * slice_rows + lane), column + j);
        }
    }
#pragma unroll
    for (int j = 0; j < Count; j += vector) {
        if (Whole || k + j + vector <= width) {
            // Each is used once: evicted first, so that x stays in the caches.
            unpack(__ldcs(reinterpret_cast<const typename Vector<T>::type*>(values + (k + j) * slice_rows) + lane),
                   value + j);
        } else {
#pragma unroll
            for (int i = j; i < j + vector; ++i) {
                value[i] = k + i < width ? __ldcs(values + (k + i) * slice_rows + lane) : T{0};
            }
        }
    }
#pragma unroll
    for (int j = 0; j < Count; ++j) {
        if (Whole || k + j < width) {
            sum = fma(value[j], x_of(column[j]), sum);
        }
    }
    return sum;
}

/// Sum of a lane's row of a slice, of which it loads Count entries at a time.
template <int Count, class T, class Column, class Gather>
__device__ __forceinline__ T row_sum(const Slices<T, Column>& a, std::int32_t slice, int lane, const Gather& x_of)
{
    const Slice begin = a.slices[slice];
    const int width = static_cast<int>(a.slices[slice + 1].entries - begin.entries);
    const T* const values = a.values + std::int64_t{begin.entries} * slice_rows;
    const auto* const columns = a.columns + std::int64_t{begin.groups} * slice_rows;
    T sum = 0;
    int k = 0;
    for (; k + Count <= width; k += Count) {
        sum = add_entries<Count, true, T, Column>(sum, values, columns, k, width, lane, x_of);
    }
    if (k < width) {
        sum = add_entries<Count, false, T, Column>(sum, values, columns, k, width, lane, x_of);
    }
    return sum;
}

/// The next slice of a queue, the same for the whole warp.
__device__ __forceinline__ std::int32_t take(std::int32_t* queue, int lane)
{
    std::int32_t slice = 0;
    if (lane == 0) {
        slice = atomicAdd(queue, 1);
    }
    return __shfl_sync(whole_warp, slice, 0);
}

/// A thread block a part (algorithm 3 of the paper): loads the part's x, multiplies its slices, then slices of ER.
template <class T, int Threads, int BlocksPerMultiprocessor>
__global__ void __launch_bounds__(Threads, BlocksPerMultiprocessor)
    ehyb_kernel(const Matrix<T> a, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ std::int32_t next;
    T* const kept = reinterpret_cast<T*>(shared);
    const int lane = static_cast<int>(threadIdx.x % slice_rows);
    const auto warp = static_cast<std::int32_t>(threadIdx.x / slice_rows);
    const auto part = static_cast<std::int32_t>(blockIdx.x);
    const std::int32_t first_column = a.first_column[part];
    const std::int32_t columns = a.first_column[part + 1] - first_column;
#pragma unroll 4
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < columns; i += Threads) {
        kept[i] = __ldg(x + __ldg(a.columns + first_column + i));
    }
    const std::int32_t first_slice = a.first_slice[part];
    const std::int32_t end_slice = a.first_slice[part + 1];
    if (threadIdx.x == 0) {
        kept[columns] = T{0};
        next = first_slice + Threads / slice_rows;
    }
    __syncthreads();
    const std::int32_t first_row = a.first_row[part];
    const std::int32_t rows = a.first_row[part + 1] - first_row;
    for (std::int32_t slice = first_slice + warp; slice < end_slice; slice = take(&next, lane)) {
        const T sum = row_sum<ehyb_tuning.entries_in_flight>(a.inside, slice, lane,
                                                             [&](std::int32_t column) { return kept[column]; });
        const std::int32_t i = (slice - first_slice) * slice_rows + lane;
        if (i < rows) {
            T& out = y[__ldg(a.order + first_row + i)];
            out = beta == T{0} ? alpha * sum : alpha * sum + beta * out;
        }
    }
    if (a.pieces == 0) {
        return;
    }
    const std::int32_t er_slices = (a.pieces + slice_rows - 1) / slice_rows;
    for (std::int32_t slice = take(a.queue, lane); slice < er_slices; slice = take(a.queue, lane)) {
        const T sum = row_sum<ehyb_tuning.er_entries_in_flight>(
            a.er, slice, lane, [&](std::int32_t column) { return column == no_column ? T{0} : __ldg(x + column); });
        const std::int32_t i = slice * slice_rows + lane;
        if (i < a.pieces) {
            a.sums[__ldg(a.er_piece + i)] = sum;
        }
    }
}

/// Adds the sums of ER to y, and leaves the queue as the next call needs it.
template <class T>
__global__ void __launch_bounds__(build_threads)
    add_er_kernel(const std::int32_t* __restrict__ row, const std::int32_t* __restrict__ first, std::int64_t rows,
                  const T* __restrict__ sums, T alpha, T* __restrict__ y, std::int32_t* queue)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * build_threads + threadIdx.x;
    if (i == 0) {
        *queue = 0;
    }
    if (i < rows) {
        T sum = 0;
        for (std::int32_t piece = first[i]; piece < first[i + 1]; ++piece) {
            sum += sums[piece];
        }
        y[row[i]] += alpha * sum;
    }
}

template <class T>
__global__ void __launch_bounds__(build_threads)
    values_kernel(const T* __restrict__ from, const std::uint32_t* __restrict__ entry, std::int64_t n,
                  T* __restrict__ values)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * build_threads + threadIdx.x;
    if (i < n) {
        const std::uint32_t e = entry[i];
        values[i] = e == no_entry ? T{0} : from[e];
    }
}

unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + build_threads - 1) / build_threads); }

/// A sliced matrix on the device.
template <class T, class Column>
struct DeviceSlices {
    DeviceArray<Slice> slices;
    DeviceArray<Column> columns;
    DeviceArray<std::uint32_t> entry;
    DeviceArray<T> values;

    Slices<T, Column> view() const
    {
        return {slices.data(), reinterpret_cast<const typename Group<Column>::type*>(columns.data()), values.data()};
    }
};

template <class T>
class Ehyb final : public SpmvOperator<T> {
public:
    Ehyb(const CsrShard<T>& shard, EhybOrder order, const EhybGhosts& ghosts, const Context& context) : shard_(shard)
    {
        if (shard.rows > 0) {
            build(order, ghosts, context, static_cast<cudaStream_t>(context.stream));
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const Matrix<T> a{order_.data(),        first_row_.data(), first_slice_.data(),
                          first_column_.data(), columns_.data(),   inside_.view(),
                          er_.view(),           er_piece_.data(),  static_cast<std::int32_t>(sums_.size()),
                          sums_.data(),         queue_.data()};
        kernel()<<<static_cast<unsigned>(first_row_.size() - 1), ehyb_tuning.threads, shared_bytes_, stream>>>(
            a, alpha, x, beta, y);
        RMSP_CUDA_CHECK_LAUNCH("ehyb");
        if (const auto rows = static_cast<std::int64_t>(er_row_.size()); rows > 0) {
            add_er_kernel<<<blocks_for(rows), build_threads, 0, stream>>>(er_row_.data(), er_first_.data(), rows,
                                                                          sums_.data(), alpha, y, queue_.data());
            RMSP_CUDA_CHECK_LAUNCH("add_er_kernel");
        }
    }

    void update_values(const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        take_values(inside_, stream);
        take_values(er_, stream);
    }

    std::int64_t format_bytes() const override
    {
        return workspace_bytes() - bytes(inside_.entry) - bytes(er_.entry) + bytes(sums_);
    }

    std::int64_t workspace_bytes() const override
    {
        return bytes(order_) + bytes(first_row_) + bytes(first_slice_) + bytes(first_column_) + bytes(columns_) +
               bytes(inside_) + bytes(er_) + bytes(er_piece_) + bytes(er_row_) + bytes(er_first_) + bytes(sums_);
    }

private:
    template <class U>
    static std::int64_t bytes(const DeviceArray<U>& array)
    {
        return static_cast<std::int64_t>(array.size() * sizeof(U));
    }
    template <class Column>
    static std::int64_t bytes(const DeviceSlices<T, Column>& a)
    {
        return bytes(a.slices) + bytes(a.columns) + bytes(a.entry) + bytes(a.values);
    }

    static auto kernel() { return ehyb_kernel<T, ehyb_tuning.threads, ehyb_tuning.blocks_per_multiprocessor>; }

    template <class Array>
    static auto copied(const Array& host, const Context& context, cudaStream_t stream)
    {
        using U = typename Array::value_type;
        DeviceArray<U> array(*context.memory, host.size());
        if (!host.empty()) {
            RMSP_CUDA_CHECK(
                cudaMemcpyAsync(array.data(), host.data(), host.size() * sizeof(U), cudaMemcpyHostToDevice, stream));
        }
        return array;
    }

    template <class Column>
    static DeviceSlices<T, Column> copied(const Sliced<Column>& host, const Context& context, cudaStream_t stream)
    {
        return {copied(host.slices, context, stream), copied(host.columns, context, stream),
                copied(host.entry, context, stream), DeviceArray<T>(*context.memory, host.entry.size())};
    }

    template <class Column>
    void take_values(const DeviceSlices<T, Column>& a, cudaStream_t stream) const
    {
        if (const auto n = static_cast<std::int64_t>(a.values.size()); n > 0) {
            values_kernel<<<blocks_for(n), build_threads, 0, stream>>>(shard_.values, a.entry.data(), n,
                                                                       a.values.data());
            RMSP_CUDA_CHECK_LAUNCH("values_kernel");
        }
    }

    /// Shared memory that each of the blocks of a multiprocessor can have beside what the kernel declares itself.
    static std::int64_t shared_limit()
    {
        int device = 0;
        int of_multiprocessor = 0;
        int of_block = 0;
        int reserved = 0;
        RMSP_CUDA_CHECK(cudaGetDevice(&device));
        RMSP_CUDA_CHECK(
            cudaDeviceGetAttribute(&of_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
        RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device));
        cudaFuncAttributes kernel_attributes{};
        RMSP_CUDA_CHECK(cudaFuncGetAttributes(&kernel_attributes, kernel()));
        return std::min(of_multiprocessor / ehyb_tuning.blocks_per_multiprocessor - reserved, of_block) -
               static_cast<std::int64_t>(kernel_attributes.sharedSizeBytes);
    }

    void build(EhybOrder order, const EhybGhosts& ghosts, const Context& context, cudaStream_t stream)
    {
        const std::int64_t columns = shared_limit() / static_cast<std::int64_t>(sizeof(T)) - 1;
        HostVector<std::int32_t> col_idx(static_cast<std::size_t>(shard_.nnz));
        HostVector<std::byte> row_ptr((static_cast<std::size_t>(shard_.rows) + 1) * shard_.row_ptr.element_bytes());
        RMSP_CUDA_CHECK(
            cudaMemcpyAsync(row_ptr.data(), shard_.row_ptr.data(), row_ptr.size(), cudaMemcpyDeviceToHost, stream));
        if (!col_idx.empty()) {
            RMSP_CUDA_CHECK(cudaMemcpyAsync(col_idx.data(), shard_.col_idx, col_idx.size() * sizeof(std::int32_t),
                                            cudaMemcpyDeviceToHost, stream));
        }
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        const IndexView pointers = shard_.row_ptr.type() == IndexType::i32
                                       ? IndexView(reinterpret_cast<const std::int32_t*>(row_ptr.data()))
                                       : IndexView(reinterpret_cast<const std::int64_t*>(row_ptr.data()));
        const Pattern pattern{shard_.rows, shard_.cols, shard_.diagonal, pointers, col_idx.data()};
        const std::int64_t parts = part_count(
            shard_.rows, columns, std::int64_t{ehyb_tuning.blocks_per_multiprocessor} * context.compute_units, ghosts);
        const Layout layout = make_layout(pattern, parts_of_rows(pattern, parts, order, context.threads), parts,
                                          columns, Vector<T>::width, context.threads, ghosts);
        order_ = copied(layout.order, context, stream);
        first_row_ = copied(layout.first_row, context, stream);
        first_slice_ = copied(layout.first_slice, context, stream);
        first_column_ = copied(layout.first_column, context, stream);
        columns_ = copied(layout.columns, context, stream);
        inside_ = copied(layout.inside, context, stream);
        er_ = copied(layout.er, context, stream);
        er_piece_ = copied(layout.er_piece, context, stream);
        er_row_ = copied(layout.er_row, context, stream);
        er_first_ = copied(layout.er_first, context, stream);
        sums_ = DeviceArray<T>(*context.memory, static_cast<std::size_t>(layout.pieces()));
        queue_ = DeviceArray<std::int32_t>(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(queue_.data(), 0, sizeof(std::int32_t), stream));
        update_values(context);
        std::int32_t most_columns = 0;
        for (std::size_t p = 0; p + 1 < layout.first_column.size(); ++p) {
            most_columns = std::max(most_columns, layout.first_column[p + 1] - layout.first_column[p]);
        }
        shared_bytes_ = (static_cast<std::size_t>(most_columns) + 1) * sizeof(T);
        RMSP_CUDA_CHECK(cudaFuncSetAttribute(kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared_limit())));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));  // the layout goes
    }

    CsrShard<T> shard_;
    std::size_t shared_bytes_ = 0;
    DeviceArray<std::int32_t> order_;
    DeviceArray<std::int32_t> first_row_;
    DeviceArray<std::int32_t> first_slice_;
    DeviceArray<std::int32_t> first_column_;
    DeviceArray<std::int32_t> columns_;
    DeviceSlices<T, std::uint16_t> inside_;
    DeviceSlices<T, std::int32_t> er_;
    DeviceArray<std::int32_t> er_piece_;
    DeviceArray<std::int32_t> er_row_;
    DeviceArray<std::int32_t> er_first_;
    DeviceArray<T> sums_;  ///< of the pieces of ER
    DeviceArray<std::int32_t> queue_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                              const Context& context)
{
    require_metis("ehyb");
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::metis, no_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                     const Context& context)
{
    require_metis("ehyb-ghosts");
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::metis, ehyb_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                      const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::natural, no_ghosts, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_ghosts)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_natural)

}  // namespace rmsp::kernels
