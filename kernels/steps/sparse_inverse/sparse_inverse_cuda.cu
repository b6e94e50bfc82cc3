#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/steps/sparse_inverse/reflections.cuh>
#include <kernels/steps/sparse_inverse/sparse_inverse.hpp>

namespace rmsp::kernels {
namespace cuda::sparse_inverse {
namespace {

using inverse::no_column;
using inverse::Source;
using inverse::Status;
using inverse::Target;
using inverse::Tile;
using inverse::WideLayout;

// As rows of the stencils of 7, 9 and 27 points need them: 25, 25 and 125 columns in the rows that one names.
using SmallTile = Tile<32, 4, 8>;
using MiddleTile = Tile<64, 4, 16>;
using LargeTile = Tile<128, 4, 32>;
enum Class : int { small, middle, large, shared, global };
static_assert(global + 1 == inverse_classes);

constexpr int count_threads = 128;
constexpr int count_slots = 8192;
constexpr std::int64_t workspace_limit = std::int64_t{1} << 29;
static_assert(workspace_limit >= most_inverse_bytes);

/// What classify_kernel() finds.
struct Counts {
    unsigned long long rows[inverse_classes] = {};
    unsigned long long bytes[inverse_classes] = {};  ///< of the largest system
    unsigned long long refused = 0;
    long long first_refused = std::numeric_limits<long long>::max();
};

template <class Tile>
__device__ bool fits(int n, std::int64_t rows)
{
    return n <= Tile::most_cols && rows <= Tile::most_rows;
}

__device__ int class_of(int n, std::int64_t rows, std::int64_t shared_bytes)
{
    return fits<SmallTile>(n, rows)                    ? small
           : fits<MiddleTile>(n, rows)                 ? middle
           : fits<LargeTile>(n, rows)                  ? large
           : WideLayout(n, rows).bytes <= shared_bytes ? shared
                                                       : global;
}

/// Counts the columns of the rows of A that each row of M names; where they are too many for a table, their entries.
template <class T>
__global__ void __launch_bounds__(count_threads)
    classify_kernel(Source<T> a, Target m, std::int64_t rows, bool least_squares, std::int64_t shared_bytes,
                    std::int32_t* __restrict__ system_rows, Counts* counts)
{
    __shared__ std::int32_t keys[count_slots];
    __shared__ unsigned long long gathered;
    __shared__ int distinct;
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    for (std::int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
        const std::int64_t begin = m.row_ptr[i];
        const std::int32_t* const columns = m.col_idx + begin;
        const int n = static_cast<int>(m.row_ptr[i + 1] - begin);
        std::int64_t found = n;
        if (least_squares) {
            if (thread == 0) {
                gathered = 1;
                distinct = 1;
            }
            __syncthreads();
            for (int j = thread; j < n; j += count_threads) {
                atomicAdd(&gathered, static_cast<unsigned long long>(a.end(columns[j]) - a.begin(columns[j])));
            }
            __syncthreads();
            found = static_cast<std::int64_t>(gathered);
            if (found <= count_slots / 2) {
                const auto slots = static_cast<int>(inverse::slots_for(found));
                for (int slot = thread; slot < slots; slot += count_threads) {
                    keys[slot] = no_column;
                }
                __syncthreads();
                if (thread == 0) {
                    inverse::insert(keys, slots, static_cast<std::int32_t>(m.first + i));
                }
                __syncthreads();
                int fresh = 0;
                for (int j = thread / 32; j < n; j += count_threads / 32) {
                    const std::int64_t end = a.end(columns[j]);
                    for (std::int64_t k = a.begin(columns[j]) + lane; k < end; k += 32) {
                        fresh += inverse::insert(keys, slots, a.col_idx[k]) ? 1 : 0;
                    }
                }
                atomicAdd(&distinct, fresh);
                __syncthreads();
                found = distinct;
            }
        }
        if (thread == 0) {
            const std::int64_t bytes = WideLayout(n, found).bytes;
            if (bytes > most_inverse_bytes) {
                atomicAdd(&counts->refused, 1ull);
                atomicMin(&counts->first_refused, static_cast<long long>(m.first + i));
                found = 0;
            }
            const int own = class_of(n, found, shared_bytes);
            system_rows[i] = static_cast<std::int32_t>(found);
            atomicAdd(&counts->rows[own], 1ull);
            if (own >= shared) {
                atomicMax(&counts->bytes[own], static_cast<unsigned long long>(bytes));
            }
        }
        __syncthreads();
    }
}

/// Puts each row where its class has room; `next` are the first free places.
__global__ void sort_kernel(Target m, std::int64_t rows, std::int64_t shared_bytes,
                            const std::int32_t* __restrict__ system_rows, unsigned long long* next,
                            std::int32_t* __restrict__ list)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < rows) {
        const int n = static_cast<int>(m.row_ptr[i + 1] - m.row_ptr[i]);
        list[atomicAdd(next + class_of(n, system_rows[i], shared_bytes), 1ull)] = static_cast<std::int32_t>(i);
    }
}

cudaStream_t stream_of(const Context& context) { return static_cast<cudaStream_t>(context.stream); }

/// Copies an object of the caller to the device; waits, so that it may go.
template <class X>
void upload(X* to, const X* from, const Context& context)
{
    RMSP_CUDA_CHECK(cudaMemcpyAsync(to, from, sizeof(X), cudaMemcpyHostToDevice, stream_of(context)));
    RMSP_CUDA_CHECK(cudaStreamSynchronize(stream_of(context)));
}

/// Bytes of dynamic shared memory that a thread block may have beside the kernel's own.
std::int64_t most_shared_bytes()
{
    int device = 0;
    int bytes = 0;
    RMSP_CUDA_CHECK(cudaGetDevice(&device));
    RMSP_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return bytes - 1024;
}

unsigned grid_of(std::int64_t items, const Context& context, int blocks_per_multiprocessor)
{
    const std::int64_t full = std::int64_t{std::max(context.compute_units, 1)} * blocks_per_multiprocessor;
    return static_cast<unsigned>(std::min(items, full));
}

template <class T>
InverseClasses classify_inverse_rows(const InverseSource<T>& a, matrix::SparseInverse kind, const InverseRows& m,
                                     const Context& context)
{
    InverseClasses out;
    if (m.rows == 0) {
        return out;
    }
    const std::int64_t shared_bytes = most_shared_bytes();
    const auto rows = static_cast<std::size_t>(m.rows);
    out.system_rows = DeviceArray<std::int32_t>(*context.memory, rows);
    out.rows = DeviceArray<std::int32_t>(*context.memory, rows);
    const DeviceArray<Counts> there(*context.memory, 1);
    Counts counts;
    upload(there.data(), &counts, context);
    classify_kernel<<<grid_of(m.rows, context, 64), count_threads, 0, stream_of(context)>>>(
        Source<T>(a), Target(m), m.rows, kind == matrix::SparseInverse::spai, shared_bytes, out.system_rows.data(),
        there.data());
    RMSP_CUDA_CHECK_LAUNCH("classify_inverse_rows");
    counts = read(there.data(), stream_of(context));
    out.refused = static_cast<std::int64_t>(counts.refused);
    out.first_refused = counts.refused > 0 ? counts.first_refused : -1;
    std::array<unsigned long long, inverse_classes> next{};
    for (std::size_t c = 0; c < next.size(); ++c) {
        next[c] = static_cast<unsigned long long>(out.begin[c]);
        out.begin[c + 1] = out.begin[c] + static_cast<std::int64_t>(counts.rows[c]);
        out.most_bytes[c] = static_cast<std::int64_t>(counts.bytes[c]);
    }
    const DeviceArray<std::array<unsigned long long, inverse_classes>> places(*context.memory, 1);
    upload(places.data(), &next, context);
    sort_kernel<<<static_cast<unsigned>((m.rows + 255) / 256), 256, 0, stream_of(context)>>>(
        Target(m), m.rows, shared_bytes, out.system_rows.data(), reinterpret_cast<unsigned long long*>(places.data()),
        out.rows.data());
    RMSP_CUDA_CHECK_LAUNCH("sort_inverse_rows");
    return out;
}

/// Launches the kernel of one class of rows.
template <class T>
class Filler {
public:
    Filler(const InverseSource<T>& a, matrix::SparseInverse kind, const InverseRows& m, const InverseClasses& classes,
           T* values, Status* status, const Context& context)
        : a_(a),
          m_(m),
          least_squares_(kind == matrix::SparseInverse::spai),
          classes_(classes),
          values_(values),
          status_(status),
          context_(context)
    {
    }

