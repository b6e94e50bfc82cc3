#include <string>
#include <utility>

#include <kernels/spmv/policy.hpp>

#include "spmv_fixtures.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
class RowVector : public PrecisionTest<T> {
};
TYPED_TEST_SUITE(RowVector, Precisions);

/// Rows of 8 to 32 entries, so many that those of doubles are summed out of shared memory.
TYPED_TEST(RowVector, StagesManyShortRows)
{
    using T = TypeParam;
    for (const std::int64_t rows : {200'000, 200'003}) {
        Shape shape{"", 50'000, {}};
        for (std::int64_t row = 0; row < rows; ++row) {
            shape.lengths.push_back(row % 97 == 0 ? row % 3 : 16 + row * 7 % 17);
        }
        HostCsr<T> a = make_matrix<T>(shape, 11);
        const RowStatistics lengths = statistics(a.row_ptr);
        ASSERT_EQ(stages_rows(lengths, sizeof(T)), sizeof(T) == sizeof(double));
        const std::vector<T> x = random_vector<T>(a.cols, 12);
        const std::vector<T> y = random_vector<T>(a.rows, 13);
        const Expected<T> expected = expect(a, T{-2.5}, x, T{0.75}, y);
        for (const std::size_t shift : {0, 1}) {
            for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
                SCOPED_TRACE(std::to_string(rows) + " rows, shift " + std::to_string(shift));
                const DeviceCsr<T> d(*this->device_, a, offsets, 0, a.rows, shift);
                const auto op = prepare_row_vector(d.shard, lengths, this->device_->context());
                const std::vector<T> whole = apply(*this->device_, *op, T{-2.5}, x, T{0.75}, y);
                expect_close(whole, expected);
                // Rows from anywhere, as all of them.
                const DeviceArray<T> device_x = upload(*this->device_, x);
                const DeviceArray<T> device_y = upload(*this->device_, y);
                for (const auto& [first, end] :
                     {std::pair{std::int64_t{0}, std::int64_t{77'777}}, std::pair{std::int64_t{77'777}, a.rows - 1},
                      std::pair{a.rows - 1, a.rows}}) {
                    op->apply_rows(first, end, T{-2.5}, device_x.data(), T{0.75}, device_y.data(),
                                   this->device_->context());
                }
                EXPECT_TRUE(same_bits(whole, download(*this->device_, device_y.data(), y.size())));
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
