#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/diagonal/diagonal.hpp>

#include "device_csr.hpp"
#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
class Diagonal : public DeviceTest<> {
protected:
    /// Quarters, whose sums do not round.
    static void make_exact(HostCsr<T>& a)
    {
        for (T& v : a.values) {
            v = static_cast<T>(static_cast<int>(8 * v)) / 4;
        }
    }
    /// Of rows [0, rows) in columns base, base + 1, ...
    static std::vector<T> expected(const HostCsr<T>& a, std::int64_t base)
    {
        std::vector<T> out(static_cast<std::size_t>(a.rows), T{0});
        for (std::size_t row = 0; row < out.size(); ++row) {
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                if (a.col_idx[static_cast<std::size_t>(k)] == base + static_cast<std::int64_t>(row)) {
                    out[row] += a.values[static_cast<std::size_t>(k)];
                }
            }
        }
        return out;
    }
    DeviceArray<T> output(std::int64_t rows, T value)
    {
        return upload(*device_, std::vector<T>(static_cast<std::size_t>(rows) + 1, value));
    }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Diagonal, Reals);

/// Few columns, so that many entries are on the diagonal, some repeatedly.
std::vector<Shape> diagonal_shapes()
{
    std::vector<Shape> all{{"none", 5, {}}, {"one", 1, {3}}, {"empty", 4, {0, 0, 0}}, {"long", 3, {5000, 1, 0, 70}}};
    for (const int rows : {7, 8, 9, 255, 256, 257, 3000}) {
        Shape shape{"many", 20, {}};
        for (int row = 0; row < rows; ++row) {
            shape.lengths.push_back(row * 7 % 23);
        }
        all.push_back(shape);
    }
    return all;
}

TYPED_TEST(Diagonal, OfRows)
{
    using T = TypeParam;
    for (const Shape& shape : diagonal_shapes()) {
        HostCsr<T> a = make_matrix<T>(shape, 3);
        this->make_exact(a);
        for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
            DeviceCsr<T> there(*this->device_, a, offsets);
            for (const std::int64_t base :
                 {std::int64_t{0}, std::int64_t{3}, std::int64_t{-5}, std::int64_t{1} << 40}) {
                there.shard.diagonal = base;
                const DeviceArray<T> out = this->output(a.rows, T{77});
                csr_diagonal(there.shard, out.data(), this->device_->context());
                std::vector<T> expected = this->expected(a, base);
                expected.push_back(T{77});
                EXPECT_EQ(download(*this->device_, out.data(), expected.size()), expected) << shape.name;
            }
        }
    }
}

TYPED_TEST(Diagonal, NormsOfRows)
{
    using T = TypeParam;
    for (const Shape& shape : diagonal_shapes()) {
        HostCsr<T> a = make_matrix<T>(shape, 3);
        this->make_exact(a);
        for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
            DeviceCsr<T> there(*this->device_, a, offsets);
            for (const std::int64_t base : {0, 3, -5}) {
                there.shard.diagonal = base;
                const DeviceArray<T> out = this->output(a.rows, T{77});
                csr_row_norms(there.shard, out.data(), this->device_->context());
                std::vector<T> expected = this->expected(a, base);
                for (std::size_t row = 0; row < expected.size(); ++row) {
                    T sum = 0;
                    for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                        sum += std::abs(a.values[static_cast<std::size_t>(k)]);
                    }
                    expected[row] = expected[row] < 0 ? -sum : sum;
                }
                expected.push_back(T{77});
                EXPECT_EQ(download(*this->device_, out.data(), expected.size()), expected) << shape.name;
            }
        }
    }
}

TYPED_TEST(Diagonal, OfCoordinates)
{
    using T = TypeParam;
    for (const Shape& shape : diagonal_shapes()) {
        HostCsr<T> a = make_matrix<T>(shape, 4);
        this->make_exact(a);
        for (const std::int32_t first : {0, 11}) {
            std::vector<std::int32_t> rows;
            std::vector<std::int32_t> columns;
            for (std::int64_t row = 0; row < a.rows; ++row) {
                for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(row)];
                     k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
                    rows.push_back(first + static_cast<std::int32_t>(row));
                    columns.push_back(first + a.col_idx[static_cast<std::size_t>(k)]);
                }
            }
            std::vector<T> values = a.values;
            for (const bool sorted : {true, false}) {
                std::vector<T> expected = this->expected(a, 0);
                if (!sorted) {
                    std::reverse(rows.begin(), rows.end());
                    std::reverse(columns.begin(), columns.end());
                    std::reverse(values.begin(), values.end());
                }
                expected.push_back(sorted ? T{77} : T{0});
                const DeviceArray<std::int32_t> row_idx = upload(*this->device_, rows);
                const DeviceArray<std::int32_t> col_idx = upload(*this->device_, columns);
                const DeviceArray<T> there = upload(*this->device_, values);
                const DeviceArray<T> out = this->output(a.rows, expected.back());
                coo_diagonal(row_idx.data(), col_idx.data(), static_cast<const T*>(there.data()), a.nnz(),
                             std::int64_t{first}, a.rows, sorted, out.data(), this->device_->context());
                EXPECT_EQ(download(*this->device_, out.data(), expected.size()), expected) << shape.name;
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
