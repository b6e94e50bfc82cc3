#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <gtest/gtest.h>
#include <kernels/spmv/column_blocks/layout.hpp>

#include "spmv_fixtures.hpp"

// What kernel "column-blocks" does with several blocks of columns. All numbers are small integers, so that results are
// exact.
namespace rmsp::kernels::test {
namespace {

/// Multiplies with both widths of row pointers, all columns at once and in two steps, before and after new values.
template <class T>
void multiply(TestDevice& device, std::int64_t rows, std::int64_t cols, const Columns& columns_of)
{
    HostCsr<T> a = matrix_of_rows<T>(0, rows, cols, columns_of);
    renew_values(a, 3);
    const std::vector<T> x = small_integers<T>(cols);
    const DeviceArray<T> device_x = upload(device, x);
    const std::int64_t early = cols / 3 + 1;
    std::vector<T> part = x;
    std::fill(part.begin() + early, part.end(), std::numeric_limits<T>::quiet_NaN());
    const DeviceArray<T> device_part = upload(device, part);
    for (const auto& [offsets, early_cols] :
         {std::pair(Offsets::i32, early), std::pair(Offsets::i64, std::int64_t{0})}) {
        SCOPED_TRACE(early_cols);
        DeviceCsr<T> d(device, a, offsets);
        d.shard.early_cols = early_cols;
        const auto op = prepare_named("column-blocks", d.shard, statistics(a.row_ptr), device.context());
        EXPECT_EQ(op->splits_columns(), early_cols > 0);
        std::map<Stored, std::int64_t> bytes;
        std::int64_t seed = 4;
        for (const Stored stored :
             {Stored::whole, Stored::constant, Stored::constant, Stored::floats, Stored::whole, Stored::floats}) {
            SCOPED_TRACE(static_cast<int>(stored));
            renew_values(a, ++seed, stored);
            d.renew(device, a);
            op->update_values(device.context());
            EXPECT_EQ(bytes.try_emplace(stored, op->format_bytes()).first->second, op->format_bytes());
            if (early_cols > 0 && seed % 2 == 0) {
                const DeviceArray<T> y = upload(device, hundreds<T>(rows));
                op->apply_early(device_part.data(), device.context());
                op->apply_late(T{2}, device_x.data(), T{-3}, y.data(), device.context());
                ASSERT_TRUE(is_exact(download(device, y.data(), y.size()), a, x));
            } else {
                ASSERT_TRUE(multiplies_exactly(device, *op, a, x));
            }
        }
        const std::int64_t floats = bytes[Stored::floats] - bytes[Stored::constant];
        EXPECT_GE(floats, a.nnz() * static_cast<std::int64_t>(sizeof(float)));
        EXPECT_EQ(bytes[Stored::whole] - bytes[Stored::constant], floats * static_cast<int>(sizeof(T) / sizeof(float)));
        EXPECT_GE(bytes[Stored::constant], a.nnz() * 2);
    }
}

template <class T>
class ColumnBlocks : public PrecisionTest<T> {
};
TYPED_TEST_SUITE(ColumnBlocks, Precisions);

TYPED_TEST(ColumnBlocks, ColumnsAroundTheEndOfABlock)
{
    constexpr int block = column_block_tuning<TypeParam>.columns;
    for (const int cols : {block - 1, block, block + 1, 2 * block, 2 * block + 3}) {
        SCOPED_TRACE(cols);
        multiply<TypeParam>(*this->device_, 100, cols, [&](std::int64_t row) {
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
    multiply<TypeParam>(*this->device_, 3000, cols, [&](std::int64_t row) {
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
    multiply<TypeParam>(*this->device_, 40, 2 * column_block_tuning<TypeParam>.columns, [&](std::int64_t row) {
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
    multiply<TypeParam>(*this->device_, 64, 2'000'000, [&](std::int64_t row) {
        return std::vector<std::int32_t>{static_cast<std::int32_t>(row * 31'000), 1'999'999};
    });
}

TYPED_TEST(ColumnBlocks, OneValueThatIsNotFinite)
{
    using T = TypeParam;
    HostCsr<T> a = matrix_of_rows<T>(0, 64, 3, [](std::int64_t row) {
        return std::vector<std::int32_t>{0, static_cast<std::int32_t>(row % 3)};
    });
    for (const T value : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
        std::fill(a.values.begin(), a.values.end(), value);
        const DeviceCsr<T> d(*this->device_, a, Offsets::i64);
        const auto op = prepare_named("column-blocks", d.shard, statistics(a.row_ptr), this->device_->context());
        EXPECT_TRUE(multiplies_exactly(*this->device_, *op, a, {T{1}, T{0}, T{2}}));
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
