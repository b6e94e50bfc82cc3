#include <kernels/steps/convert/convert.hpp>

#include <bit>
#include <limits>
#include <string>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_primitives.cuh>
#include <kernels/spmv/common/search.hpp>

namespace rmsp::kernels {
namespace cuda::conversion {
namespace {

constexpr int threads = 256;

unsigned blocks_for(std::int64_t n)
{
    const std::int64_t blocks = (n + threads - 1) / threads;
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage, "conversion: " + std::to_string(n) + " items are more than one launch takes");
    }
    return static_cast<unsigned>(blocks);
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

__device__ __forceinline__ std::int64_t global_thread() { return std::int64_t{blockIdx.x} * threads + threadIdx.x; }

template <class Offset>
__global__ void iota_kernel(std::int64_t n, Offset* __restrict__ out)
{
    const std::int64_t i = global_thread();
    if (i < n) {
        out[i] = static_cast<Offset>(i);
    }
}

/// A search for each line, so that a desert of empty ones costs no thread more than another.
template <class Offset>
__global__ void pointers_kernel(std::int64_t lines, std::int64_t first_line, std::int64_t nnz,
                                const std::int32_t* __restrict__ line_of, Offset* __restrict__ pointers)
{
    const std::int64_t line = global_thread();
    if (line <= lines) {
        pointers[line] = static_cast<Offset>(first_not_below(line_of, nnz, first_line + line));
    }
}

template <class Item, class Offset>
__global__ void take_kernel(std::int64_t n, const Offset* __restrict__ from, const Item* __restrict__ in,
                            Item* __restrict__ out)
{
    const std::int64_t i = global_thread();
    if (i < n) {
        out[i] = in[from[i]];
    }
}

/// The line of each entry. A warp has 32 lines, whose ends its threads hold, and goes through their entries side by
/// side, however they are shared out among the lines.
template <class Pointer>
__global__ void lines_kernel(std::int64_t first_line, std::int64_t lines, const Pointer* __restrict__ pointers,
                             std::int32_t* __restrict__ out)
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t line = global_thread();
    const std::int64_t first = line - lane;
    if (first >= lines) {
        return;
    }
    const std::int64_t begin = pointers[first];
    const std::int64_t end = pointers[line < lines ? line + 1 : lines];
    const std::int64_t last = __shfl_sync(~0U, end, 31);
    for (std::int64_t k = begin + lane; k - lane < last; k += 32) {
        // The first line that ends behind entry k.
        int at = 0;
        for (int step = 16; step > 0; step /= 2) {
            at += __shfl_sync(~0U, end, at + step - 1) <= k ? step : 0;
        }
        if (k < last) {
            out[k] = static_cast<std::int32_t>(first_line + first + at);
        }
    }
}

/// Threads of a row in join_kernel().
constexpr int joiners = 8;

template <class Item, class Offset>
__global__ void join_kernel(std::int64_t rows, const RowPieces<Item, Offset>* __restrict__ pieces, int count,
                            Item* __restrict__ out)
{
    const std::int64_t row = global_thread() / joiners;
    const int lane = static_cast<int>(threadIdx.x) % joiners;
    if (row >= rows) {
        return;
    }
    std::int64_t to = 0;
    for (int p = 0; p < count; ++p) {
        to += pieces[p].pointers[row] - pieces[p].pointers[0];
    }
    for (int p = 0; p < count; ++p) {
        const RowPieces<Item, Offset> piece = pieces[p];
        const std::int64_t begin = piece.pointers[row] - piece.pointers[0];
        const std::int64_t size = piece.pointers[row + 1] - piece.pointers[row];
        for (std::int64_t k = lane; k < size; k += joiners) {
            out[to + k] = piece.items[begin + k];
        }
        to += size;
    }
}

template <class Item, class Offset>
void join_rows(std::int64_t rows, const RowPieces<Item, Offset>* pieces, int count, Item* out, const Context& context)
{
    if (rows > 0) {
        join_kernel<<<blocks_for(rows * joiners), threads, 0, stream_of(context)>>>(rows, pieces, count, out);
        RMSP_CUDA_CHECK_LAUNCH("join_kernel");
    }
}

template <class Offset, class Pointer>
__global__ void add_pointers_kernel(std::int64_t rows, const Offset* const* __restrict__ pointers, int count,
                                    Pointer* __restrict__ out)
{
    const std::int64_t row = global_thread();
    if (row <= rows) {
        Pointer sum = 0;
        for (int p = 0; p < count; ++p) {
            sum += static_cast<Pointer>(pointers[p][row] - pointers[p][0]);
        }
        out[row] = sum;
    }
}

template <class Offset>
void add_pointers(std::int64_t rows, const Offset* const* pointers, int count, IndexType type, void* out,
                  const Context& context)
{
    const auto launch = [&](auto* to) {
        add_pointers_kernel<<<blocks_for(rows + 1), threads, 0, stream_of(context)>>>(rows, pointers, count, to);
    };
    if (type == IndexType::i32) {
        launch(static_cast<std::int32_t*>(out));
    } else {
        launch(static_cast<std::int64_t*>(out));
    }
    RMSP_CUDA_CHECK_LAUNCH("add_pointers_kernel");
}

template <class Offset>
void point_at_lines(std::int64_t nnz, const std::int32_t* line_of, std::int64_t first_line, std::int64_t lines,
                    Offset* pointers, const Context& context)
{
    pointers_kernel<<<blocks_for(lines + 1), threads, 0, stream_of(context)>>>(lines, first_line, nnz, line_of,
                                                                               pointers);
    RMSP_CUDA_CHECK_LAUNCH("pointers_kernel");
}

template <class Offset>
LineOrder<Offset> sort_by_line(std::int64_t nnz, const std::int32_t* line_of, std::int64_t first_line,
                               std::int64_t lines, const Context& context)
{
    const auto n = static_cast<std::size_t>(nnz);
    LineOrder<Offset> order{DeviceArray<Offset>(*context.memory, n),
                            DeviceArray<Offset>(*context.memory, static_cast<std::size_t>(lines) + 1)};
    const DeviceArray<std::int32_t> sorted(*context.memory, n);
    if (nnz > 0) {
        const cudaStream_t stream = stream_of(context);
        const DeviceArray<Offset> positions(*context.memory, n);
        iota_kernel<<<blocks_for(nnz), threads, 0, stream>>>(nnz, positions.data());
        RMSP_CUDA_CHECK_LAUNCH("iota_kernel");
        const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(first_line + lines - 1) | 1));
        sort_pairs(line_of, sorted.data(), positions.data(), order.from.data(), nnz, bits, context);
    }
    point_at_lines(nnz, sorted.data(), first_line, lines, order.pointers.data(), context);
    return order;
}

