#include "tests/cluster/matrices.hpp"

#include <cmath>
#include <random>

namespace rmsp::test {

template <class T>
std::vector<T> Whole<T>::product(T alpha, const std::vector<T>& x, T beta, std::vector<T> y, bool of_transpose) const
{
    for (T& entry : y) {
        entry = beta == T{0} ? T{0} : beta * entry;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
            const std::int64_t to = of_transpose ? col_idx[i] : row;
            const std::int64_t from = of_transpose ? row : col_idx[i];
            y[to] += alpha * values[i] * x[from];
        }
    }
    return y;
}

template <class T>
Whole<T> grid(std::int64_t nx, std::int64_t ny, double skew)
{
    Whole<T> a{nx * ny, nx * ny, {0}, {}, {}};
    const auto add = [&](std::int64_t x, std::int64_t y, double value) {
        if (x >= 0 && x < nx && y >= 0 && y < ny) {
            a.col_idx.push_back(y * nx + x);
            a.values.push_back(static_cast<T>(value));
        }
    };
    for (std::int64_t y = 0; y < ny; ++y) {
        for (std::int64_t x = 0; x < nx; ++x) {
            add(x, y - 1, -1);
            add(x - 1, y, -1 - skew);
            add(x, y, 4.05);
            add(x + 1, y, -1 + skew);
            add(x, y + 1, -1);
            a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
        }
    }
    return a;
}

template <class T>
Whole<T> random(std::int64_t rows, std::int64_t cols, std::int64_t per_row)
{
    std::mt19937_64 engine(7);
    Whole<T> a{rows, cols, {0}, {}, {}};
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; row % 7 != 3 && i < per_row; ++i) {
            a.col_idx.push_back(static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(cols)));
            a.values.push_back(static_cast<T>(static_cast<double>(engine() % 1000) / 500.0 - 1.0));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
    }
    return a;
}

template <class T>
Whole<T> rotation(std::int64_t n, std::int64_t shift)
{
    Whole<T> a{n, n, {0}, {}, {}};
    for (std::int64_t row = 0; row < n; ++row) {
        a.col_idx.push_back((row + shift) % n);
        a.values.push_back(T{1});
        a.row_ptr.push_back(row + 1);
    }
    return a;
}

std::vector<std::int64_t> uneven(std::int64_t rows, int processes)
{
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t p = 1; p <= processes; ++p) {
        const std::int64_t empty = processes == 4 ? 1 : 0;
        const std::int64_t weight = (p - empty) * (p - empty + 1);
        const std::int64_t all = (processes - empty) * (processes - empty + 1);
        offsets.push_back(rows * weight / all);
    }
    return offsets;
}

template <class T>
Part<T> part_of(const Whole<T>& whole, const std::vector<std::int64_t>& offsets, int rank)
{
    Part<T> part;
    part.first = offsets[static_cast<std::size_t>(rank)];
    part.end = offsets[static_cast<std::size_t>(rank) + 1];
    const std::int64_t base = whole.row_ptr[static_cast<std::size_t>(part.first)];
    for (std::int64_t row = part.first; row <= part.end; ++row) {
        part.row_ptr.push_back(whole.row_ptr[static_cast<std::size_t>(row)] - base);
    }
    part.view = {part.end - part.first,       whole.cols,
                 part.row_ptr.back(),         part.row_ptr.data(),
                 whole.col_idx.data() + base, whole.values.data() + base};
    return part;
}

template <class T>
std::vector<T> entries(std::int64_t n, double seed)
{
    std::vector<T> all;
    for (std::int64_t i = 0; i < n; ++i) {
        all.push_back(static_cast<T>(std::sin(seed + 0.7 * static_cast<double>(i)) + 0.1));
    }
    return all;
}

Cluster make_cluster(const char* devices, double timeout_seconds)
{
    RuntimeOptions options;
    options.devices = devices;
    options.bind = BindPolicy::none;
    return Cluster(MPI_COMM_WORLD, options, {.timeout_seconds = timeout_seconds});
}

#define RMSP_INSTANTIATE(T)                                                           \
    template struct Whole<T>;                                                         \
    template Whole<T> grid(std::int64_t, std::int64_t, double);                       \
    template Whole<T> random(std::int64_t, std::int64_t, std::int64_t);               \
    template Whole<T> rotation(std::int64_t, std::int64_t);                           \
    template Part<T> part_of(const Whole<T>&, const std::vector<std::int64_t>&, int); \
    template std::vector<T> entries(std::int64_t, double);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::test
