#include <cstring>

#include <gtest/gtest.h>
#include <kernels/spgemm/product_tiles.cuh>

#include "device_csr.hpp"
#include "spgemm_matrices.hpp"
#include "spgemm_reference.hpp"

namespace rmsp::kernels::test {
namespace {

using spgemm::Pattern;
using spgemm::ProductTiles;
using spgemm::RowPtr;
using spgemm::TilesJob;

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
    static Pattern pattern(const DeviceCsr<T>& m)
    {
        return {m.shard.rows, m.shard.cols, RowPtr(m.shard.row_ptr), m.shard.col_idx};
    }

    template <class T>
    bool check(const HostCsr<T>& a, const HostCsr<T>& b)
    {
        constexpr T alpha{3};
        const auto rows = expected_rows(a, b);
        HostCsr<T> c;
        c.rows = a.rows;
        c.cols = b.cols;
        c.row_ptr = {0};
        std::int64_t products = 0;
        for (const auto& row : rows) {
            for (const auto& entry : row) {
                c.col_idx.push_back(entry.column);
                products += entry.products;
            }
            c.row_ptr.push_back(static_cast<std::int64_t>(c.col_idx.size()));
        }
        if (products == 0) {
            return false;
        }
        const DeviceCsr<T> da(*device_, a, Offsets::i64);
        const DeviceCsr<T> db(*device_, b, Offsets::i32);
        const auto row_ptr = upload(*device_, c.row_ptr);
        const auto col_idx = upload(*device_, c.col_idx);
        const TilesJob job{pattern(da),
                           pattern(db),
                           row_ptr.data(),
                           col_idx.data(),
                           da.shard.nnz,
                           db.shard.nnz,
                           static_cast<std::int64_t>(c.col_idx.size()),
                           products};
        const auto compute = [&](ProductTiles& tiles) {
            const auto values = upload(*device_, std::vector<T>(c.col_idx.size(), std::numeric_limits<T>::quiet_NaN()));
            spgemm::sum_tiles(tiles, alpha, da.values.data(), db.values.data(), values.data(),
                              static_cast<cudaStream_t>(device_->context().stream));
            return download(*device_, values.data(), c.col_idx.size());
        };
        ProductTiles tiles = spgemm::make_tiles<T>(job, std::int64_t{1} << 32, device_->context());
        if (tiles.empty()) {
            std::int64_t longest = 0;
            for (std::size_t row = 0; row + 1 < b.row_ptr.size(); ++row) {
                longest = std::max(longest, b.row_ptr[row + 1] - b.row_ptr[row]);
            }
            EXPECT_GT(longest, 4000) << "tiles for want of which row?";
            return false;
        }
        c.values = compute(tiles);
        expect_rows(c, rows, alpha);
        EXPECT_EQ(std::memcmp(c.values.data(), compute(tiles).data(), c.values.size() * sizeof(T)), 0)
            << "again, other bits";
        ProductTiles anew = spgemm::make_tiles<T>(job, std::int64_t{1} << 32, device_->context());
        EXPECT_EQ(std::memcmp(c.values.data(), compute(anew).data(), c.values.size() * sizeof(T)), 0)
            << "of tiles made anew, other bits";
        EXPECT_TRUE(spgemm::make_tiles<T>(job, 100, device_->context()).empty()) << "of more bytes than there are";
        return tiles.parts.tiles.size() > 0;
    }
};

TEST_F(ProductTilesTest, SumsOfDoublesAreThoseOfAPlainProgram) { EXPECT_GE(check_all<double>(), 8); }
TEST_F(ProductTilesTest, SumsOfFloatsAreThoseOfAPlainProgram) { EXPECT_GE(check_all<float>(), 8); }

}  // namespace
}  // namespace rmsp::kernels::test
