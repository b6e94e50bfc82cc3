#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <core/subscript.hpp>
#include <kernels/steps/triangular/triangular.hpp>

#include "device_csr.hpp"
#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

using core::at;

/// A triangle by levels on the host. Row r waits for rows that `needs` names, all before it.
template <class T>
struct HostTriangle {
    HostTriangle(const std::vector<std::vector<std::int32_t>>& needs, bool unit, std::uint64_t seed)
    {
        const auto n = static_cast<std::int64_t>(needs.size());
        std::vector<std::int64_t> level(needs.size(), 0);
        std::int64_t most = n > 0 ? 1 : 0;
        for (std::size_t r = 0; r < needs.size(); ++r) {
            for (const std::int32_t c : needs[r]) {
                level[r] = std::max(level[r], level[at(c)] + 1);
            }
            most = std::max(most, level[r] + 1);
        }
        levels.push_back(0);
        for (std::int64_t l = 0; l < most; ++l) {
            for (std::int64_t r = 0; r < n; ++r) {
                if (level[at(r)] == l) {
                    rows.push_back(static_cast<std::int32_t>(r));
                    col_idx.insert(col_idx.end(), needs[at(r)].begin(), needs[at(r)].end());
                    row_ptr.push_back(static_cast<std::int64_t>(col_idx.size()));
                }
            }
            levels.push_back(static_cast<std::int64_t>(rows.size()));
        }
        values = random_vector<T>(static_cast<std::int64_t>(col_idx.size()), seed);
        for (std::size_t p = 0; p < rows.size(); ++p) {
            // Rows of ones at most, so that solutions do not grow.
            for (std::int64_t k = row_ptr[p]; k < row_ptr[p + 1]; ++k) {
                values[at(k)] /= static_cast<T>(row_ptr[p + 1] - row_ptr[p]);
            }
        }
        if (!unit) {
            inverse_diagonal = random_vector<T>(n, seed + 1);
        }
    }

    std::vector<T> solve(std::vector<T> b) const
    {
        for (std::size_t p = 0; p < rows.size(); ++p) {
            T rest = b[at(rows[p])];
            for (std::int64_t k = row_ptr[p]; k < row_ptr[p + 1]; ++k) {
                rest -= values[at(k)] * b[at(col_idx[at(k)])];
            }
            b[at(rows[p])] = inverse_diagonal.empty() ? rest : rest * inverse_diagonal[p];
        }
        return b;
    }

    std::vector<std::int32_t> rows;
    std::vector<std::int64_t> row_ptr{0};
    std::vector<std::int32_t> col_idx;
    std::vector<T> values;
    std::vector<T> inverse_diagonal;
    std::vector<std::int64_t> levels;
};

template <class T>
struct DeviceTriangle {
    DeviceTriangle(TestDevice& device, const HostTriangle<T>& t)
        : rows(upload(device, t.rows)),
          row_ptr(upload(device, t.row_ptr)),
          col_idx(upload(device, t.col_idx)),
          values(upload(device, t.values)),
          inverse_diagonal(upload(device, t.inverse_diagonal)),
          levels(upload(device, t.levels)),
          shard{static_cast<std::int64_t>(t.rows.size()),
                static_cast<std::int64_t>(t.values.size()),
                rows.data(),
                row_ptr.data(),
                col_idx.data(),
                values.data(),
                inverse_diagonal.data(),
                levels.data(),
                static_cast<std::int64_t>(t.levels.size()) - 1}
    {
    }
    DeviceArray<std::int32_t> rows;
    DeviceArray<std::int64_t> row_ptr;
    DeviceArray<std::int32_t> col_idx;
    DeviceArray<T> values;
    DeviceArray<T> inverse_diagonal;
    DeviceArray<std::int64_t> levels;
    TriangleShard<T> shard;
};

template <class T>
class Triangular : public DeviceTest<> {
protected:
    DeviceArray<char> workspace(std::int64_t rows)
    {
        return upload(*device_, std::vector<char>(at(solve_workspace_bytes<T>(rows)), 0));
    }

