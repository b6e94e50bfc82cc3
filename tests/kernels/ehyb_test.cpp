#include <gtest/gtest.h>

#include "spmv_fixtures.hpp"

// Kernels "ehyb", "ehyb-ghosts", "ehyb-metis" and "ehyb-natural" on matrices of many parts, and on shards. All numbers
// are small integers, so that results are exact.
namespace rmsp::kernels::test {
namespace {

/// Rows [first, end) of a matrix of `cols` columns.
struct SomeRows {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::int64_t cols = 0;
};

template <class T>
class Ehyb : public PrecisionTest<T> {
protected:
    /// Multiplies several times, before and after new values, and returns the least bytes of an apply.
    std::int64_t multiply(const SpmvKernel<T>& kernel, const SomeRows& rows, const Columns& columns_of)
    {
        TestDevice& device = *this->device_;
        HostCsr<T> a = matrix_of_rows<T>(rows.first, rows.end, rows.cols, columns_of);
        device.context().threads = 2;
        const std::vector<T> x = small_integers<T>(a.cols);
        DeviceCsr<T> d(device, a, Offsets::i64);
        d.shard.diagonal = rows.first;
        const auto op = kernel.prepare(d.shard, statistics(a.row_ptr), device.context());
        for (const std::int64_t seed : {4, 5}) {
            renew_values(a, seed);
            d.renew(device, a);
            op->update_values(device.context());
            // The queue of extra rows must be full again at each call.
            for (int call = 0; call < 3; ++call) {
                EXPECT_TRUE(multiplies_exactly(device, *op, a, x)) << "call " << call;
                if (testing::Test::HasFailure()) {
                    return 0;
                }
            }
        }
        return op->format_bytes();
    }

    /// Calls f with each of the kernels that this build has.
    template <class F>
    void each_kernel(F&& f)
    {
        for (const SpmvKernel<T>& kernel : spmv_kernels<T>()) {
            if (kernel.info.device == device_kind() && kernel.info.compiled && kernel.info.name.starts_with("ehyb")) {
                SCOPED_TRACE(kernel.info.name);
                f(kernel);
            }
        }
    }
};
TYPED_TEST_SUITE(Ehyb, Precisions);

/// Five points of a grid of `width` columns, of which each row leaves some out, so that the pattern is not symmetric.
std::vector<std::int32_t> grid_columns(std::int64_t row, std::int64_t width, std::int64_t rows)
{
    std::vector<std::int32_t> columns;
    for (const std::int64_t offset : {-width, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, width}) {
        if (row + offset >= 0 && row + offset < rows && (row + offset) % 7 != 3) {
            columns.push_back(static_cast<std::int32_t>(row + offset));
        }
    }
    return columns;
}

TYPED_TEST(Ehyb, ManyParts)
{
    this->each_kernel([this](const auto& kernel) {
        this->multiply(kernel, {0, 60'000, 60'000}, [](std::int64_t row) { return grid_columns(row, 200, 60'000); });
    });
}

TYPED_TEST(Ehyb, ShardsOfASquareMatrix)
{
    this->each_kernel([this](const auto& kernel) {
        const auto columns = [](std::int64_t row) { return grid_columns(row, 100, 30'000); };
        const std::int64_t first = this->multiply(kernel, {0, 10'000, 30'000}, columns);
        const std::int64_t second = this->multiply(kernel, {10'000, 20'000, 30'000}, columns);
        // A shard's own columns are found wherever it begins: the same bytes, but for one row of the grid.
        EXPECT_NEAR(static_cast<double>(second) / static_cast<double>(first), 1, 0.02);
        this->multiply(kernel, {29'990, 30'000, 30'000}, columns);
    });
}

TYPED_TEST(Ehyb, EverythingInsideOrNothing)
{
    this->each_kernel([this](const auto& kernel) {
        this->multiply(kernel, {0, 20'000, 20'000},
                       [](std::int64_t row) { return std::vector<std::int32_t>(1, static_cast<std::int32_t>(row)); });
        // More columns than rows, and none of them the rows' own.
        this->multiply(kernel, {0, 5'000, 20'000}, [](std::int64_t row) {
            return std::vector<std::int32_t>(static_cast<std::size_t>(row % 5),
                                             static_cast<std::int32_t>(19'999 - row));
        });
        // More rows than columns.
        this->multiply(kernel, {0, 5'000, 100}, [](std::int64_t row) {
            return std::vector<std::int32_t>{static_cast<std::int32_t>(row % 100)};
        });
    });
}

TYPED_TEST(Ehyb, LongRowsAndEmptyOnes)
{
    this->each_kernel([this](const auto& kernel) {
        this->multiply(kernel, {0, 30'000, 30'000}, [](std::int64_t row) {
            std::vector<std::int32_t> columns(row % 5'000 == 17 ? 20'000 : row % 3 == 0 ? 0 : 4);
            for (std::size_t k = 0; k < columns.size(); ++k) {
                columns[k] =
                    static_cast<std::int32_t>((static_cast<std::size_t>(row) + k * (k % 2 == 0 ? 1 : 31)) % 30'000);
            }
            return columns;
        });
    });
}

}  // namespace
}  // namespace rmsp::kernels::test
