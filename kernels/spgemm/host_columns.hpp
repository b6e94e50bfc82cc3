#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rmsp/host_vector.hpp>

#include "core/wide_vectors.hpp"

/// Sets of columns in the memory of one thread of the host, which are empty between rows.
namespace rmsp::kernels::spgemm {

/// A bit for each column of a range, and bits for words of bits, so that the set is listed in rising order without
/// sorting, and in a time that hardly depends on the range.
class ColumnBits {
public:
    static constexpr std::int64_t bits = 64;

    /// Room for ranges of so many columns.
    void reserve(std::int64_t columns)
    {
        for (HostVector<std::uint64_t>& level : levels_) {
            columns = (columns + bits - 1) / bits;
            level.assign(static_cast<std::size_t>(columns), 0);
        }
    }
    std::int64_t bytes() const
    {
        std::size_t words = 0;
        for (const HostVector<std::uint64_t>& level : levels_) {
            words += level.size();
        }
        return static_cast<std::int64_t>(words * sizeof(std::uint64_t));
    }

    void add(std::int64_t place)
    {
        std::uint64_t& word = levels_[0][static_cast<std::size_t>(place / bits)];
        const std::uint64_t bit = std::uint64_t{1} << (place % bits);
        if ((word & bit) == 0) {
            if (word == 0) {
                mark(place / bits);
            }
            word |= bit;
        }
    }

    /// Adds without a branch, and to the lowest level alone: 1 if the place is new.
    std::int64_t insert(std::int64_t place)
    {
        std::uint64_t& word = levels_[0][word_of(place)];
        const std::uint64_t before = word;
        word |= std::uint64_t{1} << (place % bits);
        return static_cast<std::int64_t>(before != word);
    }
    /// Adds the places [place, place + n) to the lowest level alone; n > 0.
    void insert_run(std::int64_t place, std::int64_t n)
    {
        const std::int64_t end = place + n;
        std::uint64_t* const words = levels_[0].data();
        const std::int64_t last = (end - 1) / bits;
        const std::uint64_t from = ~std::uint64_t{0} << (place % bits);
        const std::uint64_t to = ~std::uint64_t{0} >> (bits - 1 - (end - 1) % bits);
        std::int64_t word = place / bits;
        if (word == last) {
            words[word] |= from & to;
            return;
        }
        for (words[word++] |= from; word < last; ++word) {
            words[word] = ~std::uint64_t{0};
        }
        words[last] |= to;
    }
    /// Adds n columns, the places plus first, to the lowest level alone; neighbours in a word at once. n > 0.
    void insert_collected(const std::int32_t* columns, std::int64_t n, std::int32_t first)
    {
        std::uint64_t* const words = levels_[0].data();
        std::size_t word = word_of(std::int64_t{columns[0]} - first);
        std::uint64_t collected = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t place = std::int64_t{columns[i]} - first;
            if (word_of(place) != word) {
                words[word] |= collected;
                word = word_of(place);
                collected = 0;
            }
            collected |= std::uint64_t{1} << (place % bits);
        }
        words[word] |= collected;
    }
    /// take() of a set whose places are in the lowest level alone, a word after the other.
    std::int32_t* take_lowest(std::int32_t first, std::int64_t columns, std::int32_t* out)
    {
        std::uint64_t* const words = levels_[0].data();
        for (std::int64_t at = 0; at < (columns + bits - 1) / bits; ++at) {
            for (std::uint64_t left = words[at]; left != 0; left &= left - 1) {
                *out++ = static_cast<std::int32_t>(first + bits * at + std::countr_zero(left));
            }
            words[at] = 0;
        }
        return out;
    }
    /// Adds what insert() added, n places plus first, to the upper levels as well: take() finds them.
    void add_to_levels(const std::int32_t* columns, std::int64_t n, std::int32_t first)
    {
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t low = (std::int64_t{columns[i]} - first) / bits;
            levels_[1][static_cast<std::size_t>(low / bits)] |= std::uint64_t{1} << (low % bits);
            levels_[2][static_cast<std::size_t>(low / bits / bits)] |= std::uint64_t{1} << (low / bits % bits);
        }
    }
    /// Empties the set of what insert() added, n places plus first.
    void remove(const std::int32_t* columns, std::int64_t n, std::int32_t first)
    {
        for (std::int64_t i = 0; i < n; ++i) {
            levels_[0][word_of(std::int64_t{columns[i]} - first)] = 0;
        }
    }

    /// Writes first + place for each place in rising order and empties the set, of which every place is below
    /// `columns`; the end of what was written.
    std::int32_t* take(std::int32_t first, std::int64_t columns, std::int32_t* out)
    {
        const std::int64_t tops = (columns + bits * bits * bits - 1) / (bits * bits * bits);
        for (std::int64_t top = 0; top < tops; ++top) {
            each(2, top, [&](std::int64_t middle) {
                each(1, middle, [&](std::int64_t low) {
                    each(0, low, [&](std::int64_t place) { *out++ = static_cast<std::int32_t>(first + place); });
                });
            });
        }
        return out;
    }

