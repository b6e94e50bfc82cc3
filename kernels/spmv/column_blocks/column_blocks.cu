#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/column_blocks/column_blocks_build.cuh>
#include <kernels/spmv/column_blocks/column_blocks_product.cuh>
#include <kernels/spmv/column_blocks/layout.hpp>
#include <kernels/spmv/common/stored_values.cuh>
#include <kernels/spmv/csr_nnz_split/gathered_sums.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace column_blocks;

template <class T>
class ColumnBlocks final : public SpmvOperator<T> {
public:
    ColumnBlocks(const CsrShard<T>& shard, const ColumnBlockTuning& tuning, const Context& context)
        : shard_(shard), tuning_(tuning)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        if (shard.rows > 0) {
            build(context, stream);
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        for (const Columns& columns : columns_) {
            multiply(columns, x, context);
        }
        row_sums_->apply(alpha, sums_.data(), beta, y, context);
    }

    bool splits_columns() const override { return shard_.early_cols > 0; }

    void apply_early(const T* x, const Context& context) override { multiply(columns_[0], x, context); }

    void apply_late(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        multiply(columns_[1], x, context);
        row_sums_->apply(alpha, sums_.data(), beta, y, context);
    }

    void update_values(const Context& context) override
    {
        if (tiles_ == 0) {
            return;
        }
        const std::int64_t slots = tiles_ * block_tile_entries;
        values_.renew(shard_, slots, context, [&]<class V>(V* values) {
            tile_values_kernel<<<build_blocks(slots), build_threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
                shard_.values, entry_of_slot_.data(), slots, values);
            RMSP_CUDA_CHECK_LAUNCH("tile_values_kernel");
        });
        values_.visit([&]<class V>(V) {
            RMSP_CUDA_CHECK(cudaFuncSetAttribute((column_blocks_kernel<V, T>),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(shared_bytes())));
        });
    }

    bool worthwhile() const override
    {
        const int fewest = splits_columns() ? tuning_.fewest_if_split : tuning_.fewest_entries_a_stretch;
        return static_cast<std::int64_t>(sums_.size()) * fewest <= shard_.nnz;
    }

    std::int64_t format_bytes() const override
    {
        return values_.bytes() + bytes(codes_) + bytes(first_stretch_) + bytes(order_) + 2 * bytes(ordered_) +
               2 * bytes(sums_) + bytes(refs_) + bytes(row_ptr_) + (row_sums_ ? row_sums_->workspace_bytes() : 0);
    }

    std::int64_t workspace_bytes() const override
    {
        return values_.bytes() + bytes(codes_) + bytes(first_stretch_) + bytes(order_) + bytes(ordered_) +
               bytes(sums_) + bytes(refs_) + bytes(row_ptr_) + bytes(entry_of_slot_) + bytes(first_tile_) +
               bytes(columns_[0].shares) + bytes(columns_[1].shares) + (row_sums_ ? row_sums_->workspace_bytes() : 0);
    }

