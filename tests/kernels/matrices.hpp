#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/partition.hpp>

/// Matrices that kernels find hard.
namespace rmsp::kernels::test {

template <class T>
struct HostCsr {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<std::int64_t> row_ptr{0};
    std::vector<std::int32_t> col_idx;
    std::vector<T> values;

    std::int64_t nnz() const { return static_cast<std::int64_t>(values.size()); }
};

/// Row lengths of one matrix, and its columns.
struct Shape {
    std::string name;
    std::int64_t cols = 0;
    std::vector<std::int64_t> lengths;
};

/// Sizes 0 and 1, around a tile of csr-nnz-split and a chunk of csr-openmp, empty rows, dense rows, power laws.
std::vector<Shape> shapes();

/// Random values in [-1, 1) and random columns: unsorted, with duplicates.
template <class T>
HostCsr<T> make_matrix(const Shape& shape, std::uint64_t seed);

/// n numbers in [-1, 1).
template <class T>
std::vector<T> random_vector(std::int64_t n, std::uint64_t seed);

RowStatistics statistics(const std::vector<std::int64_t>& row_ptr);

}  // namespace rmsp::kernels::test
