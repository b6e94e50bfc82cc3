#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/spgemm/products.cuh>

#include "device_csr.hpp"

namespace rmsp::kernels::test {
namespace {

using spgemm::ListedProducts;
using spgemm::PackedList;

/// Lists as they are, whether or not they are faster than what else there is.
class ProductListTest : public DeviceTest<> {
protected:
    /// Entries of C with so many products each, of factors with so many entries.
    struct Case {
        const char* name;
        std::vector<std::uint32_t> products;
        std::int32_t a_entries;
        std::int32_t b_entries;
    };

    static std::vector<Case> cases()
    {
        std::vector<std::uint32_t> some(5000);
        for (std::size_t i = 0; i < some.size(); ++i) {
            some[i] = static_cast<std::uint32_t>(1 + i * i % 7);
        }
        std::vector<std::uint32_t> long_ones = some;
        for (const std::size_t i : {0, 1, 2047, 2048, 3000, 4999}) {
            long_ones[i] = static_cast<std::uint32_t>(100 + i);
        }
        return {{"one", {1}, 1, 1},
                {"one each", std::vector<std::uint32_t>(2049, 1), 300, 300},
                {"some", some, 2000, 3000},
                {"some, far apart", some, 1 << 21, 1 << 21},
                {"long ones", long_ones, 2000, 3000},
                {"long ones, far apart", long_ones, 1 << 21, 1 << 21}};
    }

    template <class T>
    void check_all()
    {
        for (const Case& one : cases()) {
            SCOPED_TRACE(one.name);
            check<T>(one);
        }
    }

private:
    template <class T>
    void check(const Case& of)
    {
        constexpr T alpha{3};
        std::mt19937 random(1);
        const auto values = [&](std::int32_t n) {
            std::vector<T> out(static_cast<std::size_t>(n));
            for (T& value : out) {
                value = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
            }
            return out;
        };
        const std::vector<T> a = values(of.a_entries);
        const std::vector<T> b = values(of.b_entries);
        std::vector<std::uint32_t> offsets{0};
        std::vector<spgemm::ProductRef> products;
        std::vector<double> sums;
        std::vector<double> sizes;
        for (const std::uint32_t count : of.products) {
            double& sum = sums.emplace_back(0);
            double& size = sizes.emplace_back(0);
            for (std::uint32_t i = 0; i < count; ++i) {
                const auto& ref = products.emplace_back(
                    spgemm::ProductRef{static_cast<std::int32_t>(random() % static_cast<unsigned>(of.a_entries)),
                                       static_cast<std::int32_t>(random() % static_cast<unsigned>(of.b_entries))});
                const double product = static_cast<double>(a[static_cast<std::size_t>(ref.a)]) *
                                       static_cast<double>(b[static_cast<std::size_t>(ref.b)]);
                sum += product;
                size += std::abs(product);
            }
            offsets.push_back(static_cast<std::uint32_t>(products.size()));
        }
        const auto entries = static_cast<std::int64_t>(of.products.size());
        const auto da = upload(*device_, a);
        const auto db = upload(*device_, b);
        const ListedProducts listed{upload(*device_, offsets), upload(*device_, products)};
        auto* const stream = static_cast<cudaStream_t>(device_->context().stream);
        const auto expect_sums = [&](const auto& add) {
            const auto compute = [&] {
                const auto to = upload(*device_, std::vector<T>(sums.size(), std::numeric_limits<T>::quiet_NaN()));
                add(to.data());
                return download(*device_, to.data(), sums.size());
            };
            const std::vector<T> c = compute();
            for (std::size_t i = 0; i < sums.size(); ++i) {
                ASSERT_LE(std::abs(static_cast<double>(c[i]) - alpha * sums[i]),
                          (of.products[i] + 4) * std::numeric_limits<T>::epsilon() * alpha * sizes[i])
                    << "entry " << i;
            }
            EXPECT_EQ(std::memcmp(c.data(), compute().data(), c.size() * sizeof(T)), 0) << "again, other bits";
        };
        for (const int lanes : {1, 2, 4, 8, 16, 32}) {
            SCOPED_TRACE(testing::Message() << lanes << " threads an entry");
            expect_sums(
                [&](T* to) { spgemm::sum_entries(listed, entries, lanes, alpha, da.data(), db.data(), to, stream); });
        }
        constexpr std::int64_t all = std::int64_t{1} << 32;
        const PackedList packed = spgemm::pack_products(listed, entries, all, device_->context());
        ASSERT_GT(packed.words.size(), 0U);
        const auto bytes = static_cast<std::int64_t>(packed.bytes());
        EXPECT_EQ(spgemm::pack_products(listed, entries, bytes - 1, device_->context()).words.size(), 0U)
            << "more bytes than there are";
        expect_sums(
            [&](T* to) { spgemm::sum_products(packed.packed(), entries, 4, alpha, da.data(), db.data(), to, stream); });
    }
};

TEST_F(ProductListTest, SumsOfDoublesAreThoseOfAPlainProgram) { check_all<double>(); }
TEST_F(ProductListTest, SumsOfFloatsAreThoseOfAPlainProgram) { check_all<float>(); }

}  // namespace
}  // namespace rmsp::kernels::test
