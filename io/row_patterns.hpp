#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/wide.hpp"
#include "io/random.hpp"

/// Where the entries of generated matrices are. A pattern knows the first entry of row r, start(r), and writes the
/// columns of rows [begin, end) from `col` on, fill(begin, end, col).
namespace rmsp::io {

/// Rows that a thread makes at a time.
inline constexpr std::int64_t rows_each = 4096;

// Streams of one seed, so that structure and values are independent.
inline constexpr std::uint64_t value_stream = 0;
inline constexpr std::uint64_t edge_stream = 1;
inline constexpr std::uint64_t column_stream = 2;

/// Points of a grid and their neighbours: all 26, or the 6 along the axes.
class Stencil {
public:
    Stencil(std::int64_t nx, std::int64_t ny, std::int64_t nz, bool box) : nx_(nx), ny_(ny), nz_(nz), box_(box) {}

    std::int64_t start(std::int64_t r) const
    {
        if (nx_ == 0 || ny_ == 0 || nz_ == 0) {
            return 0;
        }
        const std::int64_t x = r % nx_;
        const std::int64_t y = r / nx_ % ny_;
        const std::int64_t z = r / nx_ / ny_;
        const std::int64_t line = before(nx_, nx_);
        const std::int64_t plane = before(ny_, ny_);
        if (box_) {
            // Row length is a product over the axes: whole planes, whole lines, points before this one.
            return before(z, nz_) * plane * line +
                   near(z, nz_) * (before(y, ny_) * line + near(y, ny_) * before(x, nx_));
        }
        // Row length is a sum over the axes, less the point itself counted twice too often.
        return before(z, nz_) * nx_ * ny_ + z * (nx_ * plane + ny_ * line) - 2 * z * nx_ * ny_  //
               + y * nx_ * (near(z, nz_) - 2) + before(y, ny_) * nx_ + y * line                 //
               + x * (near(z, nz_) + near(y, ny_) - 2) + before(x, nx_);
    }

    template <class C>
    void fill(std::int64_t begin, std::int64_t end, C* col) const
    {
        std::int64_t x = begin % nx_;
        std::int64_t y = begin / nx_ % ny_;
        std::int64_t z = begin / nx_ / ny_;
        for (std::int64_t r = begin; r < end; ++r) {
            for (std::int64_t dz = z > 0 ? -1 : 0; dz <= (z + 1 < nz_ ? 1 : 0); ++dz) {
                for (std::int64_t dy = y > 0 ? -1 : 0; dy <= (y + 1 < ny_ ? 1 : 0); ++dy) {
                    const std::int64_t centre = r + (dz * ny_ + dy) * nx_;
                    const int axes = (dz != 0 ? 1 : 0) + (dy != 0 ? 1 : 0);
                    if (!box_ && axes > 1) {
                        continue;
                    }
                    const bool wide = box_ || axes == 0;
                    if (wide && x > 0) {
                        *col++ = static_cast<C>(centre - 1);
                    }
                    *col++ = static_cast<C>(centre);
                    if (wide && x + 1 < nx_) {
                        *col++ = static_cast<C>(centre + 1);
                    }
                }
            }
            if (++x == nx_) {
                x = 0;
                if (++y == ny_) {
                    y = 0;
                    ++z;
                }
            }
        }
    }

private:
    /// Points within one step of point i on an axis of n points, itself included. Past the last one the value is not
    /// used.
    static std::int64_t near(std::int64_t i, std::int64_t n) { return 1 + (i > 0 ? 1 : 0) + (i + 1 < n ? 1 : 0); }
    /// Sum of near() over the points before i.
    static std::int64_t before(std::int64_t i, std::int64_t n) { return 3 * i - (i > 0 ? 1 : 0) - (i == n ? 1 : 0); }

    std::int64_t nx_;
    std::int64_t ny_;
    std::int64_t nz_;
    bool box_;
};

struct Band {
    std::int64_t rows;
    std::int64_t half;  ///< less than rows

