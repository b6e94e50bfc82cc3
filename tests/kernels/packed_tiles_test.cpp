#include <gtest/gtest.h>
#include <kernels/spmv/packed_tiles.hpp>
#include <kernels/spmv/spmv.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

// What kernel "packed-tiles" does on few multiprocessors, where a warp multiplies many tiles. All numbers are small integers, so that results
// are exact.
namespace rmsp::kernels::test {
namespace {

template <class T>
void multiply(bool scattered, std::int64_t rows, std::int64_t (*length)(std::int64_t row), std::int64_t cols,
              int compute_units)
{
    HostCsr<T> a;
    a.rows = rows;
    a.cols = cols;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t k = 0; k < length(row); ++k) {
            const std::int64_t near = row * 7 + k + (k == 3 ? cols / 2 : 0);
            const std::int64_t pair = k % 4 == 1 ? 1 : 0;  // lies beside the one before
            a.col_idx.push_back(static_cast<std::int32_t>(
                (scattered ? row * 7920 + (k - pair) * (k - pair) * 32 + pair : near) % cols));
            a.values.push_back(static_cast<T>((row + k * 7) % 9 - 4));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    const std::unique_ptr<TestDevice> device = open_device();
    std::vector<T> x(static_cast<std::size_t>(cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<T>(static_cast<std::int64_t>(i * 5 % 17) - 8);
    }
    const DeviceArray<T> device_x = upload(*device, x);
    const DeviceArray<std::int64_t> row_ptr = upload(*device, a.row_ptr);
    const DeviceArray<std::int32_t> columns = upload(*device, a.col_idx);
    const DeviceArray<T> values = upload(*device, a.values);
    const CsrShard<T> shard{a.rows, a.cols, a.nnz(), IndexView(row_ptr.data()), columns.data(), values.data()};
    Context context = device->context();
    context.compute_units = compute_units;
    const auto op = prepare_packed_tiles(shard, statistics(a.row_ptr), context);
    const std::vector<T> before(static_cast<std::size_t>(rows), T{100});
    for (int call = 0; call < 2; ++call) {
        const DeviceArray<T> y = upload(*device, before);
        op->apply(T{2}, device_x.data(), T{-3}, y.data(), context);
        const std::vector<T> after = download(*device, y.data(), before.size());
        for (std::size_t row = 0; row < before.size(); ++row) {
            T sum = 0;
            for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                const auto k = static_cast<std::size_t>(i);
                sum += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
            }
            ASSERT_EQ(after[row], 2 * sum - 300) << "row " << row << ", call " << call;
        }
    }
}

/// Columns most of which lie beside each other, and columns of which some do: lanes gather in another order then.
template <class T>
void multiply(std::int64_t rows, std::int64_t (*length)(std::int64_t row), std::int64_t cols, int compute_units)
{
    for (const bool scattered : {false, true}) {
        SCOPED_TRACE(scattered);
        multiply<T>(scattered, rows, length, cols, compute_units);
    }
}

template <class T>
class PackedTilesKernel : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(PackedTilesKernel, Precisions);

TYPED_TEST(PackedTilesKernel, TilesOfNarrowAndOfWideColumns)
{
    const auto length = [](std::int64_t row) -> std::int64_t { return row % 5 == 0 ? 0 : row % 11; };
    for (const std::int64_t cols : {1'000, 65'535, 65'536, 65'537, 1'000'000}) {
        SCOPED_TRACE(cols);
        multiply<TypeParam>(20'000, length, cols, 1);
    }
}

TYPED_TEST(PackedTilesKernel, RowsThatWarpsAndBlocksShare)
{
    for (const int compute_units : {1, 3, 132}) {
        SCOPED_TRACE(compute_units);
        multiply<TypeParam>(
            600, [](std::int64_t row) -> std::int64_t { return row % 100 == 7 ? 9'000 : row % 3 * 60; }, 70'000,
            compute_units);
        multiply<TypeParam>(
            1, [](std::int64_t) -> std::int64_t { return 50'000; }, 70'000, compute_units);
        multiply<TypeParam>(
            5'000, [](std::int64_t) -> std::int64_t { return 0; }, 10, compute_units);
    }
}

TYPED_TEST(PackedTilesKernel, RowsAsLongAsTilesAndWarpsAndBlocks)
{
    for (const int length : {255, 256, 257, 1024, 2048, 2049}) {
        SCOPED_TRACE(length);
        static int now;
        now = length;
        multiply<TypeParam>(
            70, [](std::int64_t) -> std::int64_t { return now; }, 70'000, 1);
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
