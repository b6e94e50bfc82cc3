#include <algorithm>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <kernels/spmv/sell_blocks.hpp>
#include <kernels/spmv/spmv.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

// What kernel "sell-blocks" does with the structure of a matrix. All numbers are small integers, so that results are exact.
namespace rmsp::kernels::test {
namespace {

using Columns = std::function<std::vector<std::int32_t>(std::int64_t row)>;

template <class T>
void renew_values(HostCsr<T>& a, std::int64_t seed)
{
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        a.values[i] = static_cast<T>((static_cast<std::int64_t>(i) * 7 + seed) % 9 - 4);
    }
}

/// Multiplies before and after new values; x is not finite in the columns that have no entries. Returns the operator's bytes an
/// entry, 0 if it says that it is not worth its format.
template <class T>
double multiply(std::int64_t rows, std::int64_t cols, const Columns& columns_of)
{
    HostCsr<T> a;
    a.rows = rows;
    a.cols = cols;
    std::vector<T> x(static_cast<std::size_t>(cols), std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const std::int32_t column : columns_of(row)) {
            a.col_idx.push_back(column);
            x[static_cast<std::size_t>(column)] = static_cast<T>(std::int64_t{column} * 5 % 17 - 8);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.resize(a.col_idx.size());
    renew_values(a, 3);
    const std::unique_ptr<TestDevice> device = open_device();
    const DeviceArray<T> device_x = upload(*device, x);
    const DeviceArray<std::int64_t> ptr64 = upload(*device, a.row_ptr);
    const DeviceArray<std::int32_t> columns = upload(*device, a.col_idx);
    const DeviceArray<T> values = upload(*device, a.values);
    const CsrShard<T> shard{a.rows, a.cols, a.nnz(), IndexView(ptr64.data()), columns.data(), values.data()};
    const auto op = prepare_sell_blocks(shard, statistics(a.row_ptr), device->context());
    for (const std::int64_t seed : {4, 5}) {
        renew_values(a, seed);
        device->copy_in(values.data(), a.values.data(), a.values.size() * sizeof(T));
        op->update_values(device->context());
        const std::vector<T> before(static_cast<std::size_t>(a.rows), T{100});
        const DeviceArray<T> y = upload(*device, before);
        op->apply(T{2}, device_x.data(), T{-3}, y.data(), device->context());
        const std::vector<T> after = download(*device, y.data(), before.size());
        for (std::size_t row = 0; row < before.size(); ++row) {
            T sum = 0;
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                const auto k = static_cast<std::size_t>(i);
                sum += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
            }
            EXPECT_EQ(after[row], 2 * sum - 300) << "row " << row;
            if (testing::Test::HasFailure()) {
                return 0;
            }
        }
    }
    return op->worthwhile() ? static_cast<double>(op->format_bytes()) / static_cast<double>(a.nnz()) : 0;
}

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
class SellBlocks : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(SellBlocks, Precisions);

TYPED_TEST(SellBlocks, FullBlocksOfEachShape)
{
    for (const BlockShape& shape : block_shapes) {
        for (const int blocks : {1, 2, 3, 4, 5, 8, 15, 33, 64}) {
            SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.cols) + ", " +
                         std::to_string(blocks) + " a node");
            const double bytes = multiply<TypeParam>(600, 3000, full_blocks(shape, 3000, blocks));
            EXPECT_GT(bytes, static_cast<double>(sizeof(TypeParam)));
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
        multiply<TypeParam>(rows, 300, full_blocks({3, 3}, 300, 5));
    }
}

TYPED_TEST(SellBlocks, RowsThatBeginInsideANode)
{
    const auto full = full_blocks({3, 3}, 3000, 20);
    for (const std::int64_t first : {0, 1, 2}) {
        SCOPED_TRACE(first);
        const double bytes = multiply<TypeParam>(900, 3000, [&](std::int64_t row) { return full(row + first); });
        EXPECT_GT(bytes, 0);
        EXPECT_LT(bytes, static_cast<double>(sizeof(TypeParam)) + 1);
    }
}

TYPED_TEST(SellBlocks, ColumnsThatEndInsideABlock)
{
    multiply<TypeParam>(90, 100, [](std::int64_t row) {
        return std::vector<std::int32_t>{static_cast<std::int32_t>(row / 3 * 3), 99};
    });
}

TYPED_TEST(SellBlocks, BlocksWithHoles)
{
    const auto full = full_blocks({3, 3}, 3000, 12);
    EXPECT_GT(multiply<TypeParam>(3000, 3000,
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
        multiply<TypeParam>(3000, 3000, [&](std::int64_t row) {
            return full_blocks(shape, 3000, static_cast<int>(row / shape.rows * 7 % 23))(row);
        });
    }
    // One node among short ones: its slice is left in CSR.
    multiply<TypeParam>(3000, 30'000, [](std::int64_t row) {
        return full_blocks({3, 3}, 30'000, row / 3 == 500 ? 900 : 2)(row);
    });
}

TYPED_TEST(SellBlocks, ColumnsInAnyOrderAndTwice)
{
    multiply<TypeParam>(999, 3000, [](std::int64_t row) {
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
    EXPECT_EQ(multiply<TypeParam>(1000, 1000,
                                  [](std::int64_t row) {
                                      return std::vector<std::int32_t>{static_cast<std::int32_t>(row * 7 % 500),
                                                                       static_cast<std::int32_t>(500 + row * 3 % 500)};
                                  }),
              0);
}

}  // namespace
}  // namespace rmsp::kernels::test
