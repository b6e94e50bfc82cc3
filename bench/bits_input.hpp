#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/rmsp.hpp>

#include "matrix_argument.hpp"

/// The matrices that bench_bits multiplies.

/// A matrix in every format, with vectors.
template <class T>
struct Input {
    std::string name;
    bool exact = false;  ///< integers, small enough that sums are exact in any order
    rmsp::CsrMatrix<T> csr;
    rmsp::CscMatrix<T> csc;
    rmsp::CooMatrix<T> by_row, by_column, shuffled;
    rmsp::HostVector<std::int64_t> wide;  ///< columns of csr in 64 bits
    std::vector<T> x, y;                  ///< as many entries as the longer side, without zeros

    bool square() const { return csr.rows == csr.cols; }
    /// Other values for the same structure.
    std::vector<T> new_values() const
    {
        std::vector<T> values(csr.values.begin(), csr.values.end());
        std::rotate(values.begin(), values.begin() + (values.empty() ? 0 : 1), values.end());
        return values;
    }
};

inline std::uint64_t scrambled(std::uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ (i >> 31)) * 0xbf58476d1ce4e5b9u;
    return i ^ (i >> 29);
}

/// Never zero, so that zero sums have the same sign in any order: -4 to 4, or uniform in [-1, 1).
template <class T>
T number(std::uint64_t i, bool integer)
{
    const std::uint64_t bits = scrambled(i);
    if (integer) {
        const auto magnitude = static_cast<T>(1 + bits % 4);
        return (bits >> 8) % 2 == 0 ? magnitude : -magnitude;
    }
    return static_cast<T>(static_cast<double>(bits >> 11) * 0x1p-52 - 1.0 + 0x1p-53);
}

