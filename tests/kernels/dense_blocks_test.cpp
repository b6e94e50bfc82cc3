#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/dense_blocks/dense_blocks.hpp>

#include "device_csr.hpp"
#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
class DenseBlockProducts : public DeviceTest<> {
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(DenseBlockProducts, Reals);

TYPED_TEST(DenseBlockProducts, OfAllSizes)
{
    using T = TypeParam;
    load_dense_blocks(this->device_->context());
    for (const int size : {1, 2, 3, 4, 7, 8, 16, 31, 32}) {
        for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{1}, std::int64_t{size}, std::int64_t{size + 1},
                                        std::int64_t{255}, std::int64_t{257}, std::int64_t{10007}}) {
            const std::int64_t count = (rows + size - 1) / size;
            std::vector<T> blocks = random_vector<T>(count * size * size, 1);
            if (rows % size != 0) {
                blocks.back() = std::numeric_limits<T>::quiet_NaN();  // beyond the rows
            }
            const std::vector<T> r = random_vector<T>(rows, 2);
            const DeviceArray<T> there = upload(*this->device_, blocks);
            const DeviceArray<T> right = upload(*this->device_, r);
            const DeviceArray<T> z = upload(*this->device_, std::vector<T>(static_cast<std::size_t>(rows) + 1, T{7}));
            multiply_blocks(static_cast<const T*>(there.data()), size, rows, static_cast<const T*>(right.data()),
                            z.data(), nullptr, this->device_->context());
            const std::vector<T> got = download(*this->device_, z.data(), static_cast<std::size_t>(rows) + 1);
            EXPECT_EQ(got.back(), T{7});
            for (std::int64_t row = 0; row < rows; ++row) {
                const std::int64_t first = row / size * size;
                double sum = 0;
                double magnitude = 0;
                for (std::int64_t k = first; k < std::min(rows, first + size); ++k) {
                    const double term =
                        static_cast<double>(
                            blocks[static_cast<std::size_t>(first * size + (k - first) * size + row - first)]) *
                        static_cast<double>(r[static_cast<std::size_t>(k)]);
                    sum += term;
                    magnitude += std::fabs(term);
                }
                ASSERT_NEAR(got[static_cast<std::size_t>(row)], sum,
                            (size + 4) * std::numeric_limits<T>::epsilon() * magnitude)
                    << size << " " << row;
            }
        }
    }
}

TYPED_TEST(DenseBlockProducts, SkipWhereTheDeviceSaysSo)
{
    using T = TypeParam;
    const DeviceArray<T> blocks = upload(*this->device_, std::vector<T>{1, 2, 3, 4});
    const DeviceArray<T> r = upload(*this->device_, std::vector<T>{10, 100});
    const DeviceArray<T> z = upload(*this->device_, std::vector<T>{0, 0});
    for (const int stop : {2, 0}) {
        const DeviceArray<double> skip = upload(*this->device_, std::vector<double>{stop * 1.0});
        multiply_blocks(static_cast<const T*>(blocks.data()), 2, 2, static_cast<const T*>(r.data()), z.data(),
                        skip.data(), this->device_->context());
        EXPECT_EQ(download(*this->device_, z.data(), 2),
                  stop != 0 ? (std::vector<T>{0, 0}) : (std::vector<T>{310, 420}));
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
