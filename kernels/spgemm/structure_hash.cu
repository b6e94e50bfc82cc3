#include <algorithm>
#include <limits>

#include <kernels/cuda_block.cuh>
#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/for_each_word.cuh>
#include <kernels/spgemm/sort.cuh>
#include <kernels/spgemm/structure.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr std::int32_t free_slot = -1;

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

/// Bits of 32 words side by side that a row has, and how many words it has before them: where each word comes in the
/// row's order, without sorting.
using WordRank = uint2;

/// ranks[i].y from ranks[i].x, for n of them in shared memory, by a block; returns how many words there are. `totals`
/// has a number for each warp.
template <int Group>
__device__ __forceinline__ int rank_words(WordRank* ranks, int n, int* totals, int thread)
{
    constexpr int warps = Group / 32;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int share = ((n + 31) / 32 + warps - 1) / warps * 32;
    const int begin = min(warp * share, n);
    const int end = min(begin + share, n);
    int own = 0;
    for (int i = begin + lane; i < end; i += 32) {
        own += __popc(ranks[i].x);
    }
    own = __reduce_add_sync(whole_warp, own);
    if (lane == 0) {
        totals[warp] = own;
    }
    __syncthreads();
    int before = 0;
    int all = 0;
    for (int w = 0; w < warps; ++w) {
        const int other = totals[w];
        before += w < warp ? other : 0;
        all += other;
    }
    for (int i = begin; i < end; i += 32) {
        const int has = i + lane < end ? __popc(ranks[i + lane].x) : 0;
        const int through = sum_through<32>(has, lane);
        if (i + lane < end) {
            ranks[i + lane].y = static_cast<unsigned>(before + through - has);
        }
        before += __shfl_sync(whole_warp, through, 31);
    }
    __syncthreads();
    return all;
}

/// Puts the words that are in the table into `words` and sorts them, by a block; returns how many there are. There is
/// room for the next power of two.
template <int Group>
__device__ __forceinline__ int sort_found(const std::int32_t* key, const std::uint32_t* mask, int slots, Word* words,
                                          int* found, int thread)
{
    const int lane = thread % 32;
    for (int i = thread; i < slots; i += Group) {
        const std::int32_t word = key[i];
        const unsigned taken = __ballot_sync(whole_warp, word != free_slot);
        int at = 0;
        if (lane == 0 && taken != 0) {
            at = atomicAdd(found, __popc(taken));
        }
        at = __shfl_sync(whole_warp, at, 0);
        if (word != free_slot) {
            words[at + __popc(taken & ((1u << lane) - 1u))] = {word, mask[i]};
        }
    }
    __syncthreads();
    const int used = *found;
    int n = 1;
    while (n < used) {
        n *= 2;
    }
    for (int i = used + thread; i < n; i += Group) {
        words[i] = {std::numeric_limits<std::int32_t>::max(), 0};
    }
    __syncthreads();
    sort_words<Group>(words, n, thread);
    return used;
}

