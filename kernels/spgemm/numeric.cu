#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {
namespace {

constexpr int warp_threads = most_threads_of_warps;

/// An entry of a row of A and the row of B that it multiplies.
template <class T>
struct Factor {
    std::int64_t begin;
    T value;
    std::int32_t entries;
};

/// Loads that a thread issues before it uses the first.
constexpr int in_flight = 4;
constexpr unsigned not_there = 0xffffffffu;

/// A place in a hash table: column, and its place in the row of C.
using Slot = uint2;
constexpr unsigned free_slot = 0xffffffffu;

/// The upper bits of a product with 2^32 over the golden ratio: neighbours, and columns a power of two apart, spread evenly over the
/// table.
__device__ __forceinline__ unsigned first_slot(unsigned column, unsigned mask)
{
    return (column * 0x9e3779b1u) >> __clz(static_cast<int>(mask));
}

__device__ __forceinline__ void insert(Slot* table, unsigned mask, unsigned column, unsigned place)
{
    unsigned slot = first_slot(column, mask);
    while (atomicCAS(&table[slot].x, free_slot, column) != free_slot) {
        slot = (slot + 1) & mask;
    }
    table[slot].y = place;
}

/// Place of a column that is there.
__device__ __forceinline__ unsigned find(const Slot* table, unsigned mask, unsigned column)
{
    unsigned slot = first_slot(column, mask);
    while (true) {
        const Slot s = table[slot];
        if (s.x == column || s.x == free_slot) {
            return s.y;
        }
        slot = (slot + 1) & mask;
    }
}

/// Greatest of the warp, of numbers below 2^31.
__device__ __forceinline__ std::int64_t most_of_warp(std::int64_t x)
{
    return __reduce_max_sync(whole_warp, static_cast<unsigned>(x));
}

template <class T>
__device__ __forceinline__ void add(T* to, T value, bool atomic)
{
    if (atomic) {
        atomicAdd(to, value);
    } else {
        *to += value;
    }
}

/// Rows of C whose sums a group of `Lanes` threads of a warp adds up alone. The lanes take one row of B at a time, whose columns
/// differ, so that sums need no atomics. `Most`: how many twins are taken together, of rows of A, and of rows of B.
template <bool Window, int Lanes, int Most, class T>
__global__ void __launch_bounds__(warp_threads)
    warp_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count,
                int capacity)
{
    static_assert(Most == 1 || Lanes == 32);
    constexpr int rows_a_block = warp_threads / Lanes;  // at most
    extern __shared__ unsigned char shared[];
    __shared__ std::int64_t begins[rows_a_block][Lanes];
    __shared__ std::int32_t lengths[rows_a_block][Lanes];
    __shared__ T factors[rows_a_block][Lanes][Most];
    const int own = static_cast<int>(threadIdx.x) / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const std::int64_t index = std::int64_t{blockIdx.x} * (blockDim.x / Lanes) + own;
    const bool active = index < count;
    let_next_begin();
    if (Lanes == 32 && !active) {
        wait_for_previous();
        return;
    }
    const std::int64_t row = active ? list[index] : 0;
    const std::int64_t c_begin = job.row_ptr[row];
    const int entries = active ? static_cast<int>(job.row_ptr[row + 1] - c_begin) : 0;
    const std::int32_t* const columns = job.col_idx + c_begin;
    const int group = Most == 1 ? 1 : job.groups[row];
    const unsigned mask = static_cast<unsigned>(2 * capacity - 1);
    Slot* table = nullptr;
    T* sums;  // of each row of the group, `capacity` apart
    std::int32_t first = 0;
    int used = entries;
    if constexpr (Window) {
        sums = reinterpret_cast<T*>(shared) + own * capacity * (Most == 1 ? 1 : job.most_in_group);
        const RowBounds bounds = job.bounds[row];
        first = bounds.first;
        used = active ? static_cast<int>(bounds.span()) : 0;
    } else {
        unsigned char* const at = shared + own * hash_bytes(capacity, sizeof(T), Most == 1 ? 1 : job.most_in_group);
        table = reinterpret_cast<Slot*>(at);
        sums = reinterpret_cast<T*>(at + 2 * capacity * sizeof(Slot));
        for (int i = lane; i < 2 * capacity; i += Lanes) {
            table[i] = {free_slot, 0};
        }
        __syncwarp();
        for (int i = lane; i < entries; i += Lanes) {
            insert(table, mask, static_cast<unsigned>(__ldg(columns + i)), static_cast<unsigned>(i));
        }
    }
    for (int r = 0; r < group; ++r) {
        for (int i = lane; i < used; i += Lanes) {
            sums[r * capacity + i] = T{0};
        }
    }
    __syncwarp();

    const auto place_of = [&](std::int32_t column) {
        return Window ? static_cast<unsigned>(column - first) : find(table, mask, static_cast<unsigned>(column));
    };
    const std::int64_t a_begin = job.a.row_ptr[row];
    const std::int64_t a_entries = active ? job.a.row_ptr[row + 1] - a_begin : 0;
    const std::int64_t steps = Lanes == 32 ? a_entries : most_of_warp(a_entries);
    for (std::int64_t at = 0; at < steps; at += Lanes) {
        const bool in = at + lane < a_entries;
        std::int32_t k = -1;
        std::int32_t length = 0;
        if (in) {
            k = __ldg(job.a.col_idx + a_begin + at + lane);
            begins[own][lane] = job.b.row_ptr[k];
            length = __ldg(&job.b_rows[k].entries);
#pragma unroll
            for (int r = 0; r < Most; ++r) {
                if (r < group) {
                    factors[own][lane][r] = __ldg(job.a_values + a_begin + r * a_entries + at + lane);
                }
            }
        }
        lengths[own][lane] = length;
        const int batch = static_cast<int>(min(static_cast<long long>(steps - at), static_cast<long long>(Lanes)));
        unsigned joined = 0;  // entries whose row of B is a twin of that of the entry before
        if constexpr (Most > 1) {
            const std::int32_t left = __shfl_up_sync(whole_warp, k, 1);
            joined = __ballot_sync(whole_warp, in && lane > 0 && k == left + 1 && job.b_twins[k] != 0);
        }
        __syncwarp();
        if constexpr (Most == 1) {
            const bool short_rows = __all_sync(whole_warp, length <= Lanes) && !job.atomic;
            for (int t = 0; t < batch;) {
                if (short_rows) {
                    // Several rows of B in flight; their sums one after the other.
                    unsigned place[in_flight];
                    T product[in_flight];
#pragma unroll
                    for (int u = 0; u < in_flight; ++u) {
                        const int step = min(t + u, Lanes - 1);
                        place[u] = not_there;
                        product[u] = T{0};
                        if (t + u < batch && lane < lengths[own][step]) {
                            const std::int64_t j = begins[own][step] + lane;
                            place[u] = static_cast<unsigned>(__ldg(job.b.col_idx + j));
                            product[u] = __ldg(job.b_values + j);
                        }
                    }
#pragma unroll
                    for (int u = 0; u < in_flight; ++u) {
                        const bool there = place[u] != not_there;
                        place[u] = there ? place_of(static_cast<std::int32_t>(place[u])) : 0;
                        product[u] *= factors[own][min(t + u, Lanes - 1)][0];
                        if (there) {
                            sums[place[u]] += product[u];
                        }
                        __syncwarp();
                    }
                    t += in_flight;
                } else {
                    const T factor = factors[own][t][0];
                    const std::int32_t b_entries = lengths[own][t];
                    const std::int32_t* const b_cols = job.b.col_idx + begins[own][t];
                    const T* const b_values = job.b_values + begins[own][t];
                    for (std::int32_t j = lane; j < b_entries; j += in_flight * Lanes) {
                        std::int32_t column[in_flight];
                        T product[in_flight];
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            const bool there = j + u * Lanes < b_entries;
                            column[u] = there ? __ldg(b_cols + j + u * Lanes) : 0;
                            product[u] = there ? __ldg(b_values + j + u * Lanes) : T{0};
                        }
                        if (job.atomic) {
#pragma unroll
                            for (int u = 0; u < in_flight; ++u) {
                                if (j + u * Lanes < b_entries) {
                                    atomicAdd(sums + place_of(column[u]), factor * product[u]);
                                }
                            }
                        } else {
                            // The columns of a row of B differ.
                            T* to[in_flight];
#pragma unroll
                            for (int u = 0; u < in_flight; ++u) {
                                if (j + u * Lanes < b_entries) {
                                    to[u] = sums + place_of(column[u]);
                                    product[u] = *to[u] + factor * product[u];
                                }
                            }
#pragma unroll
                            for (int u = 0; u < in_flight; ++u) {
                                if (j + u * Lanes < b_entries) {
                                    *to[u] = product[u];
                                }
                            }
                        }
                    }
                    ++t;
                    __syncwarp();
                }
            }
        } else {
            for (int t = 0; t < batch;) {
                const std::int32_t b_entries = lengths[own][t];
                const std::int32_t* const b_cols = job.b.col_idx + begins[own][t];
                const T* const b_values = job.b_values + begins[own][t];
                const int together = t == 31 ? 1 : min(__ffs(static_cast<int>(~(joined >> (t + 1)))), Most);
                T factor[Most][Most];
#pragma unroll
                for (int u = 0; u < Most; ++u) {
#pragma unroll
                    for (int r = 0; r < Most; ++r) {
                        factor[u][r] = u < together && r < group ? factors[own][t + u][r] : T{0};
                    }
                }
                constexpr int steps_in_flight = 2;
                for (std::int32_t j = lane; j < b_entries; j += steps_in_flight * 32) {
                    std::int32_t column[steps_in_flight];
                    T value[steps_in_flight][Most];
#pragma unroll
                    for (int v = 0; v < steps_in_flight; ++v) {
                        const std::int32_t at_j = j + v * 32;
                        const bool there = at_j < b_entries;
                        column[v] = there ? __ldg(b_cols + at_j) : 0;
#pragma unroll
                        for (int u = 0; u < Most; ++u) {
                            value[v][u] = there && u < together ? __ldg(b_values + u * b_entries + at_j) : T{0};
                        }
                    }
#pragma unroll
                    for (int v = 0; v < steps_in_flight; ++v) {
                        if (j + v * 32 < b_entries) {
                            T* const to = sums + place_of(column[v]);
#pragma unroll
                            for (int r = 0; r < Most; ++r) {
                                if (r < group) {
                                    T product = factor[0][r] * value[v][0];
#pragma unroll
                                    for (int u = 1; u < Most; ++u) {
                                        if (u < together) {
                                            product += factor[u][r] * value[v][u];
                                        }
                                    }
                                    add(to + r * capacity, product, job.atomic);
                                }
                            }
                        }
                    }
                }
                t += together;
                __syncwarp();
            }
        }
    }
    for (int r = 0; r < group; ++r) {
        for (int i = lane; i < entries; i += Lanes) {
            const int place = Window ? __ldg(columns + i) - first : i;
            job.values[c_begin + std::int64_t{r} * entries + i] = job.alpha * sums[r * capacity + place];
        }
    }
    wait_for_previous();
}

