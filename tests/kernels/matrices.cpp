#include "matrices.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <kernels/spmv/csr_nnz_split/tiles.hpp>

namespace rmsp::kernels::test {
namespace {

/// std::uniform_*_distribution is not the same everywhere.
double unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

Shape uniform(std::int64_t rows, std::int64_t length)
{
    return {std::to_string(rows) + " rows of " + std::to_string(length), 500,
            std::vector<std::int64_t>(static_cast<std::size_t>(rows), length)};
}

Shape with_dense_row(const char* where, std::size_t position, std::int64_t length)
{
    Shape shape{std::string("a row of ") + std::to_string(length) + " " + where, 1000, {}};
    shape.lengths.assign(700, 3);
    shape.lengths[position] = length;
    return shape;
}

Shape between(std::int64_t least, std::int64_t most, std::size_t rows, std::uint64_t seed)
{
    Shape shape{std::to_string(rows) + " rows of " + std::to_string(least) + " to " + std::to_string(most), 3000, {}};
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < rows; ++i) {
        shape.lengths.push_back(least +
                                static_cast<std::int64_t>(unit(random) * static_cast<double>(most - least + 1)));
    }
    return shape;
}

Shape power_law()
{
    Shape shape{"power law", 4000, {}};
    std::mt19937_64 random(5);
    for (int i = 0; i < 4000; ++i) {
        shape.lengths.push_back(std::min<std::int64_t>(static_cast<std::int64_t>(0.7 / (unit(random) + 1e-5)), 20000));
    }
    return shape;
}

}  // namespace

std::vector<Shape> shapes()
{
    constexpr std::int64_t capacity = split_tuning.tiles.warps() * split_tuning.tiles.tile_entries();
    constexpr std::int64_t items = capacity - split_tuning.tiles.longest_whole_row;
    std::vector<Shape> all{
        {"0 x 0", 0, {}},
        {"0 x 5", 5, {}},
        {"5 x 0", 0, {0, 0, 0, 0, 0}},
        {"1 x 1, empty", 1, {0}},
        {"1 x 1", 1, {1}},
        {"3 x 1", 1, {1, 0, 1}},
        {"empty rows first and last", 9, {0, 0, 0, 4, 0, 2, 0, 0}},
        {"thousands of empty rows", 7, std::vector<std::int64_t>(9001, 0)},
    };
    for (const std::int64_t size : {items, capacity, 2 * capacity, std::int64_t{4096}}) {
        for (const std::int64_t n : {size - 1, size, size + 1}) {
            all.push_back(uniform(1, n));
            all.push_back(uniform(n, 1));
        }
    }
    // One more or fewer row or nonzero than a block of a small matrix takes where rows are whole.
    for (const std::int64_t length : {1, 2, 3, 7, 8, 16, 27, 31, 32, 33, 64, 127, 128, 129, 200}) {
        const std::int64_t fit = (capacity - std::min<std::int64_t>((length + 31) / 32 * 32, 128)) / length;
        for (const std::int64_t rows : {fit - 1, fit, fit + 1, 3 * fit + 1}) {
            all.push_back(uniform(rows, length));
        }
    }
    all.push_back(uniform(7, 5000));
    all.push_back({"long rows, and between some of them short ones", 3000, {9000, 1, 7, 2, 0, 30000, 5, 61000, 3000}});
    all.push_back(with_dense_row("first", 0, 50000));
    all.push_back(with_dense_row("in the middle", 350, 50000));
    all.push_back(with_dense_row("last", 699, 50000));
    all.push_back(with_dense_row("in the middle", 350, 3 * capacity));
    all.push_back(between(capacity - 300, capacity + 300, 30, 1));
    all.push_back(between(0, 600, 200, 2));
    all.push_back(between(0, 3, 5000, 3));
    all.push_back(between(120, 140, 300, 4));
    all.push_back(power_law());

    Shape last{"all in the last row", 1000, std::vector<std::int64_t>(3000, 0)};
    last.lengths.back() = 10000;
    all.push_back(last);
    Shape sparse{"two rows in a desert of empty ones", 1000, std::vector<std::int64_t>(20000, 0)};
    sparse.lengths[5000] = 9000;
    sparse.lengths[15000] = 3;
    all.push_back(sparse);
    Shape borders{"long rows and empty rows in turn", 1000, {}};
    for (int i = 0; i < 12; ++i) {
        borders.lengths.push_back(i % 2 == 0 ? items * (1 + i / 4) : 0);
        borders.lengths.insert(borders.lengths.end(), static_cast<std::size_t>(i * 100), 0);
    }
    all.push_back(borders);
    return all;
}

template <class T>
std::vector<T> random_vector(std::int64_t n, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<T> v(static_cast<std::size_t>(n));
    for (T& value : v) {
        value = static_cast<T>(2 * unit(random) - 1);
    }
    return v;
}

template <class T>
HostCsr<T> make_matrix(const Shape& shape, std::uint64_t seed)
{
    HostCsr<T> a;
    a.rows = static_cast<std::int64_t>(shape.lengths.size());
    a.cols = shape.cols;
    for (const std::int64_t length : shape.lengths) {
        a.row_ptr.push_back(a.row_ptr.back() + length);
    }
    std::mt19937_64 random(seed);
    a.col_idx.resize(static_cast<std::size_t>(a.row_ptr.back()));
    for (std::int32_t& column : a.col_idx) {
        column = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(a.cols));
    }
    a.values = random_vector<T>(a.row_ptr.back(), seed + 1);
    return a;
}

RowStatistics statistics(const std::vector<std::int64_t>& row_ptr)
{
    RowStatistics s;
    s.rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
    s.nnz = row_ptr.back() - row_ptr.front();
    s.mean = s.rows > 0 ? static_cast<double>(s.nnz) / static_cast<double>(s.rows) : 0;
    double squares = 0;
    for (std::size_t i = 0; i + 1 < row_ptr.size(); ++i) {
        const std::int64_t length = row_ptr[i + 1] - row_ptr[i];
        s.empty_rows += length == 0 ? 1 : 0;
        s.longest_row = std::max(s.longest_row, length);
        squares += (static_cast<double>(length) - s.mean) * (static_cast<double>(length) - s.mean);
    }
    s.deviation = s.rows > 0 ? std::sqrt(squares / static_cast<double>(s.rows)) : 0;
    return s;
}

template std::vector<float> random_vector(std::int64_t, std::uint64_t);
template std::vector<double> random_vector(std::int64_t, std::uint64_t);
template HostCsr<float> make_matrix(const Shape&, std::uint64_t);
template HostCsr<double> make_matrix(const Shape&, std::uint64_t);

}  // namespace rmsp::kernels::test
