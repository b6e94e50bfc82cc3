#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/common/scale.cuh>
#include <kernels/spmv/csr_nnz_split/gathered_sums.hpp>
#include <kernels/spmv/csr_nnz_split/prepare.hpp>
#include <kernels/spmv/csr_nnz_split/tiles.hpp>
#include <kernels/spmv/packed_tiles/row_ends.cuh>

namespace rmsp::kernels {
namespace {

using row_ends::lane_entries;
using row_ends::warps;
using row_ends::whole_warp;

constexpr int threads = split_tuning.tiles.threads;
constexpr int tile_entries = split_tuning.tiles.tile_entries();
/// Floats take fewer registers, so that of a large matrix one block more runs at a time; interleaved tiles take more.
template <bool Interleaved, class T>
constexpr int resident_blocks = split_tuning.tiles.blocks_per_multiprocessor +
                                (Interleaved ? -1 : (sizeof(T) == sizeof(float) ? 1 : 0));

/// The caller's arrays, and beside them what row pointers say, by tiles and blocks: split_shape().
template <class T>
struct Matrix {
    const std::int32_t* col_idx;
    const T* values;
    std::int64_t nnz;
    bool aligned;  ///< columns and values start at 16-byte boundaries
    int block_tiles;
    int block_entries;
    const std::uint16_t* ends;  ///< of each lane of each tile: packed_ends()
    /// The first that ends in the tile or later, counted from block_rows; complemented where the tile has entries from
    /// block_entries on that belong to the next block.
    const std::int32_t* tile_rows;
    const std::int64_t* block_rows;  ///< that number 0 stands for: the one before the block's first
    const PackedCuts* cuts;          ///< of each block
    T* slots;                        ///< of pieces of rows, one a warp: pieces.cuh
    const std::int32_t* rows;        ///< that are not empty; null: none is
    const std::int32_t* empty_rows;
    std::int64_t empty;  ///< how many
};

/// A lane's entries of a tile, in the order of packed_tile_entry(). Each is used once: evicted first, so that x stays
/// in the caches. Where the array ends, its last entry stands for some that no row has. \tparam V  16 bytes of them
/// \param left  entries of the array from `tile` on
template <class V, class E>
__device__ __forceinline__ void load(const E* tile, int left, bool in_order, bool aligned, E (&to)[lane_entries])
{
    constexpr int width = static_cast<int>(sizeof(V) / sizeof(E));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool whole = left >= tile_entries;
    if (whole && !in_order) {
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            to[k] = __ldcs(tile + packed_tile_entry(lane, k, false));
        }
    } else if (whole && aligned) {
#pragma unroll
        for (int k = 0; k < lane_entries; k += width) {
            cuda::unpack(__ldcs(reinterpret_cast<const V*>(tile + packed_tile_entry(lane, k, true))), to + k);
        }
    } else {
#pragma unroll
        for (int k = 0; k < lane_entries; ++k) {
            to[k] = tile[min(packed_tile_entry(lane, k, in_order), left - 1)];
        }
    }
}

/// One block a stretch of nonzeros. If `Ones`, there are no values: each is 1. `Interleaved` as SplitShape has it.
template <bool Overwrite, bool Ones, bool Interleaved, bool Empty, class T>
__global__ void __launch_bounds__(threads, resident_blocks<Interleaved, T>)
    nnz_split_kernel(const Matrix<T> a, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    // Codes of the next tile are asked for before the sums, if there are registers for that.
    constexpr bool early = sizeof(T) == sizeof(float);
    __shared__ row_ends::Shared<T> shared;
    __shared__ std::int64_t block_row[warps];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto write = [&](std::int32_t number, T sum) {
        const std::int64_t row = block_row[warp] + number;
        row_ends::write_row<Overwrite>(alpha, sum, beta, y + (Empty ? __ldg(a.rows + row) : row));
    };

    cuda::wait_for_kernel_before();
    if (lane == 0) {
        __pipeline_memcpy_async(&block_row[warp], a.block_rows + blockIdx.x, sizeof(std::int64_t));
    }
    row_ends::request_cuts(shared, a.cuts);
    row_ends::Rows<T> rows;
    T share = 0;  // of this lane, of tiles in which no row ended
    bool shared_out = false;
    const std::int64_t begin = std::int64_t{blockIdx.x} * a.block_entries;
    const int end = static_cast<int>(min(a.nnz - begin, std::int64_t{a.block_tiles} * tile_entries));
    const std::int32_t* const col_idx = a.col_idx + begin;
    const T* const values = a.values + begin;
    const int end_tile = packed_first_tile(warp + 1, warps, a.block_tiles);
    int tile = packed_first_tile(warp, warps, a.block_tiles);

    std::int32_t column[lane_entries];
    unsigned ends = 0;
    std::int32_t tile_row = 0;
    const auto load_codes = [&] {
        if (tile == end_tile) {
            return;
        }
        load<int4>(col_idx + tile * tile_entries, end - tile * tile_entries, !Interleaved, a.aligned, column);
        const std::int64_t number = std::int64_t{blockIdx.x} * a.block_tiles + tile;
        ends = __ldg(a.ends + number * 32 + lane);
        tile_row = __ldg(a.tile_rows + number);
    };
    load_codes();
    while (tile < end_tile) {
        const int from = tile * tile_entries;
        T product[lane_entries];
        const auto multiply = [&](bool in_order) {
#pragma unroll
            for (int k = 0; k < lane_entries; ++k) {
                product[k] = __ldg(x + column[k]);
            }
            if constexpr (!Ones) {
                T value[lane_entries];
                load<typename cuda::Vector<T>::type>(values + from, end - from, in_order, a.aligned, value);
#pragma unroll
                for (int k = 0; k < lane_entries; ++k) {
                    product[k] *= value[k];
                }
            }
            if (tile_row < 0) {
#pragma unroll
                for (int k = 0; k < lane_entries; ++k) {
                    if (from + packed_tile_entry(lane, k, in_order) >= a.block_entries) {
                        product[k] = 0;
                    }
                }
            }
        };
        multiply(!Interleaved);
        const unsigned lane_ends = packed_row_ends(ends);
        const bool row_ends = __any_sync(whole_warp, lane_ends != 0);
        const std::int32_t first_row = without_complement(tile_row) + packed_rows_before(ends);
        if (Interleaved && row_ends) {
            load<int4>(col_idx + from, end - from, true, a.aligned, column);
            multiply(true);
        }
        ++tile;
        if constexpr (early) {
            load_codes();
        }
        const auto load_late = [&] {
            if constexpr (!early) {
                load_codes();
            }
        };
        if (!row_ends) {
#pragma unroll
            for (int k = 0; k < lane_entries; ++k) {
                share += product[k];
            }
            shared_out = true;
            load_late();
            continue;
        }
        if (shared_out) {
            rows.rest += __shfl_sync(whole_warp, cuda::group_sum(share, 32), 0);
            share = 0;
            shared_out = false;
        }
        __pipeline_wait_prior(0);  // block_row
        __syncwarp();
        rows.add(
            lane_ends, first_row, shared, [&](int k) { return product[k]; }, load_late, write);
    }
    if (shared_out) {
        rows.rest += __shfl_sync(whole_warp, cuda::group_sum(share, 32), 0);
    }
    if constexpr (Empty) {
        const std::int64_t stop = a.empty * (blockIdx.x + 1) / gridDim.x;
        for (std::int64_t i = a.empty * blockIdx.x / gridDim.x + threadIdx.x; i < stop; i += threads) {
            row_ends::write_row<Overwrite>(alpha, T{0}, beta, y + __ldg(a.empty_rows + i));
        }
    }
    rows.finish(shared, a.slots, [&](std::int32_t number, T sum) {
        if (number > 0) {  // or it is a row of the block before
            write(number, sum);
        }
    });
}

/// Sets the bit of each nonzero that ends a row, and counts rows without any.
template <class Offset>
__global__ void ends_kernel(std::int64_t rows, const Offset* __restrict__ row_ptr, unsigned* __restrict__ bits,
                            unsigned long long* __restrict__ empty)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    bool is_empty = false;
    if (row < rows) {
        const std::int64_t last = std::int64_t{row_ptr[row + 1]} - 1;
        is_empty = row_ptr[row] > last;
        if (!is_empty) {
            atomicOr(bits + last / 32, 1u << (last % 32));
        }
    }
    const int count = __syncthreads_count(is_empty);
    if (threadIdx.x == 0 && count > 0) {
        atomicAdd(empty, static_cast<unsigned long long>(count));
    }
}

