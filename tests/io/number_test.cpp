#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/number.hpp"
#include "io/random.hpp"

namespace {

using namespace rmsp::io;

template <class T>
NumberStatus read(const std::string& text, T& value)
{
    const char* next = nullptr;
    return parse_real(text.data(), text.data() + text.size(), value, next);
}

float by_strtod(const std::string& text, float) { return std::strtof(text.c_str(), nullptr); }
double by_strtod(const std::string& text, double) { return std::strtod(text.c_str(), nullptr); }

template <class T>
class Numbers : public ::testing::Test {
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Numbers, Reals);

TYPED_TEST(Numbers, AreCorrectlyRounded)
{
    const RandomStream random(3);
    for (std::uint64_t i = 0; i < 60000; ++i) {
        const std::uint64_t bits = random.at(2 * i);
        const int digits = 1 + static_cast<int>(random.below(2 * i + 1, 20));
        const int exponent = static_cast<int>(bits % 60) - 30;
        const std::string text = i % 3 == 0 ? fmt::format("{:.{}e}", std::ldexp(static_cast<double>(bits), -60), digits)
                                 : i % 3 == 1 ? fmt::format("{}e{}", bits >> (bits % 64), exponent)
                                              : fmt::format("{}.{:0{}}", bits >> 40, bits % 100000, digits);
        TypeParam value{};
        const TypeParam expected = by_strtod(text, TypeParam{});
        ASSERT_EQ(read(text, value), std::isinf(expected) ? NumberStatus::overflow : NumberStatus::ok) << text;
        if (!std::isinf(expected)) {
            ASSERT_EQ(value, expected) << text;
        }
    }
}

TYPED_TEST(Numbers, SpellingsOfFortranAndC)
{
    for (const auto& [text, expected] : {std::pair{"1D+2", 100.0},
                                         {"1d2", 100.0},
                                         {"+3", 3.0},
                                         {".5", 0.5},
                                         {"5.", 5.0},
                                         {"-.25e1", -2.5},
                                         {"+1.5D-1", 0.15},
                                         {"00012", 12.0},
                                         {"0.0000000000000000000000001", 1e-25},
                                         {"-0", 0.0}}) {
        TypeParam value{};
        EXPECT_EQ(read(text, value), NumberStatus::ok) << text;
        EXPECT_EQ(value, static_cast<TypeParam>(expected)) << text;
    }
}

TYPED_TEST(Numbers, Malformed)
{
    for (const char* text :
         {"", "-", "+", ".", "e5", "1e", "1e+", "1.2.3", "0x10", "+-1", "--1", "1,5", "abc", "D5", "1e5e5", "nanx"}) {
        TypeParam value{};
        EXPECT_EQ(read(text, value), NumberStatus::malformed) << text;
    }
}

TYPED_TEST(Numbers, RangeOverflowsAndUnderflows)
{
    for (const char* text : {"1e999", "-1e999", "1e99999999999999999999", "0.001e1000", "123456789e400"}) {
        TypeParam value{};
        EXPECT_EQ(read(text, value), NumberStatus::overflow) << text;
    }
    for (const char* text : {"1e-999", "-1e-99999999999999999999", "1000e-1000", "0e999"}) {
        TypeParam value{1};
        EXPECT_EQ(read(text, value), NumberStatus::ok) << text;
        EXPECT_EQ(value, TypeParam{0}) << text;
        EXPECT_EQ(std::signbit(value), text[0] == '-') << text;
    }
}

TEST(Integers, Limits)
{
    const auto read_integer = [](const std::string& text, std::int64_t& value) {
        const char* next = nullptr;
        return parse_integer(text.data(), text.data() + text.size(), value, next);
    };
    std::int64_t value = 0;
    EXPECT_EQ(read_integer("9223372036854775807", value), NumberStatus::ok);
    EXPECT_EQ(value, INT64_MAX);
    EXPECT_EQ(read_integer("0000000000000000000000012", value), NumberStatus::ok);
    EXPECT_EQ(value, 12);
    EXPECT_EQ(read_integer("9223372036854775808", value), NumberStatus::overflow);
    EXPECT_EQ(read_integer("", value), NumberStatus::malformed);
    EXPECT_EQ(read_integer("x", value), NumberStatus::malformed);
}

}  // namespace
