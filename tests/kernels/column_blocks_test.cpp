#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <gtest/gtest.h>
#include <kernels/spmv/column_blocks.hpp>
#include <kernels/spmv/spmv.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

// What kernel "column-blocks" does with several blocks of columns. All numbers are small integers, so that results are exact.
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

/// Multiplies with both widths of row pointers, all columns at once and in two steps, before and after new values.
template <class T>
void multiply(std::int64_t rows, std::int64_t cols, const Columns& columns_of)
{
    HostCsr<T> a;
    a.rows = rows;
    a.cols = cols;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const std::int32_t column : columns_of(row)) {
            a.col_idx.push_back(column);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.resize(a.col_idx.size());
    renew_values(a, 3);
    const std::unique_ptr<TestDevice> device = open_device();
    std::vector<T> x(static_cast<std::size_t>(a.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<T>(static_cast<std::int64_t>(i * 5 % 17) - 8);
    }
    const DeviceArray<T> device_x = upload(*device, x);
    const std::int64_t early = cols / 3 + 1;
    std::vector<T> part = x;
    std::fill(part.begin() + early, part.end(), std::numeric_limits<T>::quiet_NaN());
    const DeviceArray<T> device_part = upload(*device, part);
    const DeviceArray<std::int64_t> ptr64 = upload(*device, a.row_ptr);
    const DeviceArray<std::int32_t> ptr32 =
        upload(*device, std::vector<std::int32_t>(a.row_ptr.begin(), a.row_ptr.end()));
    const DeviceArray<std::int32_t> columns = upload(*device, a.col_idx);
    const DeviceArray<T> values = upload(*device, a.values);
    for (const auto& [wide, early_cols] : {std::pair(false, early), std::pair(true, std::int64_t{0})}) {
        const CsrShard<T> shard{a.rows,         a.cols,        a.nnz(), wide ? IndexView(ptr64.data()) : ptr32.data(),
                                columns.data(), values.data(), 0,       early_cols};
        const auto op = prepare_column_blocks(shard, statistics(a.row_ptr), device->context());
        EXPECT_GE(op->workspace_bytes(), a.nnz() * static_cast<std::int64_t>(sizeof(T) + 2));
        EXPECT_EQ(op->splits_columns(), early_cols > 0);
        for (const std::int64_t seed : {4, 5}) {
            renew_values(a, seed);
            device->copy_in(values.data(), a.values.data(), a.values.size() * sizeof(T));
            op->update_values(device->context());
            const std::vector<T> before(static_cast<std::size_t>(a.rows), T{100});
            const DeviceArray<T> y = upload(*device, before);
            if (early_cols > 0 && seed == 5) {
                op->apply_early(device_part.data(), device->context());
                op->apply_late(T{2}, device_x.data(), T{-3}, y.data(), device->context());
            } else {
                op->apply(T{2}, device_x.data(), T{-3}, y.data(), device->context());
            }
            const std::vector<T> after = download(*device, y.data(), before.size());
            for (std::size_t row = 0; row < before.size(); ++row) {
                T sum = 0;
                for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                    const auto k = static_cast<std::size_t>(i);
                    sum += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
                }
                ASSERT_EQ(after[row], 2 * sum - 300) << "row " << row << (wide ? ", 64-bit row pointers" : "");
            }
        }
    }
}

template <class T>
class ColumnBlocks : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(ColumnBlocks, Precisions);

TYPED_TEST(ColumnBlocks, ColumnsAroundTheEndOfABlock)
{
    constexpr int block = column_block_tuning<TypeParam>.columns;
    for (const int cols : {block - 1, block, block + 1, 2 * block, 2 * block + 3}) {
        SCOPED_TRACE(cols);
        multiply<TypeParam>(100, cols, [&](std::int64_t row) {
            std::vector<std::int32_t> columns;
            for (int k = static_cast<int>(row); k < cols; k += 100) {
                columns.push_back(k);
            }
            return columns;
        });
    }
}

TYPED_TEST(ColumnBlocks, MostEntriesInFewColumns)
{
    constexpr int cols = 7 * column_block_tuning<TypeParam>.columns / 2;
    multiply<TypeParam>(3000, cols, [&](std::int64_t row) {
        std::vector<std::int32_t> columns;
        for (std::int64_t k = 0; k < row * 31 % 97; ++k) {
            const std::int64_t far = (row * 7919 + k * 104729) % cols;
            columns.push_back(static_cast<std::int32_t>(k % 3 == 0 ? far : far * far / cols * far / cols));
        }
        return columns;
    });
}

TYPED_TEST(ColumnBlocks, RowsAndBlocksOfManyTiles)
{
    multiply<TypeParam>(40, 2 * column_block_tuning<TypeParam>.columns, [&](std::int64_t row) {
        std::vector<std::int32_t> columns;
        const std::int64_t length = row == 7 ? 100'000 : row % 4 == 0 ? 0 : row * 25;
        for (std::int64_t k = 0; k < length; ++k) {
            columns.push_back(static_cast<std::int32_t>((k * 13 + row) % (2 * column_block_tuning<TypeParam>.columns)));
        }
        return columns;
    });
}

TYPED_TEST(ColumnBlocks, UnusedColumnsAreLeftOut)
{
    multiply<TypeParam>(64, 2'000'000, [&](std::int64_t row) {
        return std::vector<std::int32_t>{static_cast<std::int32_t>(row * 31'000), 1'999'999};
    });
}

}  // namespace
}  // namespace rmsp::kernels::test
