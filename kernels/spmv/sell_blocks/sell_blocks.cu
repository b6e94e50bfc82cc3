#include <algorithm>
#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/common/common_values.hpp>
#include <kernels/spmv/sell_blocks/layout.hpp>
#include <kernels/spmv/sell_blocks/prepare.hpp>
#include <kernels/spmv/sell_blocks/sell_blocks_build.cuh>
#include <kernels/spmv/sell_blocks/sell_blocks_product.cuh>

namespace rmsp::kernels {
namespace {

using namespace sell_blocks;

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
        const Found<T> found = cuda::read(on_device.data(), stream);
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
        const Found<T> found = cuda::read(on_device.data(), stream);
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

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_sell_blocks)

}  // namespace rmsp::kernels
