#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/packed_tiles_build.cuh>
#include <kernels/spmv/pieces.cuh>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace packed;

template <bool Overwrite, class T>
__device__ __forceinline__ void write_row(T alpha, T sum, T beta, T* y)
{
    *y = Overwrite ? alpha * sum : alpha * sum + beta * *y;
}

/// Sums over the lanes since the last one in `ending`, that one and the own included: `rest` is what a lane has behind the last row that
/// ends in it, or all of it if none does.
template <class T>
__device__ __forceinline__ T running_sum(T rest, unsigned ending, int lane)
{
    const unsigned before = ending & ((2u << lane) - 1);
    const int reach = before != 0 ? lane - (31 - __clz(static_cast<int>(before))) : lane;
    const int longest = __reduce_max_sync(whole_warp, reach);
#pragma unroll 1
    for (int offset = 1; offset <= longest; offset *= 2) {
        const T left = __shfl_up_sync(whole_warp, rest, offset);
        if (offset <= reach) {
            rest += left;
        }
    }
    return rest;
}

/// What the lanes before have of the row that is the first to end in this one.
template <class T>
__device__ __forceinline__ T from_before(T running, int lane)
{
    const T before = __shfl_up_sync(whole_warp, running, 1);
    return lane == 0 ? T{0} : before;
}

/// One block a stretch of entries. A warp writes the rows that end in it, but leaves the first, which may have begun before, to the
/// block. Values are stored as V.
template <bool Overwrite, bool Spread, class V, class T>
__global__ void __launch_bounds__(threads, packed_tuning.blocks_per_multiprocessor)
    packed_tiles_kernel(const Matrix<T> a, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    __shared__ T heads[warps];
    __shared__ T rests[warps];
    __shared__ std::int32_t head_rows[warps];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;

    // In flight together with the tiles.
    std::int32_t cut = -1;
    std::int32_t pieces_before = 0;
    std::int32_t end_cut = -1;
    if (warp == 0) {
        cut = a.starts[blockIdx.x].cut;
        pieces_before = a.starts[blockIdx.x].pieces;
        end_cut = a.starts[blockIdx.x + 1].cut;
    }
    T rest = 0;  // of this warp: behind the last row that ended
    std::int32_t head_row = -1;
    const int first_tile = static_cast<int>(blockIdx.x) * a.block_tiles;
    const int end_tile = first_tile + (warp + 1) * a.block_tiles / warps;
    int tile = first_tile + warp * a.block_tiles / warps;
    Codes next;
    if (tile < end_tile) {
        next = load_codes(a, tile, lane);
    }
    for (; tile < end_tile; ++tile) {
        const Codes codes = next;
        LaneValues<V, lane_entries> values;
        values.load(a.values, tile, lane);
        std::int32_t column[lane_entries];
        unpack(codes, column);
        T gathered[lane_entries];
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            gathered[k] = column[k] != no_column32 ? __ldg(x + column[k]) : T{0};
        }
        if (tile + 1 < end_tile) {
            next = load_codes(a, tile + 1, lane);
        }

        if constexpr (Spread) {
            transpose(gathered, lane);
        }
        const unsigned ends = codes.ends & ((1u << lane_entries) - 1);
        const unsigned first_end = ends & (0u - ends);
        const unsigned other_ends = ends ^ first_end;
        const std::int32_t first_row = codes.header.first_row + static_cast<std::int32_t>(codes.ends >> lane_entries);
        std::int32_t row = first_row;
        T first = 0;
        T sum = lane == 0 ? rest : T{0};
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            sum += values.get(k, a.constant) * gathered[k];
            if ((other_ends >> k & 1u) != 0) {
                ++row;
                write_row<Overwrite>(alpha, sum, beta, y + row);
            }
            if ((first_end >> k & 1u) != 0) {
                first = sum;
            }
            if ((ends >> k & 1u) != 0) {
                sum = 0;
            }
        }
        const unsigned ending = __ballot_sync(whole_warp, ends != 0);
        sum = running_sum(sum, ending, lane);
        first += from_before(sum, lane);
        rest = __shfl_sync(whole_warp, sum, 31);
        bool write = ends != 0;
        if (head_row < 0 && ending != 0) {
            const int head_lane = __ffs(static_cast<int>(ending)) - 1;
            head_row = __shfl_sync(whole_warp, first_row, head_lane);
            if (lane == head_lane) {
                heads[warp] = first;
                write = false;
            }
        }
        if (write) {
            write_row<Overwrite>(alpha, first, beta, y + first_row);
        }
    }

    if (lane == 0) {
        rests[warp] = rest;
        head_rows[warp] = head_row;
    }
    __syncthreads();
    if (warp > 0) {
        return;
    }
    head_row = lane < warps ? head_rows[lane] : -1;
    const unsigned ending = __ballot_sync(whole_warp, head_row >= 0);
    const T sum = running_sum(lane < warps ? rests[lane] : T{0}, ending, lane);
    T before = from_before(sum, lane);
    if (end_cut >= 0 && lane == 31) {
        pieces::store(a.slots + end_cut, sum);
    }
    if (cut >= 0 && ending != 0) {
        // The sums of the pieces before, in an order that depends on their number alone.
        T pieces_sum = 0;
        for (int piece = lane; piece < pieces_before; piece += 32) {
            pieces_sum += pieces::take(a.slots + (cut - pieces_before + 1) + piece);
        }
        pieces_sum = __shfl_sync(whole_warp, cuda::group_sum(pieces_sum, 32), 0);
        if (lane == __ffs(static_cast<int>(ending)) - 1) {
            before += pieces_sum;
        }
    }
    if (head_row >= 0) {
        write_row<Overwrite>(alpha, heads[lane] + before, beta, y + head_row);
    }
}

