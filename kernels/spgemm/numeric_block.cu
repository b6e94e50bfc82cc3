#include <algorithm>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/numeric.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// An entry of a row of A and the row of B that it multiplies.
template <class T>
struct Factor {
    std::int64_t begin;
    T value;
    std::int32_t entries;
};

/// Loads that a thread issues before it uses the first.
constexpr int in_flight = 4;

/// From a column to its place in the row of C, with linear probing.
struct ColumnTable {
    static constexpr unsigned free_slot = 0xffffffffu;
    uint2* slots;
    unsigned count;

    __device__ __forceinline__ unsigned first_slot(unsigned column) const
    {
        // The upper bits of a product with 2^32 over the golden ratio spread neighbours evenly.
        return __umulhi(column * 0x9e3779b1u, count);
    }
    __device__ __forceinline__ unsigned next_slot(unsigned slot) const { return slot + 1 < count ? slot + 1 : 0; }
    __device__ __forceinline__ void clear(int thread, int threads)
    {
        for (unsigned i = thread; i < count; i += threads) {
            slots[i] = {free_slot, 0};
        }
    }
    __device__ __forceinline__ void insert(unsigned column, unsigned place)
    {
        unsigned slot = first_slot(column);
        while (atomicCAS(&slots[slot].x, free_slot, column) != free_slot) {
            slot = next_slot(slot);
        }
        slots[slot].y = place;
    }
    /// Of a column that is there.
    __device__ __forceinline__ unsigned find(unsigned column) const
    {
        unsigned slot = first_slot(column);
        while (true) {
            const uint2 s = slots[slot];
            if (s.x == column || s.x == free_slot) {
                return s.y;
            }
            slot = next_slot(slot);
        }
    }
};

/// Sum of the threads of the block up to and with this one, and of all. All threads take part; `sums` is free again after the next
/// barrier.
template <int Threads>
__device__ __forceinline__ int2 block_sum_through(int own, int* sums)
{
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int through = sum_through<32>(own, lane);
    if (lane == 31) {
        sums[warp] = through;
    }
    __syncthreads();
    int total = 0;
    for (int w = 0; w < Threads / 32; ++w) {
        through += w < warp ? sums[w] : 0;
        total += sums[w];
    }
    return {through, total};
}

/// Writes the columns of a word of each lane (mask 0: none) to to[place] and on, in global memory. The whole warp takes part.
__device__ __forceinline__ void spread(Word word, int place, std::int32_t* to, int lane)
{
    constexpr unsigned few = 8;  // columns of a word: then each lane writes those of its own
    if (__reduce_max_sync(whole_warp, static_cast<unsigned>(__popc(word.mask))) <= few) {
        write_columns(word, to + place);
        return;
    }
    for (int source = 0; source < 32; ++source) {
        const std::int32_t index = __shfl_sync(whole_warp, word.index, source);
        const std::uint32_t mask = __shfl_sync(whole_warp, word.mask, source);
        const int begin = __shfl_sync(whole_warp, place, source);
        if ((mask >> lane & 1u) != 0) {
            to[begin + __popc(mask & bits_below(lane))] = index * 32 + lane;
        }
    }
}

