#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <rmsp/cluster.hpp>

/// Small matrices that every process has whole, and what it gives to a cluster of them.
namespace rmsp::test {

struct Entry {
    std::int64_t row;
    std::int64_t col;
    double value;
};

template <class T>
struct Whole {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<std::int64_t> row_ptr;
    std::vector<std::int64_t> col_idx;
    std::vector<T> values;

    CsrView<T> view() const
    {
        return {rows, cols, static_cast<std::int64_t>(values.size()), row_ptr.data(), col_idx.data(), values.data()};
    }
    /// y = alpha A x + beta y, or with A^T, one entry after the other.
    std::vector<T> product(T alpha, const std::vector<T>& x, T beta, std::vector<T> y, bool of_transpose) const;
};

/// A diagonally dominant five-point matrix of a grid; with `skew` not symmetric.
template <class T>
Whole<T> grid(std::int64_t nx, std::int64_t ny, double skew = 0);
/// `per_row` entries anywhere in each row, some rows empty, fixed seed.
template <class T>
Whole<T> random(std::int64_t rows, std::int64_t cols, std::int64_t per_row);
/// x[i] = y[(i + shift) mod n]
template <class T>
Whole<T> rotation(std::int64_t n, std::int64_t shift);

/// Rows [first, end) of a matrix.
template <class T>
struct Part {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::vector<std::int64_t> row_ptr;
    CsrView<T> view;
};
/// The share of a process in `rows` rows, uneven: later processes have more; the first of four has none.
std::vector<std::int64_t> uneven(std::int64_t rows, int processes);
template <class T>
Part<T> part_of(const Whole<T>& whole, const std::vector<std::int64_t>& offsets, int rank);

template <class T>
std::vector<T> entries(std::int64_t n, double seed);

/// A cluster of all processes, each with `devices`.
Cluster make_cluster(const char* devices = "host:2", double timeout_seconds = 20);

/// Entries [first, end) of a vector.
template <class T>
std::vector<T> slice(const std::vector<T>& all, std::int64_t first, std::int64_t end)
{
    return {all.begin() + first, all.begin() + end};
}

}  // namespace rmsp::test
