#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <rmsp/report.hpp>

namespace rmsp::detail {

/// Of many comparisons with a reference the one that came closest to its bound, or passed it the furthest.
class Worst {
public:
    /// Where the reference is NaN or infinite, the value has to be the same; where the magnitudes add up to nothing,
    /// exactly zero.
    void add(std::int64_t row, long double value, long double reference, long double magnitude, double bound)
    {
        const bool same = value == reference || (std::isnan(value) && std::isnan(reference));
        // NaN, which is no number's error, is as far off as can be.
        const auto share = static_cast<double>(std::fabs(value - reference) / magnitude);
        add(row, same ? 0 : std::isnan(share) ? infinity : share, bound);
    }
    /// Entries that are too many, too few or in the wrong place.
    void add_structure_error(std::int64_t row) { add(row, infinity, 1); }
    void merge(const Worst& other)
    {
        const bool passed = all_.passed && other.all_.passed;
        if (other.closeness_ > closeness_) {
            *this = other;
        }
        all_.passed = passed;
    }
    const Verification& result() const { return all_; }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    void add(std::int64_t row, double error, double bound)
    {
        all_.passed = all_.passed && error <= bound;
        if (error / bound > closeness_) {
            closeness_ = error / bound;
            all_.error = error;
            all_.bound = bound;
            all_.worst_row = row;
        }
    }

    Verification all_{true, true, 0, 0, -1};
    double closeness_ = -1;
};

}  // namespace rmsp::detail
