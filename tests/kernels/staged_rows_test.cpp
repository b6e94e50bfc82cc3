#include <string>
#include <utility>

#include <kernels/spmv/csr_row_vector/policy.hpp>

#include "spmv_fixtures.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
class StagedRowsTest : public PrecisionTest<T> {
};
TYPED_TEST_SUITE(StagedRowsTest, Precisions);

/// Rows of which the last one ends at each place of a vector: 0 to 3 nonzeros behind a multiple of 4.
template <class T>
HostCsr<T> short_rows(std::int64_t rows, std::int64_t longest, std::int64_t last)
{
    Shape shape{"", 50'000, {}};
    for (std::int64_t row = 0; row + 1 < rows; ++row) {
        shape.lengths.push_back(row % 97 == 0 ? row % 3 : longest - row * 7 % (longest / 2 + 1));
    }
    shape.lengths.push_back(last);
    return make_matrix<T>(shape, 11);
}

/// Many short rows, which csr-row-vector sums out of shared memory, with one lane a row or several.
TYPED_TEST(StagedRowsTest, AgreeWithTheReference)
{
    using T = TypeParam;
    struct Case {
        std::int64_t rows, longest, last;
    };
    for (const auto& [rows, longest, last] :
         {Case{200'000, 32, 17}, Case{200'003, 27, 2}, Case{1'000'001, 7, 0}, Case{400'031, 16, 3}}) {
        SCOPED_TRACE(std::to_string(rows) + " rows of up to " + std::to_string(longest));
        const HostCsr<T> a = short_rows<T>(rows, longest, last);
        const RowStatistics lengths = statistics(a.row_ptr);
        ASSERT_TRUE(stages_rows(lengths));
        const std::vector<T> x = random_vector<T>(a.cols, 12);
        const std::vector<T> y = random_vector<T>(a.rows, 13);
        const Expected<T> expected = expect(a, T{-2.5}, x, T{0.75}, y);
        for (const std::size_t shift : {0, 1}) {
            for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
                SCOPED_TRACE("shift " + std::to_string(shift));
                const DeviceCsr<T> d(*this->device_, a, offsets, 0, a.rows, shift);
                const auto op = prepare_named("csr-row-vector", d.shard, lengths, this->device_->context());
                EXPECT_EQ(op->workspace_bytes() > 0, shift == 0) << "only aligned arrays are staged";
                const std::vector<T> whole = apply(*this->device_, *op, T{-2.5}, x, T{0.75}, y);
                expect_close(whole, expected);
                // Rows from anywhere, as all of them.
                const std::int64_t granule = op->row_granule();
                const std::int64_t first = 77'777 / granule * granule;
                const std::int64_t end = (a.rows - 1) / granule * granule;
                const DeviceArray<T> device_x = upload(*this->device_, x);
                const DeviceArray<T> device_y = upload(*this->device_, y);
                for (const auto& [begin, stop] :
                     {std::pair{std::int64_t{0}, first}, std::pair{first, end}, std::pair{end, a.rows},
                      std::pair{first, first}, std::pair{a.rows, a.rows}}) {
                    op->apply_rows(begin, stop, T{-2.5}, device_x.data(), T{0.75}, device_y.data(),
                                   this->device_->context());
                }
                EXPECT_TRUE(same_bits(whole, download(*this->device_, device_y.data(), y.size())));
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
