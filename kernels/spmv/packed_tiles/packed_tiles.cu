#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/spmv/packed_tiles/packed_tiles_build.cuh>
#include <kernels/spmv/packed_tiles/row_ends.cuh>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace packed;

/// One block a stretch of entries. A warp writes the rows that end in it; the first, which may have begun before, when
/// the other warps are done. Values are stored as V.
template <bool Overwrite, class V, int high_bits, class T>
__global__ void __launch_bounds__(threads, packed_tuning.blocks_per_multiprocessor)
    packed_tiles_kernel(const Matrix<T, high_bits> a, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    __shared__ row_ends::Shared<T> shared;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto write = [&](std::int32_t row, T sum) { row_ends::write_row<Overwrite>(alpha, sum, beta, y + row); };

    cuda::wait_for_kernel_before();
    row_ends::request_cuts(shared, a.cuts);
    row_ends::Rows<T> rows;
    const int first_tile = static_cast<int>(blockIdx.x) * a.block_tiles;
    const int end_tile = first_tile + packed_first_tile(warp + 1, warps, a.block_tiles);
    int tile = first_tile + packed_first_tile(warp, warps, a.block_tiles);
    Codes<high_bits> next{};
    next.load(a, tile, lane, tile < end_tile, false);
    next.load_high(a, tile, lane, tile < end_tile && next.wide());
    for (; tile < end_tile; ++tile) {
        const Codes<high_bits> codes = next;
        T gathered[lane_entries];
        gather(codes, x, gathered);
        LaneValues<V, lane_entries> values;
        values.load(a.values, tile, lane);
        rows.add(
            codes.row_ends(), codes.row(), shared, [&](int k) { return values.get(k, a.constant) * gathered[k]; },
            // Not before the sums: beside the gathers it would delay them.
            [&] { next.load(a, tile + 1, lane, tile + 1 < end_tile, codes.next_is_wide()); }, write);
    }
    rows.finish(shared, a.slots, write);
}

template <class T, class Offset>
class PackedTiles final : public SpmvOperator<T> {
public:
    PackedTiles(const CsrShard<T>& shard, const Offset* row_ptr, const RowStatistics& rows, const Context& context)
        : shard_(shard)
    {
        if (shard.rows == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        shape_ = packed_shape(shard.nnz + rows.empty_rows, shard.rows, context.compute_units);
        // How many tiles the largest block has is known after all else: there is room for as many as it may have.
        const std::int64_t most_tiles = shape_.blocks * packed_most_tiles(shape_);
        if (most_tiles > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage, "packed-tiles: " + std::to_string(shard.rows) + " rows and " +
                                              std::to_string(shard.nnz) + " nonzeros are more than one launch takes");
        }
        Memory& memory = *context.memory;
        const auto blocks = static_cast<std::size_t>(shape_.blocks);
        const DeviceArray<Found<T>> on_device(memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0, sizeof(Found<T>), stream));
        int* const block_tiles = &on_device.data()->block_tiles;
        const DeviceArray<std::int64_t> first = first_entries(row_ptr, rows, context);
        const DeviceArray<PackedStart> starts(memory, blocks + 1);
        cuts_ = DeviceArray<PackedCuts>(memory, blocks);
        slots_ = DeviceArray<T>(memory, blocks * warps);
        layout_kernel<<<1, layout_threads, 0, stream>>>(first.data(), shard.rows, shape_, starts.data(), cuts_.data(),
                                                        slots_.data(), block_tiles);
        RMSP_CUDA_CHECK_LAUNCH("layout_kernel");
        find_common_values(shard, &on_device.data()->values, context);
        const auto count = static_cast<std::size_t>(most_tiles);
        headers_ = DeviceArray<PackedHeader>(memory, count);
        ends_ = DeviceArray<std::uint16_t>(memory, count * 32);
        low_ = DeviceArray<LanePairs>(memory, count * 32);
        with_high_bits(
            [&]<int bits>() { high_ = DeviceArray<std::byte>(memory, count * 32 * sizeof(HighBits<bits>)); });
        sources_ = DeviceArray<Offset>(memory, count);
        with_high_bits([&]<int bits>() {
            structure_kernel<<<static_cast<unsigned>(blocks_for(most_tiles)), threads, 0, stream>>>(
                matrix<bits>(), row_ptr, shard.col_idx, first.data(), shard.rows, starts.data(), shape_.blocks,
                block_tiles, sources_.data(), &on_device.data()->wide);
        });
        RMSP_CUDA_CHECK_LAUNCH("structure_kernel");
        wide_next_kernel<<<static_cast<unsigned>(most_tiles / threads + 1), threads, 0, stream>>>(
            headers_.data(), shape_.blocks, block_tiles);
        RMSP_CUDA_CHECK_LAUNCH("wide_next_kernel");
        const Found<T> found = cuda::read(on_device.data(), stream);
        block_tiles_ = found.block_tiles;
        wide_tiles_ = found.wide;
        if (wide_tiles_ == 0) {
            high_.reset();
        }
        store_values(common_values(found.values), context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        with_high_bits([&]<int bits>() {
            values_.visit([&]<class V>(V) {
                const auto kernel =
                    beta == T{0} ? packed_tiles_kernel<true, V, bits, T> : packed_tiles_kernel<false, V, bits, T>;
                cuda::launch_early("launch of packed-tiles", kernel, dim3(static_cast<unsigned>(shape_.blocks)),
                                   threads, context, matrix<bits>(), alpha, x, beta, y);
            });
        });
    }

