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

constexpr unsigned free_slot = 0xffffffffu;

/// The upper bits of a product with 2^32 over the golden ratio: neighbours, and columns a power of two apart, spread evenly over the
/// table.
__device__ __forceinline__ unsigned first_slot(unsigned column, unsigned slots)
{
    return __umulhi(column * 0x9e3779b1u, slots);
}
__device__ __forceinline__ unsigned next_slot(unsigned slot, unsigned slots) { return slot + 1 < slots ? slot + 1 : 0; }

/// From a column to its place in the row of C, with linear probing. A slot holds both: side by side, or in one word.
template <bool Wide>
struct Table;

template <>
struct Table<true> {
    using Slot = uint2;
    Slot* slots;
    unsigned count;

    __device__ __forceinline__ void clear(int thread, int threads)
    {
        for (unsigned i = thread; i < count; i += threads) {
            slots[i] = {free_slot, 0};
        }
    }
    __device__ __forceinline__ void insert(unsigned column, unsigned place)
    {
        unsigned slot = first_slot(column, count);
        while (atomicCAS(&slots[slot].x, free_slot, column) != free_slot) {
            slot = next_slot(slot, count);
        }
        slots[slot].y = place;
    }
    /// Of a column that is there.
    __device__ __forceinline__ unsigned find(unsigned column) const
    {
        unsigned slot = first_slot(column, count);
        while (true) {
            const Slot s = slots[slot];
            if (s.x == column || s.x == free_slot) {
                return s.y;
            }
            slot = next_slot(slot, count);
        }
    }
};

template <>
struct Table<false> {
    using Slot = unsigned;
    Slot* slots;  ///< aligned to 16 bytes
    unsigned count;

    __device__ __forceinline__ void clear(int thread, int threads)
    {
        for (unsigned i = thread; i < count / 4; i += threads) {
            reinterpret_cast<uint4*>(slots)[i] = {free_slot, free_slot, free_slot, free_slot};
        }
    }
    __device__ __forceinline__ void insert(unsigned column, unsigned place)
    {
        unsigned slot = first_slot(column, count);
        while (atomicCAS(slots + slot, free_slot, column << place_bits | place) != free_slot) {
            slot = next_slot(slot, count);
        }
    }
    __device__ __forceinline__ unsigned find(unsigned column) const
    {
        unsigned slot = first_slot(column, count);
        while (true) {
            const Slot s = slots[slot];
            if (s >> place_bits == column) {
                return s & ((1u << place_bits) - 1u);
            }
            if (s == free_slot) {
                return 0;
            }
            slot = next_slot(slot, count);
        }
    }
};

/// A row of B that a warp multiplies, in one word: where it begins, and its entries.
constexpr int length_bits = 18;
static_assert(NumericLimits{}.products_of_a_warp < 1 << length_bits);

/// An entry of `Most` rows of A and its row of B.
template <class T, int Most>
struct alignas(16) WarpFactor {
    unsigned long long b_row;
    T value[Most];
};

/// Columns of a row of C: those that were counted, which are written to C as well, or C's own.
struct Columns {
    const std::int32_t* from;
    std::int32_t* to;  ///< null if they are there
    __device__ __forceinline__ std::int32_t operator[](std::int64_t i) const { return __ldg(from + i); }
    /// For each row of a group.
    __device__ __forceinline__ void write(std::int64_t i, std::int32_t column, std::int64_t entries, int group) const
    {
        if (to != nullptr) {
            for (int r = 0; r < group; ++r) {
                to[r * entries + i] = column;
            }
        }
    }
};