/// Of rising columns.
__device__ __forceinline__ std::int32_t entries_below(const std::int32_t* columns, std::int32_t entries,
                                                      std::int64_t column)
{
    std::int32_t low = 0;
    for (std::int32_t high = entries; low < high;) {
        const std::int32_t middle = low + (high - low) / 2;
        if (columns[middle] < column) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

enum class Lookup { hash, rank, map, chunk, search };

/// Rows of C that take a block. Short rows of B are dealt to virtual warps and added atomically; long ones are taken by all threads, one
/// after the other. Where the sums do not fit beside the ranks, a run of the row's entries, or of its columns, is computed in each pass
/// over the rows of B. `Far`: they are added up in C itself, in global memory.
template <Lookup By, bool Far, Work Of, int Threads, class T>
__global__ void __launch_bounds__(Threads)
    block_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count,
                 int capacity)
{
    constexpr int batch_size = 256;
    constexpr bool lists = Of == Work::list;
    static_assert(Threads % 32 == 0);
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ Factor<T> factors[batch_size];
    __shared__ int long_rows[batch_size];
    __shared__ int long_count;
    __shared__ int warp_sums[Threads / 32];
    const int thread = static_cast<int>(threadIdx.x);
    let_next_begin();
    for (std::int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        const std::int64_t row = list[index];
        const RowBounds bounds = job.bounds[row];
        const std::int64_t c_begin = job.row_ptr[row];
        const auto entries = static_cast<std::int32_t>(job.row_ptr[row + 1] - c_begin);
        const int group = job.groups[row];
        const std::int32_t first = bounds.first >> 5;
        const auto words = static_cast<std::int32_t>(bounds.span_words());
        ColumnTable table{reinterpret_cast<uint2*>(shared), static_cast<unsigned>(2 * capacity)};
        // Of a word of 32 columns: which are there, and how many come before it.
        uint2* const rank = reinterpret_cast<uint2*>(shared);
        std::int32_t* const map = By == Lookup::map ? job.map + blockIdx.x * job.b.cols : nullptr;
        T* sums = job.values + c_begin;
        // Sums of the row, and those of a pass: of entries, or of all columns side by side.
        const std::int64_t all_sums = By == Lookup::chunk ? bounds.span() : entries;
        std::int32_t sums_a_pass = entries;
        if constexpr (By == Lookup::hash) {
            sums = reinterpret_cast<T*>(shared + 2 * capacity * sizeof(uint2));
            table.clear(thread, Threads);
        } else if constexpr (By == Lookup::chunk) {
            sums = reinterpret_cast<T*>(shared);
            sums_a_pass = capacity / static_cast<int>(sizeof(T));
        } else if constexpr (By == Lookup::rank) {
            if constexpr (!Far) {
                sums = reinterpret_cast<T*>(shared + words * sizeof(uint2));
                sums_a_pass = static_cast<std::int32_t>((capacity - words * sizeof(uint2)) / sizeof(T));
            }
        }
        std::int32_t* const columns = job.col_idx + c_begin;
        const RowSource source = source_of(job, row);
        if (source.words != nullptr) {
            const int lane = thread % 32;
            int before = 0;
            for (int i = 0; i < source.count; i += Threads) {
                const Word word = i + thread < source.count ? load(source.words + i + thread) : Word{0, 0};
                const int has = __popc(word.mask);
                const int2 sums_of_words = block_sum_through<Threads>(has, warp_sums);
                const int place = before + sums_of_words.x - has;
                if (By == Lookup::rank && has > 0) {
                    rank[word.index - first] = {word.mask, static_cast<unsigned>(place)};
                }
                for (int r = 0; r < group && job.fills; ++r) {
                    spread(word, place, columns + std::int64_t{r} * entries, lane);
                }
                before += sums_of_words.y;
                __syncthreads();
            }
        } else if constexpr (By == Lookup::rank) {
            for (int i = thread; i < words; i += Threads) {
                rank[i] = {0, 0};
            }
        }
        __syncthreads();
        if (By == Lookup::hash || By == Lookup::map || (By == Lookup::rank && source.words == nullptr)) {
            for (int i = thread; i < entries; i += Threads) {
                const std::int32_t column = columns[i];
                if constexpr (By == Lookup::hash) {
                    table.insert(static_cast<unsigned>(column), static_cast<unsigned>(i));
                } else if constexpr (By == Lookup::rank) {
                    const std::int32_t word = column >> 5;
                    atomicOr(&rank[word - first].x, 1u << (column & 31));
                    if (i == 0 || columns[i - 1] >> 5 != word) {
                        rank[word - first].y = static_cast<unsigned>(i);
                    }
                } else {
                    map[column] = i;
                }
            }
        }
        const std::uint32_t first_product = lists ? job.offsets[c_begin] : 0u;
        std::int64_t pass = 0;  // first sum of this pass
        std::int32_t pass_sums = 0;
        // Of an entry of A and one of B.
        const auto add_up = [&](std::int32_t column, std::int64_t of_a, std::int64_t of_b, T product, bool atomic) {
            unsigned place;
            if constexpr (By == Lookup::hash) {
                place = table.find(static_cast<unsigned>(column));
            } else if constexpr (By == Lookup::rank) {
                const uint2 word = rank[(column >> 5) - first];
                place = word.y + __popc(word.x & bits_below(column));
            } else if constexpr (By == Lookup::chunk) {
                place = static_cast<unsigned>(column - bounds.first);
            } else if constexpr (By == Lookup::map) {
                place = static_cast<unsigned>(map[column]);
            } else {
                place = static_cast<unsigned>(entries_below(columns, entries, column));
            }
            if constexpr (!Far && (By == Lookup::rank || By == Lookup::chunk)) {
                place -= static_cast<unsigned>(pass);
                if (place >= static_cast<unsigned>(pass_sums)) {
                    return;
                }
            }
            if constexpr (lists) {
                job.products[first_product + next_place(sums + place, Far || atomic)] = {
                    static_cast<std::int32_t>(of_a), static_cast<std::int32_t>(of_b)};
            } else {
                add(sums + place, product, Far || atomic);
            }
        };
        const auto product_of = [&](const Factor<T>& f, std::int64_t of_b) {
            return lists ? T{0} : f.value * __ldg(job.b_values + of_b);
        };
        const std::int64_t a_begin = job.a.row_ptr[row];
        const std::int64_t a_entries = job.a.row_ptr[row + 1] - a_begin;
        const int lanes = job.virtual_warp > 0 ? job.virtual_warp : virtual_warp(bounds.products, a_entries);
        const int lane = thread % lanes;
        const int virtual_warps = Threads / lanes;
        const std::int32_t longest = max(8 * lanes, Threads);  // of a virtual warp
        // Twins one after the other, with the same places.
        for (int r = 0; r < group; ++r) {
            if constexpr (Far) {
                sums = job.values + c_begin + r * std::int64_t{entries};
            }
            for (pass = 0; pass < all_sums; pass += sums_a_pass) {
                pass_sums = static_cast<std::int32_t>(min(all_sums - pass, std::int64_t{sums_a_pass}));
                __syncthreads();
                for (int i = thread; i < pass_sums; i += Threads) {
                    sums[i] = lists ? static_cast<T>(job.offsets[c_begin + pass + i] - first_product) : T{0};
                }
                for (std::int64_t at = 0; at < a_entries; at += batch_size) {
                    const int batch = static_cast<int>(
                        min(static_cast<long long>(a_entries - at), static_cast<long long>(batch_size)));
                    __syncthreads();
                    if (thread == 0) {
                        long_count = 0;
                    }
                    __syncthreads();
                    for (int i = thread; i < batch; i += Threads) {
                        const std::int64_t k = __ldg(job.a.col_idx + a_begin + at + i);
                        const Extent b_row = load(job.b_entries + k);
                        factors[i] = {b_row.place(),
                                      lists ? T{0} : __ldg(job.a_values + a_begin + r * a_entries + at + i),
                                      b_row.count()};
                        if (b_row.count() > longest) {
                            long_rows[atomicAdd(&long_count, 1)] = i;
                        }
                    }
                    __syncthreads();
                    for (int t = 0; t < long_count; ++t) {
                        const int own = long_rows[t];
                        const Factor<T> f = factors[own];
                        for (std::int32_t j = thread; j < f.entries; j += Threads) {
                            add_up(__ldg(job.b.col_idx + f.begin + j), a_begin + at + own, f.begin + j,
                                   product_of(f, f.begin + j), job.atomic);
                        }
                        __syncthreads();
                    }
                    for (int t = thread / lanes; t < batch; t += in_flight * virtual_warps) {
                        std::int32_t column[in_flight];
                        T product[in_flight];
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            const int own = t + u * virtual_warps;
                            column[u] = -1;
                            if (own < batch && factors[own].entries <= longest && lane < factors[own].entries) {
                                column[u] = __ldg(job.b.col_idx + factors[own].begin + lane);
                                product[u] = lists ? T{0} : __ldg(job.b_values + factors[own].begin + lane);
                            }
                        }
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            const int own = t + u * virtual_warps;
                            if (column[u] >= 0) {
                                add_up(column[u], a_begin + at + own, factors[own].begin + lane,
                                       factors[own].value * product[u], true);
                                for (std::int32_t j = lane + lanes; j < factors[own].entries; j += lanes) {
                                    add_up(__ldg(job.b.col_idx + factors[own].begin + j), a_begin + at + own,
                                           factors[own].begin + j, product_of(factors[own], factors[own].begin + j),
                                           true);
                                }
                            }
                        }
                    }
                }
                __syncthreads();
                if constexpr (lists) {
                    continue;
                }
                T* const to = job.values + c_begin + r * std::int64_t{entries};
                if constexpr (By == Lookup::chunk) {
                    const std::int64_t first_column = bounds.first + pass;
                    const std::int32_t end = entries_below(columns, entries, first_column + pass_sums);
                    for (std::int32_t i = entries_below(columns, entries, first_column) + thread; i < end;
                         i += Threads) {
                        to[i] = job.alpha * sums[columns[i] - first_column];
                    }
                } else {
                    for (std::int32_t i = thread; i < pass_sums; i += Threads) {
                        to[pass + i] = job.alpha * (Far ? __ldcg(sums + i) : sums[i]);
                    }
                }
            }
        }
        __syncthreads();
    }
    wait_for_previous();
}

