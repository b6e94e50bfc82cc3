#pragma once

#include <cstdint>

#include <kernels/steps/sparse_inverse/sparse_inverse.hpp>

/// The dense system of one row of M, which a thread block makes. By columns: column j is row columns[j] of A, the last
/// one the right-hand side, a row of the unit matrix.
namespace rmsp::kernels::cuda::inverse {

/// Row pointers of either width.
class RowPointers {
public:
    explicit RowPointers(IndexView view)
        : narrow_(view.type() == IndexType::i32 ? static_cast<const std::int32_t*>(view.data()) : nullptr),
          wide_(view.type() == IndexType::i64 ? static_cast<const std::int64_t*>(view.data()) : nullptr)
    {
    }
    __device__ std::int64_t operator[](std::int64_t i) const { return narrow_ != nullptr ? narrow_[i] : wide_[i]; }

private:
    const std::int32_t* narrow_;
    const std::int64_t* wide_;
};

/// InverseSource for kernels.
template <class T>
struct Source {
    explicit Source(const InverseSource<T>& a)
        : first(a.first), row_ptr(a.row_ptr), col_idx(a.col_idx), values(a.values)
    {
    }
    __device__ std::int64_t begin(std::int64_t row) const { return row_ptr[row - first]; }
    __device__ std::int64_t end(std::int64_t row) const { return row_ptr[row - first + 1]; }

    std::int64_t first;
    RowPointers row_ptr;
    const std::int32_t* col_idx;
    const T* values;
};

/// InverseRows for kernels.
struct Target {
    explicit Target(const InverseRows& m) : first(m.first), row_ptr(m.row_ptr), col_idx(m.col_idx) {}

