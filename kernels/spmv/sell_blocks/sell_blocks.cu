#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/common/common_values.hpp>
#include <kernels/spmv/sell_blocks/prepare.hpp>
#include <kernels/spmv/sell_blocks/sell_blocks.hpp>
#include <kernels/spmv/sell_blocks/sell_blocks_build.cuh>

namespace rmsp::kernels {
namespace {

using namespace sell_blocks;

/// The codes of as many blocks as 16 bytes hold values.
template <class T>
struct CodeVector;
template <>
struct CodeVector<double> {
    using type = uint2;
};
template <>
struct CodeVector<float> {
    using type = uint4;
};
__device__ __forceinline__ void unpack(const uint2& v, std::uint32_t* p)
{
    p[0] = v.x;
    p[1] = v.y;
}
__device__ __forceinline__ void unpack(const uint4& v, std::uint32_t* p)
{
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}

/// The values of a lane's line of as many blocks: 16 bytes, or 8 if doubles are stored as floats.
template <class V, class T>
using ValueVector = std::conditional_t<sizeof(V) == sizeof(T), typename cuda::Vector<T>::type, float2>;
__device__ __forceinline__ void unpack(const double2& v, double* p) { cuda::unpack(v, p); }
__device__ __forceinline__ void unpack(const float4& v, float* p) { cuda::unpack(v, p); }
__device__ __forceinline__ void unpack(const float2& v, float* p)
{
    p[0] = v.x;
    p[1] = v.y;
}

/// Sums that a lane keeps: of the rows of its column, or of its row.
template <int R, int C>
constexpr int lane_sums = BlockShape{R, C}.by_column() ? R : 1;

/// Entry `place` of a lane's line of a block, as its bit in the code. If `Full`, the block has all its entries or none.
template <int R, int C, bool Full>
__device__ __forceinline__ constexpr std::uint32_t entry_bit(int line, int place)
{
    return Full ? 1u : BlockShape{R, C}.by_column() ? 1u << (place * C + line) : 1u << (line * C + place);
}

/// x at a lane's column of a block, or at all columns for a lane that has a row; 0 where there is no entry.
template <int R, int C, bool Full, class T>
__device__ __forceinline__ void gather(std::uint32_t code, int line, const T* __restrict__ x, T* gathered)
{
    constexpr BlockShape shape{R, C};
    const T* const from = x + static_cast<std::int64_t>(code >> (R * C)) * C;
    if constexpr (shape.by_column()) {
        std::uint32_t column = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            column |= entry_bit<R, C, Full>(line, r);
        }
        gathered[0] = (code & column) != 0 ? __ldg(from + line) : T{0};
    } else {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            gathered[c] = (code & entry_bit<R, C, Full>(line, c)) != 0 ? __ldg(from + c) : T{0};
        }
    }
}

/// Adds a lane's line of a block, times its x. What is not an entry is never multiplied: x may hold what is not finite.
template <int R, int C, bool Full, class V, class T>
__device__ __forceinline__ void add_line(T (&sums)[lane_sums<R, C>], const V* value, const T* gathered,
                                         std::uint32_t code, int line)
{
    constexpr BlockShape shape{R, C};
#pragma unroll
    for (int i = 0; i < shape.lane_values(); ++i) {
        if (Full || (code & entry_bit<R, C, Full>(line, i)) != 0) {
            T& sum = sums[shape.by_column() ? i : 0];
            sum = fma(static_cast<T>(value[i]), gathered[shape.by_column() ? 0 : i], sum);
        }
    }
}

