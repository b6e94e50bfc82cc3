#include <limits>
#include <string>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spmv/gathered_sums.hpp>
#include <kernels/spmv/pieces.cuh>
#include <kernels/spmv/spmv.hpp>
#include <kernels/spmv/tiles.hpp>

namespace rmsp::kernels {
namespace {

constexpr int threads = tile_tuning.threads;
constexpr int capacity = tile_tuning.capacity();

/// 16 bytes of values and the columns that belong to them.
template <class T>
struct Vector;
template <>
struct Vector<double> {
    static constexpr int width = 2;
    using Values = double2;
    using Columns = int2;
};
template <>
struct Vector<float> {
    static constexpr int width = 4;
    using Values = float4;
    using Columns = int4;
};
__device__ __forceinline__ double element(const double2& v, int i) { return i == 0 ? v.x : v.y; }
__device__ __forceinline__ int element(const int2& v, int i) { return i == 0 ? v.x : v.y; }
template <class V>
__device__ __forceinline__ auto element(const V& v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
__device__ __forceinline__ double2 make_vector(const double (&p)[2]) { return {p[0], p[1]}; }
__device__ __forceinline__ float4 make_vector(const float (&p)[4]) { return {p[0], p[1], p[2], p[3]}; }

/// Where product i is in shared memory: 16 bytes of padding every 256, or rows whose length is a power of two would all
/// start in the same bank.
template <class T>
__device__ __forceinline__ int place(int i)
{
    constexpr int stretch = 16 * Vector<T>::width;
    return i + i / stretch * Vector<T>::width;
}

template <class T, class Offset>
struct Tiles {
    const Offset* row_ptr;
    const std::int32_t* col_idx;
    const T* values;
    std::int64_t nnz;
    bool aligned;  ///< columns and values start at 16-byte boundaries
    const TileStart* starts;
    T* partials;  ///< sum of the piece before each cut; empty between launches
};

/// Pieces of rows up to this length are summed by few lanes each, all at once; what is longer by whole warps, so that one
/// long row does not keep the block waiting.
__device__ __forceinline__ int longest_for(int lanes) { return max(32, 16 * lanes); }

template <class T>
struct Scratch {
    alignas(16) T products[capacity + capacity / 16];
    std::uint16_t row_begin[capacity];
    std::uint16_t long_piece[capacity / 32];
    int long_pieces;
    T warp_sums[threads / 32];
    T head;
};

template <class T>
__device__ __forceinline__ void write_row(T alpha, T sum, T beta, T* y)
{
    *y = beta == T{0} ? alpha * sum : alpha * sum + beta * *y;
}

/// One block a tile: all products into shared memory, then the sums of its rows. If `Ones`, there are no values: each is 1.
template <bool Ones, class T, class Offset>
__global__ void __launch_bounds__(threads, tile_tuning.blocks_per_multiprocessor)
    nnz_split_kernel(const Tiles<T, Offset> tiles, T alpha, const T* __restrict__ x, T beta, T* __restrict__ y)
{
    using V = Vector<T>;
    constexpr int loads = tile_tuning.nonzeros_per_thread / V::width;
    __shared__ Scratch<T> scratch;

    const int thread = static_cast<int>(threadIdx.x);
    const TileStart start = tiles.starts[blockIdx.x];
    const TileStart stop = tiles.starts[blockIdx.x + 1];
    const std::int64_t base = start.nonzero / tile_tuning.alignment * tile_tuning.alignment;
    const int first = static_cast<int>(start.nonzero - base);  // the tile is [first, end) counted from base
    const int end = static_cast<int>(stop.nonzero - base);
    const int rows = static_cast<int>(stop.row - start.row);  // that end here
    const bool inside_row = rows == 0;

    // In flight together with the matrix: most tiles end at most one row a thread.
    const Offset* row_ptr = tiles.row_ptr + start.row;
    Offset row_begin = 0;
    if (thread <= rows) {
        row_begin = __ldg(row_ptr + thread);
    }

    T own = 0;
    if (tiles.aligned && base + (end + V::width - 1) / V::width * V::width <= tiles.nnz) {
        const auto* columns = reinterpret_cast<const typename V::Columns*>(tiles.col_idx + base);
        const auto* values = reinterpret_cast<const typename V::Values*>(tiles.values + base);
        typename V::Columns c[loads];
        typename V::Values v[loads];
#pragma unroll
        for (int k = 0; k < loads; ++k) {
            const int vector = k * threads + thread;
            c[k] = {};
            v[k] = {};
            if (vector * V::width < end) {
                // Each is used once: evicted first, so that x stays in the caches.
                c[k] = __ldcs(columns + vector);
                if constexpr (!Ones) {
                    v[k] = __ldcs(values + vector);
                }
            }
        }
        T gathered[loads][V::width];
#pragma unroll
        for (int k = 0; k < loads; ++k) {
#pragma unroll
            for (int j = 0; j < V::width; ++j) {
                const int i = (k * threads + thread) * V::width + j;
                gathered[k][j] = i >= first && i < end ? __ldg(x + element(c[k], j)) : T{0};
            }
        }
#pragma unroll
        for (int k = 0; k < loads; ++k) {
            T product[V::width];
#pragma unroll
            for (int j = 0; j < V::width; ++j) {
                const int i = (k * threads + thread) * V::width + j;
                product[j] = Ones ? gathered[k][j] : i >= first && i < end ? element(v[k], j) * gathered[k][j] : T{0};
                own += product[j];
            }
            *reinterpret_cast<typename V::Values*>(scratch.products + place<T>((k * threads + thread) * V::width)) =
                make_vector(product);
        }
    } else {
        // The last tile, whose last vector may end behind the arrays, and arrays that are not aligned.
        for (int i = first + thread; i < end; i += threads) {
            const T gathered = __ldg(x + __ldcs(tiles.col_idx + base + i));
            const T product = Ones ? gathered : __ldcs(tiles.values + base + i) * gathered;
            scratch.products[place<T>(i)] = product;
            own += product;
        }
    }

    if (inside_row) {
        if (stop.cut >= 0) {
            const T sum = cuda::block_sum<threads>(own, scratch.warp_sums);
            if (thread == 0) {
                pieces::store(tiles.partials + stop.cut, sum);
            }
        }
        return;
    }

    // Pieces of rows: `rows` that end here (the first may have begun in an earlier tile), and one more that does not end here.
    if (thread <= rows) {
        scratch.row_begin[thread] =
            static_cast<std::uint16_t>(thread == 0 ? first : static_cast<int>(row_begin - base));
    }
    for (int r = thread + threads; r <= rows; r += threads) {
        scratch.row_begin[r] = static_cast<std::uint16_t>(__ldg(row_ptr + r) - base);
    }
    if (thread == 0) {
        scratch.row_begin[rows + 1] = static_cast<std::uint16_t>(end);
        scratch.long_pieces = 0;
    }
    __syncthreads();

    const int pieces = rows + (stop.cut >= 0 ? 1 : 0);
    const int shift = pieces >= threads ? 0 : min(31 - __clz(threads / pieces), 5);
    const int lanes = 1 << shift;
    const int lane = thread & (lanes - 1);
    const auto finish = [&](int piece, T sum) {
        if (piece == 0 && start.cut >= 0) {
            scratch.head = sum;
        } else if (piece == rows) {
            pieces::store(tiles.partials + stop.cut, sum);
        } else {
            write_row(alpha, sum, beta, y + start.row + piece);
        }
    };
    for (int group = 0; group < pieces; group += threads >> shift) {
        const int piece = group + (thread >> shift);
        bool here = false;
        T sum = 0;
        if (piece < pieces) {
            const int piece_begin = scratch.row_begin[piece];
            const int piece_end = scratch.row_begin[piece + 1];
            here = piece_end - piece_begin <= longest_for(lanes);
            if (here) {
                for (int i = piece_begin + lane; i < piece_end; i += lanes) {
                    sum += scratch.products[place<T>(i)];
                }
            } else if (lane == 0) {
                scratch.long_piece[atomicAdd(&scratch.long_pieces, 1)] = static_cast<std::uint16_t>(piece);
            }
        }
        sum = cuda::group_sum(sum, lanes);
        if (here && lane == 0) {
            finish(piece, sum);
        }
    }
    __syncthreads();
    for (int k = thread / 32; k < scratch.long_pieces; k += threads / 32) {
        const int piece = scratch.long_piece[k];
        const int piece_end = scratch.row_begin[piece + 1];
        T sum = 0;
        for (int i = scratch.row_begin[piece] + thread % 32; i < piece_end; i += 32) {
            sum += scratch.products[place<T>(i)];
        }
        sum = cuda::group_sum(sum, 32);
        if (thread % 32 == 0) {
            finish(piece, sum);
        }
    }
    if (start.cut >= 0) {
        // The sums of the pieces before, in an order that depends on their number alone.
        __syncthreads();
        if (thread < 32) {
            const T sum = cuda::group_sum(
                pieces::take_share(tiles.partials + (start.cut - start.pieces + 1), start.pieces, thread), 32);
            if (thread == 0) {
                write_row(alpha, sum + scratch.head, beta, y + start.row);
            }
        }
    }
}

template <class Offset>
__global__ void tile_starts_kernel(const Offset* row_ptr, std::int64_t rows, std::int64_t nnz, int items, int whole_row,
                                   std::int64_t tiles, TileStart* starts, unsigned* cuts)
{
    const std::int64_t tile = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (tile <= tiles) {
        const TileStart start = tile_start(tile * items, rows, nnz, row_ptr, whole_row);
        starts[tile] = start;
        if (start.cut >= 0) {
            atomicAdd(cuts, 1u);
        }
    }
}

template <bool Ones, class T, class Offset>
class NnzSplit final : public SpmvOperator<T> {
public:
    NnzSplit(const CsrShard<T>& shard, const Offset* row_ptr, const RowStatistics& rows, const Context& context)
        : shard_(shard), row_ptr_(row_ptr)
    {
        const int whole_row = static_cast<int>(std::min<std::int64_t>(rows.longest_row, tile_tuning.longest_whole_row));
        const int items = tile_items(shard.rows, shard.nnz,
                                     std::int64_t{context.compute_units} * tile_tuning.blocks_per_multiprocessor,
                                     tile_tuning.items(whole_row));
        tiles_ = tile_count(shard.rows, shard.nnz, items);
        if (tiles_ == 0) {
            return;
        }
        if (tiles_ >= std::numeric_limits<std::int32_t>::max()) {
            throw Error(ErrorCode::usage, "csr-nnz-split: " + std::to_string(shard.rows) + " rows and " +
                                              std::to_string(shard.nnz) + " nonzeros are more than one launch takes");
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        starts_ = DeviceArray<TileStart>(*context.memory, static_cast<std::size_t>(tiles_) + 1);
        const DeviceArray<unsigned> count(*context.memory, 1);
        RMSP_CUDA_CHECK(cudaMemsetAsync(count.data(), 0, sizeof(unsigned), stream));
        tile_starts_kernel<<<static_cast<unsigned>(tiles_ / threads + 1), threads, 0, stream>>>(
            row_ptr_, shard.rows, shard.nnz, items, whole_row, tiles_, starts_.data(), count.data());
        RMSP_CUDA_CHECK_LAUNCH("tile_starts_kernel");
        unsigned cuts = 0;
        RMSP_CUDA_CHECK(cudaMemcpyAsync(&cuts, count.data(), sizeof cuts, cudaMemcpyDeviceToHost, stream));
        RMSP_CUDA_CHECK(cudaStreamSynchronize(stream));
        if (cuts > 0) {
            partials_ = pieces::make_slots<T>(starts_, context);
        }
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& context) override
    {
        if (tiles_ == 0) {
            return;
        }
        constexpr std::uintptr_t vector_bytes = 16;
        const bool aligned = reinterpret_cast<std::uintptr_t>(shard_.col_idx) % vector_bytes == 0 &&
                             reinterpret_cast<std::uintptr_t>(shard_.values) % vector_bytes == 0;
        const Tiles<T, Offset> tiles{row_ptr_, shard_.col_idx, shard_.values,   shard_.nnz,
                                     aligned,  starts_.data(), partials_.data()};
        nnz_split_kernel<Ones>
            <<<static_cast<unsigned>(tiles_), threads, 0, static_cast<cudaStream_t>(context.stream)>>>(tiles, alpha, x,
                                                                                                       beta, y);
        RMSP_CUDA_CHECK_LAUNCH("csr-nnz-split");
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(starts_.size() * sizeof(TileStart) + partials_.size() * sizeof(T));
    }

private:
    CsrShard<T> shard_;
    const Offset* row_ptr_;
    std::int64_t tiles_ = 0;
    DeviceArray<TileStart> starts_;  ///< tiles_ + 1
    DeviceArray<T> partials_;
};

template <bool Ones, class T>
std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard, const RowStatistics& rows, const Context& context)
{
    return shard.row_ptr.visit([&]<class Offset>(const Offset* row_ptr) -> std::unique_ptr<SpmvOperator<T>> {
        return std::make_unique<NnzSplit<Ones, T, Offset>>(shard, row_ptr, rows, context);
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
    rows.longest_row = tile_tuning.longest_whole_row;  // there may be such
    return prepare<true>(shard, rows, context);
}

template std::unique_ptr<SpmvOperator<float>> prepare_nnz_split(const CsrShard<float>&, const RowStatistics&,
                                                                const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_nnz_split(const CsrShard<double>&, const RowStatistics&,
                                                                 const Context&);

template std::unique_ptr<SpmvOperator<float>> prepare_gathered_sums(const CsrShard<float>&, const Context&);
template std::unique_ptr<SpmvOperator<double>> prepare_gathered_sums(const CsrShard<double>&, const Context&);

}  // namespace rmsp::kernels
