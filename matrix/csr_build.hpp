#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/matrix.hpp>
#include <rmsp/matrix_part.hpp>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/read_limit.hpp"

namespace rmsp::matrix {

template <class I, class T>
struct NarrowEntry {
    I row;
    I col;
    T value;
};

template <class I, class T>
using Entry = std::conditional_t<std::is_same_v<I, std::int64_t>, MatrixEntry<T>, NarrowEntry<I, T>>;

/// Items ordered by blocks of 2^shift consecutive rows; inside a block they keep the order that they had.
template <class Item>
struct RowBlocks {
    int shift = 0;
    HostVector<Item> items;
    std::vector<std::int64_t> start;  ///< one more than there are blocks

    std::int64_t blocks() const { return static_cast<std::int64_t>(start.size()) - 1; }
    std::int64_t first_row(std::int64_t block, std::int64_t rows) const { return std::min(block << shift, rows); }
};

/// First pass of a stable two-pass radix sort by row: the second, inside a block, then works in cache. The outcome does
/// not depend on the threads. Frees each chunk as soon as it is copied.
template <class Item, class RowOf>
RowBlocks<Item> scatter_by_row(std::vector<HostVector<Item>>& chunks, std::int64_t rows, int threads, RowOf row_of,
                               core::ProgressMeter& meter)
{
    constexpr std::int64_t most_blocks = 2048;  // more would not fit the TLB while they are filled
    RowBlocks<Item> out;
    while (rows > 0 && (rows - 1) >> out.shift >= most_blocks) {
        ++out.shift;
    }
    const std::int64_t blocks = rows > 0 ? ((rows - 1) >> out.shift) + 1 : 0;
    const auto chunk_count = static_cast<std::int64_t>(chunks.size());
    std::vector<std::vector<std::int64_t>> place(chunks.size());
    core::parallel_for(threads, chunk_count, [&](std::int64_t c) {
        auto& counts = place[static_cast<std::size_t>(c)];
        counts.assign(static_cast<std::size_t>(blocks), 0);
        for (const Item& item : chunks[static_cast<std::size_t>(c)]) {
            ++counts[static_cast<std::size_t>(row_of(item) >> out.shift)];
        }
    });
    std::int64_t total = 0;
    out.start.reserve(static_cast<std::size_t>(blocks) + 1);
    for (std::int64_t b = 0; b < blocks; ++b) {
        out.start.push_back(total);
        for (auto& counts : place) {
            total += std::exchange(counts[static_cast<std::size_t>(b)], total);
        }
    }
    out.start.push_back(total);
    out.items.resize(static_cast<std::size_t>(total));
    core::parallel_for(threads, chunk_count, [&](std::int64_t c) {
        auto& next = place[static_cast<std::size_t>(c)];
        auto& chunk = chunks[static_cast<std::size_t>(c)];
        for (const Item& item : chunk) {
            out.items[static_cast<std::size_t>(next[static_cast<std::size_t>(row_of(item) >> out.shift)]++)] = item;
        }
        meter.advance(static_cast<std::int64_t>(chunk.size()));
        HostVector<Item>().swap(chunk);
    });
    return out;
}

/// Row ranges of about equal numbers of entries, for parallel work on whole rows: ranges + 1 bounds.
inline std::vector<std::int64_t> split_rows(const HostVector<std::int64_t>& row_ptr, int threads)
{
    const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
    const std::int64_t ranges =
        std::clamp<std::int64_t>(threads * std::int64_t{16}, 1, std::max<std::int64_t>(rows, 1));
    const std::int64_t nnz = row_ptr.back();
    std::vector<std::int64_t> bounds(static_cast<std::size_t>(ranges) + 1, 0);
    for (std::int64_t i = 1; i < ranges; ++i) {
        // Half by entries, half by rows: long empty stretches are work too.
        const auto weight = [&](std::int64_t r) { return row_ptr[static_cast<std::size_t>(r)] + r; };
        const std::int64_t target = (nnz + rows) / ranges * i;
        std::int64_t low = bounds[static_cast<std::size_t>(i) - 1];
        std::int64_t high = rows;
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            if (weight(middle) < target) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        bounds[static_cast<std::size_t>(i)] = low;
    }
    bounds.back() = rows;
    return bounds;
}

/// Sorts one row by column, stably, so that repeated entries are added in the order of the file.
template <class C, class T>
void sort_row(C* col, T* value, std::int64_t n, std::vector<std::pair<C, T>>& scratch)
{
    if (std::is_sorted(col, col + n)) {
        return;
    }
    if (n <= 32) {
        for (std::int64_t i = 1; i < n; ++i) {
            const C c = col[i];
            const T v = value[i];
            std::int64_t j = i;
            for (; j > 0 && c < col[j - 1]; --j) {
                col[j] = col[j - 1];
                value[j] = value[j - 1];
            }
            col[j] = c;
            value[j] = v;
        }
        return;
    }
    scratch.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        scratch[static_cast<std::size_t>(i)] = {col[i], value[i]};
    }
    std::stable_sort(scratch.begin(), scratch.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::int64_t i = 0; i < n; ++i) {
        std::tie(col[i], value[i]) = scratch[static_cast<std::size_t>(i)];
    }
}