template <class T>
__device__ __forceinline__ Columns columns_of(const NumericJob<T>& job, std::int64_t row, std::int64_t c_begin)
{
    const std::int64_t place = job.stored != nullptr ? job.stored[row] : -1;
    return place < 0 ? Columns{job.col_idx + c_begin, nullptr} : Columns{job.pool + place, job.columns + c_begin};
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

enum class Sums { window, hash, wide_hash };

/// Rows of C whose sums a group of `Lanes` threads of a warp adds up alone. The lanes take one row of B at a time, whose columns
/// differ, so that sums need no atomics. `Most`: how many twins are taken together, of rows of A, and of rows of B.
template <Sums In, int Lanes, int Most, class T>
__global__ void __launch_bounds__(warp_threads)
    warp_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list, std::int64_t count,
                int capacity)
{
    static_assert(Most == 1 || Lanes == 32);
    constexpr bool window = In == Sums::window;
    constexpr int rows_a_block = warp_threads / Lanes;  // at most
    constexpr int most_chunks = 4;                      // of a row of B, to be taken among others
    using Places = Table<In == Sums::wide_hash>;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ WarpFactor<T, Most> factors[rows_a_block][Lanes];
    __shared__ unsigned short steps[rows_a_block][Most == 1 ? most_chunks * Lanes : 1];
    const int own = static_cast<int>(threadIdx.x) / Lanes;
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    const unsigned group_lanes =
        Lanes == 32 ? whole_warp : ((1u << Lanes % 32) - 1u) << (threadIdx.x % 32 / Lanes * Lanes);
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
    const Columns columns = columns_of(job, row, c_begin);
    const RowBounds bounds = job.bounds[row];
    const int group = Most == 1 ? 1 : job.groups[row];
    const int planes = Most == 1 ? 1 : job.most_in_group;
    // What a column is counted from.
    const std::int32_t first = In == Sums::wide_hash ? 0 : bounds.first;
    Places places{nullptr, static_cast<unsigned>(2 * capacity)};
    T* sums;  // of each row of the group, `capacity` apart
    int used = entries;
    if constexpr (window) {
        sums = reinterpret_cast<T*>(shared) + own * capacity * planes;
        used = active ? static_cast<int>(bounds.span()) : 0;
    } else {
        unsigned char* const at = shared + own * hash_bytes(capacity, sizeof(T), planes, sizeof(typename Places::Slot));
        places.slots = reinterpret_cast<typename Places::Slot*>(at);
        sums = reinterpret_cast<T*>(at + 2 * capacity * sizeof(typename Places::Slot));
        places.clear(lane, Lanes);
        __syncwarp();
        for (int i = lane; i < entries; i += Lanes) {
            const std::int32_t column = columns[i];
            columns.write(i, column, entries, group);
            places.insert(static_cast<unsigned>(column - first), static_cast<unsigned>(i));
        }
    }
    for (int r = 0; r < group; ++r) {
        for (int i = lane; i < used; i += Lanes) {
            sums[r * capacity + i] = T{0};
        }
    }
    __syncwarp();

    const auto place_of = [&](std::int32_t column) {
        const auto distance = static_cast<unsigned>(column - first);
        if constexpr (window) {
            return distance;
        } else {
            return places.find(distance);
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
            length = __ldg(&job.b_rows[k].entries);
            factors[own][lane].b_row =
                static_cast<unsigned long long>(job.b.row_ptr[k]) << length_bits | static_cast<unsigned>(length);
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
                int through = own_steps;
#pragma unroll
                for (int d = 1; d < Lanes; d *= 2) {
                    const int left = __shfl_up_sync(whole_warp, through, d, Lanes);
                    through += lane >= d ? left : 0;
                }
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
#pragma unroll
                for (int u = 0; u < in_flight; ++u) {
                    column[u] = -1;
                    value[u] = T{0};
                    factor[u] = T{0};
                    if (s + u < total) {
                        const int step = one_each ? s + u : steps[own][s + u];
                        const WarpFactor<T, Most> f = factors[own][step & 255];
                        const int j = (step >> 8) * Lanes + lane;
                        if (j < static_cast<int>(f.b_row & ((1u << length_bits) - 1u))) {
                            const std::int64_t from = static_cast<std::int64_t>(f.b_row >> length_bits) + j;
                            column[u] = __ldg(job.b.col_idx + from);
                            value[u] = __ldg(job.b_values + from);
                            factor[u] = f.value[0];
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
                        add(to[u], factor[u] * value[u], job.atomic);
                    }
                    __syncwarp();
                }
            }
            for (unsigned rest = __ballot_sync(whole_warp, is_long) & group_lanes; rest != 0; rest &= rest - 1) {
                const int t = (__ffs(static_cast<int>(rest)) - 1) % Lanes;
                const WarpFactor<T, Most> f = factors[own][t];
                const T factor = f.value[0];
                const auto b_entries = static_cast<std::int32_t>(f.b_row & ((1u << length_bits) - 1u));
                const std::int32_t* const b_cols = job.b.col_idx + (f.b_row >> length_bits);
                const T* const b_values = job.b_values + (f.b_row >> length_bits);
                for (std::int32_t j = lane; j < b_entries; j += in_flight * Lanes) {
                    std::int32_t column[in_flight];
                    T product[in_flight];
#pragma unroll
                    for (int u = 0; u < in_flight; ++u) {
                        const bool there = j + u * Lanes < b_entries;
                        column[u] = there ? __ldg(b_cols + j + u * Lanes) : -1;
                        product[u] = there ? __ldg(b_values + j + u * Lanes) : T{0};
                    }
                    if (job.atomic) {
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
                const unsigned long long b_row = factors[own][t].b_row;
                const auto b_entries = static_cast<std::int32_t>(b_row & ((1u << length_bits) - 1u));
                const std::int32_t* const b_cols = job.b.col_idx + (b_row >> length_bits);
                const T* const b_values = job.b_values + (b_row >> length_bits);
                const int together = t == 31 ? 1 : min(__ffs(static_cast<int>(~(joined >> (t + 1)))), Most);
                T factor[Most][Most];
#pragma unroll
                for (int u = 0; u < Most; ++u) {
#pragma unroll
                    for (int r = 0; r < Most; ++r) {
                        factor[u][r] = u < together && r < group ? factors[own][t + u].value[r] : T{0};
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
    if constexpr (window) {
        for (int i = lane; i < entries; i += Lanes) {
            const std::int32_t column = columns[i];
            columns.write(i, column, entries, group);
            for (int r = 0; r < group; ++r) {
                job.values[c_begin + std::int64_t{r} * entries + i] = job.alpha * sums[r * capacity + column - first];
            }
        }
    } else {
        for (int r = 0; r < group; ++r) {
            for (int i = lane; i < entries; i += Lanes) {
                job.values[c_begin + std::int64_t{r} * entries + i] = job.alpha * sums[r * capacity + i];
            }
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
    extern __shared__ __align__(16) unsigned char shared[];
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
        const Columns columns = columns_of(job, row, c_begin);
        const int group = job.groups[row];
        const std::int32_t first = bounds.first >> 5;
        const auto words = static_cast<std::int32_t>(bounds.span_words());
        Table<true> table{reinterpret_cast<uint2*>(shared), static_cast<unsigned>(2 * capacity)};
        // Of a word of 32 columns: which are there, and how many come before it.
        uint2* const rank = reinterpret_cast<uint2*>(shared);
        std::int32_t* const map = By == Lookup::map ? job.map + blockIdx.x * job.b.cols : nullptr;
        T* sums = job.values + c_begin;
        std::int32_t entries_a_pass = entries;
        if constexpr (By == Lookup::hash) {
            sums = reinterpret_cast<T*>(shared + 2 * capacity * sizeof(uint2));
            table.clear(thread, Threads);
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
            const std::int32_t column = columns[i];
            columns.write(i, column, entries, group);
            if constexpr (By == Lookup::hash) {
                table.insert(static_cast<unsigned>(column), static_cast<unsigned>(i));
            } else if constexpr (By == Lookup::rank) {
                const std::int32_t word = column >> 5;
                atomicOr(&rank[word - first].x, 1u << (column & 31));
                if (i == 0 || columns[i - 1] >> 5 != word) {
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
                place = table.find(static_cast<unsigned>(column));
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
                    if (columns[middle] < column) {
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
                                product[u] = __ldg(job.b_values + factors[own].begin + lane);
                            }
                        }
#pragma unroll
                        for (int u = 0; u < in_flight; ++u) {
                            const int own = t + u * virtual_warps;
                            if (column[u] >= 0) {
                                add_up(column[u], factors[own].value * product[u], true);
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

template <Sums In, class T>
Kernel<T> warp_kernel_of(int lanes, int most_in_group)
{
    return most_in_group > 1 ? warp_kernel<In, 32, most_twins, T>
           : lanes == 8      ? warp_kernel<In, 8, 1, T>
           : lanes == 16     ? warp_kernel<In, 16, 1, T>
                             : warp_kernel<In, 32, 1, T>;
}

template <class T>
Kernel<T> kernel_of(NumericClass c, int matrix_lanes, int most_in_group)
{
    const int threads = numeric_shape(c, sizeof(T)).threads;
    const int lanes = lanes_of_class(c, matrix_lanes);
    return is_window(c)                 ? warp_kernel_of<Sums::window, T>(lanes, most_in_group)
           : is_hash(c)                 ? warp_kernel_of<Sums::hash, T>(lanes, most_in_group)
           : is_wide_hash(c)            ? (most_in_group > 1 ? warp_kernel<Sums::wide_hash, 32, most_twins, T>
                                                             : warp_kernel<Sums::wide_hash, 32, 1, T>)
           : is_block_hash(c)           ? block_kernel_of<Lookup::hash, false, T>(threads)
           : is_rank(c)                 ? block_kernel_of<Lookup::rank, false, T>(threads)
           : is_rank_far(c)             ? block_kernel<Lookup::rank, true, 1024, T>
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