enum class Lookup { hash, rank, map, search };

/// Rows of C that take a block. Short rows of B are dealt to virtual warps and added atomically; long ones are taken by all threads, one
/// after the other. Where the sums do not fit beside the ranks, a run of the row's entries is computed in each pass over the rows
/// of B. `Far`: they are added up in C itself, in global memory.
template <Lookup By, bool Far, int Threads, class T>
__global__ void __launch_bounds__(Threads)
    block_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count,
                 int capacity)
{
    constexpr int batch_size = 256;
    static_assert(Threads % 32 == 0);
    extern __shared__ unsigned char shared[];
    __shared__ Factor<T> factors[batch_size];
    __shared__ int long_rows[batch_size];
    __shared__ int long_count;
    const int thread = static_cast<int>(threadIdx.x);
    let_next_begin();
    for (std::int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        const std::int64_t row = list[index];
        const RowBounds bounds = job.bounds[row];
        const std::int64_t c_begin = job.row_ptr[row];
        const auto entries = static_cast<std::int32_t>(job.row_ptr[row + 1] - c_begin);
        const std::int32_t* const columns = job.col_idx + c_begin;
        const unsigned mask = static_cast<unsigned>(2 * capacity - 1);
        const std::int32_t first = bounds.first >> 5;
        const auto words = static_cast<std::int32_t>(bounds.span_words());
        Slot* const table = reinterpret_cast<Slot*>(shared);
        // Of a word of 32 columns: which are there, and how many come before it.
        uint2* const rank = reinterpret_cast<uint2*>(shared);
        std::int32_t* const map = By == Lookup::map ? job.map + blockIdx.x * job.b.cols : nullptr;
        T* sums = job.values + c_begin;
        std::int32_t entries_a_pass = entries;
        if constexpr (By == Lookup::hash) {
            sums = reinterpret_cast<T*>(shared + 2 * capacity * sizeof(Slot));
            for (int i = thread; i < 2 * capacity; i += Threads) {
                table[i] = {free_slot, 0};
            }
        } else if constexpr (By == Lookup::rank) {
            if constexpr (!Far) {
                sums = reinterpret_cast<T*>(shared + words * sizeof(uint2));
                entries_a_pass = static_cast<std::int32_t>((capacity - words * sizeof(uint2)) / sizeof(T));
            }
            for (int i = thread; i < words; i += Threads) {
                rank[i] = {0, 0};
            }
        }
        __syncthreads();
        for (int i = thread; i < entries; i += Threads) {
            const std::int32_t column = __ldg(columns + i);
            if constexpr (By == Lookup::hash) {
                insert(table, mask, static_cast<unsigned>(column), static_cast<unsigned>(i));
            } else if constexpr (By == Lookup::rank) {
                const std::int32_t word = column >> 5;
                atomicOr(&rank[word - first].x, 1u << (column & 31));
                if (i == 0 || __ldg(columns + i - 1) >> 5 != word) {
                    rank[word - first].y = static_cast<unsigned>(i);
                }
            } else if constexpr (By == Lookup::map) {
                map[column] = i;
            }
        }
        std::int32_t pass = 0;  // first entry of this pass
        std::int32_t pass_entries = 0;
        const auto add_up = [&](std::int32_t column, T product, bool atomic) {
            unsigned place;
            if constexpr (By == Lookup::hash) {
                place = find(table, mask, static_cast<unsigned>(column));
            } else if constexpr (By == Lookup::rank) {
                const uint2 word = rank[(column >> 5) - first];
                place = word.y + __popc(word.x & ((1u << (column & 31)) - 1u));
                if constexpr (!Far) {
                    place -= static_cast<unsigned>(pass);
                    if (place >= static_cast<unsigned>(pass_entries)) {
                        return;
                    }
                }
            } else if constexpr (By == Lookup::map) {
                place = static_cast<unsigned>(map[column]);
            } else {
                std::int32_t low = 0;
                for (std::int32_t high = entries - 1; low < high;) {
                    const std::int32_t middle = low + (high - low) / 2;
                    if (__ldg(columns + middle) < column) {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                place = static_cast<unsigned>(low);
            }
            add(sums + place, product, Far || atomic);
        };
        const std::int64_t a_begin = job.a.row_ptr[row];
        const std::int64_t a_entries = job.a.row_ptr[row + 1] - a_begin;
        const int lanes = virtual_warp(bounds.products, a_entries);
        const int lane = thread % lanes;
        const int virtual_warps = Threads / lanes;
        const std::int32_t longest = max(8 * lanes, Threads);  // of a virtual warp
        const int group = job.groups[row];
        // Twins one after the other, with the same places.
        for (int r = 0; r < group; ++r) {
            if constexpr (Far) {
                sums = job.values + c_begin + r * std::int64_t{entries};
            }
            for (pass = 0; pass < entries; pass += entries_a_pass) {
                pass_entries = min(entries - pass, entries_a_pass);
                __syncthreads();
                for (int i = thread; i < pass_entries; i += Threads) {
                    sums[i] = T{0};
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
                        const std::int32_t b_entries = __ldg(&job.b_rows[k].entries);
                        factors[i] = {job.b.row_ptr[k], __ldg(job.a_values + a_begin + r * a_entries + at + i),
                                      b_entries};
                        if (b_entries > longest) {
                            long_rows[atomicAdd(&long_count, 1)] = i;
                        }
                    }
                    __syncthreads();
                    for (int t = 0; t < long_count; ++t) {
                        const Factor<T> f = factors[long_rows[t]];
                        for (std::int32_t j = thread; j < f.entries; j += Threads) {
                            add_up(__ldg(job.b.col_idx + f.begin + j), f.value * __ldg(job.b_values + f.begin + j),
                                   job.atomic);
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
                                product[u] = factors[own].value * __ldg(job.b_values + factors[own].begin + lane);
                            }
                        }
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            const int own = t + u * virtual_warps;
                            if (column[u] >= 0) {
                                add_up(column[u], product[u], true);
                                for (std::int32_t j = lane + lanes; j < factors[own].entries; j += lanes) {
                                    add_up(__ldg(job.b.col_idx + factors[own].begin + j),
                                           factors[own].value * __ldg(job.b_values + factors[own].begin + j), true);
                                }
                            }
                        }
                    }
                }
                __syncthreads();
                T* const to = job.values + c_begin + r * std::int64_t{entries} + pass;
                for (std::int32_t i = thread; i < pass_entries; i += Threads) {
                    to[i] = job.alpha * (Far ? __ldcg(sums + i) : sums[i]);
                }
            }
        }
        __syncthreads();
    }
    wait_for_previous();
}