    template <class Tile>
    void fill_tiles(int of_class) const
    {
        if (count(of_class) == 0) {
            return;
        }
        inverse::solve_in_registers<T, Tile>
            <<<grid_of(count(of_class), context_, 64), Tile::threads, 0, stream_of(context_)>>>(
                a_, m_, least_squares_, list(of_class), count(of_class), values_, status_);
        RMSP_CUDA_CHECK_LAUNCH("solve_in_registers");
    }
    void fill_shared() const
    {
        const auto bytes = static_cast<std::size_t>(classes_.most_bytes[shared]);
        if (count(shared) == 0) {
            return;
        }
        RMSP_CUDA_CHECK(cudaFuncSetAttribute(inverse::solve_in_memory<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(most_shared_bytes())));
        launch(shared, grid_of(count(shared), context_, 16), bytes, nullptr, 0);
    }
    void fill_global() const
    {
        if (count(global) == 0) {
            return;
        }
        const std::int64_t bytes = (classes_.most_bytes[global] + 255) / 256 * 256;
        const std::int64_t blocks = std::min<std::int64_t>(grid_of(count(global), context_, 4),
                                                           std::max<std::int64_t>(workspace_limit / bytes, 1));
        const DeviceArray<char> workspace(*context_.memory, static_cast<std::size_t>(blocks * bytes));
        launch(global, static_cast<unsigned>(blocks), 0, workspace.data(), bytes);
    }

private:
    std::int64_t count(int of_class) const
    {
        const auto c = static_cast<std::size_t>(of_class);
        return classes_.begin[c + 1] - classes_.begin[c];
    }
    const std::int32_t* list(int of_class) const
    {
        return classes_.rows.data() + classes_.begin[static_cast<std::size_t>(of_class)];
    }
    void launch(int of_class, unsigned blocks, std::size_t shared_bytes, char* workspace, std::int64_t bytes) const
    {
        inverse::solve_in_memory<<<blocks, inverse::wide_threads, shared_bytes, stream_of(context_)>>>(
            a_, m_, least_squares_, classes_.system_rows.data(), list(of_class), count(of_class), workspace, bytes,
            values_, status_);
        RMSP_CUDA_CHECK_LAUNCH("solve_in_memory");
    }

