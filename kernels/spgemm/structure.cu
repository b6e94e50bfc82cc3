#include <algorithm>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/for_each_word.cuh>
#include <kernels/spgemm/sort.cuh>
#include <kernels/spgemm/structure.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int warp_threads = structure_shape(StructureClass::sort32, 32).threads;
constexpr int rows_a_block = warp_threads / 32;

/// Rows with few words: a warp collects them in a hash table of 64 * Keys slots.
template <int Keys, bool Write>
__global__ void __launch_bounds__(warp_threads)
    sort_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count)
{
    constexpr int slots = 64 * Keys;
    constexpr std::int32_t free_slot = -1;
    __shared__ std::int32_t keys[rows_a_block][slots];
    __shared__ std::uint32_t masks[rows_a_block][slots];
    __shared__ __align__(16) std::uint32_t packed_keys[rows_a_block][32 * Keys];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    std::int32_t* const key = keys[warp];
    std::uint32_t* const mask = masks[warp];
    std::uint32_t* const packed = packed_keys[warp];
    Slab slab;
    let_next_begin();
    for (std::int64_t index = std::int64_t{blockIdx.x} * rows_a_block + warp; index < count;
         index += std::int64_t{gridDim.x} * rows_a_block) {
        const std::int64_t row = list[index];
        if (is_stored<Write>(job, row)) {
            continue;
        }
        __syncwarp();
#pragma unroll
        for (int i = lane; i < slots; i += 32) {
            key[i] = free_slot;
            mask[i] = 0;
        }
        __syncwarp();
        const RowBounds bounds = job.bounds[row];
        for_each_word<32>(job, row, bounds.words, lane, [&](std::int32_t word, std::uint32_t bits) {
            unsigned slot = __umulhi(static_cast<unsigned>(word) * 0x9e3779b1u, slots);
            while (true) {
                const std::int32_t found = atomicCAS(key + slot, free_slot, word);
                if (found == free_slot || found == word) {
                    atomicOr(mask + slot, bits);
                    return;
                }
                slot = (slot + 1) & (slots - 1);
            }
        });
        __syncwarp();
        // Distance of the word from the first, and its slot, as one number.
        const std::int32_t first = bounds.first >> 5;
        int used = 0;
        int entries = 0;
#pragma unroll
        for (int i = lane; i < slots; i += 32) {
            const std::int32_t word = key[i];
            const unsigned taken = __ballot_sync(whole_warp, word != free_slot);
            if (word != free_slot) {
                packed[used + __popc(taken & ((1u << lane) - 1u))] =
                    static_cast<std::uint32_t>(word - first) * slots + i;
                entries += __popc(mask[i]);
            }
            used += __popc(taken);
        }
        __syncwarp();
        const int group = job.groups[row];
        Word* to = nullptr;
        Target target{};
        if constexpr (Write) {
            target = {job.col_idx + job.row_ptr[row], job.row_ptr[row + 1] - job.row_ptr[row], group};
        } else {
            entries = __reduce_add_sync(whole_warp, entries);
            const long long place = take(job, slab, used, lane);
            if (lane == 0) {
                job.stored[row] = {place, used};
            }
            if (lane < group) {
                job.row_nnz[row + lane] = entries;
            }
            if (place < 0) {
                continue;
            }
            to = job.pool + place;
        }
        std::uint32_t sorted[Keys];
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            sorted[r] = r * 32 + lane < used ? packed[r * 32 + lane] : 0xffffffffu;
        }
        sort_group<32>(sorted, lane);
        deal_sorted(sorted, packed, lane);
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            const bool in = r * 32 + lane < used;
            const std::uint32_t bits = in ? mask[sorted[r] % slots] : 0u;
            const std::int32_t word = first + static_cast<std::int32_t>(sorted[r] / slots);
            if constexpr (!Write) {
                if (in) {
                    to[r * 32 + lane] = {word, bits};
                }
                continue;
            }
            const int own = __popc(bits);
            int through = own;
#pragma unroll
            for (int d = 1; d < 32; d *= 2) {
                const int left = __shfl_up_sync(whole_warp, through, d);
                through += lane >= d ? left : 0;
            }
            std::int32_t* place = target.to + (through - own);
            for (std::uint32_t rest = bits; rest != 0; rest &= rest - 1, ++place) {
                for (int i = 0; i < target.group; ++i) {
                    place[i * target.entries] = word * 32 + __ffs(static_cast<int>(rest)) - 1;
                }
            }
            target.to += __shfl_sync(whole_warp, through, 31);
        }
    }
    wait_for_previous();
}

