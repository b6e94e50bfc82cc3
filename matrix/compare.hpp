#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <rmsp/report.hpp>

namespace rmsp::detail {

/// A result beside its reference.
struct Comparison {
    std::int64_t row = 0;
    long double value = 0;
    long double reference = 0;
    long double magnitude = 0;  ///< of the terms, added up
    long double largest = 0;    ///< the largest magnitude that appears on the way
    double bound = 0;           ///< of |value - reference| / magnitude
    double underflow = 0;       ///< what may be lost besides where numbers come near 0
};

/// What a sum of n products may lose beside its reference: n + 4 roundings, each by a part of what is rounded, or, near
/// 0, by a part of the smallest number above it, which alpha may enlarge.
template <class T>
void set_bounds(Comparison& c, std::int64_t n, T alpha)
{
    const auto roundings = static_cast<double>(n + 4);
    c.bound = roundings * std::numeric_limits<T>::epsilon();
    c.underflow = roundings * std::numeric_limits<T>::denorm_min() * std::fmax(1.0, std::fabs(alpha));
}

/// Of many comparisons with a reference the one that came closest to its bound, or passed it the furthest.
class Worst {
public:
    /// Where the reference is NaN or infinite, the value has to be the same; where the magnitudes add up to nothing,
    /// exactly zero. Of values of T.
    template <class T>
    void add(const Comparison& c)
    {
        const bool same = c.value == c.reference || (std::isnan(c.value) && std::isnan(c.reference));
        if (!same && !std::isfinite(c.value) && std::isfinite(c.reference) &&
            c.largest * (1 + c.bound) > static_cast<long double>(std::numeric_limits<T>::max())) {
            ++all_.overflows;
            return;
        }
        const long double off = std::fabs(c.value - c.reference);
        // NaN, which is no number's error, is as far off as can be.
        const auto share = c.magnitude == 0 ? infinity : static_cast<double>((off - c.underflow) / c.magnitude);
        const bool near_zero = c.magnitude > 0 && off <= c.underflow;
        add(c.row, same || near_zero ? 0 : std::isnan(share) ? infinity : share, c.bound);
    }
    /// Entries that are too many, too few or in the wrong place.
    void add_structure_error(std::int64_t row) { add(row, infinity, 1); }
    void merge(const Worst& other)
    {
        const bool passed = all_.passed && other.all_.passed;
        const std::int64_t overflowed = all_.overflows + other.all_.overflows;
        if (other.closeness_ > closeness_) {
            *this = other;
        }
        all_.passed = passed;
        all_.overflows = overflowed;
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

    Verification all_{true, true, 0, 0, -1, 0};
    double closeness_ = -1;
};

}  // namespace rmsp::detail
