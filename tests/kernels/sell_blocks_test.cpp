#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <kernels/spmv/sell_blocks/layout.hpp>

#include "spmv_fixtures.hpp"

// What kernel "sell-blocks" does with the structure of a matrix. All numbers are small integers, so that results are
// exact.
namespace rmsp::kernels::test {
namespace {

/// `blocks` blocks a node, full ones of that shape.
Columns full_blocks(const BlockShape& shape, std::int64_t cols, int blocks)
{
    return [=](std::int64_t row) {
        std::vector<std::int32_t> columns;
        const std::int64_t node = row / shape.rows;
        for (int k = 0; k < blocks; ++k) {
            const std::int64_t block = (node % 7 + std::int64_t{k} * 5) % (cols / shape.cols);
            for (int c = 0; c < shape.cols; ++c) {
                columns.push_back(static_cast<std::int32_t>(block * shape.cols + c));
            }
        }
        std::sort(columns.begin(), columns.end());
        return columns;
    };
}

template <class T>
class SellBlocks : public PrecisionTest<T> {
protected:
    /// Multiplies before and after new values; x is not finite in the columns that have no entries. Returns the
    /// operator's bytes an entry of values that are no floats, 0 if it says that it is not worth its format.
    double multiply(std::int64_t rows, std::int64_t cols, const Columns& columns_of)
    {
        TestDevice& device = *this->device_;
        HostCsr<T> a = matrix_of_rows<T>(0, rows, cols, columns_of);
        std::vector<T> x(static_cast<std::size_t>(cols), std::numeric_limits<T>::quiet_NaN());
        for (const std::int32_t column : a.col_idx) {
            x[static_cast<std::size_t>(column)] = small_integer<T>(column);
        }
        renew_values(a, 3);
        DeviceCsr<T> d(device, a, Offsets::i64);
        const auto op = prepare_named("sell-blocks", d.shard, statistics(a.row_ptr), device.context());
        const auto bytes_an_entry = [&] {
            return static_cast<double>(op->format_bytes()) / static_cast<double>(a.nnz());
        };
        std::int64_t seed = 4;
        for (const Stored stored : {Stored::floats, Stored::constant, Stored::floats, Stored::whole}) {
            renew_values(a, ++seed, stored);
            d.renew(device, a);
            op->update_values(device.context());
            bytes_of_floats_ = stored == Stored::floats ? bytes_an_entry() : bytes_of_floats_;
            EXPECT_TRUE(multiplies_exactly(device, *op, a, x)) << "stored " << static_cast<int>(stored);
            if (testing::Test::HasFailure()) {
                return 0;
            }
        }
        return op->worthwhile() ? bytes_an_entry() : 0;
    }

    double bytes_of_floats_ = 0;  ///< an entry, of the last one that was multiplied
};
TYPED_TEST_SUITE(SellBlocks, Precisions);

TYPED_TEST(SellBlocks, FullBlocksOfEachShape)
{
    for (const BlockShape& shape : block_shapes) {
        for (const int blocks : {1, 2, 3, 4, 5, 8, 15, 33, 64}) {
            SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.cols) + ", " +
                         std::to_string(blocks) + " a node");
            const double bytes = this->multiply(600, 3000, full_blocks(shape, 3000, blocks));
            EXPECT_GT(bytes, static_cast<double>(sizeof(TypeParam)));
            EXPECT_GE(bytes - this->bytes_of_floats_, 0.999 * static_cast<double>(sizeof(TypeParam) - sizeof(float)));
            // Slices have room for whole groups, and a few bytes of their own.
            const double room = (blocks + block_group<TypeParam> - 1) / block_group<TypeParam> * block_group<TypeParam>;
            EXPECT_LT(bytes, room / blocks * static_cast<double>(sizeof(TypeParam) + 1) * 1.05 + 3.0 / blocks);
        }
    }
}

TYPED_TEST(SellBlocks, AnyNumberOfRows)
{
    for (const std::int64_t rows : {1, 2, 3, 29, 30, 31, 959, 960, 961, 1000}) {
        SCOPED_TRACE(rows);
        this->multiply(rows, 300, full_blocks({3, 3}, 300, 5));
    }
}