template <class Offset>
__global__ void starts_kernel(std::int64_t rows, std::int64_t nnz, const Offset* __restrict__ row_ptr, SplitShape shape,
                              PackedStart* __restrict__ starts)
{
    const std::int64_t block = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (block <= shape.blocks) {
        starts[block] = split_start(block * shape.block_entries, rows, nnz, row_ptr, shape.window);
    }
}

/// What blocks share of rows, with empty slots for their pieces.
template <class T>
__global__ void cuts_kernel(SplitShape shape, const PackedStart* __restrict__ starts, PackedCuts* __restrict__ cuts,
                            T* __restrict__ slots)
{
    const std::int64_t block = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (block < shape.blocks) {
        cuts[block] = packed_cuts(starts, block, shape.block_tiles, block * shape.block_entries);
        pieces::make_empty(slots + block * warps, warps);
    }
}

/// Lists of rows that have nonzeros and that have none; `rank` is how many rows before a row have some.
template <class Offset>
__global__ void lists_kernel(std::int64_t rows, const Offset* __restrict__ row_ptr,
                             const std::int32_t* __restrict__ rank, std::int32_t* __restrict__ filled_rows,
                             std::int32_t* __restrict__ empty_rows)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (row < rows) {
        const std::int64_t before = rank[row];
        *(row_ptr[row] < row_ptr[row + 1] ? filled_rows + before : empty_rows + (row - before)) =
            static_cast<std::int32_t>(row);
    }
}