private:
    /// Columns that are multiplied by at once: the early ones, or all; then the others. Their blocks are their own.
    struct Columns {
        std::int64_t first = 0;            ///< place in order_ of the fullest one
        std::int64_t used = 0;             ///< places, of columns that have entries
        DeviceArray<std::int64_t> shares;  ///< first tile of each thread block, and the end
    };

    /// Queues the sums of the stretches in these columns.
    void multiply(const Columns& columns, const T* x, const Context& context) const
    {
        if (columns.used == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        order_kernel<<<build_blocks((columns.used + 3) / 4), build_threads, 0, stream>>>(
            x, order_.data() + columns.first, columns.used, ordered_.data() + columns.first);
        RMSP_CUDA_CHECK_LAUNCH("order_kernel");
        const Blocks<T> blocks{first_tile_.data(),
                               blocks_,
                               static_cast<std::uint32_t>(tuning_.columns),
                               columns.first + columns.used,
                               columns.shares.data(),
                               values_.data(),
                               values_.constant(),
                               reinterpret_cast<const uint4*>(codes_.data()),
                               first_stretch_.data(),
                               sums_.data()};
        values_.visit([&]<class V>(V) {
            column_blocks_kernel<V>
                <<<static_cast<unsigned>(columns.shares.size() - 1), static_cast<unsigned>(tuning_.threads),
                   shared_bytes(), stream>>>(blocks, ordered_.data());
            RMSP_CUDA_CHECK_LAUNCH("column-blocks");
        });
    }

    template <class U>
    static std::int64_t bytes(const DeviceArray<U>& array)
    {
        return static_cast<std::int64_t>(array.size() * sizeof(U));
    }

    std::size_t shared_bytes() const { return (static_cast<std::size_t>(tuning_.columns) + 1) * sizeof(T); }

    template <class U>
    static DeviceArray<U> copied(const std::vector<U>& host, const Context& context, cudaStream_t stream)
    {
        DeviceArray<U> array(*context.memory, host.size());
        RMSP_CUDA_CHECK(
            cudaMemcpyAsync(array.data(), host.data(), host.size() * sizeof(U), cudaMemcpyHostToDevice, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        return array;
    }

    static int bits_of(std::int64_t largest)
    {
        return std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest))));
    }

    void build(const Context& context, cudaStream_t stream)
    {
        Memory& memory = *context.memory;
        const std::int64_t nnz = shard_.nnz;
        const auto entries = static_cast<std::size_t>(nnz);
        row_ptr_ = DeviceArray<std::uint32_t>(memory, static_cast<std::size_t>(shard_.rows) + 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(row_ptr_.data(), 0, row_ptr_.size() * sizeof(std::uint32_t), stream));
        std::int64_t stretches = 0;
        if (nnz > 0) {
            const DeviceArray<std::uint32_t> rank = order_columns(context, stream);
            // Entries by block; the order of rows stays inside each.
            blocks_ = static_cast<std::uint32_t>((end_place() + tuning_.columns - 1) / tuning_.columns);
            DeviceArray<std::uint32_t> entry(memory, entries);
            DeviceArray<std::int64_t> first_entry(memory, std::size_t{blocks_} + 1);
            {
                const DeviceArray<std::uint32_t> block(memory, entries);
                const DeviceArray<std::uint32_t> sorted_block(memory, entries);
                const DeviceArray<std::uint32_t> index(memory, entries);
                entry_blocks_kernel<<<build_blocks(nnz), build_threads, 0, stream>>>(
                    shard_.col_idx, nnz, rank.data(), static_cast<std::uint32_t>(tuning_.columns), block.data(),
                    index.data());
                RMSP_CUDA_CHECK_LAUNCH("entry_blocks_kernel");
                cuda::sort_pairs(block.data(), sorted_block.data(), index.data(), entry.data(), nnz,
                                 bits_of(blocks_ - 1), context);
                block_starts_kernel<<<build_blocks(nnz + 1), build_threads, 0, stream>>>(sorted_block.data(), nnz,
                                                                                         first_entry.data(), blocks_);
                RMSP_CUDA_CHECK_LAUNCH("block_starts_kernel");
            }
            std::vector<std::int64_t> first(std::size_t{blocks_} + 1);
            cuda::read(first.data(), first_entry.data(), first.size() * sizeof(std::int64_t), stream);
            std::vector<std::int64_t> first_tile(first.size());
            for (std::size_t b = 0; b + 1 < first.size(); ++b) {
                first_tile[b + 1] = first_tile[b] + block_tiles(first[b + 1] - first[b]);
            }
            tiles_ = first_tile.back();
            first_tile_ = copied(first_tile, context, stream);
            const DeviceArray<std::uint32_t> entry_row(memory, entries);
            fill_entry_rows(entry_row.data(), stream);
            const std::int64_t slots = tiles_ * block_tile_entries;
            codes_ = DeviceArray<std::uint16_t>(memory, static_cast<std::size_t>(slots));
            entry_of_slot_ = DeviceArray<std::uint32_t>(memory, static_cast<std::size_t>(slots));
            first_stretch_ = DeviceArray<std::uint32_t>(memory, static_cast<std::size_t>(tiles_) + 1);
            RMSP_CUDA_CHECK(cudaMemsetAsync(first_stretch_.data() + tiles_, 0, sizeof(std::uint32_t), stream));
            const Sorted sorted{entry.data(),
                                entry_row.data(),
                                shard_.col_idx,
                                rank.data(),
                                first_entry.data(),
                                first_tile_.data(),
                                static_cast<std::uint32_t>(tuning_.columns)};
            codes_kernel<<<build_blocks(tiles_ * 32), build_threads, 0, stream>>>(
                sorted, tiles_, blocks_, codes_.data(), entry_of_slot_.data(), first_stretch_.data());
            RMSP_CUDA_CHECK_LAUNCH("codes_kernel");
            cuda::exclusive_sum(first_stretch_.data(), tiles_ + 1, context);
            const int parts = std::max(1, context.compute_units * tuning_.blocks_per_multiprocessor);
            for (Columns& columns : columns_) {
                if (columns.used > 0) {
                    const std::int64_t first_block = columns.first / tuning_.columns;
                    const std::int64_t end_block =
                        (columns.first + columns.used + tuning_.columns - 1) / tuning_.columns;
                    columns.shares = DeviceArray<std::int64_t>(memory, static_cast<std::size_t>(parts) + 1);
                    shares_kernel<<<build_blocks(parts + 1), build_threads, 0, stream>>>(
                        parts, first_tile_.data() + first_block, end_block - first_block, first_stretch_.data(),
                        tuning_, columns.shares.data());
                    RMSP_CUDA_CHECK_LAUNCH("shares_kernel");
                }
            }
            stretches = cuda::read(first_stretch_.data() + tiles_, stream);

            const DeviceArray<std::uint32_t> row_of(memory, static_cast<std::size_t>(stretches));
            stretch_rows_kernel<<<build_blocks(tiles_ * 32), build_threads, 0, stream>>>(
                tiles_, codes_.data(), entry_of_slot_.data(), entry_row.data(), first_stretch_.data(), row_of.data(),
                row_ptr_.data());
            RMSP_CUDA_CHECK_LAUNCH("stretch_rows_kernel");
            cuda::exclusive_sum(row_ptr_.data(), shard_.rows + 1, context);
            const DeviceArray<std::uint32_t> index(memory, static_cast<std::size_t>(stretches));
            const DeviceArray<std::uint32_t> sorted_rows(memory, static_cast<std::size_t>(stretches));
            refs_ = DeviceArray<std::uint32_t>(memory, static_cast<std::size_t>(stretches));
            iota_kernel<<<build_blocks(stretches), build_threads, 0, stream>>>(index.data(), stretches);
            RMSP_CUDA_CHECK_LAUNCH("iota_kernel");
            cuda::sort_pairs(row_of.data(), sorted_rows.data(), index.data(), refs_.data(), stretches,
                             bits_of(shard_.rows - 1), context);
            sums_ = DeviceArray<T>(memory, static_cast<std::size_t>(stretches));
            update_values(context);
        }
        const CsrShard<T> sums{shard_.rows,
                               stretches,
                               stretches,
                               IndexView(reinterpret_cast<const std::int32_t*>(row_ptr_.data())),
                               reinterpret_cast<const std::int32_t*>(refs_.data()),
                               nullptr};
        row_sums_ = prepare_gathered_sums(sums, context);
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    /// One past the last place of a column in order_.
    std::int64_t end_place() const
    {
        const Columns& last = columns_[columns_[1].used > 0 ? 1 : 0];
        return last.first + last.used;
    }

    /// Fills order_; the place of each column in it. Late columns begin with a block of their own; the places before
    /// that name any column.
    DeviceArray<std::uint32_t> order_columns(const Context& context, cudaStream_t stream)
    {
        Memory& memory = *context.memory;
        const auto cols = static_cast<std::size_t>(shard_.cols);
        const DeviceArray<std::uint32_t> keys(memory, cols);
        const DeviceArray<std::uint32_t> sorted_keys(memory, cols);
        const DeviceArray<std::uint32_t> index(memory, cols);
        const DeviceArray<std::uint32_t> used(memory, 1);
        DeviceArray<std::uint32_t> rank(memory, cols);
        const std::int64_t cut = shard_.early_cols > 0 ? shard_.early_cols : shard_.cols;
        order_ = DeviceArray<std::uint32_t>(memory,
                                            cols + (cut < shard_.cols ? static_cast<std::size_t>(tuning_.columns) : 0));
        RMSP_CUDA_CHECK(cudaMemsetAsync(order_.data(), 0, order_.size() * sizeof(std::uint32_t), stream));
        RMSP_CUDA_CHECK(cudaMemsetAsync(keys.data(), 0xff, cols * sizeof(std::uint32_t), stream));
        count_columns_kernel<<<build_blocks(shard_.nnz), build_threads, 0, stream>>>(shard_.col_idx, shard_.nnz,
                                                                                     keys.data());
        RMSP_CUDA_CHECK_LAUNCH("count_columns_kernel");
        iota_kernel<<<build_blocks(shard_.cols), build_threads, 0, stream>>>(index.data(), shard_.cols);
        RMSP_CUDA_CHECK_LAUNCH("iota_kernel");
        const auto order = [&](Columns& columns, std::int64_t first, std::int64_t end) {
            if (first == end) {
                return;
            }
            cuda::sort_pairs(keys.data() + first, sorted_keys.data() + first, index.data() + first,
                             order_.data() + columns.first, end - first, 32, context);
            RMSP_CUDA_CHECK(cudaMemsetAsync(used.data(), 0, sizeof(std::uint32_t), stream));
            rank_columns_kernel<<<build_blocks(end - first), build_threads, 0, stream>>>(
                sorted_keys.data() + first, order_.data() + columns.first, end - first,
                static_cast<std::uint32_t>(columns.first), rank.data(), used.data());
            RMSP_CUDA_CHECK_LAUNCH("rank_columns_kernel");
            columns.used = cuda::read(used.data(), stream);
        };
        order(columns_[0], 0, cut);
        columns_[1].first = (columns_[0].used + tuning_.columns - 1) / tuning_.columns * tuning_.columns;
        order(columns_[1], cut, shard_.cols);
        // Whole vectors are read at the end.
        ordered_ = DeviceArray<T>(memory, static_cast<std::size_t>(end_place() + 3) / 4 * 4);
        RMSP_CUDA_CHECK(cudaMemsetAsync(ordered_.data(), 0, ordered_.size() * sizeof(T), stream));
        return rank;
    }

    void fill_entry_rows(std::uint32_t* entry_row, cudaStream_t stream) const
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            entry_rows_kernel<<<build_blocks(shard_.rows * 32), build_threads, 0, stream>>>(row_ptr, shard_.rows,
                                                                                            entry_row);
        });
        RMSP_CUDA_CHECK_LAUNCH("entry_rows_kernel");
    }

    CsrShard<T> shard_;
    ColumnBlockTuning tuning_;
    std::int64_t tiles_ = 0;
    std::uint32_t blocks_ = 0;
    std::array<Columns, 2> columns_;
    DeviceArray<std::uint32_t> order_;      ///< columns, the fullest of each of columns_ first
    DeviceArray<T> ordered_;                ///< x in that order
    DeviceArray<std::int64_t> first_tile_;  ///< of each block, and the end
    DeviceArray<std::uint16_t> codes_;
    CopiedValues<T> values_;
    DeviceArray<std::uint32_t> entry_of_slot_;  ///< for new values
    DeviceArray<std::uint32_t> first_stretch_;  ///< of each tile, and the end
    DeviceArray<T> sums_;                       ///< one a stretch
    DeviceArray<std::uint32_t> row_ptr_;        ///< into refs_
    DeviceArray<std::uint32_t> refs_;           ///< stretches of each row
    std::unique_ptr<SpmvOperator<T>> row_sums_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_column_blocks(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                       const Context& context)
{
    return std::make_unique<ColumnBlocks<T>>(shard, column_block_tuning<T>, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_column_blocks)

}  // namespace rmsp::kernels
