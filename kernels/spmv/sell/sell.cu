#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/sell/layout.hpp>
#include <kernels/spmv/sell/sell_build.cuh>
#include <kernels/spmv/sell/sell_product.cuh>
#include <kernels/spmv/sell/sell_values.cuh>
#include <kernels/spmv/sell_reordered/reorder.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace sell;

template <class T, class Offset>
class Sell final : public ScatteringSpmv<T> {
public:
    Sell(const CsrShard<T>& shard, const Offset* row_ptr, const Context& context)
        : shard_(shard), row_ptr_(row_ptr), slices_count_((shard.rows + slice_rows - 1) / slice_rows)
    {
        if (blocks() > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage,
                        "sell: " + std::to_string(shard.rows) + " rows are more than one launch takes");
        }
        if (slices_count_ == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        slots_ = DeviceArray<Slot>(*context.memory, static_cast<std::size_t>(slices_count_) * slice_rows);
        slices_ = DeviceArray<Slice>(*context.memory, static_cast<std::size_t>(slices_count_));
        const DeviceArray<ValueSize> sizes(*context.memory, slices_.size());
        const DeviceArray<Found> on_device(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found), stream));
        sort_kernel<<<static_cast<unsigned>((shard.rows + sort_rows - 1) / sort_rows), sort_rows, 0, stream>>>(
            matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("sort_kernel");
        measure_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_,
                                                                                &on_device.data()->left);
        RMSP_CUDA_CHECK_LAUNCH("measure_kernel");
        place_kernel<<<1, scan_threads, 0, stream>>>(slices_.data(), nullptr, slices_count_, &on_device.data()->extent);
        RMSP_CUDA_CHECK_LAUNCH("place_kernel");
        examine(true, sizes, on_device, stream);
        const Found found = cuda::read(on_device.data(), stream);
        const SellExtent& extent = found.extent;
        left_ = found.left != 0;
        if (!fits_slice_positions(extent)) {
            throw Error(ErrorCode::usage, "sell: " + std::to_string(extent.values) + " times 128 bytes of values of " +
                                              std::to_string(shard.rows) + " rows and " + std::to_string(shard.nnz) +
                                              " nonzeros are more than 2^32 - 1 positions");
        }
        bases_ = DeviceArray<int4>(*context.memory, static_cast<std::size_t>(extent.bases));
        codes_ =
            DeviceArray<unsigned char>(*context.memory, static_cast<std::size_t>(extent.codes) * slice_block_bytes);
        store_values<true>(found, sizes, on_device, context);
        share_bases(extent.bases, context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        launch(0, slices_count_, alpha, x, beta, y, nullptr, context);
    }

    void apply_to(T alpha, const T* x, T beta, T* y, const std::int32_t* y_row, const Context& context) override
    {
        launch(0, slices_count_, alpha, x, beta, y, y_row, context);
    }

    bool only_launches() const override { return true; }
    std::int64_t row_granule() const override { return sort_rows; }

    void apply_rows(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y,
                    const Context& context) override
    {
        // No rows behind the last ones: their slice, which need not be full, is not multiplied again.
        if (first < end) {
            launch(first / slice_rows, (end + slice_rows - 1) / slice_rows, alpha, x, beta, y, nullptr, context);
        }
    }

    std::int64_t sums() const override { return slices_count_; }
    void leave_sums(double* sums) override { sums_ = sums; }

    void update_values(const Context& context) override
    {
        if (slices_count_ > 0) {
            const auto stream = static_cast<cudaStream_t>(context.stream);
            const DeviceArray<ValueSize> sizes(*context.memory, slices_.size());
            const DeviceArray<Found> on_device(*context.memory, 1);
            RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found), stream));
            examine(true, sizes, on_device, stream);
            store_values<false>(cuda::read(on_device.data(), stream), sizes, on_device, context);
        }
    }

    std::int64_t format_bytes() const override
    {
        // Slots are read for some slices only, and what stays in CSR is at least what the slices have no room for.
        const auto left = std::max<std::int64_t>(0, shard_.nnz - stored_entries_);
        return workspace_bytes() - static_cast<std::int64_t>(slots_.size() * sizeof(Slot)) +
               left * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(slots_.size() * sizeof(Slot) + slices_.size() * sizeof(Slice) +
                                         values_.size() + bases_.size() * sizeof(int4) + codes_.size());
    }

