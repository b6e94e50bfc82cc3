#include <chrono>
#include <string>
#include <vector>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/ehyb/device_pool.cuh>
#include <kernels/spmv/ehyb/host_layout.hpp>
#include <kernels/spmv/ehyb/lay_out.hpp>
#include <kernels/spmv/ehyb/layout.hpp>
#include <kernels/spmv/ehyb/mesh_parts.hpp>
#include <kernels/spmv/spmv.hpp>

#include "core/clock.hpp"
#include "core/log.hpp"

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

/// A sliced matrix with its values.
template <class T, class Column>
Slices<T, Column> view_of(const Sliced<DeviceArray, Column>& sliced, const DeviceArray<T>& values)
{
    return {sliced.slices.data(), reinterpret_cast<const typename Group<Column>::type*>(sliced.columns.data()),
            values.data()};
}

/// Says how long each step of the preparation took, where anyone listens.
class Steps {
public:
    Steps(const char* what, const DevicePool& pool) : pool_(pool), listened_(core::logs_debug())
    {
        if (listened_) {
            pool_.wait();
            text_ = what;
            last_ = core::Clock::now();
        }
    }
    ~Steps()
    {
        if (listened_) {
            core::log_debug(text_);
        }
    }
    void done(const char* step)
    {
        if (listened_) {
            pool_.wait();
            const auto now = core::Clock::now();
            text_ += std::string(text_.back() == ':' ? " " : ", ") + step + " " +
                     std::to_string(std::chrono::duration<double, std::milli>(now - last_).count()) + " ms";
            last_ = now;
        }
    }

private:
    const DevicePool& pool_;
    bool listened_;
    std::string text_;
    core::Clock::time_point last_;
};