    std::int64_t start(std::int64_t r) const
    {
        // 2 half + 1 entries each, less what the first and the last rows lack.
        const std::int64_t top = std::min(r, half);
        const std::int64_t bottom = std::max<std::int64_t>(0, r - (rows - half));
        return r * (2 * half + 1) - (top * half - top * (top - 1) / 2) - bottom * (bottom + 1) / 2;
    }
    template <class C>
    void fill(std::int64_t begin, std::int64_t end, C* col) const
    {
        for (std::int64_t r = begin; r < end; ++r) {
            for (std::int64_t c = std::max<std::int64_t>(0, r - half); c <= std::min(rows - 1, r + half); ++c) {
                *col++ = static_cast<C>(c);
            }
        }
    }
};

/// `wanted` distinct numbers of [0, range), in rising order, drawn one after the other until enough differ. `drawn` is
/// room to work in.
template <class C, class Out>
Out draw_distinct(const RandomStream& random, std::int64_t range, std::int64_t wanted, std::vector<C>& drawn, Out out)
{
    // Of more than half of all, those left out are drawn.
    const bool complement = wanted > range / 2;
    const auto count = static_cast<std::size_t>(complement ? range - wanted : wanted);
    drawn.clear();
    std::uint64_t i = 0;
    while (drawn.size() < count) {
        // Never draws more than are missing, so that which ones are kept does not depend on their order.
        for (std::size_t missing = count - drawn.size(); missing > 0; --missing) {
            drawn.push_back(static_cast<C>(random.below(i++, range)));
        }
        std::sort(drawn.begin(), drawn.end());
        drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
    }
    if (!complement) {
        return std::copy(drawn.begin(), drawn.end(), out);
    }
    auto skip = drawn.begin();
    for (std::int64_t c = 0; c < range; ++c) {
        if (skip != drawn.end() && static_cast<std::int64_t>(*skip) == c) {
            ++skip;
        } else {
            *out++ = static_cast<C>(c);
        }
    }
    return out;
}

/// The same number of distinct columns in each row.
struct UniformRows {
    std::int64_t cols;
    std::int64_t each;
    std::uint64_t seed;

    std::int64_t start(std::int64_t r) const { return r * each; }
    template <class C>
    void fill(std::int64_t begin, std::int64_t end, C* col) const
    {
        std::vector<C> drawn;
        for (std::int64_t r = begin; r < end; ++r) {
            const RandomStream random(mix(seed + column_stream), static_cast<std::uint64_t>(r));
            col = draw_distinct(random, cols, each, drawn, col);
        }
    }
};

/// Rows that are written one by one: row(r, columns) appends the columns of row r, rising, each once, the same ones
/// whenever it is called. It is called twice for each row, first to count. A call is a fraction of what the columns of
/// a row take, so that one type serves all generators, and matrices of each type are not built by code of their own
/// for each of them.
class RowByRow {
public:
    using Row = std::function<void(std::int64_t, std::vector<std::int64_t>&)>;

    RowByRow(std::int64_t rows, Row row) : row_(std::move(row)), start_(static_cast<std::size_t>(rows) + 1, 0)
    {
        core::parallel_for(core::thread_count(0), (rows + rows_each - 1) / rows_each, [&](std::int64_t b) {
            std::vector<std::int64_t> columns;
            const std::int64_t end = std::min(rows, (b + 1) * rows_each);
            for (std::int64_t r = b * rows_each; r < end; ++r) {
                columns.clear();
                row_(r, columns);
                start_[static_cast<std::size_t>(r) + 1] = static_cast<std::int64_t>(columns.size());
            }
        });
        std::partial_sum(start_.begin(), start_.end(), start_.begin());
    }