/// Rows of few words far apart: a block collects them in a hash table in shared memory, of twice as many slots as the
/// row has pairs at most. A bitmap over so wide a span would be a multiprocessor's whole memory, for one row at a time.
/// `ranks`: room for bits of the span's words, 32 each; 0: the words are sorted.
template <int Group, bool Write>
__global__ void __launch_bounds__(Group)
    hash_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count,
                int capacity, int ranks)
{
    constexpr int warps = Group / 32;
    extern __shared__ int4 table[];
    __shared__ int warp_totals[warps];
    __shared__ int found;
    __shared__ long long shared_place;
    const int slots = 2 * capacity;
    auto* const key = reinterpret_cast<std::int32_t*>(table);
    auto* const mask = reinterpret_cast<std::uint32_t*>(key + slots);
    auto* const words = reinterpret_cast<Word*>(mask + slots);
    auto* const rank = reinterpret_cast<WordRank*>(mask + slots);
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
        const RowBounds bounds = job.bounds[row];
        const std::int32_t first = bounds.first >> 5;
        const int ranks_of_row = ranks > 0 ? static_cast<int>((bounds.span_words() + 31) / 32) : 0;
        for (int i = thread; i < slots; i += Group) {
            key[i] = free_slot;
            mask[i] = 0;
        }
        for (int i = thread; i < ranks_of_row; i += Group) {
            rank[i].x = 0;
        }
        if (thread == 0) {
            found = 0;
        }
        __syncthreads();
        for_each_word<Group>(job, row, bounds.words, thread, [&](std::int32_t word, std::uint32_t bits) {
            unsigned slot = __umulhi(static_cast<unsigned>(word) * 0x9e3779b1u, static_cast<unsigned>(slots));
            while (true) {
                const std::int32_t other = atomicCAS(key + slot, free_slot, word);
                if (other == free_slot && ranks > 0) {
                    atomicOr(&rank[(word - first) / 32].x, 1u << ((word - first) % 32));
                }
                if (other == free_slot || other == word) {
                    atomicOr(mask + slot, bits);
                    return;
                }
                slot = (slot + 1) & static_cast<unsigned>(slots - 1);
            }
        });
        __syncthreads();
        const int used = ranks > 0 ? rank_words<Group>(rank, ranks_of_row, warp_totals, thread)
                                   : sort_found<Group>(key, mask, slots, words, &found, thread);
        const int group = job.groups[row];
        if constexpr (Write) {
            std::int32_t* to = job.col_idx + job.row_ptr[row];
            const std::int64_t row_entries = job.row_ptr[row + 1] - job.row_ptr[row];
            for (int from = 0; from < used; from += Group) {
                const Word own = from + thread < used ? words[from + thread] : Word{0, 0};
                int through = sum_through<32>(__popc(own.mask), lane);
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
            if (warp == 0) {
                const long long place = take(job, slab, used, lane);
                if (lane == 0) {
                    shared_place = place;
                    job.stored[row] = {place, used};
                }
            }
            __syncthreads();
            Word* const to = shared_place >= 0 ? job.pool + shared_place : nullptr;
            int entries = 0;
            for (int i = thread; i < (ranks > 0 ? slots : used); i += Group) {
                const Word word = ranks > 0 ? Word{key[i], mask[i]} : words[i];
                if (word.index == free_slot) {
                    continue;
                }
                entries += __popc(word.mask);
                int at = i;
                if (ranks > 0) {
                    const WordRank before = rank[(word.index - first) / 32];
                    at = static_cast<int>(before.y + __popc(before.x & bits_below((word.index - first) % 32)));
                }
                if (to != nullptr) {
                    to[at] = word;
                }
            }
            entries = __reduce_add_sync(whole_warp, entries);
            if (lane == 0) {
                warp_totals[warp] = entries;
            }
            __syncthreads();
            if (thread < group) {
                int total = 0;
                for (int w = 0; w < warps; ++w) {
                    total += warp_totals[w];
                }
                job.row_nnz[row + thread] = total;
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
    const int ranks = Write ? 0 : table_ranks(c, job.widest);
    Shape shape = structure_shape(c, capacity);
    if (ranks > 0) {
        shape.bytes = table_bytes(capacity, ranks);
    }
    const std::int64_t blocks = std::min(count, structure_blocks_a_unit * std::max<std::int64_t>(job.units, 1));
    job.rows_a_slab = rows_a_slab(count, blocks);
    const auto kernel = shape.threads == 128   ? hash_kernel<128, Write>
                        : shape.threads == 256 ? hash_kernel<256, Write>
                                               : hash_kernel<512, Write>;
    launch_overlapping(kernel, blocks, shape.threads, static_cast<unsigned>(shape.bytes), overlap, stream, job, list,
                       count, capacity, ranks);
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
