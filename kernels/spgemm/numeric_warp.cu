#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/numeric.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int warp_threads = most_threads_of_warps;

/// From a column to its place in the row of C: a hash table, with linear probing, of words of 32 columns. A slot holds
/// the word's distance from the row's first, the entries before it, and its mask. Where there are as many slots as
/// words in the row's span, a word's slot is its distance.
struct WordTable {
    static constexpr unsigned free_slot = 0xffffffffu;
    uint2* slots;
    unsigned last;  ///< slots - 1
    unsigned factor;
    int shift;

    __device__ __forceinline__ WordTable(void* at, std::int32_t words, std::int64_t span_words)
        : slots(static_cast<uint2*>(at)), last(static_cast<unsigned>(word_slots_of(words)) - 1u)
    {
        // The upper bits of a product with 2^32 over the golden ratio: neighbours, and words a power of two apart,
        // spread evenly.
        const bool direct = span_words <= last + 1u;
        factor = direct ? 1u : 0x9e3779b1u;
        shift = direct ? 0 : __clz(static_cast<int>(last));
    }
    /// As word_slots(), without its loop.
    static __device__ __forceinline__ int word_slots_of(std::int32_t words)
    {
        return words <= 4 ? 16 : 1 << (32 - __clz(slots_a_word(words) * words - 1));
    }
    __device__ __forceinline__ bool direct() const { return shift == 0; }
    __device__ __forceinline__ unsigned size() const { return last + 1u; }
    __device__ __forceinline__ void clear(int lane, int lanes)
    {
        for (unsigned i = lane; i <= last && !direct(); i += lanes) {
            slots[i].x = free_slot;
        }
    }
    __device__ __forceinline__ void insert(unsigned word, unsigned before, std::uint32_t mask)
    {
        unsigned slot = word * factor >> shift;
        const unsigned key = word << place_bits | before;
        if (direct()) {
            slots[slot] = {key, mask};
            return;
        }
        while (atomicCAS(&slots[slot].x, free_slot, key) != free_slot) {
            slot = (slot + 1) & last;
        }
        slots[slot].y = mask;
    }
    /// Slot of a word that is there.
    __device__ __forceinline__ unsigned find(unsigned word) const
    {
        unsigned slot = word * factor >> shift;
        while (true) {
            const unsigned key = slots[slot].x;
            if (key >> place_bits == word || key == free_slot) {
                return slot;
            }
            slot = (slot + 1) & last;
        }
    }
    /// Place of a column that is there.
    __device__ __forceinline__ unsigned place(std::int32_t column, std::int32_t first_word) const
    {
        const auto word = static_cast<unsigned>((column >> 5) - first_word);
        unsigned slot = word * factor >> shift;
        uint2 s = slots[slot];
        while (s.x >> place_bits != word && s.x != free_slot) {
            slot = (slot + 1) & last;
            s = slots[slot];
        }
        return (s.x & ((1u << place_bits) - 1u)) + __popc(s.y & bits_below(column));
    }
};

/// An entry of `Most` rows of A and its row of B.
template <class T, int Most>
struct alignas(16) WarpFactor {
    Extent b_row;
    T value[Most];
};

/// Greatest of the warp, of numbers below 2^31.
__device__ __forceinline__ std::int64_t most_of_warp(std::int64_t x)
{
    return __reduce_max_sync(whole_warp, static_cast<unsigned>(x));
}

enum class Sums { window, hash };