    std::int64_t start(std::int64_t r) const { return start_[static_cast<std::size_t>(r)]; }
    template <class C>
    void fill(std::int64_t begin, std::int64_t end, C* col) const
    {
        std::vector<std::int64_t> columns;
        for (std::int64_t r = begin; r < end; ++r) {
            columns.clear();
            row_(r, columns);
            col = std::transform(columns.begin(), columns.end(), col, [](std::int64_t c) { return static_cast<C>(c); });
        }
    }

private:
    Row row_;
    std::vector<std::int64_t> start_;
};

/// Row lengths by the quantiles of a power law between two ends; each row's columns one by one from equal stretches.
class PowerLawRows {
public:
    PowerLawRows(std::int64_t rows, std::int64_t per_row, double exponent, std::uint64_t seed)
        : cols_(rows), seed_(mix(seed + column_stream)), start_(static_cast<std::size_t>(rows) + 1, 0)
    {
        const auto mean = static_cast<double>(std::min(per_row, rows));
        if (rows == 0 || per_row == 0) {
            return;
        }
        double shortest = 0.5;  // half of such rows are empty
        double longest =
            std::min(static_cast<double>(rows), std::max(2 * mean, std::sqrt(mean * static_cast<double>(rows))));
        // One of the ends gives the mean: the lower one, unless rows would have to be shorter than any.
        if (mean_length(shortest, longest, exponent) < mean) {
            shortest = bisect(shortest, longest, [&](double a) { return mean_length(a, longest, exponent) < mean; });
        } else {
            longest = bisect(shortest, longest, [&](double b) { return mean_length(shortest, b, exponent) < mean; });
        }
        core::parallel_for(core::thread_count(0), (rows + rows_each - 1) / rows_each, [&](std::int64_t b) {
            const std::int64_t end = std::min(rows, (b + 1) * rows_each);
            for (std::int64_t r = b * rows_each; r < end; ++r) {
                const RandomStream random(seed_, static_cast<std::uint64_t>(r));
                const bool in_order = random.below(0, 2) == 0;
                const double above =
                    in_order ? (static_cast<double>(r) + 0.5) / static_cast<double>(rows) : unit(random.at(1));
                // Rounded at random, so that the mean stays.
                const double length = quantile(1 - above, shortest, longest, exponent) + unit(random.at(2));
                start_[static_cast<std::size_t>(r) + 1] = std::min(cols_, static_cast<std::int64_t>(length));
            }
        });
        std::partial_sum(start_.begin(), start_.end(), start_.begin());
    }

    std::int64_t start(std::int64_t r) const { return start_[static_cast<std::size_t>(r)]; }
    template <class C>
    void fill(std::int64_t begin, std::int64_t end, C* col) const
    {
        for (std::int64_t r = begin; r < end; ++r) {
            const RandomStream random(mix(seed_), static_cast<std::uint64_t>(r));
            const std::int64_t n = start(r + 1) - start(r);
            for (std::int64_t k = 0; k < n; ++k) {
                const std::int64_t first = stretch(k, n);
                *col++ = static_cast<C>(first + random.below(static_cast<std::uint64_t>(k), stretch(k + 1, n) - first));
            }
        }
    }

private:
    static double unit(std::uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }
    std::int64_t stretch(std::int64_t k, std::int64_t n) const
    {
        return static_cast<std::int64_t>(static_cast<core::uint128>(k) * static_cast<core::uint128>(cols_) /
                                         static_cast<core::uint128>(n));
    }
    /// Integral of x^-exponent from a to b.
    static double integral(double a, double b, double exponent)
    {
        const double power = 1 - exponent;
        return std::abs(power) < 1e-9 ? std::log(b / a) : (std::pow(b, power) - std::pow(a, power)) / power;
    }
    static double quantile(double u, double a, double b, double exponent)
    {
        const double power = 1 - exponent;
        return std::abs(power) < 1e-9
                   ? a * std::pow(b / a, u)
                   : std::pow(std::pow(a, power) + u * (std::pow(b, power) - std::pow(a, power)), 1 / power);
    }
    static double mean_length(double a, double b, double exponent)
    {
        return integral(a, b, exponent - 1) / integral(a, b, exponent);
    }
    /// Where `below` turns from true to false between two numbers.
    template <class F>
    static double bisect(double low, double high, const F& below)
    {
        for (int i = 0; i < 100; ++i) {
            const double middle = (low + high) / 2;
            (below(middle) ? low : high) = middle;
        }
        return low;
    }

    std::int64_t cols_;
    std::uint64_t seed_;
    std::vector<std::int64_t> start_;
};

}  // namespace rmsp::io
