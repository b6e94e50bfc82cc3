#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int warp_threads = structure_shape(StructureClass::sort32).threads;
constexpr int rows_a_block = warp_threads / 32;

/// Calls f for each word of the rows of B that a row of A touches, from the threads of a group.
template <class F>
__device__ __forceinline__ void for_each_word(const StructureJob& job, std::int64_t row, std::int32_t words, int thread,
                                              int group, const F& f)
{
    const std::int64_t begin = job.a.row_ptr[row];
    const std::int64_t end = job.a.row_ptr[row + 1];
    const int lanes = virtual_warp(words, end - begin);
    const int lane = thread % lanes;
    for (std::int64_t i = begin + thread / lanes; i < end; i += group / lanes) {
        const std::int64_t k = __ldg(job.a.col_idx + i);
        const int4 b_row = __ldg(reinterpret_cast<const int4*>(job.b_rows + k));
        const auto* const list = reinterpret_cast<const int2*>(job.words + job.b_ptr[k]);
        for (std::int32_t j = lane; j < b_row.z; j += lanes) {
            const int2 word = __ldg(list + j);
            f(word.x, static_cast<std::uint32_t>(word.y));
        }
    }
}

/// Ascending order over the 32 * Keys numbers of a warp; number i is key[i / 32] of lane i % 32 (Batcher's bitonic sort).
template <int Keys>
__device__ __forceinline__ void sort_warp(std::uint32_t (&key)[Keys], int lane)
{
#pragma unroll
    for (int size = 2; size <= 32 * Keys; size *= 2) {
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
            if (stride >= 32) {
#pragma unroll
                for (int r = 0; r < Keys; ++r) {
                    const int partner = r ^ (stride / 32);
                    if (partner > r) {
                        const bool up = ((r * 32) & size) == 0;
                        const std::uint32_t low = min(key[r], key[partner]);
                        const std::uint32_t high = max(key[r], key[partner]);
                        key[r] = up ? low : high;
                        key[partner] = up ? high : low;
                    }
                }
            } else {
#pragma unroll
                for (int r = 0; r < Keys; ++r) {
                    const std::uint32_t other = __shfl_xor_sync(whole_warp, key[r], stride);
                    const bool up = ((r * 32 + lane) & size) == 0;
                    const bool lower = (lane & stride) == 0;
                    key[r] = up == lower ? min(key[r], other) : max(key[r], other);
                }
            }
        }
    }
}

/// Writes the columns of a word, one a lane, for each row of a group of twins.
__device__ __forceinline__ void write_word(std::int32_t* to, std::int64_t entries, int group, std::int32_t index,
                                           std::uint32_t mask, int lane)
{
    if ((mask >> lane & 1u) != 0) {
        to += __popc(mask & ((1u << lane) - 1u));
        for (int i = 0; i < group; ++i, to += entries) {
            *to = index * 32 + lane;
        }
    }
}