    bool only_launches() const override { return true; }

    void update_values(const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        store_values(common_values(shard_, context), context);
    }

    std::int64_t format_bytes() const override
    {
        // Of narrow tiles the higher bits are not read.
        const std::size_t wide_bytes = headers_.size() > 0 ? high_.size() / headers_.size() : 0;
        return tiles() *
                   static_cast<std::int64_t>(sizeof(PackedHeader) + 32 * (sizeof(std::uint16_t) + sizeof(LanePairs))) +
               static_cast<std::int64_t>(wide_tiles_ * wide_bytes + cuts_.size() * sizeof(PackedCuts)) +
               values_.bytes();
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(headers_.size() * sizeof(PackedHeader) + ends_.size() * sizeof(std::uint16_t) +
                                         low_.size() * sizeof(LanePairs) + high_.size() +
                                         sources_.size() * sizeof(Offset) + cuts_.size() * sizeof(PackedCuts) +
                                         slots_.size() * sizeof(T)) +
               values_.bytes();
    }

private:
    static std::int64_t blocks_for(std::int64_t tiles) { return (tiles + warps - 1) / warps; }

    std::int64_t tiles() const { return shape_.blocks * block_tiles_; }

    void store_values(const CommonValues<T>& common, const Context& context)
    {
        values_.renew(common, tiles() * tile_entries, context, [&]<class V>(V* values) {
            with_high_bits([&]<int bits>() {
                values_kernel<<<static_cast<unsigned>(blocks_for(tiles())), threads, 0,
                                static_cast<cudaStream_t>(context.stream)>>>(matrix<bits>(), shard_.values,
                                                                             sources_.data(), tiles(), values);
            });
            RMSP_CUDA_CHECK_LAUNCH("values_kernel");
        });
    }

    /// Calls f() with how many bits wide tiles have above the lower 16.
    template <class F>
    void with_high_bits(F&& f) const
    {
        if (packed_high_bits(shard_.cols) == 4) {
            f.template operator()<4>();
        } else {
            f.template operator()<16>();
        }
    }

    template <int bits>
    Matrix<T, bits> matrix() const
    {
        return {headers_.data(), ends_.data(),       low_.data(),  reinterpret_cast<HighBits<bits>*>(high_.data()),
                values_.data(),  values_.constant(), cuts_.data(), slots_.data(),
                block_tiles_};
    }

    CsrShard<T> shard_;
    PackedShape shape_;
    int block_tiles_ = 0;
    unsigned wide_tiles_ = 0;
    DeviceArray<PackedHeader> headers_;
    DeviceArray<std::uint16_t> ends_;
    DeviceArray<LanePairs> low_;
    DeviceArray<std::byte> high_;  ///< HighBits; none without wide tiles
    CopiedValues<T> values_;
    DeviceArray<Offset> sources_;  ///< first nonzero of each tile
    DeviceArray<PackedCuts> cuts_;
    DeviceArray<T> slots_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_packed_tiles(const CsrShard<T>& shard, const RowStatistics& rows,
                                                      const Context& context)
{
    return shard.row_ptr.visit([&]<class Offset>(const Offset* row_ptr) -> std::unique_ptr<SpmvOperator<T>> {
        return std::make_unique<PackedTiles<T, Offset>>(shard, row_ptr, rows, context);
    });
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_packed_tiles)

}  // namespace rmsp::kernels
