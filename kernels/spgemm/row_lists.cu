#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int list_threads = 256;

/// Whether all threads of a warp, which all take part, have the same class.
__device__ __forceinline__ bool is_same_class(int c)
{
    int same = 0;
    __match_all_sync(whole_warp, c, &same);
    return same != 0;
}

/// Adds the rows of each class of this block to `total`. All threads take part; c < 0: none.
__device__ __forceinline__ void count_classes(int c, unsigned* shared, unsigned* total)
{
    if (threadIdx.x < classes) {
        shared[threadIdx.x] = 0;
    }
    __syncthreads();
    if (c >= 0) {
        atomicAdd(shared + c, 1u);
    }
    __syncthreads();
    if (threadIdx.x < classes && shared[threadIdx.x] > 0) {
        atomicAdd(total + threadIdx.x, shared[threadIdx.x]);
    }
}

/// Puts the row of this thread into the list of its class. All threads take part; c < 0: none.
__device__ __forceinline__ void list_row(int c, std::int32_t row, const unsigned* total, unsigned* used,
                                         unsigned* shared, std::int32_t* list)
{
    if (threadIdx.x < classes) {
        shared[threadIdx.x] = 0;
    }
    __syncthreads();
    // Rows of a warp are mostly of one class: then it asks for room once.
    const unsigned lane = threadIdx.x % 32;
    const bool together = is_same_class(c);
    unsigned place = 0;
    if (c >= 0 && (!together || lane == 0)) {
        place = atomicAdd(shared + c, together ? 32u : 1u);
    }
    if (together) {
        place = __shfl_sync(whole_warp, place, 0) + lane;
    }
    __syncthreads();
    if (threadIdx.x < classes) {
        unsigned base = 0;
#pragma unroll 8
        for (int i = 0; i < classes; ++i) {
            base += i < static_cast<int>(threadIdx.x) ? __ldg(total + i) : 0u;
        }
        const unsigned own = shared[threadIdx.x];
        shared[threadIdx.x] = base + (own > 0 ? atomicAdd(used + threadIdx.x, own) : 0u);
    }
    __syncthreads();
    if (c >= 0) {
        list[shared[c] + place] = row;
    }
}

__global__ void __launch_bounds__(list_threads)
    list_structure_kernel(const RowBounds* __restrict__ bounds, const std::uint8_t* __restrict__ groups,
                          std::int64_t rows, std::int64_t shared_limit, int few, Counters* counters,
                          std::int32_t* __restrict__ list)
{
    __shared__ unsigned places[classes];
    const std::int64_t row = std::int64_t{blockIdx.x} * list_threads + threadIdx.x;
    few = few_products(counters->twins, rows, few);
    const int c =
        row < rows && groups[row] > 0 ? static_cast<int>(structure_class(bounds[row], shared_limit, few)) : -1;
    list_row(c, static_cast<std::int32_t>(row), counters->structure, counters->structure_used, places, list);
}

__device__ __forceinline__ int numeric_class_of(const ScanJob& job, std::int64_t row)
{
    return row < job.rows && job.groups[row] > 0
               ? static_cast<int>(numeric_class(job.bounds[row], job.a_row_ptr[row + 1] - job.a_row_ptr[row],
                                                job.stored[row].count(), job.row_nnz[row], job.value_bytes, job.twins,
                                                job.accumulator, job.shared_limit,
                                                few_products(job.counters->twins, job.rows, job.few), job.limits))
               : -1;
}

constexpr unsigned tiles_a_group = 256;

