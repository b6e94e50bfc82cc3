#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>
#include <kernels/cuda_check.cuh>
#include <kernels/cuda_shared.cuh>
#include <kernels/spgemm/numeric_policy.hpp>
#include <kernels/spgemm/row_policy.hpp>
#include <kernels/spgemm/spgemm.hpp>
#include <kernels/spgemm/structure_policy.hpp>
#include <rmsp/matrix.hpp>

/// What the kernels of SpGEMM share.
namespace rmsp::kernels::spgemm {

inline constexpr unsigned whole_warp = 0xffffffffu;
inline constexpr int classes = 56;  ///< room in the tables of classes
static_assert(static_cast<int>(StructureClass::count) <= classes && static_cast<int>(NumericClass::count) <= classes);

/// Row pointers of either width; the choice is the same for all threads.
struct RowPtr {
    const std::int32_t* halves;  ///< of 64-bit pointers the lower half comes first
    int wide;                    ///< 0 or 1
    explicit RowPtr(const IndexView& view)
        : halves(static_cast<const std::int32_t*>(view.data())), wide(view.type() == IndexType::i64 ? 1 : 0)
    {
    }
    __device__ __forceinline__ std::int64_t operator[](std::int64_t i) const
    {
        const std::int32_t* const at = halves + (i << wide);
        const std::int64_t upper = wide != 0 ? __ldg(at + 1) : 0;
        return upper << 32 | static_cast<std::uint32_t>(__ldg(at));
    }
};

/// Structure of a matrix.
struct Pattern {
    std::int64_t rows;
    std::int64_t cols;
    RowPtr row_ptr;
    const std::int32_t* col_idx;
};

/// Columns of a row of B that share a word of 32.
struct Word {
    std::int32_t index;
    std::uint32_t mask;
};

/// What the analysis of A needs of a row of B.
struct alignas(16) RowOfB {
    std::int32_t first;  ///< least column; above `last` in an empty row
    std::int32_t last;
    std::int32_t words;
    std::int32_t entries;
};
static_assert(sizeof(RowOfB) == sizeof(int4));

/// Counts that the host reads, and places in the lists of rows. Zero at first.
struct Counters {
    long long products;
    long long nnz;
    long long bound;               ///< of the words of all groups of rows
    long long least;               ///< entries that C has at least
    unsigned long long pool_used;  ///< words of the pool; more than it has if there was no room
    int unstored;                  ///< a row whose words are not in the pool
    long long sampled_bound;       ///< of the words of rows that were counted before the others,
    long long sampled_entries;     ///< and their entries of C
    unsigned structure[classes];   ///< rows in each class
    int widest[classes];           ///< words of the widest row in each class of the symbolic phase
    unsigned structure_used[classes];
    unsigned numeric[classes];
    unsigned long long products_of[classes];   ///< products of the rows in each class of the numeric phase
    unsigned long long a_entries_of[classes];  ///< entries of A in the rows of each class of the numeric phase
    unsigned numeric_used[classes];
    int unsorted;       ///< a row of B whose columns do not rise
    unsigned twins;     ///< rows of A with the columns of the row before, if the next is not 0
    int most_in_group;  ///< rows of A that are worked on together
    int most_products;  ///< of a row
    int most_parts;     ///< of a row whose columns are cut into parts
    unsigned spread;    ///< rows that is_spread() says of
    int spread_words;   ///< of the widest one
};

__device__ __forceinline__ Extent load(const Extent* extent)
{
    return Extent(__ldg(reinterpret_cast<const unsigned long long*>(extent)));
}

inline unsigned blocks_for(std::int64_t work, std::int64_t a_block)
{
    return static_cast<unsigned>((work + a_block - 1) / a_block);
}

/// Launches of a phase work on rows of their own, so that one may begin as soon as all blocks of the one before have
/// begun.
struct Overlap {
    bool possible = false;  ///< on this device
    bool first = true;      ///< launch of the phase: it waits for what came before
};

template <class... Args>
void launch_overlapping(void (*kernel)(Args...), std::int64_t blocks, int threads, unsigned shared_bytes,
                        Overlap overlap, cudaStream_t stream, std::type_identity_t<Args>... args)
{
    if (shared_bytes > 36u << 10) {
        // Beside its own arrays, more than 48 KiB have to be asked for.
        cuda::allow_shared_bytes(reinterpret_cast<const void*>(kernel), shared_bytes);
    }
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlap.possible && !overlap.first ? 1 : 0;
    RMSP_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args...));
}

