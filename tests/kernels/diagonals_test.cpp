#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/io.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

/// Rows of `width` entries on diagonals, but each of `others` has one fewer.
HostCsr<double> band(std::int64_t rows, int width, const std::vector<std::int64_t>& others)
{
    HostCsr<double> a;
    a.rows = rows;
    a.cols = rows + 10 * width;
    for (std::int64_t row = 0; row < rows; ++row) {
        const bool other = std::find(others.begin(), others.end(), row) != others.end();
        for (int k = 0; k < width - (other ? 1 : 0); ++k) {
            a.col_idx.push_back(static_cast<std::int32_t>(row + 10 * k));
            a.values.push_back(static_cast<double>((row * 7 + k) % 23 - 11));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    return a;
}

/// `points` points of `unknowns` rows each, which have the same columns.
HostCsr<double> blocks(std::int64_t points, int unknowns)
{
    HostCsr<double> a;
    a.rows = points * unknowns;
    a.cols = a.rows + 3;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const std::int64_t point = row / unknowns;
        for (const std::int64_t column : {point, (point * 7 + 3) % a.rows, a.cols - 1}) {
            a.col_idx.push_back(static_cast<std::int32_t>(column));
            a.values.push_back(static_cast<double>((row * 5 + column) % 19 - 9));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    return a;
}

std::unique_ptr<SpmvOperator<double>> prepared(const HostCsr<double>& a, TestDevice& device)
{
    const CsrShard<double> shard{a.rows,           a.cols,         a.nnz(), IndexView(a.row_ptr.data()),
                                 a.col_idx.data(), a.values.data()};
    const RowStatistics rows = statistics(a.row_ptr);
    return choose_spmv<double>(DeviceKind::host, "diagonals", Determinism::none, rows, a.cols)
        .prepare(shard, rows, device.context());
}

/// Entries are small integers, whose sums are exact.
void check_product(const HostCsr<double>& a, SpmvOperator<double>& op, const Context& context)
{
    std::vector<double> x(static_cast<std::size_t>(a.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<double>(i * 5 % 17) - 8;
    }
    std::vector<double> y(static_cast<std::size_t>(a.rows), 3);
    op.apply(2, x.data(), -1, y.data(), context);
    for (std::size_t row = 0; row < y.size(); ++row) {
        double sum = 0;
        for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            const auto k = static_cast<std::size_t>(i);
            sum += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
        }
        ASSERT_EQ(y[row], 2 * sum - 3) << "row " << row;
    }
}

TEST(Diagonals, ReadTheColumnsOfTheFirstRowOfARun)
{
    const std::unique_ptr<TestDevice> device = open_device();
    for (const std::int64_t rows : {1, 3, 4, 5, 15, 16, 17, 31, 160, 163, 2000}) {
        for (const std::vector<std::int64_t>& others : {std::vector<std::int64_t>{}, {0}, {20, 21, 130}}) {
            for (const int threads : {1, 3}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << others.size() << " others");
                constexpr int width = 5;
                const HostCsr<double> a = band(rows, width, others);
                device->context().threads = threads;
                const auto op = prepared(a, *device);
                // Four rows and more between others.
                std::int64_t turned = 0;
                std::int64_t length = 0;
                for (std::int64_t row = 0; row <= rows; ++row) {
                    if (row < rows && std::find(others.begin(), others.end(), row) == others.end()) {
                        ++length;
                        continue;
                    }
                    turned += length >= 4 ? length : 0;
                    length = 0;
                }
                const std::int64_t in_csr = (a.nnz() - turned * width) * 4 + (rows - turned) * 8;
                EXPECT_GE(op->format_bytes(), a.nnz() * 8 + in_csr);
                if (threads == 1) {  // whose rows no cut divides
                    EXPECT_EQ(op->worthwhile(), 2 * turned * width >= a.nnz());
                    EXPECT_LE(op->format_bytes(), a.nnz() * 8 + in_csr + 8 * (width * 4 + 64));  // at most 8 runs
                }
                check_product(a, *op, device->context());
            }
        }
    }
}

TEST(Diagonals, AddRowsOfTheSameColumnsTogether)
{
    const std::unique_ptr<TestDevice> device = open_device();
    for (int unknowns = 1; unknowns <= 18; ++unknowns) {
        for (const int threads : {1, 3}) {
            SCOPED_TRACE(testing::Message() << unknowns << " unknowns, " << threads << " threads");
            const HostCsr<double> a = blocks(6000 / unknowns, unknowns);
            device->context().threads = threads;
            const auto op = prepared(a, *device);
            EXPECT_EQ(op->worthwhile(), unknowns > 1);
            check_product(a, *op, device->context());
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