private:
    static std::int64_t blocks_for(std::int64_t slices) { return (slices + slices_per_block - 1) / slices_per_block; }
    std::int64_t blocks() const { return blocks_for(slices_count_); }

    void launch(std::int64_t first, std::int64_t end, T alpha, const T* x, T beta, T* y, const std::int32_t* y_row,
                const Context& context) const
    {
        if (first >= end) {
            return;
        }
        const bool sums = sums_ != nullptr && y_row == nullptr;
        const int groups =
            groups_at_once(end - first, stored_entries_ / slices_count_ * (end - first), context.compute_units);
        const auto pick = [&]<bool Sums>(std::bool_constant<Sums>) {
            if (encoded_) {  // more groups of values that are decoded were not tried
                return left_ ? sell_kernel<1, true, true, Sums, T> : sell_kernel<1, true, false, Sums, T>;
            }
            if (groups == 4) {
                return left_ ? sell_kernel<4, false, true, Sums, T> : sell_kernel<4, false, false, Sums, T>;
            }
            if (groups == 2) {
                return left_ ? sell_kernel<2, false, true, Sums, T> : sell_kernel<2, false, false, Sums, T>;
            }
            return left_ ? sell_kernel<1, false, true, Sums, T> : sell_kernel<1, false, false, Sums, T>;
        };
        const auto kernel = sums ? pick(std::true_type()) : pick(std::false_type());
        const std::int64_t wave =
            std::int64_t{context.compute_units} * sell_tuning.blocks_per_multiprocessor * slices_per_block;
        cuda::launch_early("sell", kernel, dim3(static_cast<unsigned>(blocks_for(end - first))), threads, context,
                           stored(), first, end, wave, alpha, x, beta, y, y_row, shard_.diagonal, sums_);
    }

    template <class Pointers>
    Matrix<T, Pointers> with(Pointers row_ptr) const
    {
        return {shard_.rows,    row_ptr,        shard_.col_idx, shard_.values, slots_.data(),
                slices_.data(), values_.data(), bases_.data(),  codes_.data()};
    }
    Matrix<T, const Offset*> matrix() const { return with(row_ptr_); }
    Stored<T> stored() const { return with(EitherPointers{row_ptr_, sizeof(Offset) == sizeof(std::int64_t)}); }

    /// What the kernels that examine the matrix find.
    struct Found {
        unsigned left = 0;  ///< whether something stays in CSR
        SellExtent extent;
        unsigned long long encoded_blocks = 0;  ///< of values
        unsigned long long raw_blocks = 0;
    };

    void examine(bool encode, const DeviceArray<ValueSize>& sizes, const DeviceArray<Found>& found,
                 cudaStream_t stream) const
    {
        examine_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(
            matrix(), slices_count_, encode, sizes.data(), &found.data()->encoded_blocks, &found.data()->raw_blocks);
        RMSP_CUDA_CHECK_LAUNCH("examine_kernel");
    }

    /// Decides how the values are stored, makes room for them, and copies them, with the columns if `Structure`. The
    /// operator is as it was if there is no room.
    template <bool Structure>
    void store_values(const Found& found, const DeviceArray<ValueSize>& sizes, const DeviceArray<Found>& on_device,
                      const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const unsigned long long small = found.encoded_blocks;
        const unsigned long long raw = found.raw_blocks;
        const bool encode = values_are_encoded(static_cast<std::int64_t>(small), static_cast<std::int64_t>(raw));
        const std::size_t bytes = (encode ? small : raw) * slice_block_bytes;
        if (values_.size() != bytes) {
            values_ = DeviceArray<unsigned char>(*context.memory, bytes);
        }
        if (encode || encoded_) {
            if (!encode) {
                examine(false, sizes, on_device, stream);
            }
            place_kernel<<<1, scan_threads, 0, stream>>>(slices_.data(), sizes.data(), slices_count_,
                                                         &on_device.data()->extent);
            RMSP_CUDA_CHECK_LAUNCH("place_kernel");
        }
        encoded_ = encode;
        stored_entries_ = static_cast<std::int64_t>(raw * slice_block_bytes / sizeof(T));
        if (raw == 0) {
            return;
        }
        fill_kernel<Structure><<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_);
        RMSP_CUDA_CHECK_LAUNCH("fill_kernel");
        if (encoded_) {
            encode_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(matrix(), slices_count_);
            RMSP_CUDA_CHECK_LAUNCH("encode_kernel");
        }
    }

    /// Stores the bases of neighbouring slices that have the same ones once. Waits for the stream.
    void share_bases(std::int64_t groups, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        Memory& memory = *context.memory;
        const DeviceArray<std::uint32_t> positions(memory, slices_.size() + 1);
        compare_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(slices_.data(), slices_count_,
                                                                                bases_.data(), positions.data());
        RMSP_CUDA_CHECK_LAUNCH("compare_kernel");
        RMSP_CUDA_CHECK(cudaMemsetAsync(positions.data() + slices_count_, 0, sizeof(std::uint32_t), stream));
        cuda::exclusive_sum(positions.data(), slices_count_ + 1, context);
        const std::uint32_t left = cuda::read(positions.data() + slices_count_, stream);
        if (left == groups) {
            return;
        }
        DeviceArray<int4> shared(memory, left);
        move_bases_kernel<<<static_cast<unsigned>(blocks()), threads, 0, stream>>>(
            slices_.data(), slices_count_, bases_.data(), positions.data(), shared.data());
        RMSP_CUDA_CHECK_LAUNCH("move_bases_kernel");
        bases_ = std::move(shared);
    }

    CsrShard<T> shard_;
    const Offset* row_ptr_;
    std::int64_t slices_count_;
    DeviceArray<Slot> slots_;
    DeviceArray<Slice> slices_;
    DeviceArray<unsigned char> values_;
    DeviceArray<int4> bases_;
    DeviceArray<unsigned char> codes_;
    double* sums_ = nullptr;
    std::int64_t stored_entries_ = 0;  ///< of the slices, with their padding
    bool encoded_ = false;
    bool left_ = false;  ///< long rows, or slices that are not stored
};

}  // namespace

template <class T>
std::unique_ptr<ScatteringSpmv<T>> prepare_scattering_sell(const CsrShard<T>& shard, const Context& context)
{
    if (shard.row_ptr.type() == IndexType::i32) {
        return std::make_unique<Sell<T, std::int32_t>>(shard, static_cast<const std::int32_t*>(shard.row_ptr.data()),
                                                       context);
    }
    return std::make_unique<Sell<T, std::int64_t>>(shard, static_cast<const std::int64_t*>(shard.row_ptr.data()),
                                                   context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_sell(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                              const Context& context)
{
    return prepare_scattering_sell(shard, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_sell)
#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<ScatteringSpmv<T>> prepare_scattering_sell(const CsrShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