    void expect_solves(const std::vector<std::vector<std::int32_t>>& needs)
    {
        const auto n = static_cast<std::int64_t>(needs.size());
        const DeviceArray<char> space = workspace(n);
        const double eps = std::numeric_limits<T>::epsilon();
        for (const bool unit : {false, true}) {
            const HostTriangle<T> host(needs, unit, 7);
            const DeviceTriangle<T> triangle(*device_, host);
            const std::vector<T> b = random_vector<T>(n, 8);
            const DeviceArray<T> right = upload(*device_, b);
            const DeviceArray<T> x = upload(*device_, std::vector<T>(at(n), std::numeric_limits<T>::quiet_NaN()));
            solve_levels<T>(triangle.shard, right.data(), x.data(), space.data(), nullptr);
            const std::vector<T> got = download(*device_, x.data(), at(n));
            const std::vector<T> expected = host.solve(b);
            for (std::size_t i = 0; i < at(n); ++i) {
                ASSERT_NEAR(got[i], expected[i], 200 * eps * (1 + std::fabs(expected[i]))) << "row " << i;
            }
            EXPECT_TRUE(same_bits(download(*device_, right.data(), at(n)), b));
            // The same bits each time, in place, and behind each other.
            solve_levels<T>(triangle.shard, right.data(), x.data(), space.data(), nullptr);
            EXPECT_TRUE(same_bits(download(*device_, x.data(), at(n)), got));
            solve_levels<T>(triangle.shard, right.data(), right.data(), space.data(), nullptr);
            EXPECT_TRUE(same_bits(download(*device_, right.data(), at(n)), got));
            solve_levels<T>(triangle.shard, right.data(), x.data(), space.data(), nullptr);
            solve_levels<T>(triangle.shard, x.data(), x.data(), space.data(), nullptr);
            const std::vector<T> thrice = download(*device_, x.data(), at(n));
            const std::vector<T> expected_thrice = host.solve(host.solve(got));
            for (std::size_t i = 0; i < at(n); ++i) {
                ASSERT_NEAR(thrice[i], expected_thrice[i], 600 * eps * (1 + std::fabs(expected_thrice[i]))) << i;
            }
        }
    }

    template <class U>
    void solve_levels(const TriangleShard<U>& triangle, const U* b, U* x, void* space, const double* skip)
    {
        kernels::solve_levels(triangle, b, x, space, skip, device_->context());
    }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Triangular, Reals);

TYPED_TEST(Triangular, Sizes)
{
    // Around a warp's and a block's rows: no row waits, and each waits for the one before it.
    for (const int n : {0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000}) {
        std::vector<std::vector<std::int32_t>> needs(at(n));
        this->expect_solves(needs);
        for (std::int32_t r = 1; r < n; ++r) {
            needs[at(r)] = {r - 1};
        }
        this->expect_solves(needs);
    }
}

TYPED_TEST(Triangular, RandomRowsOfAllLengths)
{
    for (const int longest : {1, 3, 6, 12, 25, 90}) {
        std::mt19937_64 random(at(longest));
        std::vector<std::vector<std::int32_t>> needs(3000);
        for (std::size_t r = 1; r < needs.size(); ++r) {
            const std::size_t length = random() % (at(longest) + 1);
            for (std::size_t k = 0; k < std::min(length, r); ++k) {
                // Rows close by and rows far off.
                needs[r].push_back(static_cast<std::int32_t>(
                    k % 2 == 0 ? random() % r : r - 1 - random() % std::min(r, std::size_t{9})));
            }
            std::sort(needs[r].begin(), needs[r].end());
            needs[r].erase(std::unique(needs[r].begin(), needs[r].end()), needs[r].end());
        }
        this->expect_solves(needs);
    }
}

TYPED_TEST(Triangular, FewWideLevels)
{
    // 20 levels of 700 rows, each row of which waits for the same rows of the level before.
    std::vector<std::vector<std::int32_t>> needs(20 * 700);
    for (std::int32_t r = 700; r < static_cast<std::int32_t>(needs.size()); ++r) {
        for (std::int32_t k = 0; k < 5; ++k) {
            needs[at(r)].push_back(r / 700 * 700 - 700 + 31 * k);
        }
    }
    this->expect_solves(needs);
}

TYPED_TEST(Triangular, LongRowAtTheEnd)
{
    std::vector<std::vector<std::int32_t>> needs(20001);
    for (std::int32_t r = 0; r < 20000; ++r) {
        needs[20000].push_back(r);
    }
    this->expect_solves(needs);
}