template <class T>
using Kernel = void (*)(NumericJob<T>, const std::int32_t*, std::int64_t, int);

template <Lookup By, Work Of, class T>
Kernel<T> kernel_of(int threads)
{
    switch (threads) {
        case 128:
            return block_kernel<By, false, Of, 128, T>;
        case 256:
            return block_kernel<By, false, Of, 256, T>;
        case 512:
            return block_kernel<By, false, Of, 512, T>;
        default:
            return block_kernel<By, false, Of, 1024, T>;
    }
}

template <Work Of, class T>
Kernel<T> kernel_of(NumericClass c, int threads)
{
    return is_block_hash(c) ? kernel_of<Lookup::hash, Of, T>(threads)
           : is_rank(c)     ? kernel_of<Lookup::rank, Of, T>(threads)
           : is_rank_far(c) ? block_kernel<Lookup::rank, true, Of, 1024, T>
                            : block_kernel<Lookup::search, true, Of, 512, T>;
}

}  // namespace

template <class T>
void run_numeric_block(const NumericJob<T>& job, NumericClass c, Work work, const std::int32_t* list,
                       std::int64_t count, Overlap overlap, cudaStream_t stream)
{
    const Shape shape = numeric_shape(c, sizeof(T));
    const std::int64_t blocks = c == NumericClass::scatter ? std::min<std::int64_t>(count, job.map_blocks) : count;
    const Kernel<T> kernel = work == Work::list           ? kernel_of<Work::list, T>(c, shape.threads)
                             : c == NumericClass::chunks  ? block_kernel<Lookup::chunk, false, Work::sum, 512, T>
                             : c == NumericClass::scatter ? block_kernel<Lookup::map, true, Work::sum, 512, T>
                                                          : kernel_of<Work::sum, T>(c, shape.threads);
    launch_overlapping(kernel, blocks, shape.threads, static_cast<unsigned>(shape.bytes), overlap, stream, job, list,
                       count, static_cast<int>(numeric_capacity(c)));
}

template void run_numeric_block(const NumericJob<float>&, NumericClass, Work, const std::int32_t*, std::int64_t,
                                Overlap, cudaStream_t);
template void run_numeric_block(const NumericJob<double>&, NumericClass, Work, const std::int32_t*, std::int64_t,
                                Overlap, cudaStream_t);

}  // namespace rmsp::kernels::spgemm
