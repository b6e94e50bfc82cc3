#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kernels/spmv/spmv.hpp>
#include <rmsp/error.hpp>

#include "spmv_fixtures.hpp"

namespace rmsp::kernels::test {
namespace {

using testing::HasSubstr;

class CuSparseBsr : public DeviceTest<> {
protected:
    template <class T>
    void expect_product(SpmvOperator<T>& op, const HostCsr<T>& a)
    {
        const std::vector<T> x = random_vector<T>(a.cols, 3);
        const std::vector<T> y(static_cast<std::size_t>(a.rows), std::numeric_limits<T>::quiet_NaN());
        expect_close(apply(*device_, op, T{1}, x, T{0}, y), expect(a, T{1}, x, T{0}, y));
    }
};

/// A band of dense blocks, but for the last entry of every row, so that not every block is full.
template <class T>
HostCsr<T> blocks(int block, std::int64_t block_rows)
{
    HostCsr<T> a;
    a.rows = a.cols = block * block_rows;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const std::int64_t middle = row / block;
        for (std::int64_t column = std::max<std::int64_t>(0, middle - 2) * block;
             column < std::min(block_rows, middle + 3) * block - 1; ++column) {
            a.col_idx.push_back(static_cast<std::int32_t>(column));
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values = random_vector<T>(a.row_ptr.back(), 5);
    return a;
}

template <class T>
std::string refusal(const CsrShard<T>& shard, const HostCsr<T>& a, TestDevice& device)
{
    try {
        prepare_named("cusparse-bsr", shard, statistics(a.row_ptr), device.context());
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        return error.what();
    }
    return "";
}

TEST_F(CuSparseBsr, MultipliesBlocksAndTakesNewValues)
{
    const auto check = [&]<class T>(T) {
        for (const int block : {2, 3, 4}) {
            SCOPED_TRACE(block);
            HostCsr<T> a = blocks<T>(block, 301);
            DeviceCsr<T> on_device(*device_, a, Offsets::i64);
            const auto op = prepare_named("cusparse-bsr", on_device.shard, statistics(a.row_ptr), device_->context());
            // Blocks of `block` take the fewest bytes: an index for each, and few zeros.
            EXPECT_LT(op->format_bytes(), a.nnz() * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t)));
            expect_product(*op, a);
            a.values = random_vector<T>(a.nnz(), 6);
            on_device.renew(*device_, a);
            op->update_values(device_->context());
            expect_product(*op, a);
        }
    };
    check(double{});
    check(float{});
}

TEST_F(CuSparseBsr, AddsEntriesAtTheSamePlace)
{
    HostCsr<double> a;
    a.rows = a.cols = 4;
    a.row_ptr = {0, 3, 5, 6, 8};
    a.col_idx = {0, 0, 1, 0, 1, 2, 3, 3};
    a.values = {1, 2, 3, 4, 5, 6, 7, 8};
    const DeviceCsr<double> on_device(*device_, a, Offsets::i64);
    const auto op = prepare_named("cusparse-bsr", on_device.shard, statistics(a.row_ptr), device_->context());
    expect_product(*op, a);
}

TEST_F(CuSparseBsr, SaysWhyItRefuses)
{
    const HostCsr<double> odd = blocks<double>(1, 7);  // 7 x 7: no block size divides it
    EXPECT_THAT(refusal(DeviceCsr<double>(*device_, odd, Offsets::i64).shard, odd, *device_), HasSubstr("7 x 7"));

    HostCsr<double> scattered;
    scattered.rows = scattered.cols = 1200;
    for (std::int64_t row = 0; row < scattered.rows; ++row) {
        scattered.col_idx.push_back(static_cast<std::int32_t>(row * 7 % 1200));
        scattered.row_ptr.push_back(row + 1);
    }
    scattered.values = random_vector<double>(scattered.row_ptr.back(), 7);
    EXPECT_THAT(refusal(DeviceCsr<double>(*device_, scattered, Offsets::i64).shard, scattered, *device_),
                HasSubstr("more than twice the 1200 nonzeros"));

    HostCsr<double> unsorted = blocks<double>(2, 50);
    std::swap(unsorted.col_idx[0], unsorted.col_idx[1]);
    EXPECT_THAT(refusal(DeviceCsr<double>(*device_, unsorted, Offsets::i64).shard, unsorted, *device_),
                HasSubstr("sorted"));
}

}  // namespace
}  // namespace rmsp::kernels::test
