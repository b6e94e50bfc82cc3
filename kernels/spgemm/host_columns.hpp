#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <rmsp/host_vector.hpp>

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