/// Rows that are empty, short, unsorted and repeat columns, and one that is as long as all others together.
template <class T>
rmsp::CsrMatrix<T> hub(std::int64_t size)
{
    rmsp::CsrMatrix<T> a{size, size, {0}, {}, {}};
    rmsp::HostVector<std::int32_t> columns;
    for (std::int64_t row = 0; row < size; ++row) {
        const std::int64_t length = row == size / 3 ? 2 * size : row % 4 == 1 ? 0 : row % 7;
        for (std::int64_t k = 0; k < length; ++k) {
            const std::uint64_t i = scrambled(static_cast<std::uint64_t>(row * 31 + k));
            columns.push_back(static_cast<std::int32_t>(i % static_cast<std::uint64_t>(size)));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.values.resize(columns.size());
    a.col_idx = std::move(columns);
    return a;
}

enum class Values { random, ones, integer, pair };

template <class T>
Input<T> make_input(std::string name, Values values, rmsp::CsrMatrix<T> a)
{
    Input<T> in;
    in.name = std::move(name);
    in.exact = values == Values::integer || values == Values::ones;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        const T pair[2] = {T(1.25), T(-0.3)};
        a.values[i] = values == Values::ones ? T(1) : values == Values::pair ? pair[i % 2] : number<T>(i, in.exact);
    }
    in.csr = std::move(a);
    in.csc = rmsp::to_csc(in.csr.view());
    in.by_row = rmsp::to_coo(in.csr.view());
    in.by_column = rmsp::to_coo(in.csc.view());
    const auto n = static_cast<std::size_t>(in.csr.nnz());
    std::vector<std::size_t> place(n);
    std::iota(place.begin(), place.end(), std::size_t{0});
    std::sort(place.begin(), place.end(), [](auto i, auto j) { return scrambled(i) < scrambled(j); });
    rmsp::HostVector<std::int32_t> rows(n), columns(n);
    in.shuffled = {in.csr.rows, in.csr.cols, {}, {}, rmsp::HostVector<T>(n)};
    for (std::size_t i = 0; i < n; ++i) {
        const auto from = static_cast<std::int64_t>(place[i]);
        rows[i] = static_cast<std::int32_t>(in.by_row.row_idx[from]);
        columns[i] = static_cast<std::int32_t>(in.by_row.col_idx[from]);
        in.shuffled.values[i] = in.by_row.values[place[i]];
        in.wide.push_back(in.csr.col_idx[static_cast<std::int64_t>(i)]);
    }
    in.shuffled.row_idx = std::move(rows);
    in.shuffled.col_idx = std::move(columns);
    for (std::int64_t i = 0; i < std::max(in.csr.rows, in.csr.cols); ++i) {
        in.x.push_back(number<T>(static_cast<std::uint64_t>(i) + 1000003, in.exact));
        in.y.push_back(number<T>(static_cast<std::uint64_t>(i) + 2000003, in.exact));
    }
    return in;
}

template <class T>
std::vector<Input<T>> make_inputs(bool quick)
{
    const auto made = [&](const char* full, const char* small) { return rmsp::generate<T>(quick ? small : full); };
    std::vector<Input<T>> all;
    const auto add = [&](const char* name, Values values, rmsp::CsrMatrix<T> a) {
        all.push_back(make_input<T>(name, values, std::move(a)));
    };
    const auto loaded = [&](const char* full, const char* small) {
        return load<T>(parse_matrix(quick ? small : full));
    };
    add("stencil7", Values::random, made("stencil7 20 17 13", "stencil7 5 4 3"));
    add("stencil27", Values::integer, made("stencil27 14 12 10", "stencil27 4 4 3"));
    add("stencil-pair", Values::pair, made("stencil27 13 14 9", "stencil27 3 4 5"));
    add("banded", Values::ones, made("banded 3000 15", "banded 60 3"));
    add("rmat", Values::random, made("rmat 11 8", "rmat 6 4"));
    add("rmat-integer", Values::integer, made("rmat 10 12", "rmat 5 6"));
    add("powerlaw", Values::random, made("powerlaw 3000 12 2.1", "powerlaw 50 4 2.1"));
    add("wide", Values::random, made("random 700 5000 9", "random 7 50 9"));
    add("tall", Values::integer, made("random 5000 300 7", "random 50 3 2"));
    add("blocks", Values::random,
        loaded("b,generate=stencil7 9 8 8,plus_identity=true,kron=3", "b,generate=stencil7 3 2 2,kron=3"));
    add("mesh", Values::random,
        loaded("m,generate=stencil27 14 13 12,permute=3", "m,generate=stencil7 4 3 3,permute=3"));
    add("mesh-integer", Values::integer,
        loaded("m,generate=stencil7 20 19 18,permute=5", "m,generate=stencil7 4 3 2,permute=5"));
    add("hub", Values::random, hub<T>(quick ? 40 : 2000));
    add("hub-integer", Values::integer, hub<T>(quick ? 30 : 1111));
    add("dense", Values::random, made("random 70 70 70", "random 9 9 9"));
    add("one", Values::random, made("random 1 1 1", "random 1 1 1"));
    add("empty", Values::integer, made("random 5 4 0", "random 5 4 0"));
    if (!quick) {
        add("graph", Values::random, rmsp::generate<T>("rmat 14 16"));
    }
    return all;
}

/// Everything that is distributed, "coo-split" and "coo-sort" being coordinates in no order.
inline constexpr const char* formats[] = {"csr", "csr-wide", "csc", "coo-row", "coo-column", "coo-split", "coo-sort"};

template <class T>
rmsp::DistributedMatrix<T> distribute(rmsp::Runtime& runtime, const Input<T>& in, const std::string& format,
                                      rmsp::DistributeOptions options)
{
    if (format == "csr-wide") {
        rmsp::CsrView<T> view = in.csr.view();
        view.col_idx = rmsp::IndexView(in.wide.data());
        return runtime.distribute(view, options);
    }
    options.unsorted = format == "coo-sort" ? rmsp::Unsorted::sort : rmsp::Unsorted::split;
    return format == "csr"          ? runtime.distribute(in.csr.view(), options)
           : format == "csc"        ? runtime.distribute(in.csc.view(), options)
           : format == "coo-row"    ? runtime.distribute(in.by_row.view(), options)
           : format == "coo-column" ? runtime.distribute(in.by_column.view(), options)
                                    : runtime.distribute(in.shuffled.view(), options);
}