TYPED_TEST(Triangular, NotANumberReachesTheRowsThatNeedIt)
{
    using T = TypeParam;
    std::vector<std::vector<std::int32_t>> needs(100);
    for (std::int32_t r = 50; r < 100; ++r) {
        needs[at(r)] = {r - 50};
    }
    const HostTriangle<T> host(needs, true, 1);
    const DeviceTriangle<T> triangle(*this->device_, host);
    std::vector<T> b(100, T{1});
    b[3] = std::numeric_limits<T>::quiet_NaN();
    b[4] = std::numeric_limits<T>::infinity();
    const DeviceArray<T> x = upload(*this->device_, b);
    const DeviceArray<char> space = this->workspace(100);
    for (int i = 0; i < 2; ++i) {
        kernels::solve_levels(triangle.shard, static_cast<const T*>(x.data()), x.data(), space.data(), nullptr,
                              this->device_->context());
    }
    const std::vector<T> got = download(*this->device_, x.data(), 100);
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_EQ(std::isfinite(got[i]), i % 50 != 3 && i % 50 != 4) << i;
    }
}

TYPED_TEST(Triangular, SkipsWhereTheDeviceSaysSo)
{
    using T = TypeParam;
    const HostTriangle<T> host(std::vector<std::vector<std::int32_t>>{{}, {0}, {0, 1}}, false, 2);
    const DeviceTriangle<T> triangle(*this->device_, host);
    const std::vector<T> b{1, 2, 3};
    const DeviceArray<T> right = upload(*this->device_, b);
    const DeviceArray<T> x = upload(*this->device_, std::vector<T>(3, T{9}));
    const DeviceArray<char> space = this->workspace(3);
    for (const int stop : {1, 0, -1, 0}) {
        const DeviceArray<double> skip = upload(*this->device_, std::vector<double>{stop * 1.0});
        this->device_->copy_in(x.data(), std::vector<T>(3, T{9}).data(), 3 * sizeof(T));
        kernels::solve_levels(triangle.shard, static_cast<const T*>(right.data()), x.data(), space.data(), skip.data(),
                              this->device_->context());
        const std::vector<T> got = download(*this->device_, x.data(), 3);
        const std::vector<T> expected = stop != 0 ? std::vector<T>(3, T{9}) : host.solve(b);
        for (std::size_t i = 0; i < 3; ++i) {
            EXPECT_NEAR(got[i], expected[i], 10 * std::numeric_limits<T>::epsilon() * std::fabs(expected[i]));
        }
    }
}

TYPED_TEST(Triangular, SolvesOfTwoTrianglesShareAWorkspace)
{
    using T = TypeParam;
    std::vector<std::vector<std::int32_t>> chain(500);
    std::vector<std::vector<std::int32_t>> wide(500);
    for (std::int32_t r = 1; r < 500; ++r) {
        chain[at(r)] = {r - 1};
        for (std::int32_t k = 0; k < std::min(r, 20); ++k) {
            wide[at(r)].push_back(k);
        }
    }
    const HostTriangle<T> first(chain, true, 3);
    const HostTriangle<T> second(wide, false, 4);
    const DeviceTriangle<T> first_there(*this->device_, first);
    const DeviceTriangle<T> second_there(*this->device_, second);
    const DeviceArray<char> space = this->workspace(500);
    std::vector<T> expected = random_vector<T>(500, 5);
    const DeviceArray<T> x = upload(*this->device_, expected);
    load_triangular(this->device_->context());
    for (int i = 0; i < 3; ++i) {
        for (const auto* shard : {&first_there.shard, &second_there.shard}) {
            kernels::solve_levels(*shard, static_cast<const T*>(x.data()), x.data(), space.data(), nullptr,
                                  this->device_->context());
        }
        expected = second.solve(first.solve(expected));
    }
    const std::vector<T> got = download(*this->device_, x.data(), 500);
    for (std::size_t i = 0; i < 500; ++i) {
        ASSERT_NEAR(got[i], expected[i], 2000 * std::numeric_limits<T>::epsilon() * (1 + std::fabs(expected[i]))) << i;
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