/// Rows with few words: a warp collects them in a hash table of 64 * Keys slots.
template <int Keys, bool Write>
__global__ void __launch_bounds__(warp_threads)
    sort_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count)
{
    constexpr int slots = 64 * Keys;
    constexpr std::int32_t free_slot = -1;
    __shared__ std::int32_t keys[rows_a_block][slots];
    __shared__ std::uint32_t masks[rows_a_block][slots];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t index = std::int64_t{blockIdx.x} * rows_a_block + warp;
    if (index >= count) {
        return;
    }
    const std::int64_t row = list[index];
    std::int32_t* const key = keys[warp];
    std::uint32_t* const mask = masks[warp];
#pragma unroll
    for (int i = lane; i < slots; i += 32) {
        key[i] = free_slot;
        mask[i] = 0;
    }
    __syncwarp();
    const RowBounds bounds = job.bounds[row];
    for_each_word(job, row, bounds.words, lane, 32, [&](std::int32_t word, std::uint32_t bits) {
        unsigned slot = (static_cast<unsigned>(word) * 0x9e3779b1u) >> 16 & (slots - 1);
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
    if constexpr (!Write) {
        int entries = 0;
#pragma unroll
        for (int i = lane; i < slots; i += 32) {
            entries += __popc(mask[i]);
        }
        entries = __reduce_add_sync(whole_warp, entries);
        if (lane < job.groups[row]) {
            job.row_nnz[row + lane] = entries;
        }
    } else {
        // Distance of the word from the first, and its slot, as one number.
        const std::int32_t first = bounds.first >> 5;
        const int words = 32 * Keys;
        constexpr unsigned none = 0xffffffffu;
        __shared__ std::uint32_t packed[rows_a_block][words];
        int used = 0;
#pragma unroll
        for (int i = lane; i < slots; i += 32) {
            const std::int32_t word = key[i];
            const unsigned taken = __ballot_sync(whole_warp, word != free_slot);
            if (word != free_slot) {
                packed[warp][used + __popc(taken & ((1u << lane) - 1u))] =
                    static_cast<std::uint32_t>(word - first) * slots + i;
            }
            used += __popc(taken);
        }
        __syncwarp();
        std::uint32_t sorted[Keys];
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            sorted[r] = r * 32 + lane < used ? packed[warp][r * 32 + lane] : none;
        }
        sort_warp<Keys>(sorted, lane);
        std::int32_t* to = job.col_idx + job.row_ptr[row];
        const std::int64_t entries = job.row_ptr[row + 1] - job.row_ptr[row];
        const int group = job.groups[row];
#pragma unroll
        for (int r = 0; r < Keys; ++r) {
            const bool in = r * 32 + lane < used;
            const std::uint32_t bits = in ? mask[sorted[r] % slots] : 0u;
            const std::int32_t start = (first + static_cast<std::int32_t>(sorted[r] / slots)) * 32;
            const int own = __popc(bits);
            int through = own;
#pragma unroll
            for (int d = 1; d < 32; d *= 2) {
                const int left = __shfl_up_sync(whole_warp, through, d);
                through += lane >= d ? left : 0;
            }
            std::int32_t* place = to + (through - own);
            for (std::uint32_t rest = bits; rest != 0; rest &= rest - 1) {
                for (int i = 0; i < group; ++i) {
                    place[i * entries] = start + __ffs(static_cast<int>(rest)) - 1;
                }
                ++place;
            }
            to += __shfl_sync(whole_warp, through, 31);
        }
    }
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

/// A bitmap over the row's span, by a warp or a block; wider rows in several passes. A bit of the summary stands for 32 words.
template <int Group, bool Write>
__global__ void __launch_bounds__(Group == 32 ? warp_threads : Group)
    bits_kernel(const __grid_constant__ StructureJob job, const std::int32_t* __restrict__ list, std::int64_t count,
                int capacity)
{
    constexpr int rows = Group == 32 ? rows_a_block : 1;
    constexpr int warps = Group / 32;
    extern __shared__ std::uint32_t shared[];
    __shared__ int warp_entries[warps];
    const int thread = static_cast<int>(threadIdx.x) % Group;
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int own = static_cast<int>(threadIdx.x) / Group;
    const std::int64_t index = std::int64_t{blockIdx.x} * rows + own;
    if (index >= count) {
        return;
    }
    const int summaries = summary_words(capacity);
    std::uint32_t* const bits = shared + own * (capacity + summaries);
    std::uint32_t* const summary = bits + capacity;
    const std::int64_t row = list[index];
    const RowBounds bounds = job.bounds[row];
    const std::int32_t first = bounds.first >> 5;
    const auto words = static_cast<std::int32_t>(bounds.span_words());
    const int used = min(words, capacity);
    const int chunks = (used + 31) / 32;
    for (int i = thread; i < chunks * 32; i += Group) {
        bits[i] = 0;
    }
    for (int i = thread; i < summaries; i += Group) {
        summary[i] = 0;
    }
    sync_group<Group>();
    const int group = job.groups[row];
    std::int32_t* to = Write ? job.col_idx + job.row_ptr[row] : nullptr;
    const std::int64_t stride = Write ? job.row_ptr[row + 1] - job.row_ptr[row] : 0;
    int entries = 0;
    for (std::int32_t pass = 0; pass < words; pass += capacity) {
        for_each_word(job, row, bounds.words, thread, Group, [&](std::int32_t word, std::uint32_t mask) {
            const std::int32_t place = word - first - pass;
            if (place >= 0 && place < capacity) {
                if (atomicOr(bits + place, mask) == 0) {
                    atomicOr(summary + place / 1024, 1u << (place / 32 % 32));
                }
            }
        });
        sync_group<Group>();
        // Each warp of the group reads a run of chunks; the first to write, all to count.
        const int share = (chunks + warps - 1) / warps;
        const int begin = warp * share;
        const int end = min(begin + share, chunks);
        int found = 0;
        if (!Write || warps > 1) {
            for (int c = begin; c < end; ++c) {
                if ((summary[c / 32] >> (c % 32) & 1u) != 0) {
                    found += __popc(bits[c * 32 + lane]);
                    if (!Write) {
                        bits[c * 32 + lane] = 0;
                    }
                }
            }
            found = __reduce_add_sync(whole_warp, found);
        }
        int before = 0;
        int total = found;
        if constexpr (warps > 1) {
            if (lane == 0) {
                warp_entries[warp] = found;
            }
            __syncthreads();
            total = 0;
            for (int w = 0; w < warps; ++w) {
                before += w < warp ? warp_entries[w] : 0;
                total += warp_entries[w];
            }
        }
        if constexpr (Write) {
            std::int32_t* place = to + before;
            for (int c = begin; c < end; ++c) {
                if ((summary[c / 32] >> (c % 32) & 1u) == 0) {
                    continue;
                }
                const std::uint32_t mask = bits[c * 32 + lane];
                bits[c * 32 + lane] = 0;
                unsigned rest = __ballot_sync(whole_warp, mask != 0);
                while (rest != 0) {
                    const int source = __ffs(static_cast<int>(rest)) - 1;
                    rest &= rest - 1;
                    const std::uint32_t word = __shfl_sync(whole_warp, mask, source);
                    write_word(place, stride, group, first + pass + c * 32 + source, word, lane);
                    place += __popc(word);
                }
            }
            if constexpr (warps == 1) {
                total = static_cast<int>(place - to);
            }
            to += total;
        }
        entries += total;
        if (pass + capacity < words) {
            sync_group<Group>();
            for (int i = thread; i < summaries; i += Group) {
                summary[i] = 0;
            }
            sync_group<Group>();
        }
    }
    if (!Write && thread < group) {
        job.row_nnz[row + thread] = entries;
    }
}

template <bool Write>
void launch(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
            cudaStream_t stream)
{
    const Shape shape = structure_shape(c);
    const int capacity = structure_capacity(c);
    const int rows = shape.threads / shape.threads_a_row;
    const auto blocks = static_cast<unsigned>((count + rows - 1) / rows);
    if (sorts(c)) {
        const auto kernel = c == StructureClass::sort32    ? sort_kernel<1, Write>
                            : c == StructureClass::sort64  ? sort_kernel<2, Write>
                            : c == StructureClass::sort128 ? sort_kernel<4, Write>
                                                           : sort_kernel<8, Write>;
        kernel<<<blocks, shape.threads, 0, stream>>>(job, list, count);
    } else {
        const auto bytes = static_cast<unsigned>(rows * shape.bytes);
        const auto kernel = shape.threads_a_row == 32    ? bits_kernel<32, Write>
                            : shape.threads_a_row == 128 ? bits_kernel<128, Write>
                            : shape.threads_a_row == 256 ? bits_kernel<256, Write>
                            : shape.threads_a_row == 512 ? bits_kernel<512, Write>
                                                         : bits_kernel<1024, Write>;
        allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes);
        kernel<<<blocks, shape.threads, bytes, stream>>>(job, list, count, capacity);
    }
    RMSP_CUDA_CHECK_LAUNCH("structure of C");
}

}  // namespace

void run_structure(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
                   cudaStream_t stream)
{
    if (job.col_idx == nullptr) {
        launch<false>(job, c, list, count, stream);
    } else {
        launch<true>(job, c, list, count, stream);
    }
}

}  // namespace rmsp::kernels::spgemm