/// Rows of C whose sums a group of `Lanes` threads of a warp adds up alone. The lanes take one row of B at a time,
/// whose columns differ, so that sums need no atomics. `Most`: how many twins are taken together, of rows of A, and of
/// rows of B; of those `StepsOfTwins` are in flight. `bytes`: of shared memory for a row.
template <Sums In, Work Of, int Lanes, int Most, int StepsOfTwins, class T>
__global__ void __launch_bounds__(warp_threads)
    warp_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count,
                int bytes)
{
    static_assert(Most == 1 || Lanes == 32);
    constexpr bool window = In == Sums::window;
    constexpr bool lists = Of == Work::list;
    static_assert(Most == 1 || !lists);
    constexpr int in_flight = 4;                        // loads that a thread issues before it uses the first
    constexpr int rows_a_block = warp_threads / Lanes;  // at most
    constexpr int most_chunks = 4;                      // of a row of B, to be taken among others
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ WarpFactor<T, Most> factors[rows_a_block][Lanes];
    __shared__ unsigned short steps[rows_a_block][Most == 1 ? most_chunks * Lanes : 1];
    let_next_begin();
    const LaneGroup<Lanes> of_row(list, count);
    const int own = of_row.own;
    const int lane = of_row.lane;
    const bool active = of_row.active;
    const unsigned group_lanes = of_row.mask();
    if (Lanes == 32 && !active) {
        wait_for_previous();
        return;
    }
    const std::int64_t row = of_row.row;
    const std::int64_t c_begin = job.row_ptr[row];
    const int entries = active ? static_cast<int>(job.row_ptr[row + 1] - c_begin) : 0;
    const RowBounds bounds = job.bounds[row];
    const int group = Most == 1 ? 1 : job.groups[row];
    unsigned char* const own_shared = shared + static_cast<std::size_t>(own) * bytes;
    const std::int32_t first_word = bounds.first >> 5;
    const RowSource source = source_of(job, row);
    // A group without a row has room for the smallest table, not for that of row 0.
    WordTable table(own_shared, active ? source.count : 0, bounds.span_words());
    T* const sums = reinterpret_cast<T*>(own_shared + (window ? 0 : table.size() * sizeof(uint2)));
    const int plane = window ? static_cast<int>(bounds.span()) : entries;  // sums of a row of the group
    if (!window) {
        table.clear(lane, Lanes);
        __syncwarp();
    }
    // A window needs the words for C's columns alone.
    const int words = active && source.words != nullptr && (!window || job.fills) ? source.count : 0;
    const int most_words = Lanes == 32 ? words : static_cast<int>(most_of_warp(words));
    // The columns are put together where the sums will be.
    auto* const columns = reinterpret_cast<std::int32_t*>(sums);
    int before = 0;
    for (int i = 0; i < most_words; i += Lanes) {
        const Word word = i + lane < words ? load(source.words + i + lane) : Word{0, 0};
        const int has = __popc(word.mask);
        const int through = before + sum_through<Lanes>(has, lane);
        if (!window && has > 0) {
            table.insert(static_cast<unsigned>(word.index - first_word), static_cast<unsigned>(through - has),
                         word.mask);
        }
        if (job.fills) {
            write_columns(word, columns + through - has);
        }
        before = __shfl_sync(whole_warp, through, Lanes - 1, Lanes);
    }
    __syncwarp();
    if (words > 0) {
        for (int i = lane; i < entries && job.fills; i += Lanes) {
            const std::int32_t column = columns[i];
            for (int r = 0; r < group; ++r) {
                job.col_idx[c_begin + std::int64_t{r} * entries + i] = column;
            }
        }
    } else if (!window) {
        const std::int32_t* const from = job.col_idx + c_begin;
        for (int i = lane; i < entries; i += Lanes) {
            const std::int32_t word = from[i] >> 5;
            if (i == 0 || from[i - 1] >> 5 != word) {
                table.insert(static_cast<unsigned>(word - first_word), static_cast<unsigned>(i), 0);
            }
        }
        __syncwarp(group_lanes);
        for (int i = lane; i < entries; i += Lanes) {
            const std::int32_t column = from[i];
            atomicOr(&table.slots[table.find(static_cast<unsigned>((column >> 5) - first_word))].y,
                     1u << (column & 31));
        }
    }
    __syncwarp();
    if constexpr (lists) {
        // Where an entry's next product goes.
        for (int i = lane; i < entries; i += Lanes) {
            const int place = window ? job.col_idx[c_begin + i] - bounds.first : i;
            sums[place] = static_cast<T>(job.offsets[c_begin + i] - job.offsets[c_begin]);
        }
    } else {
        for (int i = lane; i < plane * group && active; i += Lanes) {
            sums[i] = T{0};
        }
    }
    ProductRef* const products = lists ? job.products + job.offsets[c_begin] : nullptr;
    __syncwarp();

    const auto place_of = [&](std::int32_t column) {
        if constexpr (window) {
            return static_cast<unsigned>(column - bounds.first);
        } else {
            return table.place(column, first_word);
        }
    };
    const std::int64_t a_begin = job.a.row_ptr[row];
    const std::int64_t a_entries = active ? job.a.row_ptr[row + 1] - a_begin : 0;
    const std::int64_t most_entries = Lanes == 32 ? a_entries : most_of_warp(a_entries);
    for (std::int64_t at = 0; at < most_entries; at += Lanes) {
        const bool in = at + lane < a_entries;
        std::int32_t k = -1;
        std::int32_t length = 0;
        if (in) {
            k = __ldg(job.a.col_idx + a_begin + at + lane);
            const Extent b_row = load(job.b_entries + k);
            length = b_row.count();
            factors[own][lane].b_row = b_row;
#pragma unroll
            for (int r = 0; r < Most; ++r) {
                if (r < group) {
                    factors[own][lane].value[r] = __ldg(job.a_values + a_begin + r * a_entries + at + lane);
                }
            }
        }
        if constexpr (Most == 1) {
            // Steps of `Lanes` entries of a row of B; several are in flight, their sums are added one after the other.
            const int chunks = (length + Lanes - 1) / Lanes;
            const bool is_long = chunks > most_chunks;
            const bool one_each = __all_sync(whole_warp, chunks <= 1);
            int total = static_cast<int>(min(static_cast<long long>(a_entries - at), static_cast<long long>(Lanes)));
            if (!one_each) {
                const int own_steps = is_long ? 0 : chunks;
                const int through = sum_through<Lanes>(own_steps, lane);
                total = __shfl_sync(whole_warp, through, Lanes - 1, Lanes);
                for (int c = 0; c < own_steps; ++c) {
                    steps[own][through - own_steps + c] = static_cast<unsigned short>(lane | c << 8);
                }
            }
            __syncwarp();
            const int most_steps = Lanes == 32 ? total : static_cast<int>(most_of_warp(max(total, 0)));
            for (int s = 0; s < most_steps; s += in_flight) {
                // A product waits for its loads, so that it comes after all of them.
                std::int32_t column[in_flight];
                T value[in_flight];
                T factor[in_flight];
                ProductRef ref[in_flight];
#pragma unroll
                for (int u = 0; u < in_flight; ++u) {
                    column[u] = -1;
                    value[u] = T{0};
                    factor[u] = T{0};
                    if (s + u < total) {
                        const int step = one_each ? s + u : steps[own][s + u];
                        const WarpFactor<T, Most> f = factors[own][step & 255];
                        const int j = (step >> 8) * Lanes + lane;
                        if (j < f.b_row.count()) {
                            const std::int64_t from = f.b_row.place() + j;
                            column[u] = __ldg(job.b.col_idx + from);
                            if constexpr (lists) {
                                ref[u] = {static_cast<std::int32_t>(a_begin + at) + (step & 255),
                                          static_cast<std::int32_t>(from)};
                            } else {
                                value[u] = __ldg(job.b_values + from);
                                factor[u] = f.value[0];
                            }
                        }
                    }
                }
                T* to[in_flight];
#pragma unroll
                for (int u = 0; u < in_flight; ++u) {
                    to[u] = sums + (column[u] >= 0 ? place_of(column[u]) : 0u);
                }
#pragma unroll
                for (int u = 0; u < in_flight; ++u) {
                    if (column[u] >= 0) {
                        if constexpr (lists) {
                            products[next_place(to[u], job.atomic)] = ref[u];
                        } else {
                            add(to[u], factor[u] * value[u], job.atomic);
                        }
                    }
                    __syncwarp();
                }
            }
            for (unsigned rest = __ballot_sync(whole_warp, is_long) & group_lanes; rest != 0; rest &= rest - 1) {
                const int t = (__ffs(static_cast<int>(rest)) - 1) % Lanes;
                const WarpFactor<T, Most> f = factors[own][t];
                const T factor = f.value[0];
                const std::int32_t b_entries = f.b_row.count();
                const std::int64_t b_begin = f.b_row.place();
                for (std::int32_t j = lane; j < b_entries; j += in_flight * Lanes) {
                    std::int32_t column[in_flight];
                    T product[in_flight];
#pragma unroll
                    for (int u = 0; u < in_flight; ++u) {
                        const std::int32_t at_j = j + u * Lanes;
                        const bool there = at_j < b_entries;
                        column[u] = there ? __ldg(job.b.col_idx + b_begin + at_j) : -1;
                        product[u] = there && !lists ? __ldg(job.b_values + b_begin + at_j) : T{0};
                    }
                    if constexpr (lists) {
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            if (column[u] >= 0) {
                                products[next_place(sums + place_of(column[u]), job.atomic)] = {
                                    static_cast<std::int32_t>(a_begin + at) + t,
                                    static_cast<std::int32_t>(b_begin) + j + u * Lanes};
                            }
                        }
                    } else if (job.atomic) {
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            if (column[u] >= 0) {
                                atomicAdd(sums + place_of(column[u]), factor * product[u]);
                            }
                        }
                    } else {
                        // The columns of a row of B differ.
                        T* to[in_flight];
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            if (column[u] >= 0) {
                                to[u] = sums + place_of(column[u]);
                                product[u] = *to[u] + factor * product[u];
                            }
                        }
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            if (column[u] >= 0) {
                                *to[u] = product[u];
                            }
                        }
                    }
                }
                __syncwarp(group_lanes);
            }
            __syncwarp();
        } else {
            const int batch = static_cast<int>(min(static_cast<long long>(a_entries - at), 32ll));
            // Entries whose row of B is a twin of that of the entry before.
            const std::int32_t left = __shfl_up_sync(whole_warp, k, 1);
            const unsigned joined = __ballot_sync(whole_warp, in && lane > 0 && k == left + 1 && job.b_twins[k] != 0);
            __syncwarp();
            for (int t = 0; t < batch;) {
                const Extent b_row = factors[own][t].b_row;
                const std::int32_t b_entries = b_row.count();
                const std::int64_t b_begin = b_row.place();
                const T* const b_values = job.b_values + b_begin;
                const int together = t == 31 ? 1 : min(__ffs(static_cast<int>(~(joined >> (t + 1)))), Most);
                // `All` of the twins that there is room for are there, on both sides.
                const auto multiply = [&]<bool All>() {
                    T factor[Most][Most];
#pragma unroll
                    for (int u = 0; u < Most; ++u) {
#pragma unroll
                        for (int r = 0; r < Most; ++r) {
                            factor[u][r] = All || (u < together && r < group) ? factors[own][t + u].value[r] : T{0};
                        }
                    }
                    constexpr int steps_in_flight = StepsOfTwins;
                    for (std::int32_t j = lane; j < b_entries; j += steps_in_flight * 32) {
                        std::int32_t column[steps_in_flight];
                        T value[steps_in_flight][Most];
#pragma unroll
                        for (int v = 0; v < steps_in_flight; ++v) {
                            const std::int32_t at_j = j + v * 32;
                            const bool there = at_j < b_entries;
                            column[v] = there ? __ldg(job.b.col_idx + b_begin + at_j) : 0;
#pragma unroll
                            for (int u = 0; u < Most; ++u) {
                                value[v][u] =
                                    there && (All || u < together) ? __ldg(b_values + u * b_entries + at_j) : T{0};
                            }
                        }
#pragma unroll
                        for (int v = 0; v < steps_in_flight; ++v) {
                            if (j + v * 32 < b_entries) {
                                T* const to = sums + place_of(column[v]);
#pragma unroll
                                for (int r = 0; r < Most; ++r) {
                                    if (All || r < group) {
                                        T product = factor[0][r] * value[v][0];
#pragma unroll
                                        for (int u = 1; u < Most; ++u) {
                                            if (All || u < together) {
                                                product += factor[u][r] * value[v][u];
                                            }
                                        }
                                        add(to + r * plane, product, job.atomic);
                                    }
                                }
                            }
                        }
                    }
                };
                if (together == Most && group == Most) {
                    multiply.template operator()<true>();
                } else {
                    multiply.template operator()<false>();
                }
                t += together;
                __syncwarp();
            }
        }
    }
    for (int r = 0; r < group && !lists; ++r) {
        for (int i = lane; i < entries; i += Lanes) {
            const int place = window ? job.col_idx[c_begin + i] - bounds.first : i;
            job.values[c_begin + std::int64_t{r} * entries + i] = job.alpha * sums[r * plane + place];
        }
    }
    wait_for_previous();
}

