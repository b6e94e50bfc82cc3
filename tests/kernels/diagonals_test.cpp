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

TEST(Diagonals, ReadOneColumnForSixteenEntries)
{
    const std::unique_ptr<TestDevice> device = open_device();
    for (const std::int64_t rows : {1, 15, 16, 17, 160, 163}) {
        for (const std::vector<std::int64_t>& others : {std::vector<std::int64_t>{}, {0}, {20, 21, 130}}) {
            for (const int threads : {1, 3}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, " << others.size() << " others");
                constexpr int width = 5;
                const HostCsr<double> a = band(rows, width, others);
                device->context().threads = threads;
                const CsrShard<double> shard{a.rows,           a.cols,         a.nnz(), IndexView(a.row_ptr.data()),
                                             a.col_idx.data(), a.values.data()};
                const RowStatistics rows_of = statistics(a.row_ptr);
                const auto kernel =
                    choose_spmv<double>(DeviceKind::host, "diagonals", Determinism::none, rows_of, a.cols);
                const auto op = kernel.prepare(shard, rows_of, device->context());
                std::int64_t turned = 0;
                for (std::int64_t first = 0; first + 16 <= rows; first += 16) {
                    turned += std::none_of(others.begin(), others.end(),
                                           [&](std::int64_t row) { return row >= first && row < first + 16; })
                                  ? 16 * width
                                  : 0;
                }
                EXPECT_EQ(op->worthwhile(), 2 * turned >= a.nnz());
                EXPECT_EQ(op->format_bytes(),
                          a.nnz() * 8 + turned / 4 + (a.nnz() - turned) * 4 + (rows + 1) * 8 + (rows + 15) / 16);
                std::vector<double> x(static_cast<std::size_t>(a.cols));
                for (std::size_t i = 0; i < x.size(); ++i) {
                    x[i] = static_cast<double>(i * 5 % 17) - 8;
                }
                std::vector<double> y(static_cast<std::size_t>(rows), 3);
                op->apply(2, x.data(), -1, y.data(), device->context());
                for (std::size_t row = 0; row < y.size(); ++row) {
                    double sum = 0;
                    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
                        const auto k = static_cast<std::size_t>(i);
                        sum += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
                    }
                    ASSERT_EQ(y[row], 2 * sum - 3) << "row " << row;
                }
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
