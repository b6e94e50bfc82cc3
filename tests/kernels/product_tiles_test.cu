#include <gtest/gtest.h>
#include <kernels/spgemm/product_tiles.cuh>

#include "repeated_products.hpp"

namespace rmsp::kernels::test {
namespace {

using spgemm::ProductTiles;

/// Tiles as they are, whether or not they are faster than what else there is.
class ProductTilesTest : public DeviceTest<> {
protected:
    /// Of every pair; \return in how many there are parts of rows.
    template <class T>
    int check_all()
    {
        int in_parts = 0;
        std::vector<Pair<T>> all = pairs<T>();
        all.push_back({"dense", matrix<T>(120, std::vector<std::int64_t>(120, 120), 1),
                       matrix<T>(120, std::vector<std::int64_t>(120, 120), 2)});
        for (const Pair<T>& pair : all) {
            SCOPED_TRACE(pair.name);
            in_parts += check(pair.a, pair.b) ? 1 : 0;
        }
        return in_parts;
    }

private:
    template <class T>
    bool check(const HostCsr<T>& a, const HostCsr<T>& b)
    {
        constexpr std::int64_t room = std::int64_t{1} << 32;
        RepeatedProducts<T> product(*device_, a, b);
        if (product.products() == 0) {
            return false;
        }
        const auto compute = [&](ProductTiles& tiles) {
            return product.compute([&](auto... arguments) { spgemm::sum_tiles(tiles, arguments...); });
        };
        ProductTiles tiles = spgemm::make_tiles<T>(product.source(), room, device_->context());
        if (tiles.empty()) {
            std::int64_t longest = 0;
            for (std::size_t row = 0; row + 1 < b.row_ptr.size(); ++row) {
                longest = std::max(longest, b.row_ptr[row + 1] - b.row_ptr[row]);
            }
            EXPECT_GT(longest, 4000) << "tiles for want of which row?";
            return false;
        }
        const std::vector<T> values = compute(tiles);
        product.expect(values);
        EXPECT_TRUE(same_bits(values, compute(tiles))) << "again, other bits";
        ProductTiles anew = spgemm::make_tiles<T>(product.source(), room, device_->context());
        EXPECT_TRUE(same_bits(values, compute(anew))) << "of tiles made anew, other bits";
        EXPECT_TRUE(spgemm::make_tiles<T>(product.source(), 100, device_->context()).empty())
            << "of more bytes than there are";
        return tiles.parts.tiles.size() > 0;
    }
};

TEST_F(ProductTilesTest, SumsOfDoublesAreThoseOfAPlainProgram) { EXPECT_GE(check_all<double>(), 8); }
TEST_F(ProductTilesTest, SumsOfFloatsAreThoseOfAPlainProgram) { EXPECT_GE(check_all<float>(), 8); }

}  // namespace
}  // namespace rmsp::kernels::test