    std::int64_t first;
    RowPointers row_ptr;
    const std::int32_t* col_idx;
};

inline constexpr std::int32_t no_column = -1;

/// Slots of a hash table of so many columns, at most half of which are taken: a power of two.
__host__ __device__ inline std::int64_t slots_for(std::int64_t columns)
{
    std::int64_t slots = 2;
    while (slots < 2 * columns) {
        slots *= 2;
    }
    return slots;
}

/// The slot of a column, or where it has to be put.
__device__ __forceinline__ int first_slot(std::int32_t column, int slots)
{
    return static_cast<int>((static_cast<std::uint32_t>(column) * 0x9e3779b9u >> 7) & static_cast<unsigned>(slots - 1));
}

/// Puts a column into the table. Returns whether it is new. Which slot it gets depends on who is first.
__device__ __forceinline__ bool insert(std::int32_t* keys, int slots, std::int32_t column)
{
    int slot = first_slot(column, slots);
    while (true) {
        const std::int32_t found = atomicCAS(keys + slot, no_column, column);
        if (found == no_column || found == column) {
            return found == no_column;
        }
        slot = (slot + 1) & (slots - 1);
    }
}

/// Memory for a system, of one thread block.
struct Room {
    double* entries = nullptr;
    int stride = 0;  ///< of columns, at least the rows of the system
    std::int32_t* keys = nullptr;
    std::int32_t* numbers = nullptr;  ///< of the columns in `keys`
    std::int32_t* list = nullptr;     ///< of columns
    int slots = 0;
    int* count = nullptr;
};

/// The place of a column among those of the system: in ascending order, so that it depends on no race; -1: none.
__device__ inline int number_of(const Room& room, bool least_squares, const std::int32_t* columns, int n,
                                std::int32_t column)
{
    if (least_squares) {
        int slot = first_slot(column, room.slots);
        while (room.keys[slot] != column) {
            slot = (slot + 1) & (room.slots - 1);
        }
        return room.numbers[slot];
    }
    int low = 0;
    for (int high = n; low < high;) {
        const int middle = (low + high) / 2;
        if (columns[middle] < column) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && columns[low] == column ? low : -1;
}

/// Makes the system of a row. All threads of the block call it and have met at its end. `lanes` threads read a row of
/// A. Returns the rows of the system.
template <class T>
__device__ int make_system(const Source<T>& a, bool least_squares, std::int64_t row, const std::int32_t* columns, int n,
                           int lanes, const Room& room)
{
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    const int lane = thread % lanes;
    int rows = n;
    if (least_squares) {
        for (int slot = thread; slot < room.slots; slot += threads) {
            room.keys[slot] = no_column;
        }
        if (thread == 0) {
            *room.count = 0;
        }
        __syncthreads();
        if (thread == 0) {
            insert(room.keys, room.slots, static_cast<std::int32_t>(row));
        }
        for (int j = thread / lanes; j < n; j += threads / lanes) {
            const std::int64_t end = a.end(columns[j]);
            for (std::int64_t k = a.begin(columns[j]) + lane; k < end; k += lanes) {
                insert(room.keys, room.slots, a.col_idx[k]);
            }
        }
        __syncthreads();
        for (int slot = thread; slot < room.slots; slot += threads) {
            if (room.keys[slot] != no_column) {
                room.list[atomicAdd(room.count, 1)] = room.keys[slot];
            }
        }
        __syncthreads();
        rows = *room.count;
        for (int slot = thread; slot < room.slots; slot += threads) {
            const std::int32_t column = room.keys[slot];
            if (column != no_column) {
                int smaller = 0;
                for (int i = 0; i < rows; ++i) {
                    smaller += room.list[i] < column ? 1 : 0;
                }
                room.numbers[slot] = smaller;
            }
        }
    }
    const std::int64_t entries = (std::int64_t{n} + 1) * room.stride;
    for (std::int64_t i = thread; i < entries; i += threads) {
        room.entries[i] = 0;
    }
    __syncthreads();
    for (int j = thread / lanes; j < n; j += threads / lanes) {
        const std::int64_t end = a.end(columns[j]);
        for (std::int64_t k = a.begin(columns[j]) + lane; k < end; k += lanes) {
            const int number = number_of(room, least_squares, columns, n, a.col_idx[k]);
            if (number >= 0) {
                room.entries[std::int64_t{j} * room.stride + number] = static_cast<double>(a.values[k]);
            }
        }
    }
    if (thread == 0) {
        room.entries[std::int64_t{n} * room.stride +
                     number_of(room, least_squares, columns, n, static_cast<std::int32_t>(row))] = 1;
    }
    __syncthreads();
    return rows;
}

/// R x = b by the first warp, where R lies above and on the diagonal and b is the last column, which becomes x.
__device__ inline void solve_triangle(const Room& room, int n)
{
    double* const b = room.entries + std::int64_t{n} * room.stride;
    if (threadIdx.x >= 32) {
        return;
    }
    for (int k = n - 1; k >= 0; --k) {
        const double* const column = room.entries + std::int64_t{k} * room.stride;
        const double x = b[k] / column[k];
        __syncwarp();
        for (int i = static_cast<int>(threadIdx.x); i < k; i += 32) {
            b[i] -= column[i] * x;
        }
        if (threadIdx.x == 0) {
            b[k] = x;
        }
        __syncwarp();
    }
}

/// a_ii / |a_i|^2, or 1: of a row without a solution.
template <class T>
__device__ T diagonal_alone(const Source<T>& a, std::int64_t row)
{
    double own = 0;
    double squares = 0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
        const auto v = static_cast<double>(a.values[k]);
        own += a.col_idx[k] == row ? v : 0;
        squares += v * v;
    }
    const auto value = static_cast<T>(own / squares);
    return isfinite(value) && value != T{0} ? value : T{1};
}

struct Status {
    unsigned long long singular = 0;
    long long first = 0;
};

/// Writes the row of M, from the solution in the last column if there is one. All threads of the block call it.
template <class T>
__device__ void write_row(const Source<T>& a, bool solved, std::int64_t row, const std::int32_t* columns, int n,
                          const Room& room, T* values, Status* status)
{
    const double* const x = room.entries + std::int64_t{n} * room.stride;
    const int threads = static_cast<int>(blockDim.x);
    int finite = 1;
    int nonzero = 0;
    for (int k = static_cast<int>(threadIdx.x); k < n && solved; k += threads) {
        const auto value = static_cast<T>(x[k]);
        finite = isfinite(value) ? finite : 0;
        nonzero = value != T{0} ? 1 : nonzero;
    }
    const bool all_finite = __syncthreads_and(finite) != 0;
    solved = solved && __syncthreads_or(nonzero) != 0 && all_finite;
    for (int k = static_cast<int>(threadIdx.x); k < n; k += threads) {
        values[k] = solved ? static_cast<T>(x[k]) : columns[k] == row ? diagonal_alone(a, row) : T{0};
    }
    if (!solved && threadIdx.x == 0) {
        atomicAdd(&status->singular, 1ull);
        atomicMin(&status->first, static_cast<long long>(row));
    }
    __syncthreads();
}

}  // namespace rmsp::kernels::cuda::inverse
