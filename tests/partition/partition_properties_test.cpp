#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <rmsp/partition.hpp>

namespace rmsp {
namespace {

using Pointers = std::vector<std::int64_t>;

enum class Shape { uniform, sparse, power_law, dense_row, empty_ends, ones };

Pointers make_row_ptr(Shape shape, std::int64_t rows, std::mt19937& random)
{
    Pointers row_ptr(static_cast<std::size_t>(rows) + 1, 0);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    const std::int64_t special = rows / 3;
    for (std::int64_t i = 0; i < rows; ++i) {
        std::int64_t length = 0;
        switch (shape) {
            case Shape::uniform:
                length = static_cast<std::int64_t>(unit(random) * 20);
                break;
            case Shape::sparse:
                length = unit(random) < 0.9 ? 0 : 3;
                break;
            case Shape::power_law:
                length = static_cast<std::int64_t>(std::min(5000.0, 2.0 / (unit(random) + 1e-4)));
                break;
            case Shape::dense_row:
                length = i == special ? 100 * rows : 1;
                break;
            case Shape::empty_ends:
                length = i < rows / 4 || i > 3 * rows / 4 ? 0 : 5;
                break;
            case Shape::ones:
                length = 1;
                break;
        }
        row_ptr[static_cast<std::size_t>(i) + 1] = row_ptr[static_cast<std::size_t>(i)] + length;
    }
    return row_ptr;
}

// Each nonzero lies in exactly one part, in the right local row; each row is owned by exactly one part: the one in
// which it starts. Written without the library's own arithmetic.
void expect_exact_cover(const Partition& p, const Pointers& row_ptr)
{
    ASSERT_NO_THROW(p.check());
    std::vector<int> owners(static_cast<std::size_t>(p.rows), 0);
    std::vector<std::int64_t> seen(static_cast<std::size_t>(p.rows), 0);
    std::int64_t next = 0;
    for (const PartialCsr& part : p.parts) {
        Pointers local(static_cast<std::size_t>(part.rows()) + 1, -1);
        local_row_ptr(row_ptr.data(), part, local.data());
        std::vector<std::int32_t> narrow(local.size(), -1);
        local_row_ptr(row_ptr.data(), part, narrow.data());
        ASSERT_TRUE(std::equal(local.begin(), local.end(), narrow.begin()));
        ASSERT_EQ(local.front(), 0);
        ASSERT_EQ(local.back(), part.nnz());
        for (std::int64_t r = 0; r < part.rows(); ++r) {
            const auto row = static_cast<std::size_t>(part.start_row + r);
            const std::int64_t begin = part.start_idx + local[static_cast<std::size_t>(r)];
            const std::int64_t end = part.start_idx + local[static_cast<std::size_t>(r) + 1];
            ASSERT_EQ(begin, next) << "a nonzero is left out or taken twice";
            ASSERT_LE(begin, end);
            if (begin < end) {
                ASSERT_GE(begin, row_ptr[row]);
                ASSERT_LE(end, row_ptr[row + 1]);
            }
            seen[row] += end - begin;
            next = end;
            if (part.start_row + r >= part.first_owned_row()) {
                ++owners[row];
                if (begin < end) {
                    ASSERT_EQ(begin, row_ptr[row]) << "the owner of a row is the part in which it starts";
                }
            }
        }
    }
    ASSERT_EQ(next, p.nnz);
    for (std::size_t row = 0; row < owners.size(); ++row) {
        ASSERT_EQ(owners[row], 1) << "row " << row;
        ASSERT_EQ(seen[row], row_ptr[row + 1] - row_ptr[row]) << "row " << row;
    }
}

// Balance within one row of the ideal where cuts follow rows, within one nonzero where they do not. Each level of the
// split adds its own rounding.
void expect_balance(const Partition& p, const Pointers& row_ptr, const PartitionOptions& options)
{
    std::int64_t longest = 0;
    for (std::size_t i = 1; i < row_ptr.size(); ++i) {
        longest = std::max(longest, row_ptr[i] - row_ptr[i - 1]);
    }
    const double levels = p.nodes.size() > 1 ? 2.0 : 1.0;
    const double average = static_cast<double>(p.nnz) / static_cast<double>(p.parts.size());
    const double slack = options.alignment == RowAlignment::row     ? static_cast<double>(longest) + 0.0005 * average
                         : options.alignment == RowAlignment::exact ? 0.0
                                                                    : 0.01 * average;
    const double total = options.weights.empty() ? static_cast<double>(p.parts.size())
                                                 : std::accumulate(options.weights.begin(), options.weights.end(), 0.0);
    for (std::size_t k = 0; k < p.parts.size(); ++k) {
        const double weight = options.weights.empty() ? 1.0 : options.weights[k];
        const double ideal = static_cast<double>(p.nnz) * weight / total;
        ASSERT_LE(std::abs(static_cast<double>(p.parts[k].nnz()) - ideal), levels * (slack + 1.0) + 1e-6)
            << "part " << k;
    }
}

TEST(PartitionProperties, HoldForEveryShapeAndOption)
{
    std::mt19937 random(20260101);
    std::uniform_real_distribution<double> weight(0.5, 4.0);
    for (const Shape shape :
         {Shape::uniform, Shape::sparse, Shape::power_law, Shape::dense_row, Shape::empty_ends, Shape::ones}) {
        for (const std::int64_t rows : {0, 1, 2, 3, 7, 64, 401}) {
            const Pointers row_ptr = make_row_ptr(shape, rows, random);
            for (const int parts : {1, 2, 3, 6, 8, 13, 500}) {
                for (int variant = 0; variant < 16; ++variant) {
                    PartitionOptions options;
                    options.strategy = variant % 4 == 3 ? PartitionStrategy::rows : PartitionStrategy::nonzeros;
                    options.alignment = variant % 4 == 0   ? RowAlignment::automatic
                                        : variant % 4 == 1 ? RowAlignment::exact
                                                           : RowAlignment::row;
                    for (int k = 0; (variant & 4) != 0 && k < parts; ++k) {
                        options.weights.push_back(weight(random));
                    }
                    for (int k = 0; (variant & 8) != 0 && k < parts; ++k) {
                        options.nodes.push_back(k * 3 / parts);
                    }
                    SCOPED_TRACE(::testing::Message() << "shape " << static_cast<int>(shape) << ", " << rows
                                                      << " rows, " << parts << " parts, variant " << variant);
                    const Partition p = partition_csr(rows, 1000000, row_ptr.data(), parts, options);
                    ASSERT_EQ(p.parts.size(), static_cast<std::size_t>(parts));
                    ASSERT_NO_FATAL_FAILURE(expect_exact_cover(p, row_ptr));
                    if (options.strategy == PartitionStrategy::nonzeros) {
                        ASSERT_NO_FATAL_FAILURE(expect_balance(p, row_ptr, options));
                    }
                    if (options.alignment == RowAlignment::row) {
                        for (const PartialCsr& part : p.parts) {
                            ASSERT_FALSE(part.start_flag);
                        }
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace rmsp