template <class T>
class Ehyb final : public SpmvOperator<T> {
public:
    Ehyb(const CsrShard<T>& shard, EhybOrder order, const EhybGhosts& ghosts, const Context& context) : shard_(shard)
    {
        if (shard.rows > 0) {
            build(order, ghosts, context);
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const Matrix<T> a{layout_.order.data(),
                          layout_.first_row.data(),
                          layout_.first_slice.data(),
                          layout_.first_column.data(),
                          layout_.columns.data(),
                          view_of(layout_.inside, inside_),
                          view_of(layout_.er, er_),
                          layout_.er_piece.data(),
                          static_cast<std::int32_t>(layout_.pieces),
                          sums_.data(),
                          queue_.data()};
        kernel()<<<static_cast<unsigned>(layout_.part_count), ehyb_tuning.threads, shared_bytes_, stream>>>(a, alpha, x,
                                                                                                            beta, y);
        RMSP_CUDA_CHECK_LAUNCH("ehyb");
        if (const auto rows = static_cast<std::int64_t>(layout_.er_row.size()); rows > 0) {
            add_er_kernel<<<blocks_for(rows), build_threads, 0, stream>>>(
                layout_.er_row.data(), layout_.er_first.data(), rows, sums_.data(), alpha, y, queue_.data());
            RMSP_CUDA_CHECK_LAUNCH("add_er_kernel");
        }
    }

    void update_values(const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        take_values(layout_.inside.entry, inside_, stream);
        take_values(layout_.er.entry, er_, stream);
    }

    /// Parts of what is no mesh have most of their entries outside.
    bool worthwhile() const override
    {
        return static_cast<double>(layout_.er.entry.size()) <=
               ehyb_tuning.most_outside * static_cast<double>(shard_.nnz);
    }

    std::int64_t format_bytes() const override
    {
        return workspace_bytes() - bytes(layout_.inside.entry) - bytes(layout_.er.entry) + bytes(sums_);
    }

    std::int64_t workspace_bytes() const override
    {
        return bytes(layout_.order) + bytes(layout_.first_row) + bytes(layout_.first_slice) +
               bytes(layout_.first_column) + bytes(layout_.columns) + bytes(layout_.inside) + bytes(inside_) +
               bytes(layout_.er) + bytes(er_) + bytes(layout_.er_piece) + bytes(layout_.er_row) +
               bytes(layout_.er_first) + bytes(sums_);
    }

private:
    template <class U>
    static std::int64_t bytes(const DeviceArray<U>& array)
    {
        return static_cast<std::int64_t>(array.size() * sizeof(U));
    }
    template <class Column>
    static std::int64_t bytes(const Sliced<DeviceArray, Column>& a)
    {
        return bytes(a.slices) + bytes(a.columns) + bytes(a.entry);
    }

    static auto kernel() { return ehyb_kernel<T, ehyb_tuning.threads, ehyb_tuning.blocks_per_multiprocessor>; }

    void take_values(const DeviceArray<std::uint32_t>& entry, const DeviceArray<T>& values, cudaStream_t stream) const
    {
        if (const auto n = static_cast<std::int64_t>(values.size()); n > 0) {
            values_kernel<<<blocks_for(n), build_threads, 0, stream>>>(shard_.values, entry.data(), n, values.data());
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

    /// METIS wants the structure in host memory.
    DeviceArray<std::int32_t> parts_by_metis(std::int64_t parts, const DevicePool& pool, const Context& context) const
    {
        const std::vector<std::int32_t> columns = pool.read(shard_.col_idx, shard_.nnz);
        const auto cut = [&](const auto* pointers) {
            const auto row_ptr = pool.read(pointers, shard_.rows + 1);
            const Pattern pattern{shard_.rows, shard_.cols, shard_.diagonal, IndexView(row_ptr.data()), columns.data()};
            const auto part = parts_of_rows(pattern, parts, EhybOrder::metis, context.threads);
            return pool.copy(std::vector<std::int32_t>(part.begin(), part.end()));
        };
        return shard_.row_ptr.visit(cut);
    }

    void build(EhybOrder order, const EhybGhosts& ghosts, const Context& context)
    {
        const DevicePool pool(context);
        Steps steps(ghosts.fewest_uses > 0 ? "ehyb-ghosts is made ready:" : "ehyb is made ready:", pool);
        const Structure structure{shard_.rows,
                                  shard_.cols,
                                  shard_.diagonal,
                                  shard_.row_ptr.data(),
                                  shard_.row_ptr.type() == IndexType::i64,
                                  shard_.col_idx,
                                  shard_.nnz};
        const std::int64_t columns = shared_limit() / static_cast<std::int64_t>(sizeof(T)) - 1;
        const std::int64_t parts = part_count(
            shard_.rows, columns, std::int64_t{ehyb_tuning.blocks_per_multiprocessor} * context.compute_units, ghosts);
        auto part = pool.template array<std::int32_t>(order == EhybOrder::metis ? 0 : shard_.rows);
        if (order == EhybOrder::metis) {
            part = parts_by_metis(parts, pool, context);
        } else if (order == EhybOrder::mesh) {
            mesh_parts(pool, structure, parts, part.data(), mesh_parts_tuning, [&](const char* s) { steps.done(s); });
        } else {
            natural_parts(pool, shard_.rows, parts, part.data());
        }
        steps.done(order == EhybOrder::mesh ? "smoothing" : order == EhybOrder::metis ? "METIS" : "parts");
        layout_ = lay_out(pool, structure, part.data(), parts, columns, Vector<T>::width, ghosts, ehyb_tuning);
        steps.done("layout");
        inside_ = pool.template array<T>(static_cast<std::int64_t>(layout_.inside.entry.size()));
        er_ = pool.template array<T>(static_cast<std::int64_t>(layout_.er.entry.size()));
        sums_ = pool.template array<T>(layout_.pieces);
        queue_ = pool.template array<std::int32_t>(1);
        RMSP_CUDA_CHECK(
            cudaMemsetAsync(queue_.data(), 0, sizeof(std::int32_t), static_cast<cudaStream_t>(context.stream)));
        update_values(context);
        shared_bytes_ = (static_cast<std::size_t>(layout_.widest_part) + 1) * sizeof(T);
        RMSP_CUDA_CHECK(cudaFuncSetAttribute(kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared_limit())));
        pool.wait();
        steps.done("values");
    }

    CsrShard<T> shard_;
    std::size_t shared_bytes_ = 0;
    LayoutOf<DeviceArray> layout_;
    DeviceArray<T> inside_;  ///< values of the parts
    DeviceArray<T> er_;      ///< of ER
    DeviceArray<T> sums_;    ///< of the pieces of ER
    DeviceArray<std::int32_t> queue_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                              const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::mesh, no_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                     const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::mesh, ehyb_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_metis(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                    const Context& context)
{
    require_metis("ehyb-metis");
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::metis, no_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                      const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::natural, no_ghosts, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_ghosts)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_metis)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_natural)

}  // namespace rmsp::kernels