/// Adds to `sums` the groups that begin at blocks k, k + step, ...: `Groups` of them. If `Rest`, the slice ends inside
/// the last one.
template <int R, int C, bool Full, int Groups, bool Rest, class V, class T>
__device__ __forceinline__ void add_groups(T (&sums)[lane_sums<R, C>], const V* values, const std::uint32_t* codes,
                                           int width, int k, int step, int own, int lane, const T* __restrict__ x)
{
    constexpr BlockShape shape{R, C};
    constexpr int nodes = slice_nodes(shape);
    constexpr int lanes = slice_lanes(shape);
    constexpr int group = block_group<T>;
    constexpr int each = shape.lane_values();
    constexpr int gathers = shape.by_column() ? 1 : C;
    using Values = ValueVector<V, T>;
    using Codes = typename CodeVector<T>::type;
    std::uint32_t code[Groups][group];
    V value[Groups][group * each];
    // Each is used once: evicted first, so that x stays in the caches.
#pragma unroll
    for (int g = 0; g < Groups - (Rest ? 1 : 0); ++g) {
        unpack(__ldcs(reinterpret_cast<const Codes*>(codes + (k + g * step) * nodes) + own), code[g]);
#pragma unroll
        for (int i = 0; i < each; ++i) {
            unpack(__ldcs(reinterpret_cast<const Values*>(values + (k + g * step) * (lanes * each)) + i * lanes + lane),
                   value[g] + i * group);
        }
    }
    if constexpr (Rest) {
        const int first = k + (Groups - 1) * step;
#pragma unroll
        for (int b = 0; b < group; ++b) {
            const bool in = b == 0 || (b < group - 1 && first + b < width);
            code[Groups - 1][b] = in ? __ldcs(codes + (first + b) * nodes + own) : 0;
#pragma unroll
            for (int i = 0; i < each; ++i) {
                value[Groups - 1][b * each + i] = in ? __ldcs(values + ((first + b) * each + i) * lanes + lane) : V{0};
            }
        }
    }
    const int line = lane % shape.lanes();
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
        const int blocks = Rest && g == Groups - 1 ? group - 1 : group;
        T gathered[group * gathers];
#pragma unroll
        for (int b = 0; b < blocks; ++b) {
            gather<R, C, Full>(code[g][b], line, x, gathered + b * gathers);
        }
#pragma unroll
        for (int b = 0; b < blocks; ++b) {
            add_line<R, C, Full>(sums, value[g] + b * each, gathered + b * gathers, code[g][b], line);
        }
    }
}

/// This part's and lane's share of the sums of a node of a slice that is stored. Unless `Rest`, slices are whole groups
/// wide.
template <int R, int C, bool Full, bool Rest, class V, class T>
__device__ __forceinline__ void add_blocks(T (&sums)[lane_sums<R, C>], const V* values, const std::uint32_t* codes,
                                           int width, int part, int parts, int own, int lane, const T* __restrict__ x)
{
    constexpr int few = sell_blocks_tuning.groups_in_flight;
    static_assert(few == 3, "up to three groups are left, the last of three not whole");
    constexpr int in_flight = few * static_cast<int>(sizeof(T) / sizeof(V));  // of the same bytes
    constexpr int group = block_group<T>;
    const int step = parts * group;
    int k = part * group;
    const int whole = Rest ? width - group + 1 : width;  // a whole group begins before
    for (; k + (in_flight - 1) * step < whole; k += in_flight * step) {
        add_groups<R, C, Full, in_flight, false>(sums, values, codes, width, k, step, own, lane, x);
    }
    if (in_flight > few && k + (few - 1) * step < whole) {
        add_groups<R, C, Full, few, false>(sums, values, codes, width, k, step, own, lane, x);
        k += few * step;
    }
    if (Rest && k + 2 * step < width) {
        add_groups<R, C, Full, 3, Rest>(sums, values, codes, width, k, step, own, lane, x);
    } else if (k + step < whole) {
        add_groups<R, C, Full, 2, false>(sums, values, codes, width, k, step, own, lane, x);
    } else if (Rest && k + step < width) {
        add_groups<R, C, Full, 2, Rest>(sums, values, codes, width, k, step, own, lane, x);
    } else if (k < whole) {
        add_groups<R, C, Full, 1, false>(sums, values, codes, width, k, step, own, lane, x);
    } else if (Rest && k < width) {
        add_groups<R, C, Full, 1, Rest>(sums, values, codes, width, k, step, own, lane, x);
    }
}

