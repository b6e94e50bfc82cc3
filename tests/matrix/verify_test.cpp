#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/runtime.hpp>
#include <rmsp/spgemm.hpp>

/// Verification near 0 and near the end of the precision's range.
namespace rmsp {
namespace {

template <class T>
class VerificationEdges : public testing::Test {
protected:
    static constexpr T least = std::numeric_limits<T>::denorm_min();
    static constexpr T most = std::numeric_limits<T>::max();

    /// A row of these values.
    static CsrView<T> row_of(const std::vector<T>& values)
    {
        static const std::vector<std::int32_t> columns{0, 1, 2, 3};
        static std::vector<std::int64_t> row_ptr;
        row_ptr = {0, static_cast<std::int64_t>(values.size())};
        return {1, 4, row_ptr.back(), row_ptr.data(), columns.data(), values.data()};
    }
    static Verification verify(const std::vector<T>& values, const std::vector<T>& x, T y, T alpha = 1)
    {
        return verify_spmv<T>(row_of(values), alpha, x.data(), T{0}, nullptr, &y);
    }
};

using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(VerificationEdges, Precisions);

TYPED_TEST(VerificationEdges, ProductsThatUnderflowAreRight)
{
    using T = TypeParam;
    const T tiny = this->least;
    // 0.75 of the smallest number is rounded to it, 0.25 of it to 0.
    EXPECT_TRUE(this->verify({tiny}, {T(0.75), 0, 0, 0}, tiny).passed);
    EXPECT_TRUE(this->verify({tiny}, {T(0.25), 0, 0, 0}, 0).passed);
    EXPECT_TRUE(this->verify({tiny, tiny}, {T(0.5), T(0.5), 0, 0}, 0).passed);
    // alpha multiplies what was lost.
    EXPECT_TRUE(this->verify({tiny}, {T(0.25), 0, 0, 0}, 0, T(1024)).passed);
    // Six times the smallest number is more than a row of one can lose; and nothing explains a number in an empty row.
    EXPECT_FALSE(this->verify({tiny}, {T(0.25), 0, 0, 0}, 7 * tiny).passed);
    EXPECT_FALSE(this->verify({0}, {1, 0, 0, 0}, tiny).passed);
    EXPECT_FALSE(this->verify({}, {1, 0, 0, 0}, tiny).passed);
}

TYPED_TEST(VerificationEdges, OverflowIsNamed)
{
    using T = TypeParam;
    const T huge = this->most;
    const T infinity = std::numeric_limits<T>::infinity();
    const T nan = std::numeric_limits<T>::quiet_NaN();
    // Beyond the range, and within it at the end but not on the way.
    for (const T y : {infinity, nan}) {
        const Verification v = this->verify({huge, huge, -huge}, {1, 1, 1, 0}, y);
        EXPECT_TRUE(v.passed);
        EXPECT_EQ(v.overflows, 1);
    }
    EXPECT_EQ(this->verify({huge, huge}, {1, 1, 0, 0}, infinity).overflows, 1);
    EXPECT_EQ(this->verify({huge, huge}, {1, 1, 0, 0}, infinity, T(0.25)).overflows, 1);
    const Verification right = this->verify({huge, huge, -huge}, {1, 1, 1, 0}, huge);
    EXPECT_TRUE(right.passed);
    EXPECT_EQ(right.overflows, 0);
    // What cannot overflow must not be infinite, and what must be has to be.
    EXPECT_FALSE(this->verify({huge}, {T(0.5), 0, 0, 0}, infinity).passed);
    EXPECT_FALSE(this->verify({infinity}, {1, 0, 0, 0}, huge).passed);
    EXPECT_TRUE(this->verify({infinity}, {1, 0, 0, 0}, infinity).passed);
    EXPECT_FALSE(this->verify({huge, huge}, {1, 1, 0, 0}, T(1)).passed);
}

TYPED_TEST(VerificationEdges, ProductsOfMatrices)
{
    using T = TypeParam;
    const auto one = [](const T& value) {
        static const std::int64_t row_ptr[] = {0, 1};
        static const std::int32_t column = 0;
        return CsrView<T>{1, 1, 1, row_ptr, &column, &value};
    };
    const auto verify = [&](T a, T b, T c, T alpha = 1) { return verify_spgemm<T>(one(a), one(b), alpha, one(c), 1); };
    const T tiny = this->least;
    const T huge = this->most;
    const T infinity = std::numeric_limits<T>::infinity();
    EXPECT_TRUE(verify(tiny, T(0.25), 0).passed);
    EXPECT_TRUE(verify(tiny, T(0.75), tiny).passed);
    EXPECT_FALSE(verify(tiny, T(0.25), 9 * tiny).passed);
    EXPECT_TRUE(verify(huge, 4, infinity).passed);
    EXPECT_EQ(verify(huge, 4, infinity).overflows, 2);  // the row, and the same among the sampled ones
    EXPECT_FALSE(verify(huge, T(0.5), infinity).passed);
    EXPECT_TRUE(verify(infinity, 1, infinity).passed);
}

}  // namespace
}  // namespace rmsp