private:
    /// Unsigned: a shift alone.
    static std::size_t word_of(std::int64_t place)
    {
        return static_cast<std::size_t>(place) / static_cast<std::size_t>(bits);
    }
    void mark(std::int64_t low)
    {
        std::uint64_t& word = levels_[1][static_cast<std::size_t>(low / bits)];
        if (word == 0) {
            levels_[2][static_cast<std::size_t>(low / bits / bits)] |= std::uint64_t{1} << (low / bits % bits);
        }
        word |= std::uint64_t{1} << (low % bits);
    }
    template <class F>
    void each(std::size_t level, std::int64_t at, const F& f)
    {
        std::uint64_t& word = levels_[level][static_cast<std::size_t>(at)];
        for (std::uint64_t left = word; left != 0; left &= left - 1) {
            f(bits * at + std::countr_zero(left));
        }
        word = 0;
    }

    HostVector<std::uint64_t> levels_[3];
};

/// A byte for each column of a range, which says in which row the column was seen last: nothing is taken back behind a
/// row, and to see a column waits for no neighbour, as in a word of bits.
class ColumnMarks {
public:
    /// Room for ranges of so many columns.
    void reserve(std::int64_t columns)
    {
        marks_.assign(static_cast<std::size_t>(columns), 0);
        row_ = 0;
    }
    std::int64_t bytes() const { return static_cast<std::int64_t>(marks_.size()); }

    /// Before the first column of a row.
    void open()
    {
        if (++row_ == 0) {
            std::fill(marks_.begin(), marks_.end(), std::uint8_t{0});
            row_ = 1;
        }
    }
    /// Writes the n columns, places plus first, that the row has not had yet to out, each once; the end of what was
    /// written. Which those are is found for some at a time before any is written: a place to write to that depends on
    /// what was read may hold up all that is read behind it.
    std::int32_t* take_new(const std::int32_t* columns, std::int64_t n, std::int32_t first, std::int32_t* out)
    {
        constexpr std::int64_t bits = 64;
        std::uint8_t* const marks = marks_.data();
        const std::uint8_t row = row_;
        for (const std::int32_t* const end = columns + n; columns < end; columns += bits) {
            const std::int64_t some = std::min<std::int64_t>(bits, end - columns);
            std::uint64_t fresh = 0;
            for (std::int64_t i = 0; i < some; ++i) {
                std::uint8_t& mark = marks[columns[i] - first];
                fresh |= static_cast<std::uint64_t>(mark != row) << i;
                mark = row;
            }
            for (; fresh != 0; fresh &= fresh - 1) {
                *out++ = columns[std::countr_zero(fresh)];
            }
        }
        return out;
    }

private:
    HostVector<std::uint8_t> marks_;
    std::uint8_t row_ = 0;  ///< counts rows, from 1 on
};

/// Columns that sort_columns() reads behind those that it sorts, at most.
inline constexpr std::int64_t sorted_lanes = 8;

/// Writes n different columns to out in rising order: each to the place that so many others are less than it, without a
/// branch on a column. Time goes with n^2, 8 comparisons at a time. Up to sorted_lanes columns behind are read.
inline void sort_columns(const std::int32_t* columns, std::int64_t n, std::int32_t* out)
{
    using Lanes __attribute__((vector_size(sorted_lanes * sizeof(std::int32_t)))) = std::int32_t;
    for (std::int64_t i = 0; i < n; i += sorted_lanes) {
        Lanes these;
        std::memcpy(&these, columns + i, sizeof these);
        Lanes less{};
        for (std::int64_t j = 0; j < n; ++j) {
            less -= columns[j] < these;  // true is -1
        }
        std::int32_t places[sorted_lanes];
        std::memcpy(places, &less, sizeof less);
        for (std::int64_t k = 0; k < std::min(sorted_lanes, n - i); ++k) {
            out[places[k]] = columns[i + k];
        }
    }
}
#if RMSP_WIDE_BODIES
RMSP_WIDE_BODY inline void sort_columns_wide(const std::int32_t* columns, std::int64_t n, std::int32_t* out)
{
    sort_columns(columns, n, out);
}
#else
inline void sort_columns_wide(const std::int32_t* columns, std::int64_t n, std::int32_t* out)
{
    sort_columns(columns, n, out);
}
#endif

/// Open addressing with linear probing in 2^bits slots, at most half of them used.
class ColumnTable {
public:
    void reserve(int bits) { keys_.assign(bits < 0 ? 0 : std::size_t{1} << bits, -1); }
    std::int64_t bytes() const { return static_cast<std::int64_t>(keys_.size() * sizeof(std::int32_t)); }

    /// Before the first column of a row: so many slots are used.
    void open(int bits)
    {
        shift_ = 64 - bits;
        mask_ = (std::uint64_t{1} << bits) - 1;
    }
    /// Whether the column is new.
    bool add(std::int32_t column, std::uint64_t& place)
    {
        for (place = home(column); keys_[place] != column; place = (place + 1) & mask_) {
            if (keys_[place] < 0) {
                keys_[place] = column;
                return true;
            }
        }
        return false;
    }
    /// Of a column that was added.
    std::uint64_t find(std::int32_t column) const
    {
        std::uint64_t place = home(column);
        while (keys_[place] != column) {
            place = (place + 1) & mask_;
        }
        return place;
    }
    void clear() { std::fill_n(keys_.begin(), mask_ + 1, -1); }

private:
    std::uint64_t home(std::int32_t column) const
    {
        // Fibonacci hashing: neighbouring columns go far apart.
        return (static_cast<std::uint64_t>(column) * 0x9E3779B97F4A7C15u) >> shift_;
    }

    HostVector<std::int32_t> keys_;  ///< column of each slot, -1 if free
    int shift_ = 0;
    std::uint64_t mask_ = 0;
};

}  // namespace rmsp::kernels::spgemm