template <class Item, class Offset>
void take_from(std::int64_t n, const Offset* from, const Item* in, Item* out, const Context& context)
{
    if (n > 0) {
        take_kernel<<<blocks_for(n), threads, 0, stream_of(context)>>>(n, from, in, out);
        RMSP_CUDA_CHECK_LAUNCH("take_kernel");
    }
}

template <class Offset>
void find_lines(std::int64_t nnz, const Offset* from, std::int64_t first_line, std::int64_t lines, IndexView pointers,
                std::int32_t* out, const Context& context)
{
    if (nnz == 0) {
        return;
    }
    const DeviceArray<std::int32_t> in_order(*context.memory, from != nullptr ? static_cast<std::size_t>(nnz) : 0);
    std::int32_t* const lines_of = from != nullptr ? in_order.data() : out;
    pointers.visit([&](const auto* p) {
        lines_kernel<<<blocks_for(lines), threads, 0, stream_of(context)>>>(first_line, lines, p, lines_of);
    });
    RMSP_CUDA_CHECK_LAUNCH("lines_kernel");
    if (from != nullptr) {
        take_from<std::int32_t, Offset>(nnz, from, in_order.data(), out, context);
    }
}

}  // namespace
}  // namespace cuda::conversion

RMSP_INDEX_ROW(Conversion, cuda, .sort_by_line = cuda::conversion::sort_by_line<T>,
               .point_at_lines = cuda::conversion::point_at_lines<T>, .find_lines = cuda::conversion::find_lines<T>,
               .add_pointers = cuda::conversion::add_pointers<T>)

template <class Item, class Offset>
const Taking<Item, Offset>& Taking<Item, Offset>::cuda()
{
    static constexpr Taking row{.take_from = cuda::conversion::take_from<Item, Offset>,
                                .join_rows = cuda::conversion::join_rows<Item, Offset>};
    return row;
}
#define RMSP_INSTANTIATE(Item)                                                     \
    template const Taking<Item, std::int32_t>& Taking<Item, std::int32_t>::cuda(); \
    template const Taking<Item, std::int64_t>& Taking<Item, std::int64_t>::cuda();
RMSP_INSTANTIATE(std::int32_t)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