/// One warp a tile.
/// \param rank  as lists_kernel(); null: no row is empty
template <class Offset>
__global__ void tiles_kernel(std::int64_t rows, std::int64_t nnz, const Offset* __restrict__ row_ptr,
                             const unsigned* __restrict__ bits, const std::int32_t* __restrict__ rank, SplitShape shape,
                             const PackedStart* __restrict__ starts, std::uint16_t* __restrict__ ends,
                             std::int32_t* __restrict__ tile_rows, std::int64_t* __restrict__ block_rows)
{
    const std::int64_t number = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::int64_t block = number / shape.block_tiles;
    if (block >= shape.blocks) {
        return;
    }
    const auto tile = static_cast<int>(number % shape.block_tiles);
    const std::int64_t begin = block * shape.block_entries + std::int64_t{tile} * tile_entries;
    const PackedStart start = starts[block];
    const PackedStart stop = starts[block + 1];
    const std::int64_t entry = begin + lane * lane_entries;
    unsigned own = 0;
    if (entry < stop.entry) {
        own = bits[entry / 32] >> (entry % 32) & ((1u << lane_entries) - 1);
        if (stop.entry - entry < lane_entries) {
            own &= (1u << (stop.entry - entry)) - 1;
        }
    }
    int before = __popc(own);
    for (int offset = 1; offset < 32; offset *= 2) {
        const int left = __shfl_up_sync(whole_warp, before, offset);
        before += lane >= offset ? left : 0;
    }
    ends[number * 32 + lane] = packed_ends(own, before - __popc(own));
    if (lane == 0) {
        const auto place_of = [&](std::int64_t row) { return rank == nullptr ? row : std::int64_t{rank[row]}; };
        const std::int64_t low = start.entry > block * shape.block_entries ? start.row - 1 : start.row;
        const std::int64_t row = find_column(row_ptr, low, rows - 1, min(begin, stop.entry - 1));
        const std::int64_t zero = place_of(start.row) - 1;
        tile_rows[number] = complement_if(tile + 1 == shape.block_tiles && stop.cuts_row(),
                                          static_cast<std::int32_t>(place_of(row) - zero));
        if (tile == 0) {
            block_rows[block] = zero;
        }
    }
}

/// Whether each row has nonzeros; 0 behind the last.
template <class Offset>
__global__ void __launch_bounds__(threads) filled_kernel(const Offset* row_ptr, std::int64_t rows, std::int32_t* filled)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (row <= rows) {
        filled[row] = row < rows && row_ptr[row] < row_ptr[row + 1] ? 1 : 0;
    }
}

unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

template <class Offset>
DeviceArray<std::int32_t> ranks(const Offset* row_ptr, std::int64_t rows, const Context& context)
{
    const auto stream = static_cast<cudaStream_t>(context.stream);
    DeviceArray<std::int32_t> rank(*context.memory, static_cast<std::size_t>(rows) + 1);
    filled_kernel<<<blocks_for(rows + 1), threads, 0, stream>>>(row_ptr, rows, rank.data());
    RMSP_CUDA_CHECK_LAUNCH("filled_kernel");
    cuda::exclusive_sum(rank.data(), rows + 1, context);
    return rank;
}

template <bool Ones, class T>
class NnzSplit final : public SpmvOperator<T> {
public:
    template <class Offset>
    NnzSplit(const CsrShard<T>& shard, const Offset* row_ptr, const RowStatistics& rows, const Context& context)
        : shard_(shard)
    {
        if (shard.nnz == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        shape_ = split_shape(shard.nnz, shard.rows, rows.longest_row, context.compute_units);
        const std::int64_t tiles = shape_.blocks * shape_.block_tiles;
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        const auto check = [&](bool fits) {
            if (!fits) {
                throw Error(ErrorCode::usage, "csr-nnz-split: " + std::to_string(shard.rows) + " rows and " +
                                                  std::to_string(shard.nnz) +
                                                  " nonzeros are more than one launch takes");
            }
        };
        check(std::max(shard.rows / threads, tiles / warps) < most);
        const DeviceArray<unsigned> bits(*context.memory, static_cast<std::size_t>(shard.nnz / 32) + 1);
        const DeviceArray<unsigned long long> empty(*context.memory, 1);
        const DeviceArray<PackedStart> starts(*context.memory, static_cast<std::size_t>(shape_.blocks) + 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(bits.data(), 0, bits.size() * sizeof(unsigned), stream));
        RMSP_CUDA_CHECK(cudaMemsetAsync(empty.data(), 0, sizeof(unsigned long long), stream));
        ends_kernel<<<blocks_for(shard.rows), threads, 0, stream>>>(shard.rows, row_ptr, bits.data(), empty.data());
        RMSP_CUDA_CHECK_LAUNCH("ends_kernel");
        starts_kernel<<<blocks_for(shape_.blocks + 1), threads, 0, stream>>>(shard.rows, shard.nnz, row_ptr, shape_,
                                                                             starts.data());
        RMSP_CUDA_CHECK_LAUNCH("starts_kernel");
        const auto blocks = static_cast<std::size_t>(shape_.blocks);
        cuts_ = DeviceArray<PackedCuts>(*context.memory, blocks);
        slots_ = DeviceArray<T>(*context.memory, blocks * warps);
        cuts_kernel<<<blocks_for(shape_.blocks), threads, 0, stream>>>(shape_, starts.data(), cuts_.data(),
                                                                       slots_.data());
        RMSP_CUDA_CHECK_LAUNCH("cuts_kernel");
        const unsigned long long empty_rows = cuda::read(empty.data(), stream);
        DeviceArray<std::int32_t> rank;
        if (empty_rows > 0) {
            check(shard.rows < most);
            rank = ranks(row_ptr, shard.rows, context);
            empty_rows_ = DeviceArray<std::int32_t>(*context.memory, empty_rows);
            filled_rows_ =
                DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.rows) - empty_rows);
            lists_kernel<<<blocks_for(shard.rows), threads, 0, stream>>>(shard.rows, row_ptr, rank.data(),
                                                                         filled_rows_.data(), empty_rows_.data());
            RMSP_CUDA_CHECK_LAUNCH("lists_kernel");
        }
        ends_ = DeviceArray<std::uint16_t>(*context.memory, static_cast<std::size_t>(tiles) * 32);
        tile_rows_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(tiles));
        block_rows_ = DeviceArray<std::int64_t>(*context.memory, static_cast<std::size_t>(shape_.blocks));
        tiles_kernel<<<static_cast<unsigned>((tiles + warps - 1) / warps), threads, 0, stream>>>(
            shard.rows, shard.nnz, row_ptr, bits.data(), rank.data(), shape_, starts.data(), ends_.data(),
            tile_rows_.data(), block_rows_.data());
        RMSP_CUDA_CHECK_LAUNCH("tiles_kernel");
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        if (shard_.nnz == 0) {
            cuda::scale(shard_.rows, beta, y, context.compute_units, stream);
            return;
        }
        constexpr std::uintptr_t vector_bytes = 16;
        const bool aligned = reinterpret_cast<std::uintptr_t>(shard_.col_idx) % vector_bytes == 0 &&
                             reinterpret_cast<std::uintptr_t>(shard_.values) % vector_bytes == 0;
        Matrix<T> matrix{shard_.col_idx,     shard_.values,
                         shard_.nnz,         aligned,
                         shape_.block_tiles, static_cast<int>(shape_.block_entries),
                         ends_.data(),       tile_rows_.data(),
                         block_rows_.data(), cuts_.data(),
                         slots_.data(),      filled_rows_.data(),
                         empty_rows_.data(), static_cast<std::int64_t>(empty_rows_.size())};
        if (beta == T{0} && fills()) {
            cuda::scale(shard_.rows, beta, y, context.compute_units, stream);
            matrix.empty = 0;
        }
        const auto kernel_for = [&]<bool Interleaved>() {
            return beta == T{0} ? (empty_rows_.size() > 0 ? nnz_split_kernel<true, Ones, Interleaved, true, T>
                                                          : nnz_split_kernel<true, Ones, Interleaved, false, T>)
                                : (empty_rows_.size() > 0 ? nnz_split_kernel<false, Ones, Interleaved, true, T>
                                                          : nnz_split_kernel<false, Ones, Interleaved, false, T>);
        };
        // Sums of partial sums have short rows: with Ones, the interleaved kernels are not even compiled.
        const auto kernel = !Ones && shape_.interleaved ? kernel_for.template operator()<!Ones>()
                                                        : kernel_for.template operator()<false>();
        cuda::launch_early("launch of csr-nnz-split", kernel, dim3(static_cast<unsigned>(shape_.blocks)), threads,
                           context, matrix, alpha, x, beta, y);
    }

    bool only_launches() const override { return shard_.nnz > 0 && !fills(); }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(
            ends_.size() * sizeof(std::uint16_t) + block_rows_.size() * sizeof(std::int64_t) +
            (tile_rows_.size() + filled_rows_.size() + empty_rows_.size()) * sizeof(std::int32_t) +
            cuts_.size() * sizeof(PackedCuts) + slots_.size() * sizeof(T));
    }

