#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rmsp::core {

/// Numbers columns in the order in which they are first seen: a hash table with linear probing.
class ColumnNumbers {
public:
    /// Before all others. \param most  columns that come then, at most
    void clear(std::int64_t most)
    {
        slots_.assign(std::bit_ceil(2 * static_cast<std::size_t>(most) + 2), Slot{});
        count_ = 0;
    }
    std::int64_t find_or_add(std::int64_t column)
    {
        Slot& slot = slots_[place_of(column)];
        if (slot.number < 0) {
            slot = {column, count_++};
        }
        return slot.number;
    }
    bool contains(std::int64_t column) const { return slots_[place_of(column)].number >= 0; }
    std::int64_t count() const { return count_; }

private:
    struct Slot {
        std::int64_t column = 0;
        std::int64_t number = -1;
    };

    /// Where the column is, or would be.
    std::size_t place_of(std::int64_t column) const
    {
        constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;  // neighbouring columns land far apart
        std::size_t i = (static_cast<std::uint64_t>(column) * golden >> 32) & (slots_.size() - 1);
        while (slots_[i].number >= 0 && slots_[i].column != column) {
            i = (i + 1) & (slots_.size() - 1);
        }
        return i;
    }

    std::vector<Slot> slots_;
    std::int64_t count_ = 0;
};

}  // namespace rmsp::core