template <class T, class Offset>
class PackedTiles final : public SpmvOperator<T> {
public:
    PackedTiles(const CsrShard<T>& shard, const Offset* row_ptr, const Context& context) : shard_(shard)
    {
        if (shard.rows == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const DeviceArray<std::int64_t> first = first_entries(row_ptr, shard.rows, context);
        const DeviceArray<unsigned long long> count(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(count.data(), 0, sizeof(unsigned long long), stream));
        neighbours_kernel<<<static_cast<unsigned>(8 * std::max(context.compute_units, 1)), threads, 0, stream>>>(
            shard.col_idx, shard.nnz, count.data());
        RMSP_CUDA_CHECK_LAUNCH("neighbours_kernel");
        std::int64_t entries = 0;
        unsigned long long together = 0;
        RMSP_CUDA_CHECK(
            cudaMemcpyAsync(&entries, first.data() + shard.rows, sizeof entries, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&together, count.data(), sizeof together, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        // Where fewer lie beside each other there is nothing to gather together; where more do, a lane has them itself.
        const double share = static_cast<double>(together) / static_cast<double>(std::max<std::int64_t>(shard.nnz, 1));
        spread_ = share >= spread_shares.least && share < spread_shares.most;
        shape_ = packed_shape(entries, context.compute_units);
        if (shape_.tiles() > std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage, "packed-tiles: " + std::to_string(shard.rows) + " rows and " +
                                              std::to_string(shard.nnz) + " nonzeros are more than one launch takes");
        }
        starts_ = DeviceArray<TileStart>(*context.memory, static_cast<std::size_t>(shape_.blocks) + 1);
        starts_kernel<<<static_cast<unsigned>(shape_.blocks / threads + 1), threads, 0, stream>>>(
            first.data(), shard.rows, shape_, starts_.data());
        RMSP_CUDA_CHECK_LAUNCH("starts_kernel");
        slots_ = pieces::make_slots<T>(starts_, context);
        const auto tiles = static_cast<std::size_t>(shape_.tiles());
        headers_ = DeviceArray<PackedHeader>(*context.memory, tiles);
        ends_ = DeviceArray<std::uint16_t>(*context.memory, tiles * 32);
        columns_ = DeviceArray<std::int32_t>(*context.memory, tiles * tile_entries);
        sources_ = DeviceArray<Offset>(*context.memory, tiles);
        const DeviceArray<unsigned> wide(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(wide.data(), 0, sizeof(unsigned), stream));
        structure_kernel<<<static_cast<unsigned>(blocks_for(shape_.tiles())), threads, 0, stream>>>(
            matrix(), row_ptr, shard.col_idx, first.data(), shard.rows, shape_.tiles(), sources_.data(), wide.data());
        RMSP_CUDA_CHECK_LAUNCH("structure_kernel");
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&wide_tiles_, wide.data(), sizeof wide_tiles_, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        update_values(context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        values_.visit([&]<class V>(V) {
            const auto kernel =
                beta == T{0}
                    ? (spread_ ? packed_tiles_kernel<true, true, V, T> : packed_tiles_kernel<true, false, V, T>)
                    : (spread_ ? packed_tiles_kernel<false, true, V, T> : packed_tiles_kernel<false, false, V, T>);
            kernel<<<static_cast<unsigned>(shape_.blocks), threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
                matrix(), alpha, x, beta, y);
            RMSP_CUDA_CHECK_LAUNCH("packed-tiles");
        });
    }

    void update_values(const Context& context) override
    {
        if (shard_.rows == 0) {
            return;
        }
        values_.renew(shard_, shape_.tiles() * tile_entries, context, [&]<class V>(V* values) {
            values_kernel<<<static_cast<unsigned>(blocks_for(shape_.tiles())), threads, 0,
                            static_cast<cudaStream_t>(context.stream)>>>(matrix(), shard_.values, sources_.data(),
                                                                         shape_.tiles(), values);
            RMSP_CUDA_CHECK_LAUNCH("values_kernel");
        });
    }

    std::int64_t format_bytes() const override
    {
        // 16-bit columns take the first half of the room for them.
        const std::int64_t narrow_tiles = shape_.tiles() - wide_tiles_;
        return workspace_bytes() - static_cast<std::int64_t>(sources_.size() * sizeof(Offset)) -
               narrow_tiles * tile_entries * static_cast<std::int64_t>(sizeof(std::int16_t));
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(headers_.size() * sizeof(PackedHeader) + ends_.size() * sizeof(std::uint16_t) +
                                         columns_.size() * sizeof(std::int32_t) + sources_.size() * sizeof(Offset) +
                                         starts_.size() * sizeof(TileStart) + slots_.size() * sizeof(T)) +
               values_.bytes();
    }

private:
    static std::int64_t blocks_for(std::int64_t tiles) { return (tiles + warps - 1) / warps; }

    Matrix<T> matrix() const
    {
        return {headers_.data(),
                ends_.data(),
                columns_.data(),
                values_.data(),
                values_.constant(),
                starts_.data(),
                slots_.data(),
                shape_.block_tiles,
                spread_,
                2 * std::int64_t{wide_tiles_} > shape_.tiles()};
    }

    CsrShard<T> shard_;
    PackedShape shape_;
    bool spread_ = false;
    unsigned wide_tiles_ = 0;
    DeviceArray<PackedHeader> headers_;
    DeviceArray<std::uint16_t> ends_;
    DeviceArray<std::int32_t> columns_;
    CopiedValues<T> values_;
    DeviceArray<Offset> sources_;  ///< first nonzero of each tile
    DeviceArray<TileStart> starts_;
    DeviceArray<T> slots_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_packed_tiles(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                      const Context& context)
{
    return shard.row_ptr.visit([&]<class Offset>(const Offset* row_ptr) -> std::unique_ptr<SpmvOperator<T>> {
        return std::make_unique<PackedTiles<T, Offset>>(shard, row_ptr, context);
    });
}

template std::unique_ptr<SpmvOperator<float>> prepare_packed_tiles(const CsrShard<float>&, const RowStatistics&,
                                                                   const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_packed_tiles(const CsrShard<double>&, const RowStatistics&,
                                                                    const Context&);

}  // namespace rmsp::kernels
