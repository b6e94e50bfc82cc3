#include <algorithm>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/column_table.cuh>
#include <kernels/spgemm/numeric.cuh>
#include <kernels/spgemm/packed_words.cuh>
#include <kernels/spgemm/row_parts.cuh>

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
/// Entries of a row of B from which on the range of a part's columns is searched.
constexpr std::int32_t worth_searching = 32;

/// Writes the columns of a word of each lane (mask 0: none) to to[place] and on, in global memory. The whole warp takes
/// part.
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

enum class Lookup { hash, rank, packed, map, chunk, search };

/// Rows of C that take a block. Short rows of B are dealt to virtual warps and added atomically; long ones are taken by
/// all threads, one after the other. Where the sums do not fit beside the ranks, each part of the row, a range of its
/// columns, has a block, for which only that range is read of rows of B in order: block `index` + i * count has part i
/// of row list[index]. Windows of chunks are passed over one after the other. `Far`: sums are added up in C itself, in
/// global memory.
template <Lookup By, bool Far, Work Of, int Threads, class T>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
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
    __shared__ PartBegin begins[2];
    const int thread = static_cast<int>(threadIdx.x);
    constexpr bool in_parts = (By == Lookup::rank || By == Lookup::packed) && !Far;
    const int part = in_parts ? static_cast<int>(blockIdx.x / count) : 0;
    let_next_begin();
    for (std::int64_t index = blockIdx.x - part * count; index < count; index += gridDim.x) {
        const std::int64_t row = list[index];
        const RowBounds bounds = job.bounds[row];
        if (is_spread(bounds, job.spread_above)) {
            continue;
        }
        const std::int64_t c_begin = job.row_ptr[row];
        const auto entries = static_cast<std::int32_t>(job.row_ptr[row + 1] - c_begin);
        const int group = job.groups[row];
        const std::int32_t first = bounds.first >> 5;
        const auto span_words = static_cast<std::int32_t>(bounds.span_words());
        std::int32_t* const columns = job.col_idx + c_begin;
        const RowSource source = source_of(job, row);
        // Words that are there; of a row without a list of them as many as there may be, unless that is too many.
        std::int32_t there = source.words != nullptr ? source.count : entries;
        PartCut cut = part_cut(span_words, there, entries, sizeof(T), By == Lookup::packed);
        WordsBefore counted{};
        if constexpr (By == Lookup::packed) {
            if (source.words == nullptr && (Far || cut.total > capacity)) {
                counted = words_before<Threads>(columns, entries, warp_sums);
                there = counted.all;
                cut = part_cut(span_words, there, entries, sizeof(T), true);
            }
        }
        const int parts = in_parts ? cut.parts(capacity) : 1;
        if (part >= parts) {
            break;
        }
        ColumnTable table{reinterpret_cast<uint2*>(shared), static_cast<unsigned>(2 * capacity)};
        // Of a word of 32 columns: which are there, and how many come before it.
        uint2* const rank = reinterpret_cast<uint2*>(shared);
        PackedWords packed;
        std::int32_t* const map = By == Lookup::map ? job.map + blockIdx.x * job.b.cols : nullptr;
        // Of the part, as long as that is the row.
        PartBegin begin{0, 0};
        PartBegin end{there, entries};
        std::int32_t first_word = first;
        std::int32_t words = span_words;
        if (parts > 1) {
            if (source.words != nullptr) {
                find_part<Threads>(source, entries, first, cut, part, parts, warp_sums, begins);
            } else if (By == Lookup::packed) {
                find_packed_part(columns, entries, first, cut, part, parts, counted, begins);
            } else {
                if (thread < 64 && thread % 32 == 0) {
                    begins[thread / 32] = find_part(columns, entries, first, cut, part + thread / 32, parts);
                }
                __syncthreads();
            }
            begin = begins[0];
            end = begins[1];
            if (begin.entry == end.entry) {
                break;
            }
            if (source.words != nullptr) {
                first_word = load(source.words + begin.word).index;
                words = load(source.words + end.word - 1).index - first_word + 1;
            } else {
                first_word = columns[begin.entry] >> 5;
                words = (columns[end.entry - 1] >> 5) - first_word + 1;
            }
        }
        T* sums = job.values + c_begin;
        // Sums of the part, and those of a pass: of entries, or of all columns side by side.
        const std::int64_t all_sums = By == Lookup::chunk ? bounds.span() : end.entry - begin.entry;
        std::int32_t sums_a_pass = end.entry - begin.entry;
        if constexpr (By == Lookup::hash) {
            sums = reinterpret_cast<T*>(shared + 2 * capacity * sizeof(uint2));
            table.clear(thread, Threads);
        } else if constexpr (By == Lookup::chunk) {
            sums = reinterpret_cast<T*>(shared);
            sums_a_pass = capacity / static_cast<int>(sizeof(T));
        } else if constexpr (By == Lookup::packed) {
            packed = PackedWords(reinterpret_cast<uint2*>(shared), words, first_word);
            packed.clear(thread, Threads);
            if constexpr (!Far) {
                sums = reinterpret_cast<T*>(packed.word + (end.word - begin.word));
            }
        } else if constexpr (By == Lookup::rank) {
            if constexpr (!Far) {
                sums = reinterpret_cast<T*>(shared + words * sizeof(uint2));
            }
        }
        if (source.words != nullptr) {
            // A run of words for each warp.
            constexpr int warps = Threads / 32;
            const int lane = thread % 32;
            const int run = ((end.word - begin.word + warps - 1) / warps + 31) / 32 * 32;
            const int run_begin = min(begin.word + thread / 32 * run, end.word);
            const int run_end = min(run_begin + run, end.word);
            int before = 0;
            for (int i = run_begin + lane; i < run_end; i += 32) {
                before += __popc(load(source.words + i).mask);
            }
            before = block_sum_before<Threads>(before, warp_sums) + begin.entry;
            // Columns go to C side by side from where the sums will be.
            auto* const staged = reinterpret_cast<std::int32_t*>(sums);
            for (int i = run_begin; i < run_end; i += 32) {
                const Word word = i + lane < run_end ? load(source.words + i + lane) : Word{0, 0};
                const int has = __popc(word.mask);
                const int through = sum_through<32>(has, lane);
                const int place = before + through - has;
                if constexpr (By == Lookup::packed) {
                    const std::int32_t previous =
                        i + lane > begin.word && has > 0 ? load(source.words + i + lane - 1).index : first_word - 1;
                    packed.put(word, previous, i + lane - begin.word, place - begin.entry);
                }
                if (By == Lookup::rank && has > 0) {
                    rank[word.index - first_word] = {word.mask, static_cast<unsigned>(place - begin.entry)};
                }
                if (in_parts && job.fills) {
                    write_columns(word, staged + place - begin.entry);
                }
                for (int r = 0; r < group && !in_parts && job.fills; ++r) {
                    spread(word, place, columns + std::int64_t{r} * entries, lane);
                }
                before += __shfl_sync(whole_warp, through, 31);
            }
            if (in_parts && job.fills) {
                __syncthreads();
                for (int r = 0; r < group; ++r) {
                    std::int32_t* const to = columns + std::int64_t{r} * entries + begin.entry;
                    for (int i = thread; i < end.entry - begin.entry; i += Threads) {
                        to[i] = staged[i];
                    }
                }
            }
        } else if constexpr (By == Lookup::rank) {
            for (int i = thread; i < words; i += Threads) {
                rank[i] = {0, 0};
            }
        } else if constexpr (By == Lookup::packed) {
            packed.put_columns<Threads>(columns + begin.entry, end.entry - begin.entry, end.word - begin.word,
                                        warp_sums);
        }
        __syncthreads();
        if (By == Lookup::hash || By == Lookup::map || (By == Lookup::rank && source.words == nullptr)) {
            for (int i = begin.entry + thread; i < end.entry; i += Threads) {
                const std::int32_t column = columns[i];
                if constexpr (By == Lookup::hash) {
                    table.insert(static_cast<unsigned>(column), static_cast<unsigned>(i));
                } else if constexpr (By == Lookup::rank) {
                    const std::int32_t word = column >> 5;
                    atomicOr(&rank[word - first_word].x, 1u << (column & 31));
                    if (i == begin.entry || columns[i - 1] >> 5 != word) {
                        rank[word - first_word].y = static_cast<unsigned>(i - begin.entry);
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
                const auto offset = static_cast<unsigned>((column >> 5) - first_word);
                if (!Far && offset >= static_cast<unsigned>(words)) {
                    return;
                }
                const uint2 word = rank[offset];
                place = word.y + __popc(word.x & bits_below(column));
            } else if constexpr (By == Lookup::packed) {
                const auto offset = static_cast<unsigned>((column >> 5) - first_word);
                if (offset >= static_cast<unsigned>(words)) {
                    return;
                }
                place = packed.find(offset, column);
            } else if constexpr (By == Lookup::chunk) {
                place = static_cast<unsigned>(column - bounds.first);
            } else if constexpr (By == Lookup::map) {
                place = static_cast<unsigned>(map[column]);
            } else {
                place = static_cast<unsigned>(entries_below(columns, entries, column));
            }
            if constexpr (By == Lookup::chunk) {
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
        // Entries first, first + step, ... of a row of B.
        const auto add_row = [&](const Factor<T>& f, std::int64_t of_a, int first_entry, int step, bool atomic) {
            for (std::int32_t j = first_entry; j < f.entries; j += in_flight * step) {
                std::int32_t column[in_flight];
                T product[in_flight];
#pragma unroll
                for (int u = 0; u < in_flight; ++u) {
                    column[u] = -1;
                    if (j + u * step < f.entries) {
                        column[u] = __ldg(job.b.col_idx + f.begin + j + u * step);
                        product[u] = lists ? T{0} : __ldg(job.b_values + f.begin + j + u * step);
                    }
                }
#pragma unroll
                for (int u = 0; u < in_flight; ++u) {
                    if (column[u] >= 0) {
                        add_up(column[u], of_a, f.begin + j + u * step, f.value * product[u], atomic);
                    }
                }
            }
        };
        const std::int64_t a_begin = job.a.row_ptr[row];
        const std::int64_t a_entries = job.a.row_ptr[row + 1] - a_begin;
        const int lanes = job.virtual_warp > 0 ? job.virtual_warp : virtual_warp(bounds.products / parts, a_entries);
        const int lane = thread % lanes;
        const int virtual_warps = Threads / lanes;
        const std::int32_t longest = max(8 * lanes, Threads);  // of the rows of B that warps take
        // That a virtual warp takes alone; of a width that was asked for, all of them.
        const std::int32_t longest_of_one = job.virtual_warp > 0 ? longest : max(8 * lanes, 32);
        // Twins one after the other, with the same places.
        for (int r = 0; r < group; ++r) {
            if constexpr (Far) {
                sums = job.values + c_begin + r * std::int64_t{entries};
            }
            for (pass = 0; pass < all_sums; pass += sums_a_pass) {
                pass_sums = static_cast<std::int32_t>(min(all_sums - pass, std::int64_t{sums_a_pass}));
                __syncthreads();
                for (int i = thread; i < pass_sums; i += Threads) {
                    sums[i] =
                        lists ? static_cast<T>(job.offsets[c_begin + begin.entry + pass + i] - first_product) : T{0};
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
                        std::int64_t b_begin = b_row.place();
                        std::int32_t b_entries = b_row.count();
                        if (in_parts && parts > 1 && !job.atomic && b_entries > worth_searching) {
                            const std::int32_t* const b_columns = job.b.col_idx + b_begin;
                            const std::int64_t first_column = std::int64_t{first_word} * 32;
                            const std::int32_t skipped = entries_below(b_columns, b_entries, first_column);
                            b_entries = entries_below(b_columns + skipped, b_entries - skipped,
                                                      first_column + std::int64_t{words} * 32);
                            b_begin += skipped;
                        }
                        factors[i] = {b_begin, lists ? T{0} : __ldg(job.a_values + a_begin + r * a_entries + at + i),
                                      b_entries};
                        if (b_entries > longest) {
                            long_rows[atomicAdd(&long_count, 1)] = i;
                        }
                    }
                    __syncthreads();
                    for (int t = 0; t < long_count; ++t) {
                        const int own = long_rows[t];
                        const Factor<T> f = factors[own];
                        add_row(f, a_begin + at + own, thread, Threads, job.atomic);
                        __syncthreads();
                    }
                    // Segments of middling rows are dealt to the warps in turn.
                    for (int t = 0, turn = 0; t < batch; t += 32) {
                        constexpr int warps = Threads / 32;
                        constexpr int segment = 32 * in_flight;
                        const std::int32_t of_lane = t + thread % 32 < batch ? factors[t + thread % 32].entries : 0;
                        unsigned middling = __ballot_sync(whole_warp, of_lane > longest_of_one && of_lane <= longest);
                        for (; middling != 0; middling &= middling - 1) {
                            const int own = t + __ffs(static_cast<int>(middling)) - 1;
                            Factor<T> f = factors[own];
                            const std::int32_t all = f.entries;
                            const int segments = (all + segment - 1) / segment;
                            for (int i = (thread / 32 - turn) & (warps - 1); i < segments; i += warps) {
                                f.entries = min(all, (i + 1) * segment);
                                add_row(f, a_begin + at + own, i * segment + thread % 32, 32, true);
                            }
                            turn += segments;
                        }
                    }
                    for (int t = thread / lanes; t < batch; t += in_flight * virtual_warps) {
                        std::int32_t column[in_flight];
                        T product[in_flight];
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            const int own = t + u * virtual_warps;
                            column[u] = -1;
                            if (own < batch && factors[own].entries <= longest_of_one && lane < factors[own].entries) {
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
                                add_row(factors[own], a_begin + at + own, lane + lanes, lanes, true);
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
                        to[begin.entry + pass + i] = job.alpha * (Far ? __ldcg(sums + i) : sums[i]);
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
    return is_block_hash(c)   ? kernel_of<Lookup::hash, Of, T>(threads)
           : is_rank(c)       ? kernel_of<Lookup::rank, Of, T>(threads)
           : is_packed(c)     ? kernel_of<Lookup::packed, Of, T>(threads)
           : is_rank_far(c)   ? block_kernel<Lookup::rank, true, Of, 1024, T>
           : is_packed_far(c) ? block_kernel<Lookup::packed, true, Of, 1024, T>
                              : block_kernel<Lookup::search, true, Of, 512, T>;
}

}  // namespace

template <class T>
void run_numeric_block(const NumericJob<T>& job, NumericClass c, Work work, const std::int32_t* list,
                       std::int64_t count, Overlap overlap, cudaStream_t stream)
{
    const Shape shape = numeric_shape(c, sizeof(T));
    const std::int64_t blocks = c == NumericClass::scatter ? std::min<std::int64_t>(count, job.map_rows)
                                : is_in_parts(c)           ? count * job.most_parts
                                                           : count;
    const Kernel<T> kernel = work == Work::list           ? kernel_of<Work::list, T>(c, shape.threads)
                             : c == NumericClass::chunks  ? block_kernel<Lookup::chunk, false, Work::sum, 512, T>
                             : c == NumericClass::scatter ? block_kernel<Lookup::map, true, Work::sum, 512, T>
                                                          : kernel_of<Work::sum, T>(c, shape.threads);
    launch_overlapping(kernel, blocks, shape.threads, static_cast<unsigned>(shape.bytes), overlap, stream, job, list,
                       count, static_cast<int>(numeric_capacity(c)));
}

#define RMSP_INSTANTIATE(T)                                                                                      \
    template void run_numeric_block(const NumericJob<T>&, NumericClass, Work, const std::int32_t*, std::int64_t, \
                                    Overlap, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
