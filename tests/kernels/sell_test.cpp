#include <functional>

#include <gtest/gtest.h>
#include <kernels/spmv/sell.hpp>
#include <kernels/spmv/spmv.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

// What kernel "sell" does with the structure of a matrix. All numbers are small integers, so that results are exact.
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

template <class T>
HostCsr<T> matrix(std::int64_t rows, std::int64_t cols, const Columns& columns)
{
    HostCsr<T> a;
    a.rows = rows;
    a.cols = cols;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const std::int32_t column : columns(row)) {
            a.col_idx.push_back(column);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.resize(a.col_idx.size());
    renew_values(a, 3);
    return a;
}

/// Multiplies with both widths of row pointers, before and after new values. Returns the bytes that the operator keeps.
template <class T>
std::int64_t multiply(HostCsr<T> a)
{
    const std::unique_ptr<TestDevice> device = open_device();
    std::vector<T> x(static_cast<std::size_t>(a.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<T>(static_cast<std::int64_t>(i * 5 % 17) - 8);
    }
    const DeviceArray<T> device_x = upload(*device, x);
    const DeviceArray<std::int64_t> ptr64 = upload(*device, a.row_ptr);
    const DeviceArray<std::int32_t> ptr32 =
        upload(*device, std::vector<std::int32_t>(a.row_ptr.begin(), a.row_ptr.end()));
    const DeviceArray<std::int32_t> columns = upload(*device, a.col_idx);
    const DeviceArray<T> values = upload(*device, a.values);
    std::int64_t bytes = 0;
    for (const bool wide : {false, true}) {
        const CsrShard<T> shard{a.rows,         a.cols,       a.nnz(), wide ? IndexView(ptr64.data()) : ptr32.data(),
                                columns.data(), values.data()};
        const auto op = prepare_sell(shard, statistics(a.row_ptr), device->context());
        bytes = op->workspace_bytes();
        for (const std::int64_t seed : {4, 5}) {
            renew_values(a, seed);
            if (!a.values.empty()) {
                device->copy_in(values.data(), a.values.data(), a.values.size() * sizeof(T));
            }
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
                EXPECT_EQ(after[row], 2 * sum - 300) << "row " << row << (wide ? ", 64-bit row pointers" : "");
                if (testing::Test::HasFailure()) {
                    return bytes;
                }
            }
        }
    }
    return bytes;
}

std::int64_t groups(std::int64_t width) { return (width + slice_group - 1) / slice_group; }

/// Bytes of one slice, and of one that is left in CSR.
constexpr auto header = static_cast<std::int64_t>(sizeof(Slice) + slice_rows * sizeof(Slot));

template <class T>
std::int64_t stored(std::int64_t width, SliceCode code)
{
    return header + width * slice_rows * static_cast<std::int64_t>(sizeof(T)) +
           (code != SliceCode::bytes4 ? groups(width) * 16 : 0) + groups(width) * code_block_bytes * code_bytes(code);
}

template <class T>
class Sell : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Sell, Precisions);

TYPED_TEST(Sell, DiagonalsOfAnyWidthTakeNoCodes)
{
    for (int width = 1; width <= 40; ++width) {
        SCOPED_TRACE(width);
        const auto a = matrix<TypeParam>(64, 1000, [&](std::int64_t row) {
            std::vector<std::int32_t> columns;
            for (int k = 0; k < width; ++k) {
                columns.push_back(static_cast<std::int32_t>(row) + k * 20);
            }
            return columns;
        });
        EXPECT_EQ(multiply(a), 2 * stored<TypeParam>(width, SliceCode::diagonal));
    }
}

TYPED_TEST(Sell, CodesAsWideAsTheColumnsAreApart)
{
    for (const int width : {1, 3, 4, 8, 17, 19, 33}) {
        for (const int apart : {0, 1, 255, 256, 65535, 65536, 2'000'000}) {
            SCOPED_TRACE(std::to_string(width) + " wide, " + std::to_string(apart) + " apart");
            const auto a = matrix<TypeParam>(32, 2'000'100, [&](std::int64_t row) {
                std::vector<std::int32_t> columns;
                for (int k = 0; k < width; ++k) {
                    columns.push_back(row == 13 ? k : k + apart);
                }
                return columns;
            });
            const SliceCode code = apart <= 255     ? SliceCode::bytes1
                                   : apart <= 65535 ? SliceCode::bytes2
                                                    : SliceCode::bytes4;
            EXPECT_EQ(multiply(a), stored<TypeParam>(width, code));
        }
    }
}

