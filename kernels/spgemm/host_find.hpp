#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <kernels/context.hpp>
#include <kernels/spgemm/host_columns.hpp>
#include <kernels/spgemm/host_rows.hpp>

#include "core/wide_vectors.hpp"

namespace rmsp::kernels::spgemm {

/// Rows of at most so many entries are sorted by comparing all with all, unless so many entries, or more, come to a
/// word of their bits: then their bits are looked through.
inline constexpr std::int64_t most_compared = 128;
inline constexpr std::int64_t fewest_in_word = 2;
/// Columns that are copied at once, and what follows them is written over.
inline constexpr std::int64_t copied = 8;
/// Entries of A by which rows of B are asked for before they are read.
inline constexpr std::int64_t fetched_ahead = 8;
/// So many products a word, and those of a row of B are collected before they are added to it.
inline constexpr std::int64_t fewest_collected = 4;

/// Asks for the columns of the row of B that comes some entries of A behind entry i: loops over short rows end too
/// often for the processor to look that far ahead by itself. Where in B it begins.
template <class T, class BIndex>
std::int64_t fetch_columns(const CsrShard<T>& a, const CsrShard<T>& b, std::int64_t i, const BIndex* b_ptr)
{
    const std::int64_t at = b_ptr[a.col_idx[std::min(i + fetched_ahead, a.nnz - 1)]];
    __builtin_prefetch(b.col_idx + at);
    return at;
}

/// What one thread finds columns with.
struct FoundColumns {
    ColumnBits bits;
    ColumnMarks marks;
    ColumnTable table;
    HostVector<std::int32_t> listed;    ///< of the products of one row
    HostVector<std::int32_t> unsorted;  ///< of one row

    /// Bytes that reserve() takes.
    static std::int64_t bytes_of(const LargestRows& largest, int table)
    {
        return (largest.entries + sorted_lanes + largest.listed + copied) * 4 + (largest.in_bits / 62 + 3) * 8 +
               largest.marked + (table < 0 ? 0 : std::int64_t{4} << table);
    }
    /// Room for rows as large as the largest, and for tables of so many bits.
    void reserve(const LargestRows& largest, int table_bits)
    {
        listed.resize(static_cast<std::size_t>(largest.listed + copied));
        // A column that is there already is written as well, behind the others.
        unsorted.resize(static_cast<std::size_t>(largest.entries + sorted_lanes));
        bits.reserve(largest.in_bits);
        marks.reserve(largest.marked);
        table.reserve(table_bits);
    }
    std::int64_t bytes() const
    {
        return bits.bytes() + marks.bytes() + table.bytes() +
               static_cast<std::int64_t>((listed.size() + unsorted.size()) * sizeof(std::int32_t));
    }
};

/// Finds the columns of rows of C = A B.
template <class T>
class ColumnFinder {
public:
    ColumnFinder(const CsrShard<T>& a, const CsrShard<T>& b, const RowsOfProduct<T>& rows) : a_(a), b_(b), rows_(rows)
    {
    }