/// Bytes of the arrays of a matrix.
template <class T>
core::uint128 csr_bytes(std::int64_t rows, std::int64_t cols, std::int64_t nnz)
{
    const std::size_t index_bytes = index_type_for(cols) == IndexType::i32 ? 4 : 8;
    return (static_cast<core::uint128>(rows) + 1) * 8 + static_cast<core::uint128>(nnz) * (index_bytes + sizeof(T));
}

/// Adds up repeated entries of sorted rows, into new arrays.
template <class C, class T>
void sum_repeated(CsrMatrix<T>& a, HostVector<C>& col, const std::vector<std::int64_t>& bounds, int threads,
                  core::ReadLimit& limit)
{
    const auto ranges = static_cast<std::int64_t>(bounds.size()) - 1;
    std::vector<std::int64_t> start(bounds.size(), 0);
    const auto for_rows = [&](std::int64_t range, auto&& body) {
        for (std::int64_t r = bounds[static_cast<std::size_t>(range)]; r < bounds[static_cast<std::size_t>(range) + 1];
             ++r) {
            body(r, a.row_ptr[static_cast<std::size_t>(r)], a.row_ptr[static_cast<std::size_t>(r) + 1]);
        }
    };
    core::parallel_for(threads, ranges, [&](std::int64_t range) {
        std::int64_t distinct = 0;
        for_rows(range, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
            for (std::int64_t k = begin; k < end; ++k) {
                distinct += k == begin || col[static_cast<std::size_t>(k)] != col[static_cast<std::size_t>(k) - 1];
            }
        });
        start[static_cast<std::size_t>(range) + 1] = distinct;
    });
    for (std::size_t i = 1; i < start.size(); ++i) {
        start[i] += start[i - 1];
    }
    limit.take(csr_bytes<T>(a.rows, a.cols, start.back()), "the matrix without repeated entries");
    HostVector<C> new_col(static_cast<std::size_t>(start.back()));
    HostVector<T> new_values(new_col.size());
    HostVector<std::int64_t> new_ptr(a.row_ptr.size());
    core::parallel_for(threads, ranges, [&](std::int64_t range) {
        auto to = static_cast<std::size_t>(start[static_cast<std::size_t>(range)]);
        for_rows(range, [&](std::int64_t r, std::int64_t begin, std::int64_t end) {
            new_ptr[static_cast<std::size_t>(r)] = static_cast<std::int64_t>(to);
            for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
                if (k > static_cast<std::size_t>(begin) && col[k] == col[k - 1]) {
                    new_values[to - 1] += a.values[k];
                } else {
                    new_col[to] = col[k];
                    new_values[to++] = a.values[k];
                }
            }
        });
    });
    new_ptr.back() = start.back();
    limit.give_back(static_cast<std::uint64_t>(csr_bytes<T>(a.rows, a.cols, a.row_ptr.back())));
    col = std::move(new_col);
    a.values = std::move(new_values);
    a.row_ptr = std::move(new_ptr);
}