TYPED_TEST(Sell, EachSliceIsStoredInItsOwnWay)
{
    // Slices in turn: diagonals of unequal lengths, empty, nearly empty, far apart, one long row among short ones.
    for (const std::int64_t rows : {1, 31, 32, 33, 159, 160, 161, 255, 256, 257, 1000}) {
        SCOPED_TRACE(rows);
        multiply(matrix<TypeParam>(rows, 70000, [](std::int64_t row) {
            const auto r = static_cast<std::int32_t>(row);
            std::vector<std::int32_t> columns;
            switch (row / slice_rows % 5) {
                case 0:
                    for (int k = 0; k < 7 + r % 3; ++k) {
                        columns.push_back(r + k);
                    }
                    break;
                case 1:
                    break;
                case 2:
                    columns.resize(r % slice_rows == 5 ? 90 : 0, 69999);
                    break;
                case 3:
                    for (int k = 0; k < 20; ++k) {
                        columns.push_back((r * 7919 + k * 104729) % 70000);
                    }
                    break;
                default:
                    for (int k = 0; k < (r % slice_rows == 9 ? 3000 : 5); ++k) {
                        columns.push_back((r + k * k) % 70000);
                    }
            }
            return columns;
        }));
    }
}

TYPED_TEST(Sell, RowsAroundTheLongestOfASlice)
{
    constexpr int longest = sell_tuning.longest_row;
    for (const int length : {longest - 1, longest, longest + 1}) {
        SCOPED_TRACE(length);
        const auto a = matrix<TypeParam>(35, 5000, [&](std::int64_t row) {
            std::vector<std::int32_t> columns;
            for (int k = 0; k < length; ++k) {
                columns.push_back(static_cast<std::int32_t>(row) * 3 + k);
            }
            return columns;
        });
        // The second slice has three rows only, so it stays in CSR.
        EXPECT_EQ(multiply(a), header + (length > longest ? header : stored<TypeParam>(length, SliceCode::bytes1)));
    }
}

TYPED_TEST(Sell, RowsAreSortedInBlocks)
{
    for (const std::int64_t rows : {sort_rows - 1, sort_rows, sort_rows + 1, 3 * sort_rows + 70}) {
        SCOPED_TRACE(rows);
        // Every other block has rows of one length; in the others every third is longer, and a few are very long.
        const auto a = matrix<TypeParam>(rows, 4000, [](std::int64_t row) {
            const bool mixed = row / sort_rows % 2 == 0;
            const int length = mixed && row % 400 == 7 ? 700 : mixed && row % 3 == 0 ? 12 : 4;
            std::vector<std::int32_t> columns;
            for (int k = 0; k < length; ++k) {
                columns.push_back(static_cast<std::int32_t>((row + k * k) % 4000));
            }
            return columns;
        });
        const auto entries = static_cast<std::int64_t>(a.col_idx.size());
        const std::int64_t bytes = multiply(a);
        if (rows == sort_rows) {
            EXPECT_LT(bytes, entries * (static_cast<std::int64_t>(sizeof(TypeParam)) + 4));
        }
    }
}

TYPED_TEST(Sell, MoreSlicesThanAreCountedInOneStep)
{
    multiply(matrix<TypeParam>(4096 * slice_rows + 40, 200'000, [](std::int64_t row) {
        const auto r = static_cast<std::int32_t>(row);
        return r / slice_rows % 3 == 0 ? std::vector<std::int32_t>{r, r + 2, r + 5}
                                       : std::vector<std::int32_t>{r / 2, r * 31 % 900};
    }));
}

TYPED_TEST(Sell, NothingToMultiply)
{
    EXPECT_EQ(multiply(matrix<TypeParam>(0, 5, [](std::int64_t) { return std::vector<std::int32_t>{}; })), 0);
    multiply(matrix<TypeParam>(100, 0, [](std::int64_t) { return std::vector<std::int32_t>{}; }));
}

}  // namespace
}  // namespace rmsp::kernels::test
