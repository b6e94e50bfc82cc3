#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <kernels/spgemm/product_source.cuh>

#include "device_csr.hpp"
#include "spgemm_matrices.hpp"
#include "spgemm_reference.hpp"

/// What lists of products are made from, and what they are to give.
namespace rmsp::kernels::test {

template <class T>
class RepeatedProducts {
public:
    static constexpr T alpha{3};

    RepeatedProducts(TestDevice& device, const HostCsr<T>& a, const HostCsr<T>& b)
        : device_(device), rows_(expected_rows(a, b)), a_(device, a, Offsets::i64), b_(device, b, Offsets::i32)
    {
        c_.rows = a.rows;
        c_.cols = b.cols;
        c_.row_ptr = {0};
        for (const auto& row : rows_) {
            std::int64_t products = 0;
            for (const auto& entry : row) {
                c_.col_idx.push_back(entry.column);
                products += entry.products;
            }
            products_ += products;
            most_products_ = std::max(most_products_, products);
            c_.row_ptr.push_back(static_cast<std::int64_t>(c_.col_idx.size()));
        }
        row_ptr_ = upload(device, c_.row_ptr);
        col_idx_ = upload(device, c_.col_idx);
    }

    std::int64_t products() const { return products_; }
    /// Of a row.
    std::int64_t most_products() const { return most_products_; }
    spgemm::ProductSource source() const
    {
        return {pattern(a_),
                pattern(b_),
                row_ptr_.data(),
                col_idx_.data(),
                a_.shard.nnz,
                b_.shard.nnz,
                static_cast<std::int64_t>(c_.col_idx.size()),
                products_};
    }
    /// Values of C by sum(alpha, values of A, of B, of C, stream).
    template <class Sum>
    std::vector<T> compute(const Sum& sum) const
    {
        const auto values = upload(device_, std::vector<T>(c_.col_idx.size(), std::numeric_limits<T>::quiet_NaN()));
        sum(alpha, a_.values.data(), b_.values.data(), values.data(),
            static_cast<cudaStream_t>(device_.context().stream));
        return download(device_, values.data(), c_.col_idx.size());
    }
    void expect(const std::vector<T>& values)
    {
        c_.values = values;
        expect_rows(c_, rows_, alpha);
    }

private:
    static spgemm::Pattern pattern(const DeviceCsr<T>& m)
    {
        return {m.shard.rows, m.shard.cols, spgemm::RowPtr(m.shard.row_ptr), m.shard.col_idx};
    }

    TestDevice& device_;
    std::vector<std::vector<Entry>> rows_;
    DeviceCsr<T> a_;
    DeviceCsr<T> b_;
    HostCsr<T> c_;
    std::int64_t products_ = 0;
    std::int64_t most_products_ = 0;
    DeviceArray<std::int64_t> row_ptr_;
    DeviceArray<std::int32_t> col_idx_;
};

}  // namespace rmsp::kernels::test