template <int Group>
__device__ __forceinline__ void sync_group()
{
    if constexpr (Group == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// Calls f for the words from begin to end of a summary that are not 0, by one warp.
template <class F>
__device__ __forceinline__ void for_each_marked(const std::uint32_t* summary, int begin, int end, int lane, const F& f)
{
    for (int s = begin; s < end; s += 32) {
        unsigned marked = __ballot_sync(whole_warp, s + lane < end && summary[s + lane] != 0);
        for (; marked != 0; marked &= marked - 1) {
            f(s + __ffs(static_cast<int>(marked)) - 1);
        }
    }
}

/// A bitmap over the row's span, by a warp or a block; wider rows in several passes. A bit of the summary stands for a
/// word of the bitmap. All bits are zero between rows.
template <int Group, bool Write>
__global__ void __launch_bounds__(Group == 32 ? warp_threads : Group, Group == 32 ? 0 : 1024 / Group)
    bits_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count,
                int capacity)
{
    constexpr int rows = Group == 32 ? rows_a_block : 1;
    constexpr int warps = Group / 32;
    extern __shared__ std::uint32_t shared[];
    __shared__ int warp_totals[warps];
    __shared__ long long shared_place;
    const int thread = static_cast<int>(threadIdx.x) % Group;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int own = static_cast<int>(threadIdx.x) / Group;
    const int summaries = summary_words(capacity);
    std::uint32_t* const bits = shared + own * (capacity + summaries);
    std::uint32_t* const summary = bits + capacity;
    for (int i = thread; i < capacity + summaries; i += Group) {
        bits[i] = 0;
    }
    sync_group<Group>();
    // Of a number of each warp: what those before this one have, and all.
    const auto sum_warps = [&](int of_warp) {
        int2 sum{0, of_warp};
        if constexpr (warps > 1) {
            if (lane == 0) {
                warp_totals[warp] = of_warp;
            }
            __syncthreads();
            sum.y = 0;
            for (int w = 0; w < warps; ++w) {
                const int other = warp_totals[w];
                sum.x += w < warp ? other : 0;
                sum.y += other;
            }
        }
        return sum;
    };
    Slab slab;
    let_next_begin();
    for (std::int64_t index = std::int64_t{blockIdx.x} * rows + own; index < count;
         index += std::int64_t{gridDim.x} * rows) {
        const std::int64_t row = list[index];
        const RowBounds bounds = job.bounds[row];
        if (is_stored<Write>(job, row) || is_spread(bounds, job.spread_above)) {
            continue;
        }
        const std::int32_t first = bounds.first >> 5;
        const auto words = static_cast<std::int32_t>(bounds.span_words());
        const int chunks = (min(words, capacity) + 31) / 32;
        const int share = (chunks + warps - 1) / warps;
        const int begin = min(warp * share, chunks);
        const int end = min(begin + share, chunks);
        const int group = job.groups[row];
        Target target{};
        if constexpr (Write) {
            target = {job.col_idx + job.row_ptr[row], job.row_ptr[row + 1] - job.row_ptr[row], group};
        }
        int used = 0;
        int entries = 0;
        for (std::int32_t pass = 0; pass < words; pass += capacity) {
            for_each_word<Group>(job, row, bounds.words, thread, [&](std::int32_t word, std::uint32_t mask) {
                const auto place = static_cast<unsigned>(word - first - pass);
                if (place < static_cast<unsigned>(capacity) && atomicOr(bits + place, mask) == 0) {
                    atomicOr(summary + place / 32, 1u << (place % 32));
                }
            });
            sync_group<Group>();
            if constexpr (Write) {
                int found = 0;
                if constexpr (warps > 1) {
                    for_each_marked(summary, begin, end, lane, [&](int s) { found += __popc(bits[s * 32 + lane]); });
                    found = __reduce_add_sync(whole_warp, found);
                }
                const int2 sum = sum_warps(found);
                std::int32_t* to = target.to + sum.x;
                for_each_marked(summary, begin, end, lane, [&](int s) {
                    const std::uint32_t mask = bits[s * 32 + lane];
                    bits[s * 32 + lane] = 0;
                    for (unsigned rest = __ballot_sync(whole_warp, mask != 0); rest != 0; rest &= rest - 1) {
                        const int source = __ffs(static_cast<int>(rest)) - 1;
                        const std::uint32_t word = __shfl_sync(whole_warp, mask, source);
                        if ((word >> lane & 1u) != 0) {
                            std::int32_t* place = to + __popc(word & ((1u << lane) - 1u));
                            for (int i = 0; i < target.group; ++i, place += target.entries) {
                                *place = (first + pass + s * 32 + source) * 32 + lane;
                            }
                        }
                        to += __popc(word);
                    }
                });
                target.to = warps > 1 ? target.to + sum.y : to;
                __syncwarp();
                for (int s = begin + lane; s < end; s += 32) {
                    summary[s] = 0;
                }
            } else {
                int found = 0;
                for (int s = begin + lane; s < end; s += 32) {
                    found += __popc(summary[s]);
                }
                const int2 sum = sum_warps(__reduce_add_sync(whole_warp, found));
                // Rows that take several passes are not stored.
                long long place = -1;
                if (words > capacity) {
                    job.counters->unstored = 1;
                } else {
                    if (warp == 0) {
                        place = take(job, slab, sum.y, lane);
                        if constexpr (warps > 1) {
                            shared_place = place;
                        }
                    }
                    if constexpr (warps > 1) {
                        __syncthreads();
                        place = shared_place;
                    }
                }
                used += sum.y;
                if (thread == 0) {
                    job.stored[row] = {place, used};
                }
                Word* to = job.pool + place + sum.x;
                const auto move = [&](int from, int at) {
                    const std::uint32_t mask = bits[from];
                    bits[from] = 0;
                    entries += __popc(mask);
                    if (place >= 0) {
                        to[at] = {first + pass + from, mask};
                    }
                };
                for (int s = begin; s < end; s += 32) {
                    const std::uint32_t marks = s + lane < end ? summary[s + lane] : 0u;
                    const int has = __popc(marks);
                    int through = has;
#pragma unroll
                    for (int d = 1; d < 32; d *= 2) {
                        const int left = __shfl_up_sync(whole_warp, through, d);
                        through += lane >= d ? left : 0;
                    }
                    if (has > 0) {
                        summary[s + lane] = 0;
                    }
                    // In fewer steps: each lane moves the words under its marks, or all lanes those under one lane's
                    // marks.
                    unsigned marked = __ballot_sync(whole_warp, has > 0);
                    if (__reduce_max_sync(whole_warp, static_cast<unsigned>(has)) <=
                        static_cast<unsigned>(__popc(marked))) {
                        int at = through - has;
                        for (std::uint32_t rest = marks; rest != 0; rest &= rest - 1, ++at) {
                            move((s + lane) * 32 + __ffs(static_cast<int>(rest)) - 1, at);
                        }
                    } else {
                        for (; marked != 0; marked &= marked - 1) {
                            const int source = __ffs(static_cast<int>(marked)) - 1;
                            const std::uint32_t its = __shfl_sync(whole_warp, marks, source);
                            const int at = __shfl_sync(whole_warp, through - has, source);
                            if ((its >> lane & 1u) != 0) {
                                move((s + source) * 32 + lane, at + __popc(its & ((1u << lane) - 1u)));
                            }
                        }
                    }
                    to += __shfl_sync(whole_warp, through, 31);
                }
            }
            sync_group<Group>();
        }
        if constexpr (!Write) {
            entries = sum_warps(__reduce_add_sync(whole_warp, entries)).y;
            if (thread < group) {
                job.row_nnz[row + thread] = entries;
            }
            sync_group<Group>();
        }
    }
    wait_for_previous();
}

template <bool Write>
void launch(StructureJob job, StructureClass c, const std::int32_t* list, std::int64_t count, Overlap overlap,
            cudaStream_t stream)
{
    if (hashes(c)) {
        Write ? write_structure_hash(job, c, list, count, overlap, stream)
              : count_structure_hash(job, c, list, count, overlap, stream);
        return;
    }
    const int capacity = sorts(c) ? structure_capacity(c) : bitmap_words(c, job.widest);
    const Shape shape = structure_shape(c, capacity);
    const int rows = shape.threads / shape.threads_a_row;
    const std::int64_t blocks =
        std::min((count + rows - 1) / rows, structure_blocks_a_unit * std::max<std::int64_t>(job.units, 1));
    job.rows_a_slab = rows_a_slab(count, blocks * rows);
    if (sorts(c)) {
        const auto kernel = c == StructureClass::sort32    ? sort_kernel<1, Write>
                            : c == StructureClass::sort64  ? sort_kernel<2, Write>
                            : c == StructureClass::sort128 ? sort_kernel<4, Write>
                                                           : sort_kernel<8, Write>;
        launch_overlapping(kernel, blocks, shape.threads, 0, overlap, stream, job, list, count);
    } else {
        const auto kernel = shape.threads_a_row == 32    ? bits_kernel<32, Write>
                            : shape.threads_a_row == 128 ? bits_kernel<128, Write>
                            : shape.threads_a_row == 256 ? bits_kernel<256, Write>
                            : shape.threads_a_row == 512 ? bits_kernel<512, Write>
                                                         : bits_kernel<1024, Write>;
        launch_overlapping(kernel, blocks, shape.threads, static_cast<unsigned>(rows * shape.bytes), overlap, stream,
                           job, list, count, capacity);
    }
}

}  // namespace

void run_structure(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
                   Overlap overlap, cudaStream_t stream)
{
    if (job.col_idx == nullptr) {
        launch<false>(job, c, list, count, overlap, stream);
    } else {
        launch<true>(job, c, list, count, overlap, stream);
    }
}

}  // namespace rmsp::kernels::spgemm
