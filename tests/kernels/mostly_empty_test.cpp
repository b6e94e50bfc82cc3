#include <cstdint>
#include <limits>
#include <vector>

#include <kernels/spmv/csr_nnz_split/tiles.hpp>

#include "spmv_fixtures.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
class MostlyEmptyTest : public PrecisionTest<T> {
};
TYPED_TEST_SUITE(MostlyEmptyTest, Precisions);

/// So many rows without nonzeros that csr-nnz-split fills y with zeros first, if beta is 0.
TYPED_TEST(MostlyEmptyTest, AgreeWithTheReference)
{
    using T = TypeParam;
    const std::int64_t rows = split_tuning.least_rows_to_fill * 5 / 4 + 3;
    Shape shape{"mostly empty", 300'000, std::vector<std::int64_t>(static_cast<std::size_t>(rows))};
    for (std::int64_t row = 2; row < rows; row += 9) {
        shape.lengths[static_cast<std::size_t>(row)] = row % 10'007 == 2 ? 1500 : 1 + row % 4;
    }
    const HostCsr<T> a = make_matrix<T>(shape, 11);
    const std::vector<T> x = random_vector<T>(a.cols, 12);
    const std::vector<T> before(static_cast<std::size_t>(a.rows), std::numeric_limits<T>::quiet_NaN());
    const std::vector<T> y = random_vector<T>(a.rows, 13);
    const Expected<T> expected = expect(a, T{-2.5}, x, T{0}, y);
    const DeviceCsr<T> d(*this->device_, a, Offsets::i32, 0, a.rows, 0);
    const auto op = prepare_named("csr-nnz-split", d.shard, statistics(a.row_ptr), this->device_->context());
    for (int again = 0; again < 3; ++again) {
        expect_close(apply(*this->device_, *op, T{-2.5}, x, T{0}, before), expected);
    }
    expect_close(apply(*this->device_, *op, T{-2.5}, x, T{0.75}, y), expect(a, T{-2.5}, x, T{0.75}, y));
}

}  // namespace
}  // namespace rmsp::kernels::test
