#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <kernels/spgemm/placed_rows.cuh>

#include "repeated_products.hpp"

namespace rmsp::kernels::test {
namespace {

using spgemm::PlacedRows;

/// Rows whose products know their places, as they are, whether or not they are faster than what else there is.
class PlacedRowsTest : public DeviceTest<> {
protected:
    /// Which ways there were among all pairs: how many threads took a row.
    template <class T>
    std::set<int> check_all()
    {
        std::set<int> lanes;
        std::vector<Pair<T>> all = pairs<T>();
        const HostCsr<T> diagonal = band<T>(1000, 1000, 1, 0);
        all.push_back({"diagonal", diagonal, diagonal});
        for (const std::int64_t half : {1, 2, 3, 7, 40, 90}) {
            const HostCsr<T> own = band<T>(700, 700, 1, half);
            all.push_back({"band of " + std::to_string(2 * half + 1), own, own});
        }
        // Few rows of B have more than a row's threads take at once.
        std::vector<std::int64_t> of_b(600, 3);
        of_b[17] = 300;
        all.push_back({"a long row of B", matrix<T>(600, std::vector<std::int64_t>(900, 7), 1),
                       sorted_unique(matrix<T>(9000, of_b, 2))});
        all.push_back({"rows of C of thousands", matrix<T>(600, {600, 2, 0, 300, 500}, 1),
                       sorted_unique(matrix<T>(3900, std::vector<std::int64_t>(600, 6), 2))});
        for (const Pair<T>& pair : all) {
            SCOPED_TRACE(pair.name);
            lanes.insert(check(pair.a, pair.b));
            lanes.insert(check(pair.a, sorted_unique(pair.b)));
        }
        return lanes;
    }

    int in_parts_ = 0;  ///< pairs of which rows were cut into parts

private:
    static constexpr std::int64_t room = std::int64_t{1} << 32;

    template <class T>
    PlacedRows place(const RepeatedProducts<T>& product, std::int64_t bytes = room)
    {
        return spgemm::place_rows<T>(product.source(), bytes, device_->context());
    }

    /// \return how many threads took a row; 0: there were no places
    template <class T>
    int check(const HostCsr<T>& a, const HostCsr<T>& b)
    {
        RepeatedProducts<T> product(*device_, a, b);
        if (product.products() == 0) {
            return 0;
        }
        const auto compute = [&](PlacedRows& placed) {
            return product.compute([&](T alpha, const T* of_a, const T* of_b, T* of_c, cudaStream_t stream) {
                spgemm::sum_placed(placed, product.source(), alpha, of_a, of_b, of_c, stream);
            });
        };
        PlacedRows placed = place(product);
        if (placed.empty()) {
            EXPECT_TRUE(!rises(a, b) || product.most_products() > 4096) << "no places for want of which row?";
            return 0;
        }
        EXPECT_TRUE(rises(a, b));
        const std::vector<T> values = compute(placed);
        product.expect(values);
        EXPECT_TRUE(same_bits(values, compute(placed))) << "again, other bits";
        PlacedRows anew = place(product);
        EXPECT_TRUE(same_bits(values, compute(anew))) << "of places found anew, other bits";
        EXPECT_TRUE(place(product, 100).empty()) << "of more bytes than there are";
        in_parts_ += placed.heavy.empty() ? 0 : 1;
        return placed.words.size() > 0 ? 1 : placed.lanes;
    }

    /// Whether columns do, of rows of B that are multiplied.
    template <class T>
    static bool rises(const HostCsr<T>& a, const HostCsr<T>& b)
    {
        return std::all_of(a.col_idx.begin(), a.col_idx.end(), [&](std::int32_t row) {
            const auto begin = b.col_idx.begin() + b.row_ptr[static_cast<std::size_t>(row)];
            const auto end = b.col_idx.begin() + b.row_ptr[static_cast<std::size_t>(row) + 1];
            return std::adjacent_find(begin, end, std::greater_equal<>()) == end;
        });
    }
};

TEST_F(PlacedRowsTest, SumsOfDoublesAreThoseOfAPlainProgram)
{
    EXPECT_EQ(check_all<double>(), (std::set{0, 1, 4, 8, 16, 32}));
    EXPECT_GE(in_parts_, 8);
}
TEST_F(PlacedRowsTest, SumsOfFloatsAreThoseOfAPlainProgram)
{
    EXPECT_EQ(check_all<float>(), (std::set{0, 1, 4, 8, 16, 32}));
    EXPECT_GE(in_parts_, 8);
}

}  // namespace
}  // namespace rmsp::kernels::test
