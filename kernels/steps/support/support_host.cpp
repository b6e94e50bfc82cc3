#include <algorithm>
#include <cstring>
#include <limits>

#include <kernels/steps/support/support.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

template <class Out>
void localize_row_ptr(IndexView row_ptr, std::int64_t rows, std::int64_t start, std::int64_t nnz, Out* out,
                      const Context& context)
{
    row_ptr.visit([&](const auto* in) {
#pragma omp parallel for num_threads(std::max(context.threads, 1))
        for (std::int64_t i = 0; i <= rows; ++i) {
            out[i] = static_cast<Out>(std::clamp<std::int64_t>(std::int64_t{in[i]} - start, 0, nnz));
        }
    });
}

template <class Out>
void spread_row_ptr(IndexView row_ptr, std::int64_t first, std::int64_t rows, std::int64_t all, std::int64_t start,
                    std::int64_t nnz, Out* out, const Context& context)
{
    row_ptr.visit([&](const auto* in) {
#pragma omp parallel for num_threads(std::max(context.threads, 1))
        for (std::int64_t i = 0; i <= all; ++i) {
            const std::int64_t local = i < first           ? 0
                                       : i >= first + rows ? nnz
                                                           : std::clamp<std::int64_t>(in[i - first] - start, 0, nnz);
            out[i] = static_cast<Out>(local);
        }
    });
}

void narrow_indices(const std::int64_t* in, std::int64_t n, std::int32_t* out, const Context& context)
{
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = static_cast<std::int32_t>(in[i]);
    }
}

void shift_indices(const std::int32_t* in, std::int64_t n, std::int32_t by, std::int32_t* out, const Context& context)
{
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = in[i] + by;
    }
}

template <class T>
void fill(T* y, std::int64_t n, T value, const Context& context)
{
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        y[i] = value;
    }
}

template <class T>
void add_carries(T* y, const T* carries, int count, const Context&)
{
    for (int i = 0; i < count; ++i) {
        y[0] += carries[i];
    }
}

template <class T>
void add_partials(T* y, std::int64_t first, std::int64_t end, T beta, const PartialSums<T>* parts, int count,
                  const Context& context)
{
    // Rows of y that fit the first-level cache beside a part's sums.
    constexpr std::int64_t block = 1024;
    const std::int64_t blocks = (end - first + block - 1) / block;
#pragma omp parallel for num_threads(std::max(context.threads, 1)) schedule(static)
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t begin = first + b * block;
        const std::int64_t stop = std::min(end, begin + block);
        for (std::int64_t i = begin; i < stop; ++i) {
            y[i] = beta == T{0} ? T{0} : beta * y[i];
        }
        for (int p = 0; p < count; ++p) {
            for (std::int64_t i = std::max(begin, parts[p].first); i < std::min(stop, parts[p].end); ++i) {
                y[i] += parts[p].sums[i];
            }
        }
    }
}

void copy_parts(const CopyPart* parts, int count, const Context&)
{
    for (int i = 0; i < count; ++i) {
        if (parts[i].bytes > 0) {
            std::memcpy(parts[i].to, parts[i].from, static_cast<std::size_t>(parts[i].bytes));
        }
    }
}

void interior_rows(IndexView row_ptr, std::int64_t rows, const std::int32_t* col_idx, std::int64_t first_column,
                   std::int64_t end_column, std::int64_t* run, const Context& context)
{
    const std::int64_t middle = rows / 2;
    std::int64_t first = 0;
    std::int64_t end = rows;
    row_ptr.visit([&](const auto* p) {
#pragma omp parallel for num_threads(std::max(context.threads, 1)) reduction(max : first) reduction(min : end)
        for (std::int64_t row = 0; row < rows; ++row) {
            const bool inside = std::all_of(col_idx + p[row], col_idx + p[row + 1], [&](std::int32_t column) {
                return column >= first_column && column < end_column;
            });
            if (!inside && row < middle) {
                first = std::max(first, row + 1);
            } else if (!inside) {
                end = std::min(end, row);
            }
        }
    });
    run[0] = first;
    run[1] = end;
}

void index_extent(const std::int32_t* indices, std::int64_t n, std::int32_t* extent, const Context& context)
{
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    std::int32_t largest = std::numeric_limits<std::int32_t>::min();
#pragma omp parallel for num_threads(std::max(context.threads, 1)) reduction(min : least) reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i) {
        least = std::min(least, indices[i]);
        largest = std::max(largest, indices[i]);
    }
    extent[0] = least;
    extent[1] = largest;
}

void read_all(const double* data, std::int64_t n, double* sink, const Context& context)
{
    const std::int64_t blocks = std::clamp(context.threads, 1, 4096);
#pragma omp parallel for num_threads(static_cast <int>(blocks)) schedule(static, 1)
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t end = n / blocks * (b + 1) + n % blocks * (b + 1) / blocks;
        std::int64_t i = n / blocks * b + n % blocks * b / blocks;
        double sums[8] = {};
        for (; i + 8 <= end; i += 8) {
            // As kernels do: what the hardware fetches ahead of few threads is less than the memory delivers.
            __builtin_prefetch(data + i + 512);
            for (int k = 0; k < 8; ++k) {
                sums[k] += data[i + k];
            }
        }
        for (; i < end; ++i) {
            sums[0] += data[i];
        }
        sink[b] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
}

}  // namespace
}  // namespace host

RMSP_ROW(Support, host, .narrow_indices = host::narrow_indices, .shift_indices = host::shift_indices,
         .copy_parts = host::copy_parts, .interior_rows = host::interior_rows, .index_extent = host::index_extent,
         .read_all = host::read_all)

RMSP_INDEX_ROW(IndexSupport, host, .localize_row_ptr = host::localize_row_ptr<T>,
               .spread_row_ptr = host::spread_row_ptr<T>)

RMSP_VALUE_ROW(ValueSupport, host, .fill = host::fill<T>, .add_carries = host::add_carries<T>,
               .add_partials = host::add_partials<T>)

}  // namespace rmsp::kernels