template <class T>
using Kernel = void (*)(NumericJob<T>, const std::int32_t*, std::int64_t, int);

template <Sums In, int Steps, class T>
Kernel<T> twin_kernel_of(int most_in_group)
{
    return most_in_group == 2   ? warp_kernel<In, Work::sum, 32, 2, Steps, T>
           : most_in_group == 3 ? warp_kernel<In, Work::sum, 32, 3, Steps, T>
                                : warp_kernel<In, Work::sum, 32, most_twins, Steps, T>;
}

template <Sums In, class T>
Kernel<T> kernel_of(const Shape& shape, Work work, int most_in_group)
{
    if (most_in_group > 1) {
        // Where shared memory lets few warps run, each has more loads in flight.
        return shape.bytes > 8192 ? twin_kernel_of<In, 3, T>(most_in_group) : twin_kernel_of<In, 2, T>(most_in_group);
    }
    const int lanes = shape.threads_a_row;
    if (work == Work::list) {
        return lanes == 8    ? warp_kernel<In, Work::list, 8, 1, 1, T>
               : lanes == 16 ? warp_kernel<In, Work::list, 16, 1, 1, T>
                             : warp_kernel<In, Work::list, 32, 1, 1, T>;
    }
    return lanes == 8    ? warp_kernel<In, Work::sum, 8, 1, 1, T>
           : lanes == 16 ? warp_kernel<In, Work::sum, 16, 1, 1, T>
                         : warp_kernel<In, Work::sum, 32, 1, 1, T>;
}

}  // namespace

template <class T>
void run_numeric_warp(const NumericJob<T>& job, NumericClass c, Work work, int lanes, const std::int32_t* list,
                      std::int64_t count, Overlap overlap, cudaStream_t stream)
{
    const Shape shape = numeric_shape(c, sizeof(T), job.most_in_group, lanes);
    const int rows = shape.threads / shape.threads_a_row;
    const int twins = job.most_in_group;
    const Kernel<T> kernel =
        is_window(c) ? kernel_of<Sums::window, T>(shape, work, twins) : kernel_of<Sums::hash, T>(shape, work, twins);
    launch_overlapping(kernel, (count + rows - 1) / rows, shape.threads, static_cast<unsigned>(rows * shape.bytes),
                       overlap, stream, job, list, count, static_cast<int>(shape.bytes));
}

#define RMSP_INSTANTIATE(T)                                                                                          \
    template void run_numeric_warp(const NumericJob<T>&, NumericClass, Work, int, const std::int32_t*, std::int64_t, \
                                   Overlap, cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