private:
    /// Whether y is filled with zeros before the rows that are not empty are written. Else each block writes the zeros
    /// of some empty rows between its gathers, which takes longer where these are most rows and many.
    bool fills() const
    {
        return empty_rows_.size() > filled_rows_.size() &&
               static_cast<std::int64_t>(empty_rows_.size()) >= split_tuning.least_rows_to_fill;
    }

    CsrShard<T> shard_;
    SplitShape shape_;
    DeviceArray<std::uint16_t> ends_;
    DeviceArray<std::int32_t> tile_rows_;
    DeviceArray<std::int64_t> block_rows_;
    DeviceArray<std::int32_t> filled_rows_;  ///< if some are empty
    DeviceArray<std::int32_t> empty_rows_;
    DeviceArray<PackedCuts> cuts_;
    DeviceArray<T> slots_;
};

template <bool Ones, class T>
std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard, const RowStatistics& rows, const Context& context)
{
    return shard.row_ptr.visit([&]<class Offset>(const Offset* row_ptr) -> std::unique_ptr<SpmvOperator<T>> {
        return std::make_unique<NnzSplit<Ones, T>>(shard, row_ptr, rows, context);
    });
}

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_nnz_split(const CsrShard<T>& shard, const RowStatistics& rows,
                                                   const Context& context)
{
    return prepare<false>(shard, rows, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_gathered_sums(const CsrShard<T>& shard, const Context& context)
{
    RowStatistics rows;
    rows.longest_row = shard.nnz;
    return prepare<true>(shard, rows, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_nnz_split)

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<SpmvOperator<T>> prepare_gathered_sums(const CsrShard<T>&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