    /// Writes the columns of a row of C to out, which has room for bound(row), in rising order; how many.
    template <class AIndex, class BIndex>
    std::int64_t find(std::int64_t row, FoundColumns& scratch, const AIndex* a_ptr, const BIndex* b_ptr,
                      std::int32_t* out) const
    {
        const Span span = rows_.span(row);
        const auto for_each_column = [&](const auto& f) {
            for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                const std::int64_t k = a_.col_idx[i];
                fetch_columns(a_, b_, i, b_ptr);
                const std::int64_t end = b_ptr[k + 1];
                for (std::int64_t j = b_ptr[k]; j < end; ++j) {
                    f(b_.col_idx[j]);
                }
            }
        };
        if (rows_.products(row) == 0) {
            return 0;
        }
        std::int64_t count = 0;
        if (rows_.accumulator() != HostAccumulator::hash && span.columns() <= ColumnBits::bits) {
            std::uint64_t word = 0;
            for_each_column([&](std::int32_t column) { word |= std::uint64_t{1} << (column - span.first); });
            for (; word != 0; word &= word - 1) {
                out[count++] = span.first + std::countr_zero(word);
            }
        } else if (rows_.finds_in_bits(row)) {
            count = find_in_bits(row, scratch, a_ptr, b_ptr, for_each_column, out);
        } else {
            scratch.table.open(rows_.table_bits(row));
            for_each_column([&](std::int32_t column) {
                std::uint64_t place = 0;
                if (scratch.table.add(column, place)) {
                    out[count++] = column;
                }
            });
            scratch.table.clear();
            std::sort(out, out + count);
        }
        return count;
    }

private:
    /// find() of a row whose columns are found in bits.
    template <class AIndex, class BIndex, class Columns>
    std::int64_t find_in_bits(std::int64_t row, FoundColumns& scratch, const AIndex* a_ptr, const BIndex* b_ptr,
                              const Columns& for_each_column, std::int32_t* out) const
    {
        ColumnBits& bits = scratch.bits;
        const Span span = rows_.span(row);
        const bool collects = rows_.products(row) * ColumnBits::bits >= fewest_collected * span.columns();
        if (rows_.in_runs(row) || collects) {
            for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                const std::int64_t k = a_.col_idx[i];
                const std::int64_t n = b_ptr[k + 1] - b_ptr[k];
                fetch_columns(a_, b_, i, b_ptr);
                if (n > 0) {
                    const std::int32_t* const columns = b_.col_idx + b_ptr[k];
                    rows_.in_runs(row) ? bits.insert_run(std::int64_t{columns[0]} - span.first, n)
                                       : bits.insert_collected(columns, n, span.first);
                }
            }
            return bits.take_lowest(span.first, span.columns(), out) - out;
        }
        std::int32_t* const found = scratch.unsorted.data();
        std::int64_t count = 0;
        const bool marked = rows_.finds_by_marks(row);
        if (marked) {
            const std::int64_t n = list_columns(row, a_ptr, b_ptr, scratch.listed.data());
            scratch.marks.open();
            count = scratch.marks.take_new(scratch.listed.data(), n, span.first, found) - found;
        } else {
            for_each_column([&](std::int32_t column) {
                found[count] = column;
                count += bits.insert(std::int64_t{column} - span.first);
            });
        }
        const bool dense = count * ColumnBits::bits >= fewest_in_word * span.columns();
        if (marked && (dense || count > most_compared)) {
            for (std::int64_t i = 0; i < count; ++i) {
                bits.insert(std::int64_t{found[i]} - span.first);
            }
        }
        if (dense) {
            bits.take_lowest(span.first, span.columns(), out);
        } else if (count <= most_compared) {
            if (!marked) {
                bits.remove(found, count, span.first);
            }
            (wide_ ? sort_columns_wide : sort_columns)(found, count, out);
        } else {
            bits.add_to_levels(found, count, span.first);
            bits.take(span.first, span.columns(), out);
        }
        return count;
    }

    /// Writes the columns of all products of a row to out, which has room for `copied` more; how many.
    template <class AIndex, class BIndex>
    std::int64_t list_columns(std::int64_t row, const AIndex* a_ptr, const BIndex* b_ptr, std::int32_t* out) const
    {
        std::int32_t* const begin = out;
        for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
            const std::int64_t k = a_.col_idx[i];
            const std::int64_t at = b_ptr[k];
            const std::int64_t n = b_ptr[k + 1] - at;
            fetch_columns(a_, b_, i, b_ptr);
            if (n <= copied && at + copied <= b_.nnz) {  // a loop over a short row would end too often
                std::memcpy(out, b_.col_idx + at, copied * sizeof(std::int32_t));
            } else {
                std::copy_n(b_.col_idx + at, n, out);
            }
            out += n;
        }
        return out - begin;
    }

    const CsrShard<T>& a_;
    const CsrShard<T>& b_;
    const RowsOfProduct<T>& rows_;
    bool wide_ = core::has_wide_vectors();  ///< runs what is compiled for wider vectors
};

}  // namespace rmsp::kernels::spgemm
