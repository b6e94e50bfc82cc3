#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/context.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

/// What the tests of kernels that take CSR on a device share.
namespace rmsp::kernels::test {

/// Opens a device for each test; where there is none, the test is skipped.
template <class Base = testing::Test>
class DeviceTest : public Base {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
        device_ = open_device();
    }

    std::unique_ptr<TestDevice> device_;
};

enum class Offsets { i32, i64 };

/// Rows [first, end) of a matrix on the device. `shift` entries lie before columns and values, to try arrays that are
/// not aligned.
template <class T>
struct DeviceCsr {
    DeviceCsr(TestDevice& device, const HostCsr<T>& a, Offsets offsets, std::int64_t first, std::int64_t end,
              std::size_t shift = 0)
    {
        const std::int64_t begin_nnz = a.row_ptr[static_cast<std::size_t>(first)];
        const std::int64_t end_nnz = a.row_ptr[static_cast<std::size_t>(end)];
        for (std::int64_t row = first; row <= end; ++row) {
            row_ptr.push_back(a.row_ptr[static_cast<std::size_t>(row)] - begin_nnz);
        }
        ptr32 = upload(device, std::vector<std::int32_t>(row_ptr.begin(), row_ptr.end()));
        ptr64 = upload(device, row_ptr);
        std::vector<std::int32_t> shifted_columns(shift, -1);
        shifted_columns.insert(shifted_columns.end(), a.col_idx.begin() + begin_nnz, a.col_idx.begin() + end_nnz);
        std::vector<T> shifted_values(shift, std::numeric_limits<T>::quiet_NaN());
        shifted_values.insert(shifted_values.end(), a.values.begin() + begin_nnz, a.values.begin() + end_nnz);
        columns = upload(device, shifted_columns);
        values = upload(device, shifted_values);
        shard.rows = end - first;
        shard.cols = a.cols;
        shard.nnz = end_nnz - begin_nnz;
        shard.row_ptr = offsets == Offsets::i32 ? IndexView(ptr32.data()) : IndexView(ptr64.data());
        shard.col_idx = columns.data() + (columns.data() != nullptr ? shift : 0);
        shard.values = values.data() + (values.data() != nullptr ? shift : 0);
    }
    DeviceCsr(TestDevice& device, const HostCsr<T>& a, Offsets offsets) : DeviceCsr(device, a, offsets, 0, a.rows) {}

    /// Values of a whole matrix that is not shifted, in place.
    void renew(TestDevice& device, const HostCsr<T>& a)
    {
        if (!a.values.empty()) {
            device.copy_in(values.data(), a.values.data(), a.values.size() * sizeof(T));
        }
    }

    std::vector<std::int64_t> row_ptr;
    DeviceArray<std::int32_t> ptr32;
    DeviceArray<std::int64_t> ptr64;
    DeviceArray<std::int32_t> columns;
    DeviceArray<T> values;
    CsrShard<T> shard;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b)
{
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace rmsp::kernels::test