/// The sum of the row of a lane, which all lanes of its node have shares of if they have columns.
template <int R, int C, class T>
__device__ __forceinline__ T row_sum(const T (&sums)[lane_sums<R, C>], int lane)
{
    T own = sums[0];
    if constexpr (BlockShape{R, C}.by_column()) {
        static_assert(R == C, "a node has a lane for each of its rows");
        const int first = lane / C * C;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            T sum = 0;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                sum += __shfl_sync(0xffffffffu, sums[r], first + c);
            }
            own = lane - first == r ? sum : own;
        }
    }
    return own;
}

/// What the product reads.
template <class T>
struct Slices {
    std::int64_t rows;
    const std::int32_t* row_ptr32;  ///< row pointers, of either width
    const std::int64_t* row_ptr64;
    const std::int32_t* col_idx;
    const T* entries;
    std::int64_t shift;
    std::int64_t slices;
    const std::uint32_t* node_of;
    const BlockSlice* info;
    const void* values;
    const std::uint32_t* codes;
};

/// By one load: the compiler would make one for each member.
__device__ __forceinline__ BlockSlice load_slice(const BlockSlice* info)
{
    const uint2 raw = __ldg(reinterpret_cast<const uint2*>(info));
    return {raw.x, raw.y};
}

/// `parts` warps a slice, whose values are stored as V. If there are `Many`, slices end inside groups, and from thread
/// block `last` on all warps of a block share one.
template <int R, int C, bool Many, class V, class T>
__global__ void __launch_bounds__(threads, sell_blocks_tuning.blocks_per_multiprocessor)
    sell_blocks_kernel(const Slices<T> a, int parts, unsigned last, T alpha, const T* __restrict__ x, T beta,
                       T* __restrict__ y)
{
    constexpr BlockShape shape{R, C};
    constexpr int nodes = slice_nodes(shape);
    constexpr int lanes = slice_lanes(shape);
    __shared__ T part_sums[threads];

    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = min(static_cast<int>(threadIdx.x) % 32, lanes - 1);
    const bool has_row = static_cast<int>(threadIdx.x) % 32 < lanes;
    const int own = lane / shape.lanes();  // node
    const int slices_per_block = static_cast<int>(blockDim.x) / (32 * parts);
    std::int64_t index = std::int64_t{blockIdx.x} * slices_per_block + warp / parts;
    if (Many && blockIdx.x >= last) {
        index = std::int64_t{last} * slices_per_block + (blockIdx.x - last);
        parts *= slices_per_block;
    }
    const int part = warp % parts;
    std::int64_t row = -1;
    T sum = 0;
    if (index < a.slices) {
        const BlockSlice slice = load_slice(a.info + index);
        row = std::int64_t{a.node_of[index * nodes + own]} * R + lane % R - a.shift;
        if (slice.blocks() == 0) {
            if (has_row && row >= 0 && row < a.rows) {
                const bool wide = a.row_ptr64 != nullptr;
                const std::int64_t begin = wide ? a.row_ptr64[row] : a.row_ptr32[row];
                const std::int64_t length = (wide ? a.row_ptr64[row + 1] : a.row_ptr32[row + 1]) - begin;
#pragma unroll 4
                for (std::int64_t k = part; k < length; k += parts) {
                    sum = fma(__ldg(a.entries + begin + k), __ldg(x + __ldg(a.col_idx + begin + k)), sum);
                }
            }
        } else {
            const V* const values =
                static_cast<const V*>(a.values) + std::int64_t{slice.first} * (lanes * shape.lane_values());
            const std::uint32_t* const codes = a.codes + std::int64_t{slice.first} * nodes;
            T sums[lane_sums<R, C>] = {};
            if (slice.full()) {
                add_blocks<R, C, true, Many>(sums, values, codes, slice.blocks(), part, parts, own, lane, x);
            } else {
                add_blocks<R, C, false, Many>(sums, values, codes, slice.blocks(), part, parts, own, lane, x);
            }
            sum = row_sum<R, C>(sums, lane);
        }
    }
    if (parts > 1) {
        part_sums[threadIdx.x] = sum;
        __syncthreads();
        if (part != 0) {
            return;
        }
        for (int p = 1; p < parts; ++p) {
            sum += part_sums[threadIdx.x + p * 32];
        }
    }
    if (has_row && row >= 0 && row < a.rows) {
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

template <class T, class Offset>
class SellBlocks final : public SpmvOperator<T> {
public:
    SellBlocks(const CsrShard<T>& shard, const Offset* row_ptr, const RowStatistics& rows, const Context& context)
        : shard_(shard), row_ptr_(row_ptr), lanes_(node_lanes(rows.mean))
    {
        if (shard.rows == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const DeviceArray<Found<T>> on_device(*context.memory, 1);
        const Counted counted = choose_nodes(on_device, context, stream);
        with_shape([&]<int R, int C>() { build<R, C>(counted, on_device, context, stream); });
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (slices_ == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        with_shape([&]<int R, int C>() {
            const int block = slice_threads(parts_);
            const int slices_per_block = block / (32 * parts_);
            const std::int64_t last = (slices_ - last_ + slices_per_block - 1) / slices_per_block;
            with_stored([&]<class V>(V) {
                const auto kernel =
                    many_ ? sell_blocks_kernel<R, C, true, V, T> : sell_blocks_kernel<R, C, false, V, T>;
                kernel<<<static_cast<unsigned>(last + last_), block, 0, stream>>>(
                    slices(), parts_, static_cast<unsigned>(last), alpha, x, beta, y);
                RMSP_CUDA_CHECK_LAUNCH("sell-blocks");
            });
        });
    }

    void update_values(const Context& context) override
    {
        if (stored_entries_ > 0) {
            const CommonValues<T> common = common_values(shard_, context);
            with_shape([&]<int R, int C>() { fill<R, C>(false, common, context); });
        }
    }

    bool worthwhile() const override { return worthwhile_; }

    std::int64_t format_bytes() const override
    {
        // At least so many are left in CSR.
        return workspace_bytes() + std::max<std::int64_t>(0, shard_.nnz - stored_entries_) * entry_bytes;
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>((node_of_.size() + codes_.size()) * sizeof(std::uint32_t) +
                                         info_.size() * sizeof(BlockSlice) + values_.size());
    }

private:
    static constexpr auto entry_bytes = static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));

    template <class F>
    void with_shape(F&& f) const
    {
        if (shape_ == BlockShape{3, 3}) {
            f.template operator()<3, 3>();
        } else if (shape_ == BlockShape{2, 3}) {
            f.template operator()<2, 3>();
        } else {
            f.template operator()<2, 2>();
        }
    }

    /// Calls f with a value of the type that the values are stored as.
    template <class F>
    void with_stored(F&& f) const
    {
        if (floats_) {
            f(float{});
        } else {
            f(T{});
        }
    }

    static unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

    Matrix<T, Offset> matrix() const
    {
        return {shard_.rows, row_ptr_, shard_.col_idx,  shard_.values, nodes_,
                shift_,      slices_,  node_of_.data(), info_.data(),  codes_.data()};
    }

    Slices<T> slices() const
    {
        constexpr bool wide = sizeof(Offset) == sizeof(std::int64_t);
        return {shard_.rows,
                wide ? nullptr : static_cast<const std::int32_t*>(shard_.row_ptr.data()),
                wide ? static_cast<const std::int64_t*>(shard_.row_ptr.data()) : nullptr,
                shard_.col_idx,
                shard_.values,
                shift_,
                slices_,
                node_of_.data(),
                info_.data(),
                values_.data(),
                codes_.data()};
    }

    /// The shapes whose codes have room for the columns, and where the first node may begin: a device's rows may begin
    /// inside one.
    Ways ways_to_cut() const
    {
        Ways ways;
        std::int64_t first = 0;
        for (const BlockShape& shape : block_shapes) {
            for (int shift = 0; shift < shape.rows && fits_block_codes(shape, shard_.cols); ++shift) {
                const std::int64_t nodes = (shard_.rows + shift + shape.rows - 1) / shape.rows;
                ways.way[ways.count++] = {shape, shift, nodes, first};
                first += nodes;
            }
        }
        if (ways.count == 0) {
            throw Error(ErrorCode::usage, "sell-blocks: " + std::to_string(shard_.cols) +
                                              " columns are more than the codes of blocks have bits for");
        }
        return ways;
    }

    /// Queues the count of the blocks of one node in `sample`, in each way.
    void count(const Ways& ways, int sample, NodeCount* counts, Found<T>* found, const Context& context,
               cudaStream_t stream) const
    {
        std::int64_t nodes = 0;
        for (int i = 0; i < ways.count; ++i) {
            nodes = std::max(nodes, ways.way[i].count);
        }
        const auto blocks =
            std::min<std::int64_t>(blocks_for((nodes + sample - 1) / sample * lanes_),
                                   std::int64_t{sell_blocks_tuning.counting_blocks} * context.compute_units);
        count_blocks_kernel<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(ways.count)), threads, 0,
                              stream>>>(matrix(), ways, lanes_, sample, counts, found);
        RMSP_CUDA_CHECK_LAUNCH("count_blocks_kernel");
    }

    static Found<T> read(const DeviceArray<Found<T>>& on_device, cudaStream_t stream)
    {
        Found<T> found;
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&found, on_device.data(), sizeof found, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        return found;
    }

    double bytes_an_entry(const Nodes& way, const WayCount& count) const
    {
        const BlockCount blocks{static_cast<std::int64_t>(count.blocks), static_cast<std::int64_t>(count.entries)};
        return block_bytes(way.shape, blocks, static_cast<std::int64_t>(count.seen), static_cast<int>(sizeof(T))) /
               std::max(1.0, static_cast<double>(count.seen));
    }

    struct Counted {
        DeviceArray<NodeCount> counts;
        std::int64_t first = 0;  ///< place of those of the way that is taken,
        int way = 0;             ///< and of its sums
        double mean_blocks = 0;  ///< of a node, about
    };

    /// Takes the way that needs the fewest bytes, and queues the count of its nodes' blocks; in long matrices a sample
    /// of the nodes tells which.
    Counted choose_nodes(const DeviceArray<Found<T>>& on_device, const Context& context, cudaStream_t stream)
    {
        Memory& memory = *context.memory;
        const Ways ways = ways_to_cut();
        const Nodes& last = ways.way[ways.count - 1];
        const int sample = shard_.rows < sell_blocks_tuning.sampled_rows ? 1 : sell_blocks_tuning.sample;
        Counted counted;
        if (sample == 1) {
            counted.counts = DeviceArray<NodeCount>(memory, static_cast<std::size_t>(last.first + last.count));
        }
        RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found<T>), stream));
        find_common_values(shard_, &on_device.data()->values, context);
        count(ways, sample, counted.counts.data(), on_device.data(), context, stream);
        const Found<T> found = read(on_device, stream);
        for (int i = 1; i < ways.count; ++i) {
            if (bytes_an_entry(ways.way[i], found.counts[i]) <
                bytes_an_entry(ways.way[counted.way], found.counts[counted.way])) {
                counted.way = i;
            }
        }
        Nodes way = ways.way[counted.way];
        const WayCount& sums = found.counts[counted.way];
        counted.first = way.first;
        counted.mean_blocks = static_cast<double>(sums.blocks) / std::max(1.0, static_cast<double>(sums.seen)) *
                              static_cast<double>(shard_.nnz) / static_cast<double>(way.count);
        shape_ = way.shape;
        shift_ = way.shift;
        nodes_ = way.count;
        if (sample > 1) {
            counted.first = 0;
            counted.way = 0;
            way.first = 0;
            counted.counts = DeviceArray<NodeCount>(memory, static_cast<std::size_t>(way.count));
            RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found<T>::counts), stream));
            count({{way}, 1}, 1, counted.counts.data(), on_device.data(), context, stream);
        }
        return counted;
    }

    template <int R, int C>
    void build(const Counted& counted, const DeviceArray<Found<T>>& on_device, const Context& context,
               cudaStream_t stream)
    {
        constexpr int each = slice_nodes(BlockShape{R, C});
        Memory& memory = *context.memory;
        slices_ = (nodes_ + each - 1) / each;
        const auto slices = static_cast<std::size_t>(slices_);
        node_of_ = DeviceArray<std::uint32_t>(memory, slices * each);
        info_ = DeviceArray<BlockSlice>(memory, slices);
        constexpr int window = window_nodes<R, C>;
        many_ = many_slices(slices_, context.compute_units, counted.mean_blocks, block_group<T>);
        sort_nodes_kernel<R, C, T><<<static_cast<unsigned>((nodes_ + window - 1) / window), window, 0, stream>>>(
            counted.counts.data() + counted.first, nodes_, slices_, !many_, node_of_.data(), info_.data());
        RMSP_CUDA_CHECK_LAUNCH("sort_nodes_kernel");
        place_slices_kernel<T><<<1, place_threads, 0, stream>>>(info_.data(), slices_, &on_device.data()->room);
        RMSP_CUDA_CHECK_LAUNCH("place_slices_kernel");
        const Found<T> found = read(on_device, stream);
        worthwhile_ = bytes_an_entry({shape_, shift_, nodes_}, found.counts[counted.way]) <=
                      sizeof(T) + sell_blocks_tuning.most_index_bytes;
        const std::uint32_t room = found.room;
        stored_entries_ = std::int64_t{room} * slice_lanes(BlockShape{R, C}) * BlockShape{R, C}.lane_values();
        codes_ = DeviceArray<std::uint32_t>(memory, std::size_t{room} * each);
        const double mean_width = static_cast<double>(room) / static_cast<double>(slices_);
        parts_ =
            slice_parts(slices_, context.compute_units, mean_width, block_group<T>, BlockShape{R, C}.lane_values());
        last_ = many_ ? last_slices(slices_, context.compute_units, mean_width, block_group<T>, parts_,
                                    slice_threads(parts_) / (32 * parts_))
                      : 0;
        if (stored_entries_ > 0) {
            fill<R, C>(true, common_values(found.values), context);
        }
    }

    /// Makes room for the values, and copies them, with the codes if `structure`.
    template <int R, int C>
    void fill(bool structure, const CommonValues<T>& common, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const bool floats = sizeof(T) > sizeof(float) && common.floats;
        const std::size_t bytes = static_cast<std::size_t>(stored_entries_) * (floats ? sizeof(float) : sizeof(T));
        if (values_.size() != bytes) {
            values_ = DeviceArray<std::byte>(*context.memory, bytes);
            // Of padding, which nobody writes.
            RMSP_CUDA_CHECK(cudaMemsetAsync(values_.data(), 0, bytes, stream));
        }
        floats_ = floats;
        with_stored([&]<class V>(V) {
            fill_blocks_kernel<R, C>
                <<<blocks_for(slices_ * slice_nodes(BlockShape{R, C}) * lanes_), threads, 0, stream>>>(
                    matrix(), structure, lanes_, reinterpret_cast<V*>(values_.data()));
            RMSP_CUDA_CHECK_LAUNCH("fill_blocks_kernel");
        });
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    int lanes_;  ///< that go through a node
    BlockShape shape_;
    int shift_ = 0;
    std::int64_t nodes_ = 0;
    std::int64_t slices_ = 0;
    bool many_ = false;      ///< slices, see SellBlocksTuning
    std::int64_t last_ = 0;  ///< slices that a whole thread block shares
    int parts_ = 1;
    bool worthwhile_ = false;
    std::int64_t stored_entries_ = 0;  ///< of the slices, with their padding
    bool floats_ = false;              ///< how they are stored
    DeviceArray<std::uint32_t> node_of_;
    DeviceArray<BlockSlice> info_;
    DeviceArray<std::byte> values_;
    DeviceArray<std::uint32_t> codes_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell_blocks(const CsrShard<T>& shard, const RowStatistics& rows,
                                                     const Context& context)
{
    return shard.row_ptr.visit([&]<class Offset>(const Offset* row_ptr) -> std::unique_ptr<SpmvOperator<T>> {
        return std::make_unique<SellBlocks<T, Offset>>(shard, row_ptr, rows, context);
    });
}

template std::unique_ptr<SpmvOperator<float>> prepare_sell_blocks(const CsrShard<float>&, const RowStatistics&,
                                                                  const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_sell_blocks(const CsrShard<double>&, const RowStatistics&,
                                                                   const Context&);

}  // namespace rmsp::kernels