    Source<T> a_;
    Target m_;
    bool least_squares_;
    const InverseClasses& classes_;
    T* values_;
    Status* status_;
    const Context& context_;
};

template <class T>
matrix::InverseStatus fill_inverse_rows(const InverseSource<T>& a, matrix::SparseInverse kind, const InverseRows& m,
                                        const InverseClasses& classes, T* values, const Context& context)
{
    if (m.rows == 0) {
        return {};
    }
    const DeviceArray<Status> there(*context.memory, 1);
    Status status{0, std::numeric_limits<long long>::max()};
    upload(there.data(), static_cast<const Status*>(&status), context);
    const Filler<T> filler(a, kind, m, classes, values, there.data(), context);
    filler.template fill_tiles<SmallTile>(small);
    filler.template fill_tiles<MiddleTile>(middle);
    filler.template fill_tiles<LargeTile>(large);
    filler.fill_shared();
    filler.fill_global();
    status = read(there.data(), stream_of(context));
    return {static_cast<std::int64_t>(status.singular),
            status.singular > 0 ? static_cast<std::int64_t>(status.first) : -1};
}

}  // namespace
}  // namespace cuda::sparse_inverse

RMSP_VALUE_ROW(SparseInverses, cuda, .classify_inverse_rows = cuda::sparse_inverse::classify_inverse_rows<T>,
               .fill_inverse_rows = cuda::sparse_inverse::fill_inverse_rows<T>)

}  // namespace rmsp::kernels