template <class T>
using Kernel = void (*)(NumericJob<T>, const std::int32_t*, std::int64_t, int);

template <Lookup By, bool Far, class T>
Kernel<T> block_kernel_of(int threads)
{
    switch (threads) {
        case 128:
            return block_kernel<By, Far, 128, T>;
        case 256:
            return block_kernel<By, Far, 256, T>;
        case 512:
            return block_kernel<By, Far, 512, T>;
        default:
            return block_kernel<By, Far, 1024, T>;
    }
}

template <bool Window, class T>
Kernel<T> warp_kernel_of(int lanes, int most_in_group)
{
    return most_in_group > 1 ? warp_kernel<Window, 32, most_twins, T>
           : lanes == 8      ? warp_kernel<Window, 8, 1, T>
           : lanes == 16     ? warp_kernel<Window, 16, 1, T>
                             : warp_kernel<Window, 32, 1, T>;
}

template <class T>
Kernel<T> kernel_of(NumericClass c, int lanes, int most_in_group)
{
    const int threads = numeric_shape(c, sizeof(T)).threads;
    return is_window(c)                 ? warp_kernel_of<true, T>(lanes, most_in_group)
           : is_hash(c)                 ? warp_kernel_of<false, T>(lanes, most_in_group)
           : is_block_hash(c)           ? block_kernel_of<Lookup::hash, false, T>(threads)
           : is_rank(c)                 ? block_kernel_of<Lookup::rank, false, T>(threads)
           : is_rank_far(c)             ? block_kernel_of<Lookup::rank, true, T>(threads)
           : c == NumericClass::scatter ? block_kernel<Lookup::map, true, 512, T>
                                        : block_kernel<Lookup::search, true, 512, T>;
}

}  // namespace

template <class T>
void run_numeric(const NumericJob<T>& job, NumericClass c, const std::int32_t* list, std::int64_t count,
                 Overlap overlap, cudaStream_t stream)
{
    const Shape shape = numeric_shape(c, sizeof(T), job.most_in_group, job.lanes);
    const int rows = shape.threads / shape.threads_a_row;
    std::int64_t blocks = (count + rows - 1) / rows;
    if (c == NumericClass::scatter && blocks > job.map_blocks) {
        blocks = job.map_blocks;
    }
    launch_overlapping(kernel_of<T>(c, job.lanes, job.most_in_group), blocks, shape.threads,
                       static_cast<unsigned>(rows * shape.bytes), overlap, stream, job, list, count,
                       static_cast<int>(numeric_capacity(c)));
}

template void run_numeric(const NumericJob<float>&, NumericClass, const std::int32_t*, std::int64_t, Overlap,
                          cudaStream_t);
template void run_numeric(const NumericJob<double>&, NumericClass, const std::int32_t*, std::int64_t, Overlap,
                          cudaStream_t);

}  // namespace rmsp::kernels::spgemm
