#pragma once

#include <cstdint>

/// Which products are small, as pure functions, so that the host can test them.
namespace rmsp::kernels::spgemm {

/// Products, and entries of A, of a row of a small product.
inline constexpr int most_small = 2048;
/// A column and the product's number are sorted as one 32-bit key, and no key has all bits set: C has fewer columns.
inline constexpr std::int64_t columns_of_small = (std::int64_t{1} << 32) / most_small - 1;

/// Threads for a row whose products are sorted in their registers: 8 a thread.
inline constexpr int least_lanes = 8;
inline constexpr int most_lanes = 32;
inline constexpr int products_a_lane = 8;
/// Threads of a block, which sorts longer rows in shared memory.
inline constexpr int block_of_small = 128;

/// What is known of the rows of C before they are counted.
struct ExpectedRows {
    std::int64_t rows;
    std::int64_t columns;
    double products;         ///< of all rows, about
    std::int64_t most = -1;  ///< of a row; -1: not known
    constexpr double mean() const { return rows > 0 ? products / static_cast<double>(rows) : 0; }
};

struct SmallLimits {
    std::int64_t products = 2'500'000;  ///< with more the rows' own time counts, of which classes of rows save some
    std::int64_t products_by_blocks = 1'000'000;  ///< of rows that have a block each
    double full = 0.64;  ///< how full lanes are on average, at most: others have more products than the mean
    std::int64_t at_once = 1 << 18;  ///< threads that a GPU has under way
    double too_empty = 0.2;          ///< lanes of as many rows as keep it busy are to have more products
    bool operator==(const SmallLimits&) const = default;
};

/// Threads that take a row of a small product: 8, 16 or 32, and a block those rows that have more products than these
/// sort; or a block each row; 0: the product is not small.
/// \param most  products of all rows of small products; below 0: as `limits` says
constexpr int threads_of_small(const ExpectedRows& rows, std::int64_t most = -1, const SmallLimits& limits = {})
{
    const auto next = [](int threads) { return threads < most_lanes ? 2 * threads : block_of_small; };
    const auto fits = [&](int threads) { return rows.most >= 0 && rows.most <= products_a_lane * threads; };
    int threads = least_lanes;
    while (threads <= most_lanes && rows.mean() > limits.full * products_a_lane * threads && !fits(threads)) {
        threads = next(threads);
    }
    // Threads that would have nothing to do spare a block its long rows one after the other.
    while (threads <= most_lanes && rows.most > products_a_lane * threads &&
           rows.rows * next(threads) <= limits.at_once) {
        threads = next(threads);
    }
    const std::int64_t limit = most >= 0 ? most : threads > most_lanes ? limits.products_by_blocks : limits.products;
    const bool empty =
        rows.rows * threads > limits.at_once && rows.mean() < limits.too_empty * products_a_lane * threads;
    const bool small = !empty && rows.columns < columns_of_small && rows.mean() <= most_small &&
                       rows.most <= most_small && rows.rows <= limit && rows.products <= static_cast<double>(limit);
    return small ? threads : 0;
}

}  // namespace rmsp::kernels::spgemm