/// At the begin of a kernel: the next launch of the phase may begin.
__device__ __forceinline__ void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
/// Of one block: until the launch before is done. First of all in each block of a kernel that reads what that writes.
__device__ __forceinline__ void wait_for_previous_here()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}
/// At its end: waits for the launch before, so that who waits for the last launch of a phase waits for all. One block
/// does; the others leave their place to rows that wait for one.
__device__ __forceinline__ void wait_for_previous()
{
    if (blockIdx.x == 0) {
        wait_for_previous_here();
    }
}

/// Words of the widest row of a launch of a class of the symbolic phase, which may have rows of classes before it.
inline std::int64_t widest_of(const Counters& counters, StructureClass as)
{
    auto c = static_cast<int>(as);
    std::int64_t widest = counters.widest[c];
    for (; c > 0 && grows_into_next(static_cast<StructureClass>(c - 1)); --c) {
        widest = std::max<std::int64_t>(widest, counters.widest[c - 1]);
    }
    return widest;
}

/// What a device allows.
struct DeviceLimits {
    int shared_bytes = 0;   ///< of a block
    bool overlaps = false;  ///< launches of a phase may
};
/// Of the current one. \throws Error(device)
inline DeviceLimits device_limits()
{
    int device = 0;
    int generation = 0;
    DeviceLimits limits;
    RMSP_CUDA_CHECK(cudaGetDevice(&device));
    RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, device));
    limits.overlaps = generation >= 9;
    return limits;
}

/// Words, bounds, order of the rows of B; words[b.row_ptr[k] + i] is word i of row k, as row_words[k] says;
/// row_entries[k]: its entries. twins[k]: row k has the columns of row k - 1. Of the `touched` rows alone; `of_a`, if
/// not empty, is where A is among them, so that its twins are counted.
void analyze_b(const Pattern& b, RowRange touched, RowRange of_a, double mean, Word* words, Extent* row_words,
               Extent* row_entries, RowOfB* rows, std::uint8_t* twins, Counters* counters, cudaStream_t stream);
/// twins[row]: row has the columns of row - 1.
void find_twins(const Pattern& a, double mean, std::uint8_t* twins, Counters* counters, cudaStream_t stream);
/// Bounds of the rows of C, zeros to row_nnz, and how many rows there are in each class; how many rows from each one on
/// are worked on together, 0 if with one before.
void analyze_a(const Pattern& a, double mean, const RowOfB* b_rows, const std::uint8_t* twins,
               std::int64_t shared_limit, int few, RowBounds* bounds, std::uint8_t* groups, std::int32_t* row_nnz,
               Counters* counters, int units, cudaStream_t stream);
/// Lists the first rows of the groups of each class of the symbolic phase, in classes' order.
void list_structure(const RowBounds* bounds, const std::uint8_t* groups, std::int64_t rows, std::int64_t shared_limit,
                    int few, Counters* counters, std::int32_t* list, cudaStream_t stream);
/// What a launch of the symbolic phase works on.
struct StructureJob {
    Pattern a;
    const Word* words;
    const Extent* b_words;  ///< where those of a row of B are
    const std::int32_t* b_columns;
    const Extent* b_entries;  ///< of each row of B
    const RowBounds* bounds;
    const std::uint8_t* groups;
    std::int32_t* row_nnz;  ///< written by a count, with what follows
    Extent* stored;
    std::uint8_t* orders;  ///< of products, of rows that have few, as few.cuh says; null: they are not kept
    Word* pool;            ///< null: no row's words are there
    long long pool_capacity;
    int rows_a_slab;  ///< rows_a_slab() of this launch
    Counters* counters;
    const std::int64_t* row_ptr;  ///< read to write columns
    std::int32_t* col_idx;
    int units;                  ///< multiprocessors
    std::int64_t widest;        ///< words of the widest row that is launched
    std::int32_t spread_above;  ///< rows that is_spread() says of are left out
};
/// Counts the columns of the listed rows, all of one class, and keeps them as words; or, if job.col_idx is not null,
/// writes the columns of the rows that are not stored.
void run_structure(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
                   Overlap overlap, cudaStream_t stream);

