#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace rmsp::kernels {

/// Counts how many of some numbers differ.
class Distinct {
public:
    void clear() { numbers_.clear(); }
    void reserve(std::int64_t count) { numbers_.reserve(static_cast<std::size_t>(count)); }

    void add(std::int64_t number)
    {
        // Columns of neighbouring entries often are in the same block or sector, and what is not kept need not be
        // sorted.
        if (numbers_.empty() || numbers_.back() != number) {
            numbers_.push_back(number);
        }
    }

    /// Marks them, or sorts them if they lie far apart.
    std::int64_t count()
    {
        if (numbers_.empty()) {
            return 0;
        }
        std::int64_t first = numbers_.front();
        std::int64_t last = first;
        for (const std::int64_t number : numbers_) {  // without the branches of std::minmax_element()
            first = std::min(first, number);
            last = std::max(last, number);
        }
        const std::int64_t range = last - first + 1;
        constexpr std::int64_t bits = 64;
        if (range > bits * static_cast<std::int64_t>(numbers_.size())) {
            std::sort(numbers_.begin(), numbers_.end());
            return std::unique(numbers_.begin(), numbers_.end()) - numbers_.begin();
        }
        marks_.assign(static_cast<std::size_t>((range + bits - 1) / bits), 0);
        for (const std::int64_t number : numbers_) {
            const std::int64_t at = number - first;
            marks_[static_cast<std::size_t>(at / bits)] |= std::uint64_t{1} << static_cast<unsigned>(at % bits);
        }
        return std::accumulate(marks_.begin(), marks_.end(), std::int64_t{0},
                               [](std::int64_t sum, std::uint64_t word) { return sum + std::popcount(word); });
    }

private:
    std::vector<std::int64_t> numbers_;
    std::vector<std::uint64_t> marks_;
};

}  // namespace rmsp::kernels
