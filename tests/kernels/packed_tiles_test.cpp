#include <map>

#include <gtest/gtest.h>
#include <kernels/spmv/packed_tiles/layout.hpp>

#include "spmv_fixtures.hpp"

// What kernel "packed-tiles" does on few multiprocessors, where a warp multiplies many tiles. All numbers are small
// integers, so that results are exact.
namespace rmsp::kernels::test {
namespace {

template <class T>
class PackedTilesKernel : public PrecisionTest<T> {
protected:
    /// Columns most of which lie beside each other, so that some tiles are narrow, and columns of which few do.
    void multiply(std::int64_t rows, const std::function<std::int64_t(std::int64_t row)>& length, std::int64_t cols,
                  int compute_units)
    {
        this->device_->context().compute_units = compute_units;
        for (const bool scattered : {false, true}) {
            SCOPED_TRACE(scattered);
            HostCsr<T> a = matrix_of_rows<T>(0, rows, cols, [&](std::int64_t row) {
                std::vector<std::int32_t> columns;
                for (std::int64_t k = 0; k < length(row); ++k) {
                    const bool far = k == 3 && row / 300 % 2 == 0;  // not in each tile
                    const std::int64_t near = row * 7 + k + (far ? cols / 2 : 0);
                    const std::int64_t pair = k % 4 == 1 ? 1 : 0;  // lies beside the one before
                    columns.push_back(static_cast<std::int32_t>(
                        (scattered ? row * 7920 + (k - pair) * (k - pair) * 32 + pair : near) % cols));
                }
                return columns;
            });
            renew_values(a, 3);
            DeviceCsr<T> d(*this->device_, a, Offsets::i64);
            const auto op = prepare_named("packed-tiles", d.shard, statistics(a.row_ptr), this->device_->context());
            const std::vector<T> x = small_integers<T>(cols);
            std::map<Stored, std::int64_t> bytes;
            std::int64_t seed = 3;
            for (const Stored stored : {Stored::floats, Stored::floats, Stored::whole, Stored::constant, Stored::whole,
                                        Stored::constant, Stored::floats}) {
                SCOPED_TRACE(static_cast<int>(stored));
                renew_values(a, ++seed, stored);
                d.renew(*this->device_, a);
                op->update_values(this->device_->context());
                ASSERT_TRUE(multiplies_exactly(*this->device_, *op, a, x));
                EXPECT_EQ(bytes.try_emplace(stored, op->format_bytes()).first->second, op->format_bytes());
            }
            const std::int64_t floats = bytes[Stored::floats] - bytes[Stored::constant];
            EXPECT_GE(floats, a.nnz() * static_cast<std::int64_t>(sizeof(float)));
            EXPECT_EQ(bytes[Stored::whole] - bytes[Stored::constant],
                      floats * static_cast<int>(sizeof(T) / sizeof(float)));
        }
    }
};
TYPED_TEST_SUITE(PackedTilesKernel, Precisions);

TYPED_TEST(PackedTilesKernel, TilesOfNarrowAndOfWideColumns)
{
    const auto length = [](std::int64_t row) -> std::int64_t { return row % 5 == 0 ? 0 : row % 11; };
    for (const std::int64_t cols : {1'000, 65'535, 65'536, 65'537, 1'000'000}) {
        SCOPED_TRACE(cols);
        this->multiply(20'000, length, cols, 1);
    }
}

TYPED_TEST(PackedTilesKernel, RowsThatWarpsAndBlocksShare)
{
    for (const int compute_units : {1, 3, 132}) {
        SCOPED_TRACE(compute_units);
        this->multiply(
            600, [](std::int64_t row) -> std::int64_t { return row % 100 == 7 ? 9'000 : row % 3 * 60; }, 70'000,
            compute_units);
        this->multiply(
            1, [](std::int64_t) -> std::int64_t { return 50'000; }, 70'000, compute_units);
        this->multiply(
            5'000, [](std::int64_t) -> std::int64_t { return 0; }, 10, compute_units);
    }
}

TYPED_TEST(PackedTilesKernel, RowsAsLongAsTilesAndWarpsAndBlocks)
{
    for (const int length : {255, 256, 257, 1024, 2048, 2049}) {
        SCOPED_TRACE(length);
        this->multiply(
            70, [=](std::int64_t) -> std::int64_t { return length; }, 70'000, 1);
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