/// Entries of each tile of rows, and rows in each class.
__global__ void __launch_bounds__(list_threads) tile_totals_kernel(ScanJob job)
{
    __shared__ unsigned histogram[classes];
    __shared__ long long sums[list_threads / 32];
    const std::int64_t row = std::int64_t{blockIdx.x} * list_threads + threadIdx.x;
    const long long own = row < job.rows ? job.row_nnz[row] : 0;
    const int c = numeric_class_of(job, row);
    __shared__ unsigned work[2][classes];
    if (threadIdx.x < 2 * classes) {
        work[threadIdx.x / classes][threadIdx.x % classes] = 0;
    }
    count_classes(c, histogram, job.counters->numeric);
    // Of rows for warps, which are short enough for 32 bits.
    unsigned products = c >= 0 ? static_cast<unsigned>(job.bounds[row].products) : 0u;
    unsigned a_entries = c >= 0 ? static_cast<unsigned>(job.a_row_ptr[row + 1] - job.a_row_ptr[row]) : 0u;
    const bool together = is_same_class(c);
    if (together) {
        products = __reduce_add_sync(whole_warp, products);
        a_entries = __reduce_add_sync(whole_warp, a_entries);
    }
    if (c >= 0) {
        if (!together || threadIdx.x % 32 == 0) {
            atomicAdd(&work[0][c], products);
            atomicAdd(&work[1][c], a_entries);
        }
        if (const auto its = static_cast<NumericClass>(c); is_in_parts(its)) {
            const PartCut cut = part_cut(job.bounds[row].span_words(), job.stored[row].count(), job.row_nnz[row],
                                         job.value_bytes, is_packed(its));
            atomicMax(&job.counters->most_parts, cut.parts(numeric_capacity(its)));
        }
    }
    __syncthreads();
    if (threadIdx.x < classes && work[0][threadIdx.x] > 0) {
        atomicAdd(job.counters->products_of + threadIdx.x, static_cast<unsigned long long>(work[0][threadIdx.x]));
        atomicAdd(job.counters->a_entries_of + threadIdx.x, static_cast<unsigned long long>(work[1][threadIdx.x]));
    }
    const long long total = cuda::block_sum<list_threads>(own, sums);
    if (threadIdx.x == 0) {
        job.tiles[blockIdx.x] = total;
        atomicAdd(reinterpret_cast<unsigned long long*>(job.tile_groups + blockIdx.x / tiles_a_group),
                  static_cast<unsigned long long>(total));
    }
}

/// row_ptr, and the lists of rows. Each block adds the totals before it itself: of groups of tiles, and of tiles of its
/// group.
__global__ void __launch_bounds__(list_threads) scan_kernel(ScanJob job)
{
    __shared__ unsigned places[classes];
    __shared__ long long sums[list_threads / 32];
    __shared__ long long start;
    long long before = 0;
    const unsigned group = blockIdx.x / tiles_a_group;
    for (unsigned i = threadIdx.x; i < group; i += list_threads) {
        before += job.tile_groups[i];
    }
    for (unsigned i = group * tiles_a_group + threadIdx.x; i < blockIdx.x; i += list_threads) {
        before += job.tiles[i];
    }
    before = cuda::block_sum<list_threads>(before, sums);
    if (threadIdx.x == 0) {
        start = before;
    }
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t row = std::int64_t{blockIdx.x} * list_threads + threadIdx.x;
    const long long own = row < job.rows ? job.row_nnz[row] : 0;
    long long through = own;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const long long left = __shfl_up_sync(whole_warp, through, d);
        through += lane >= d ? left : 0;
    }
    if (lane == 31) {
        sums[warp] = through;
    }
    __syncthreads();
    long long total = 0;
    for (int w = 0; w < list_threads / 32; ++w) {
        through += w < warp ? sums[w] : 0;
        total += sums[w];
    }
    if (row < job.rows) {
        job.row_ptr[row + 1] = start + through;
    }
    list_row(numeric_class_of(job, row), static_cast<std::int32_t>(row), job.counters->numeric,
             job.counters->numeric_used, places, job.list);
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            job.row_ptr[0] = 0;
        }
        if (blockIdx.x + 1 == gridDim.x) {
            job.counters->nnz = start + total;
        }
    }
}

}  // namespace

void list_structure(const RowBounds* bounds, const std::uint8_t* groups, std::int64_t rows, std::int64_t shared_limit,
                    int few, Counters* counters, std::int32_t* list, cudaStream_t stream)
{
    list_structure_kernel<<<blocks_for(rows, list_threads), list_threads, 0, stream>>>(
        bounds, groups, rows, shared_limit, few, counters, list);
    RMSP_CUDA_CHECK_LAUNCH("list_structure_kernel");
}

std::int64_t scan_tiles(std::int64_t rows) { return (rows + list_threads - 1) / list_threads; }
std::int64_t scan_groups(std::int64_t rows) { return (scan_tiles(rows) + tiles_a_group - 1) / tiles_a_group; }

void scan_rows(const ScanJob& job, cudaStream_t stream)
{
    const auto tiles = static_cast<unsigned>(scan_tiles(job.rows));
    tile_totals_kernel<<<tiles, list_threads, 0, stream>>>(job);
    RMSP_CUDA_CHECK_LAUNCH("tile_totals_kernel");
    scan_kernel<<<tiles, list_threads, 0, stream>>>(job);
    RMSP_CUDA_CHECK_LAUNCH("scan_kernel");
}

}  // namespace rmsp::kernels::spgemm
