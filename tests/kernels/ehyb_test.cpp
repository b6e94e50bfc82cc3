#include <functional>

#include <gtest/gtest.h>
#include <kernels/spmv/spmv.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

// Kernels "ehyb", "ehyb-ghosts" and "ehyb-natural" on matrices of many parts, and on shards. All numbers are small integers, so that results are
// exact.
namespace rmsp::kernels::test {
namespace {

using Columns = std::function<std::vector<std::int32_t>(std::int64_t row)>;

/// Rows [first, end) of a matrix of `cols` columns.
struct Rows {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::int64_t cols = 0;
};

template <class T>
void renew_values(HostCsr<T>& a, std::int64_t seed)
{
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        a.values[i] = static_cast<T>((static_cast<std::int64_t>(i) * 7 + seed) % 9 - 4);
    }
}

/// Multiplies several times, before and after new values, and returns the least bytes of an apply.
template <class T>
std::int64_t multiply(const SpmvKernel<T>& kernel, const Rows& rows, const Columns& columns_of)
{
    HostCsr<T> a;
    a.rows = rows.end - rows.first;
    a.cols = rows.cols;
    for (std::int64_t row = rows.first; row < rows.end; ++row) {
        const auto columns = columns_of(row);
        a.col_idx.insert(a.col_idx.end(), columns.begin(), columns.end());
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.resize(a.col_idx.size());
    const std::unique_ptr<TestDevice> device = open_device();
    device->context().threads = 2;
    std::vector<T> x(static_cast<std::size_t>(a.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<T>(static_cast<std::int64_t>(i * 5 % 17) - 8);
    }
    const DeviceArray<T> device_x = upload(*device, x);
    const DeviceArray<std::int64_t> row_ptr = upload(*device, a.row_ptr);
    const DeviceArray<std::int32_t> columns = upload(*device, a.col_idx);
    const DeviceArray<T> values = upload(*device, a.values);
    const CsrShard<T> shard{a.rows,         a.cols,        a.nnz(),   IndexView(row_ptr.data()),
                            columns.data(), values.data(), rows.first};
    const auto op = kernel.prepare(shard, statistics(a.row_ptr), device->context());
    for (const std::int64_t seed : {4, 5}) {
        renew_values(a, seed);
        device->copy_in(values.data(), a.values.data(), a.values.size() * sizeof(T));
        op->update_values(device->context());
        // The queue of extra rows must be full again at each call.
        for (int call = 0; call < 3; ++call) {
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
                if (after[row] != 2 * sum - 300) {
                    ADD_FAILURE() << "row " << row << ", call " << call << ": " << after[row] << ", not "
                                  << 2 * sum - 300;
                    return 0;
                }
            }
        }
    }
    return op->format_bytes();
}

template <class T>
class Ehyb : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
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
using Precisions = testing::Types<float, double>;
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
    this->each_kernel([](const auto& kernel) {
        multiply<TypeParam>(kernel, {0, 60'000, 60'000},
                            [](std::int64_t row) { return grid_columns(row, 200, 60'000); });
    });
}

TYPED_TEST(Ehyb, ShardsOfASquareMatrix)
{
    this->each_kernel([](const auto& kernel) {
        const auto columns = [](std::int64_t row) { return grid_columns(row, 100, 30'000); };
        const std::int64_t first = multiply<TypeParam>(kernel, {0, 10'000, 30'000}, columns);
        const std::int64_t second = multiply<TypeParam>(kernel, {10'000, 20'000, 30'000}, columns);
        // A shard's own columns are found wherever it begins: the same bytes, but for one row of the grid.
        EXPECT_NEAR(static_cast<double>(second) / static_cast<double>(first), 1, 0.02);
        multiply<TypeParam>(kernel, {29'990, 30'000, 30'000}, columns);
    });
}

TYPED_TEST(Ehyb, EverythingInsideOrNothing)
{
    this->each_kernel([](const auto& kernel) {
        multiply<TypeParam>(kernel, {0, 20'000, 20'000}, [](std::int64_t row) {
            return std::vector<std::int32_t>(1, static_cast<std::int32_t>(row));
        });
        // More columns than rows, and none of them the rows' own.
        multiply<TypeParam>(kernel, {0, 5'000, 20'000}, [](std::int64_t row) {
            return std::vector<std::int32_t>(static_cast<std::size_t>(row % 5),
                                             static_cast<std::int32_t>(19'999 - row));
        });
        // More rows than columns.
        multiply<TypeParam>(kernel, {0, 5'000, 100}, [](std::int64_t row) {
            return std::vector<std::int32_t>{static_cast<std::int32_t>(row % 100)};
        });
    });
}

TYPED_TEST(Ehyb, LongRowsAndEmptyOnes)
{
    this->each_kernel([](const auto& kernel) {
        multiply<TypeParam>(kernel, {0, 30'000, 30'000}, [](std::int64_t row) {
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