/// Tiles of rows that scan_rows() needs a total for.
std::int64_t scan_tiles(std::int64_t rows);
/// Groups of such tiles that scan_rows() needs a total for.
std::int64_t scan_groups(std::int64_t rows);
/// row_ptr from row_nnz; classes of the numeric phase and their lists; counters->nnz.
struct ScanJob {
    std::int64_t rows;
    RowPtr a_row_ptr;
    const std::int32_t* row_nnz;
    const RowBounds* bounds;
    const Extent* stored;
    const std::uint8_t* groups;
    std::int64_t value_bytes;
    int twins;  ///< most rows that a warp takes together
    std::int64_t shared_limit;
    Accumulator accumulator;
    int few;  ///< few_products() of it
    NumericLimits limits;
    long long* tiles;        ///< scan_tiles(rows)
    long long* tile_groups;  ///< scan_groups(rows); zero at first
    std::int64_t* row_ptr;
    std::int32_t* list;
    Counters* counters;
};
void scan_rows(const ScanJob& job, cudaStream_t stream);

/// A product: the entries of A and of B.
struct alignas(8) ProductRef {
    std::int32_t a;
    std::int32_t b;
};

/// What a launch of the numeric phase works on.
template <class T>
struct NumericJob {
    Pattern a;
    Pattern b;
    const T* a_values = nullptr;
    const T* b_values = nullptr;
    T alpha{1};
    bool atomic = false;                ///< a row of B may hold a column twice
    const Extent* b_entries = nullptr;  ///< of each row of B
    const std::uint8_t* b_twins = nullptr;
    const RowBounds* bounds = nullptr;
    const std::uint8_t* groups = nullptr;
    int most_in_group = 0;
    int most_parts = 0;
    int virtual_warp = 0;  ///< of blocks' rows: lanes for a row of B; 0: virtual_warp() of the row
    const std::int64_t* row_ptr = nullptr;
    std::int32_t* col_idx = nullptr;  ///< of C
    bool fills = false;  ///< columns of rows whose words are stored, and of those with few products, are written
    const Extent* stored = nullptr;
    const std::uint8_t* orders = nullptr;  ///< as StructureJob's
    const Word* pool = nullptr;            ///< null: no row's words are there
    T* values = nullptr;
    std::int32_t* map = nullptr;  ///< of classes scatter and virtual: B's columns, for each of map_rows rows at a time
    std::int64_t map_rows = 0;
    std::int32_t spread_above = 0;           ///< as StructureJob's
    const std::uint32_t* offsets = nullptr;  ///< of Work::list: where the products of each entry of C begin
    ProductRef* products = nullptr;
};
/// What is done with the products.
enum class Work : std::uint8_t {
    sum,  ///< to job.values
    list  ///< noted in job.products by entries of C, whose columns are there; job.values is overwritten
};
/// The listed rows, all of one class; twins and forced accumulators are not listed. `lanes`: lanes_a_row() of these
/// rows.
template <class T>
void run_numeric_warp(const NumericJob<T>& job, NumericClass c, Work work, int lanes, const std::int32_t* list,
                      std::int64_t count, Overlap overlap, cudaStream_t stream);
template <class T>
void run_numeric_block(const NumericJob<T>& job, NumericClass c, Work work, const std::int32_t* list,
                       std::int64_t count, Overlap overlap, cudaStream_t stream);

/// The listed rows, all of one class virtual, whose columns are there.
template <class T>
void run_numeric_virtual(const NumericJob<T>& job, NumericClass c, const std::int32_t* list, std::int64_t count,
                         cudaStream_t stream);

/// The listed rows, all of one class few: their structure, and their values. `first_order`: where in job.orders that of
/// the first row is.
void run_structure_few(const StructureJob& job, StructureClass c, const std::int32_t* list, std::int64_t count,
                       std::int64_t first_order, Overlap overlap, cudaStream_t stream);
template <class T>
void run_numeric_few(const NumericJob<T>& job, NumericClass c, Work work, const std::int32_t* list, std::int64_t count,
                     Overlap overlap, cudaStream_t stream);

}  // namespace rmsp::kernels::spgemm
