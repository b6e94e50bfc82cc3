#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "matrices.hpp"

/// Pairs of matrices that kernels of C = A B find hard.
namespace rmsp::kernels::test {

template <class T>
struct Pair {
    std::string name;
    HostCsr<T> a;
    HostCsr<T> b;
};

template <class T>
HostCsr<T> matrix(std::int64_t cols, const std::vector<std::int64_t>& lengths, std::uint64_t seed)
{
    return make_matrix<T>({"", cols, lengths}, seed);
}

/// Row `row` has columns row * step - half to row * step + half, as far as they exist.
template <class T>
HostCsr<T> band(std::int64_t rows, std::int64_t cols, std::int64_t step, std::int64_t half)
{
    HostCsr<T> a;
    a.rows = rows;
    a.cols = cols;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = std::max<std::int64_t>(row * step - half, 0);
             column < std::min(cols, row * step + half + 1); ++column) {
            a.col_idx.push_back(static_cast<std::int32_t>(column));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values = random_vector<T>(static_cast<std::int64_t>(a.col_idx.size()), 5);
    return a;
}

/// Each entry of `a` as a dense block of size x size: `size` unknowns a node.
template <class T>
HostCsr<T> with_unknowns(const HostCsr<T>& a, std::int64_t size)
{
    HostCsr<T> out;
    out.rows = a.rows * size;
    out.cols = a.cols * size;
    for (std::int64_t row = 0; row < out.rows; ++row) {
        const auto node = static_cast<std::size_t>(row / size);
        for (std::int64_t i = a.row_ptr[node]; i < a.row_ptr[node + 1]; ++i) {
            for (std::int64_t u = 0; u < size; ++u) {
                out.col_idx.push_back(static_cast<std::int32_t>(a.col_idx[static_cast<std::size_t>(i)] * size + u));
            }
        }
        out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
    }
    out.values = random_vector<T>(static_cast<std::int64_t>(out.col_idx.size()), 6);
    return out;
}

inline std::vector<std::int64_t> lengths(std::size_t rows, std::int64_t most, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> out(rows);
    for (std::int64_t& n : out) {
        n = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
    }
    return out;
}

/// Lengths that fall as 1 / rank, in a random order.
inline std::vector<std::int64_t> power_law(std::size_t rows, std::int64_t most, std::uint64_t seed)
{
    std::vector<std::int64_t> out(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        out[i] = most / static_cast<std::int64_t>(i + 1);
    }
    std::shuffle(out.begin(), out.end(), std::mt19937_64(seed));
    return out;
}

/// Columns `factor` times as far apart.
template <class T>
HostCsr<T> apart(HostCsr<T> a, std::int64_t factor)
{
    a.cols *= factor;
    for (std::int32_t& column : a.col_idx) {
        column = static_cast<std::int32_t>(column * factor);
    }
    return a;
}

/// Rows in order, each column once, as cuSPARSE asks for.
template <class T>
HostCsr<T> sorted_unique(const HostCsr<T>& a)
{
    HostCsr<T> out;
    out.rows = a.rows;
    out.cols = a.cols;
    for (std::size_t row = 0; row < static_cast<std::size_t>(a.rows); ++row) {
        std::map<std::int32_t, T> entries;
        for (auto i = static_cast<std::size_t>(a.row_ptr[row]); i < static_cast<std::size_t>(a.row_ptr[row + 1]); ++i) {
            entries[a.col_idx[i]] += a.values[i];
        }
        for (const auto& [column, value] : entries) {
            out.col_idx.push_back(column);
            out.values.push_back(value);
        }
        out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
    }
    return out;
}

/// Sizes that change how a kernel adds a row up: none, one, few, many products; narrow and wide; every column.
template <class T>
std::vector<Pair<T>> pairs()
{
    constexpr std::int64_t widest = std::numeric_limits<std::int32_t>::max();
    std::vector<Pair<T>> all;
    const auto add = [&](const char* name, HostCsr<T> a, HostCsr<T> b) {
        all.push_back({name, std::move(a), std::move(b)});
    };
    const auto repeated = [](std::size_t rows, std::int64_t n) { return std::vector<std::int64_t>(rows, n); };
    add("0 x 0 by 0 x 0", matrix<T>(0, {}, 1), matrix<T>(0, {}, 2));
    add("0 x 5 by 5 x 3", matrix<T>(5, {}, 1), matrix<T>(3, {1, 2, 0, 3, 1}, 2));
    add("5 x 0 by 0 x 4", matrix<T>(0, repeated(5, 0), 1), matrix<T>(4, {}, 2));
    add("3 x 4 by 4 x 0", matrix<T>(4, {1, 2, 3}, 1), matrix<T>(0, repeated(4, 0), 2));
    add("1 x 1", matrix<T>(1, {1}, 1), matrix<T>(1, {1}, 2));
    add("no products at all", matrix<T>(40, repeated(50, 3), 1), matrix<T>(7, repeated(40, 0), 2));
    add("one product a row", matrix<T>(3000, repeated(3000, 1), 1), matrix<T>(3000, repeated(3000, 1), 2));
    add("small rows", matrix<T>(500, lengths(700, 5, 3), 1), matrix<T>(900, lengths(500, 5, 4), 2));
    add("middling rows", matrix<T>(400, lengths(300, 30, 3), 1), matrix<T>(5000, lengths(400, 40, 4), 2));
    add("tall by wide", matrix<T>(3, lengths(2000, 3, 3), 1), matrix<T>(4000, {500, 0, 3000}, 2));
    add("band", band<T>(900, 900, 1, 15), band<T>(900, 900, 1, 15));
    add("wide band", band<T>(30, 300, 9, 111), band<T>(300, 300, 1, 111));
    // Each row of A names rows of B of about one length, which goes from 6 to 1000; some rows of C have few products.
    std::vector<std::int64_t> longer(400);
    for (std::size_t i = 0; i < longer.size(); ++i) {
        longer[i] = static_cast<std::int64_t>(6 * std::pow(1.0129, static_cast<double>(i)));
    }
    add("longer and longer rows of B", band<T>(100, 400, 4, 9), matrix<T>(3000, longer, 2));
    add("steps", band<T>(200, 1000, 5, 3), band<T>(1000, 70000, 70, 2));
    for (const std::int64_t unknowns : {2, 3, 4, 5}) {
        const HostCsr<T> narrow = with_unknowns(band<T>(70, 70, 1, 3), unknowns);
        add("unknowns in a band", narrow, narrow);
        const HostCsr<T> wide = with_unknowns(band<T>(40, 3000, 75, 4), unknowns);
        add("unknowns far apart", wide, with_unknowns(matrix<T>(9000, lengths(3000, 20, 3), 1), unknowns));
    }
    // As many products a row as fill the registers of a thread, or nearly.
    for (const auto& [of_a, of_b] : {std::pair{1, 4}, {2, 2}, {1, 5}, {2, 4}, {3, 3}, {4, 4}, {5, 5}, {7, 4}, {8, 4}}) {
        add("few products in each row", matrix<T>(500, repeated(1001, of_a), 1),
            matrix<T>(800, repeated(500, of_b), 2));
    }
    add("65 to 128 products far apart", matrix<T>(400, lengths(300, 11, 3), 1),
        matrix<T>(900000, repeated(400, 11), 2));
    // Rows of small matrices, of none to 2048 products, which the last one has.
    for (const std::int64_t of_most : {3, 9, 20, 60}) {
        std::vector<std::int64_t> all_lengths = repeated(700, of_most);
        for (std::size_t i = 0; i < 64; ++i) {
            all_lengths[11 * i] = static_cast<std::int64_t>(4 * i);
        }
        all_lengths[699] = 256;
        add("products from none to 2048 in a row", matrix<T>(300, all_lengths, 1),
            matrix<T>(5000, repeated(300, 8), 2));
    }
    add("2049 products in a row", matrix<T>(300, {5, 683, 1}, 1), matrix<T>(5000, repeated(300, 3), 2));
    add("more entries of A than products", matrix<T>(4000, {5, 3000, 1}, 1), matrix<T>(50, lengths(4000, 1, 3), 2));
    add("some hundred products for each entry", matrix<T>(300, repeated(60, 300), 1),
        matrix<T>(17, repeated(300, 9), 2));
    std::vector<std::int64_t> one_of_9000 = repeated(90, 12);
    one_of_9000[40] = 9000;
    add("rows for tiles and one that is none", matrix<T>(3000, one_of_9000, 1),
        matrix<T>(2000, lengths(3000, 9, 4), 2));
    // The last block of the short rows is not full, and row 0 needs more room than it has.
    std::vector<std::int64_t> short_rows = repeated(2005, 1);
    short_rows[0] = 30;
    add("short rows behind a long one", matrix<T>(400, short_rows, 1), matrix<T>(40000, repeated(400, 20), 2));
    add("power law", matrix<T>(1500, power_law(1500, 700, 3), 1), matrix<T>(1500, power_law(1500, 700, 4), 2));
    add("a row of A meets every row of B", matrix<T>(2000, {1, 0, 9000, 2, 1}, 1),
        matrix<T>(3000, lengths(2000, 7, 4), 2));
    add("rows of C with every column", band<T>(9, 40, 3, 20), band<T>(40, 30000, 750, 800));
    add("many products for few columns", matrix<T>(300, {40000, 5, 9000}, 1), matrix<T>(17, repeated(300, 9), 2));
    add("many products for some hundred columns", matrix<T>(300, {40000, 5, 9000}, 1),
        matrix<T>(600, repeated(300, 9), 2));
    add("a row of B of 60000", matrix<T>(5, {2, 0, 1, 4}, 1), matrix<T>(100000, {3, 60000, 0, 1, 700}, 2));
    // Rows of C that are cut into ranges of columns, of rows of B in order and not.
    const HostCsr<T> wide_rows = matrix<T>(200000, lengths(100, 2500, 4), 2);
    add("wide rows of C", matrix<T>(100, {60, 2, 30, 0, 45}, 1), wide_rows);
    add("wide rows of C, in order", matrix<T>(100, {60, 2, 30, 0, 45}, 1), sorted_unique(wide_rows));
    add("wide rows of C, of short ones", matrix<T>(4000, {3000, 5}, 1),
        sorted_unique(matrix<T>(300000, lengths(4000, 40, 4), 2)));
    std::vector<std::int64_t> one_long(5000, 1);
    one_long[100] = 3000;
    add("entries of C with many products among many with one", matrix<T>(4000, one_long, 1),
        matrix<T>(50, repeated(4000, 2), 2));
    // Neighbours in the row of C come from places far apart in A and in B; some have many products.
    HostCsr<T> in_disorder = band<T>(70000, 70000, 1, 0);
    for (std::int32_t& column : in_disorder.col_idx) {
        column = static_cast<std::int32_t>(std::int64_t{column} * 30011 % 70000);
    }
    HostCsr<T> in_heaps = in_disorder;
    for (std::size_t i = 0; i < in_heaps.col_idx.size(); i += 7) {
        in_heaps.col_idx[i] = static_cast<std::int32_t>(2000 * (i % 3));
    }
    const HostCsr<T> of_all = matrix<T>(70000, {70000, 3}, 1);
    add("a row of A meets 70000 rows of B", of_all, std::move(in_disorder));
    add("a row of A meets 70000 rows of B, some columns often", of_all, std::move(in_heaps));
    // Rows of C of a few hundred to a few thousand words that lie far apart, alone and as twins.
    add("words far apart", matrix<T>(400, lengths(12, 200, 3), 1), matrix<T>(3000000, lengths(400, 40, 4), 2));
    add("words far apart, twins", with_unknowns(matrix<T>(200, lengths(8, 60, 3), 1), 2),
        with_unknowns(matrix<T>(1500000, lengths(200, 40, 4), 2), 2));
    // Near enough for a bit for each word between them.
    add("words apart", matrix<T>(400, lengths(12, 200, 3), 1), matrix<T>(1000000, lengths(400, 40, 4), 2));
    add("words apart, twins", with_unknowns(matrix<T>(200, lengths(8, 60, 3), 1), 2),
        with_unknowns(matrix<T>(500000, lengths(200, 40, 4), 2), 2));
    add("rows of B of all lengths", matrix<T>(2000, {1200, 3, 700, 0, 90, 20}, 1),
        matrix<T>(1900000, power_law(2000, 5000, 4), 2));
    std::vector<std::int64_t> one_of_many = repeated(3000, 50);
    one_of_many[10] = 5000;
    add("rows of C for many blocks", matrix<T>(3000, {3000, 5, 2900, 0, 40}, 1), matrix<T>(4000000, one_of_many, 4));
    std::vector<std::int64_t> two_long(300, 2);
    two_long[7] = 5000;
    two_long[250] = 3001;
    add("long rows of A among short ones", matrix<T>(8000, two_long, 1), matrix<T>(9000, lengths(8000, 4, 4), 2));
    // Entries of C that do not find room together, of one product and of three.
    add("thirty thousand entries far apart", matrix<T>(1000, {900, 0, 880}, 1),
        matrix<T>(1000000, lengths(1000, 80, 4), 2));
    add("thirty thousand entries side by side", matrix<T>(80, {60, 3}, 1), matrix<T>(200000, repeated(80, 500), 2));
    add("thirty thousand entries of three products", matrix<T>(100, {90, 2, 88}, 1),
        apart(matrix<T>(30000, repeated(100, 1000), 2), 33));
    add("thirty thousand entries of three products, twins", with_unknowns(matrix<T>(50, {45, 1}, 1), 2),
        with_unknowns(apart(matrix<T>(15000, repeated(50, 500), 2), 33), 2));
    add("2^31 - 1 columns", matrix<T>(50, lengths(60, 6, 3), 1), matrix<T>(widest, lengths(50, 300, 4), 2));
    add("2^31 - 1 columns, long rows", matrix<T>(30, {30, 2, 60}, 1), matrix<T>(widest, repeated(30, 1500), 2));
    return all;
}

}  // namespace rmsp::kernels::test
