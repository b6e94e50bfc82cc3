#include <algorithm>
#include <limits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/for_each_word.cuh>
#include <kernels/spgemm/structure.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Ascending order by index over n words in shared memory, a power of two (Batcher's bitonic sort), by a block.
template <int Group>
__device__ __forceinline__ void sort_words(Word* words, int n, int thread)
{
    for (int size = 2; size <= n; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            for (int i = thread; i < n / 2; i += Group) {
                const int low = 2 * i - (i & (stride - 1));
                const Word a = words[low];
                const Word b = words[low + stride];
                const bool up = (low & size) == 0;
                if ((a.index > b.index) == up) {
                    words[low] = b;
                    words[low + stride] = a;
                }
            }
            __syncthreads();
        }
    }
}

/// Rows of few words far apart: a block collects them in a hash table in shared memory, of twice as many slots as the
/// row has pairs at most, and sorts what it found. A bitmap over so wide a span would be a multiprocessor's whole
/// memory, for one row at a time.
template <int Group, bool Write>
__global__ void __launch_bounds__(Group)
    hash_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count,
                int capacity)
{
    constexpr std::int32_t free_slot = -1;
    constexpr int warps = Group / 32;
    extern __shared__ int4 table[];
    __shared__ int warp_totals[warps];
    __shared__ int found;
    __shared__ long long shared_place;
    const int slots = 2 * capacity;
    Word* const words = reinterpret_cast<Word*>(table);
    auto* const key = reinterpret_cast<std::int32_t*>(words + capacity);
    auto* const mask = reinterpret_cast<std::uint32_t*>(key + slots);
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    Slab slab;
    let_next_begin();
    for (std::int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        const std::int64_t row = list[index];
        if (is_stored<Write>(job, row)) {
            continue;
        }
        for (int i = thread; i < slots; i += Group) {
            key[i] = free_slot;
            mask[i] = 0;
        }
        if (thread == 0) {
            found = 0;
        }
        __syncthreads();
        for_each_word<Group>(job, row, job.bounds[row].words, thread, [&](std::int32_t word, std::uint32_t bits) {
            unsigned slot = __umulhi(static_cast<unsigned>(word) * 0x9e3779b1u, static_cast<unsigned>(slots));
            while (true) {
                const std::int32_t other = atomicCAS(key + slot, free_slot, word);
                if (other == free_slot || other == word) {
                    atomicOr(mask + slot, bits);
                    return;
                }
                slot = (slot + 1) & static_cast<unsigned>(slots - 1);
            }
        });
        __syncthreads();
        int entries = 0;
        for (int i = thread; i < slots; i += Group) {
            const std::int32_t word = key[i];
            const unsigned taken = __ballot_sync(whole_warp, word != free_slot);
            int at = 0;
            if (lane == 0 && taken != 0) {
                at = atomicAdd(&found, __popc(taken));
            }
            at = __shfl_sync(whole_warp, at, 0);
            if (word != free_slot) {
                words[at + __popc(taken & ((1u << lane) - 1u))] = {word, mask[i]};
                entries += __popc(mask[i]);
            }
        }
        __syncthreads();
        const int used = found;
        int n = 1;
        while (n < used) {
            n *= 2;
        }
        for (int i = used + thread; i < n; i += Group) {
            words[i] = {std::numeric_limits<std::int32_t>::max(), 0};
        }
        __syncthreads();
        sort_words<Group>(words, n, thread);
        const int group = job.groups[row];
        if constexpr (Write) {
            std::int32_t* to = job.col_idx + job.row_ptr[row];
            const std::int64_t row_entries = job.row_ptr[row + 1] - job.row_ptr[row];
            for (int first = 0; first < used; first += Group) {
                const Word own = first + thread < used ? words[first + thread] : Word{0, 0};
                int through = __popc(own.mask);
#pragma unroll
                for (int d = 1; d < 32; d *= 2) {
                    const int left = __shfl_up_sync(whole_warp, through, d);
                    through += lane >= d ? left : 0;
                }
                if (lane == 31) {
                    warp_totals[warp] = through;
                }
                __syncthreads();
                int total = 0;
                for (int w = 0; w < warps; ++w) {
                    through += w < warp ? warp_totals[w] : 0;
                    total += warp_totals[w];
                }
                std::int32_t* place = to + (through - __popc(own.mask));
                for (std::uint32_t rest = own.mask; rest != 0; rest &= rest - 1, ++place) {
                    for (int i = 0; i < group; ++i) {
                        place[i * row_entries] = own.index * 32 + __ffs(static_cast<int>(rest)) - 1;
                    }
                }
                to += total;
                __syncthreads();
            }
        } else {
            const int of_warp = __reduce_add_sync(whole_warp, entries);
            if (lane == 0) {
                warp_totals[warp] = of_warp;
            }
            if (warp == 0) {
                const long long place = take(job, slab, used, lane);
                if (lane == 0) {
                    shared_place = place;
                    job.stored[row] = {place, used};
                }
            }
            __syncthreads();
            if (thread < group) {
                int total = 0;
                for (int w = 0; w < warps; ++w) {
                    total += warp_totals[w];
                }
                job.row_nnz[row + thread] = total;
            }
            if (const long long place = shared_place; place >= 0) {
                for (int i = thread; i < used; i += Group) {
                    job.pool[place + i] = words[i];
                }
            }
            __syncthreads();
        }
    }
    wait_for_previous();
}

template <bool Write>
void launch_hash(StructureJob job, StructureClass c, const std::int32_t* list, std::int64_t count, Overlap overlap,
                 cudaStream_t stream)
{
    const int capacity = structure_capacity(c);
    const Shape shape = structure_shape(c, capacity);
    const std::int64_t blocks = std::min(count, structure_blocks_a_unit * std::max<std::int64_t>(job.units, 1));
    job.rows_a_slab = rows_a_slab(count, blocks);
    const auto kernel = shape.threads == 128   ? hash_kernel<128, Write>
                        : shape.threads == 256 ? hash_kernel<256, Write>
                                               : hash_kernel<512, Write>;
    launch_overlapping(kernel, blocks, shape.threads, static_cast<unsigned>(shape.bytes), overlap, stream, job, list,
                       count, capacity);
}

}  // namespace

void count_structure_hash(StructureJob job, StructureClass c, const std::int32_t* list, std::int64_t count,
                          Overlap overlap, cudaStream_t stream)
{
    launch_hash<false>(job, c, list, count, overlap, stream);
}

void write_structure_hash(StructureJob job, StructureClass c, const std::int32_t* list, std::int64_t count,
                          Overlap overlap, cudaStream_t stream)
{
    launch_hash<true>(job, c, list, count, overlap, stream);
}

}  // namespace rmsp::kernels::spgemm
