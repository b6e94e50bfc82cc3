#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <kernels/steps/pass/exact_sum.hpp>

namespace rmsp::kernels {
namespace {

using Sum = std::vector<std::int64_t>;

Sum sum_of(const std::vector<double>& numbers, std::size_t begin, std::size_t end)
{
    Sum sum(exact::words);
    for (std::size_t i = begin; i < end; ++i) {
        exact::add(sum.data(), numbers[i]);
    }
    exact::carry(sum.data());
    return sum;
}

double total(const std::vector<double>& numbers)
{
    Sum sum = sum_of(numbers, 0, numbers.size());
    return exact::value(sum.data());
}

TEST(ExactSum, OfOneNumberIsThatNumber)
{
    using Limits = std::numeric_limits<double>;
    for (const double number : {0.0, 1.0, -1.0, 0.1, -1e300, 3e-300, Limits::max(), Limits::lowest(), Limits::min(),
                                Limits::denorm_min(), -Limits::denorm_min(), 1.0 / 3, 4294967296.0, 4294967295.0}) {
        EXPECT_EQ(total({number}), number);
        EXPECT_EQ(total({number, number, -number}), number);
    }
}

TEST(ExactSum, LosesNothing)
{
    EXPECT_EQ(total({1e300, 1, -1e300}), 1);
    EXPECT_EQ(total({1e300, 1e-300, -1e300, 1e-300}), 2e-300);
    EXPECT_EQ(total({std::ldexp(1.0, 1023), std::ldexp(1.0, 1023), -std::ldexp(1.0, 1023)}), std::ldexp(1.0, 1023));
    EXPECT_EQ(total(std::vector<double>(1000, 0.5)), 500);
    EXPECT_EQ(total(std::vector<double>(1000, -0.5)), -500);
}

TEST(ExactSum, DoesNotDependOnOrderAndParts)
{
    std::mt19937_64 engine(3);
    std::uniform_real_distribution<double> fraction(-1, 1);
    std::vector<double> numbers;
    for (int i = 0; i < 5000; ++i) {
        numbers.push_back(std::ldexp(fraction(engine), static_cast<int>(engine() % 200) - 100));
    }
    const double expected = total(numbers);
    long double wide = 0;
    for (const double number : numbers) {
        wide += number;
    }
    EXPECT_NEAR(expected / static_cast<double>(wide), 1, 1e-15);
    for (const std::size_t parts : {2, 3, 7, 100}) {
        std::shuffle(numbers.begin(), numbers.end(), engine);
        Sum sum(exact::words);
        for (std::size_t p = 0; p < parts; ++p) {
            Sum part = sum_of(numbers, numbers.size() * p / parts, numbers.size() * (p + 1) / parts);
            if (p % 2 == 1) {
                exact::sign_digits(part.data());
            }
            exact::merge(sum.data(), part.data());
        }
        EXPECT_EQ(exact::value(sum.data()), expected);
    }
}

TEST(ExactSum, OfWhatIsNotFinite)
{
    constexpr double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(total({1, infinity}), infinity);
    EXPECT_EQ(total({-infinity, 1e308}), -infinity);
    EXPECT_TRUE(std::isnan(total({infinity, -infinity})));
    EXPECT_TRUE(std::isnan(total({std::nan(""), 1})));
}

}  // namespace
}  // namespace rmsp::kernels