/// Sorts the columns of each row and, if asked, adds up repeated entries.
template <class T>
void finish_rows(CsrMatrix<T>& a, bool sum_duplicates, int threads, core::ReadLimit& limit)
{
    const std::vector<std::int64_t> bounds = split_rows(a.row_ptr, threads);
    a.col_idx.visit([&](auto& col) {
        using C = typename std::decay_t<decltype(col)>::value_type;
        std::atomic<bool> repeated{false};
        core::parallel_for(threads, static_cast<std::int64_t>(bounds.size()) - 1, [&](std::int64_t range) {
            std::vector<std::pair<C, T>> scratch;
            bool found = false;
            for (auto r = static_cast<std::size_t>(bounds[static_cast<std::size_t>(range)]);
                 r < static_cast<std::size_t>(bounds[static_cast<std::size_t>(range) + 1]); ++r) {
                C* first = col.data() + a.row_ptr[r];
                C* last = col.data() + a.row_ptr[r + 1];
                sort_row(first, a.values.data() + a.row_ptr[r], last - first, scratch);
                found = found || std::adjacent_find(first, last) != last;
            }
            if (found) {
                repeated.store(true, std::memory_order_relaxed);
            }
        });
        if (sum_duplicates && repeated.load()) {
            sum_repeated(a, col, bounds, threads, limit);
        }
    });
}

/// Allocates the arrays of a matrix of known size. \throws Error(out_of_memory)
template <class T>
CsrMatrix<T> allocate_csr(std::int64_t rows, std::int64_t cols, std::int64_t nnz)
{
    const IndexType type = index_type_for(cols);
    core::require_memory(csr_bytes<T>(rows, cols, nnz),
                         fmt::format("a {} x {} matrix with {} nonzeros", rows, cols, nnz));
    CsrMatrix<T> a;
    a.rows = rows;
    a.cols = cols;
    a.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    a.col_idx = IndexArray(type, static_cast<std::size_t>(nnz));
    a.values.resize(static_cast<std::size_t>(nnz));
    return a;
}

/// CSR of entries in any order; their rows and columns have been checked. Frees the chunks, which `limit` has counted.
template <class I, class T>
CsrMatrix<T> build_csr(std::vector<HostVector<Entry<I, T>>>& chunks, std::int64_t rows, std::int64_t cols,
                       bool sum_duplicates, int threads, const Progress& progress, core::ReadLimit& limit)
{
    std::int64_t nnz = 0;
    std::uint64_t room = 0;
    for (const auto& chunk : chunks) {
        nnz += static_cast<std::int64_t>(chunk.size());
        room += chunk.capacity();
    }
    const auto entry_bytes = static_cast<std::uint64_t>(nnz) * sizeof(Entry<I, T>);
    limit.take(entry_bytes, "its entries by rows");
    core::ProgressMeter meter(progress, "sort", 2 * nnz);
    RowBlocks<Entry<I, T>> blocks = scatter_by_row(
        chunks, rows, threads, [](const Entry<I, T>& e) { return e.row; }, meter);
    limit.give_back(room * sizeof(Entry<I, T>));
    limit.take(csr_bytes<T>(rows, cols, nnz), "the matrix");
    CsrMatrix<T> a = allocate_csr<T>(rows, cols, nnz);
    a.row_ptr.back() = nnz;
    a.col_idx.visit([&](auto& col) {
        using C = typename std::decay_t<decltype(col)>::value_type;
        core::parallel_for(threads, blocks.blocks(), [&](std::int64_t b) {
            const std::int64_t first = blocks.first_row(b, rows);
            const std::int64_t last = blocks.first_row(b + 1, rows);
            const Entry<I, T>* begin = blocks.items.data() + blocks.start[static_cast<std::size_t>(b)];
            const Entry<I, T>* end = blocks.items.data() + blocks.start[static_cast<std::size_t>(b) + 1];
            std::vector<std::int64_t> next(static_cast<std::size_t>(last - first), 0);
            for (const auto* e = begin; e < end; ++e) {
                ++next[static_cast<std::size_t>(e->row - first)];
            }
            std::int64_t at = blocks.start[static_cast<std::size_t>(b)];
            for (std::int64_t r = first; r < last; ++r) {
                a.row_ptr[static_cast<std::size_t>(r)] = at;
                at += std::exchange(next[static_cast<std::size_t>(r - first)], at);
            }
            for (const auto* e = begin; e < end; ++e) {
                const auto k = static_cast<std::size_t>(next[static_cast<std::size_t>(e->row - first)]++);
                col[k] = static_cast<C>(e->col);
                a.values[k] = e->value;
            }
            meter.advance(end - begin);
        });
    });
    HostVector<Entry<I, T>>().swap(blocks.items);
    limit.give_back(entry_bytes);
    finish_rows(a, sum_duplicates, threads, limit);
    return a;
}

}  // namespace rmsp::matrix