TYPED_TEST(SellBlocks, MoreSlicesThanOneBlockPlacesAtOnce)
{
    for (const std::int64_t rows : {4096 * 32 - 1, 4096 * 32 + 1, 2 * 4096 * 32 + 33}) {
        SCOPED_TRACE(rows);
        this->multiply(rows, 300, full_blocks({2, 2}, 300, 2));
    }
}

TYPED_TEST(SellBlocks, RowsThatBeginInsideANode)
{
    const auto full = full_blocks({3, 3}, 3000, 20);
    for (const std::int64_t rows : {std::int64_t{900}, sell_blocks_tuning.sampled_rows + 1}) {
        for (const std::int64_t first : {0, 1, 2}) {
            SCOPED_TRACE(std::to_string(rows) + " from " + std::to_string(first));
            const double bytes = this->multiply(rows, 3000, [&](std::int64_t row) { return full(row + first); });
            EXPECT_GT(bytes, 0);
            EXPECT_LT(bytes, static_cast<double>(sizeof(TypeParam)) + 1);
        }
    }
}

TYPED_TEST(SellBlocks, ColumnsThatEndInsideABlock)
{
    this->multiply(90, 100, [](std::int64_t row) {
        return std::vector<std::int32_t>{static_cast<std::int32_t>(row / 3 * 3), 99};
    });
}

TYPED_TEST(SellBlocks, BlocksWithHoles)
{
    const auto full = full_blocks({3, 3}, 3000, 12);
    EXPECT_GT(this->multiply(3000, 3000,
                             [&](std::int64_t row) {
                                 std::vector<std::int32_t> columns = full(row);
                                 columns.erase(columns.begin() + row % 36);
                                 return columns;
                             }),
              0);
}

TYPED_TEST(SellBlocks, NodesOfDifferentLengths)
{
    for (const BlockShape& shape : block_shapes) {
        this->multiply(3000, 3000, [&](std::int64_t row) {
            return full_blocks(shape, 3000, static_cast<int>(row / shape.rows * 7 % 23))(row);
        });
    }
    // One node among short ones: its slice is left in CSR.
    this->multiply(3000, 30'000, [](std::int64_t row) {
        return full_blocks({3, 3}, 30'000, row / 3 == 500 ? 900 : 2)(row);
    });
}

TYPED_TEST(SellBlocks, ManySlicesEndInsideGroups)
{
    for (const BlockShape& shape : {BlockShape{3, 3}, BlockShape{2, 3}}) {
        SCOPED_TRACE(shape.rows);
        const std::int64_t slices =
            std::int64_t{sell_blocks_tuning.many_slices} * this->device_->context().compute_units;
        const std::int64_t nodes = (slices + 3) * slice_nodes(shape) + 1;
        // Of widths with every rest, more than a lane loads at once.
        const double bytes = this->multiply(nodes * shape.rows, 3000, [&](std::int64_t row) {
            return full_blocks(shape, 3000, static_cast<int>(13 + row / shape.rows / 500 % 4))(row);
        });
        EXPECT_LT(bytes, static_cast<double>(sizeof(TypeParam)) * 1.04 + 4.1 / shape.entries() + 0.2);
    }
}

TYPED_TEST(SellBlocks, ColumnsInAnyOrderAndTwice)
{
    this->multiply(999, 3000, [](std::int64_t row) {
        std::vector<std::int32_t> columns = full_blocks({3, 3}, 3000, 6)(row);
        if (row % 200 == 11) {
            std::swap(columns[1], columns[2]);
        }
        if (row % 200 == 97) {
            columns.push_back(columns.front());
        }
        if (row % 200 == 150) {
            columns.insert(columns.begin(), columns.front());
        }
        return columns;
    });
}

TYPED_TEST(SellBlocks, SaysWhereThereAreNone)
{
    EXPECT_EQ(this->multiply(1000, 1000,
                             [](std::int64_t row) {
                                 return std::vector<std::int32_t>{static_cast<std::int32_t>(row * 7 % 500),
                                                                  static_cast<std::int32_t>(500 + row * 3 % 500)};
                             }),
              0);
}

}  // namespace
}  // namespace rmsp::kernels::test
