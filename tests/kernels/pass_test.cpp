#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/pass/exact_sum.hpp>
#include <kernels/steps/pass/pass.hpp>

#include "device_csr.hpp"
#include "test_device.hpp"

// Inner products that are summed without rounding: their bits depend neither on the device nor on where vectors are
// cut.
namespace rmsp::kernels::test {
namespace {

class ExactPass : public DeviceTest<> {};

template <class T>
struct DotPair {
    std::vector<T> a;
    std::vector<T> b;
};

template <class T>
using Makes = T (*)(std::mt19937_64&, std::size_t);

template <class T>
T fraction(std::mt19937_64& random)
{
    return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
}

/// A number below 1 times 2^least to 2^most.
template <class T>
T spread(std::mt19937_64& random, int least, int most)
{
    return static_cast<T>(
        std::ldexp(fraction<T>(random), least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1))));
}

template <class T>
DotPair<T> make_pair(std::int64_t n, std::uint64_t seed, Makes<T> make_a, Makes<T> make_b)
{
    std::mt19937_64 random(seed);
    DotPair<T> pair;
    for (std::int64_t i = 0; i < n; ++i) {
        pair.a.push_back(make_a(random, static_cast<std::size_t>(i)));
        pair.b.push_back(make_b(random, static_cast<std::size_t>(i)));
    }
    return pair;
}

/// Vectors of n entries whose inner products are hard to sum, each in another way.
template <class T>
std::vector<DotPair<T>> hard_pairs(std::int64_t n)
{
    using Random = std::mt19937_64;
    constexpr int wide = std::is_same_v<T, double> ? 500 : 60;
    const auto plain = [](Random& random, std::size_t) { return fraction<T>(random); };
    std::vector<DotPair<T>> pairs;
    pairs.push_back(make_pair<T>(n, 1, plain, plain));
    pairs.push_back(make_pair<T>(
        n, 2, [](Random& random, std::size_t) { return spread<T>(random, -wide, wide); }, plain));
    // What is left of large numbers.
    pairs.push_back(make_pair<T>(
        n, 3, [](Random&, std::size_t i) { return static_cast<T>(std::ldexp(i % 2 == 0 ? 1.0 : -1.0, wide)); },
        [](Random& random, std::size_t i) { return i % 2 == 0 ? T{1} : T{1} + spread<T>(random, -50, -10); }));
    // Denormal products of doubles.
    pairs.push_back(make_pair<T>(
        n, 4, [](Random& random, std::size_t) { return spread<T>(random, -wide - 40, -wide); },
        [](Random& random, std::size_t) { return spread<T>(random, -wide - 40, -wide); }));
    // Sums of which some parts overflow.
    pairs.push_back(make_pair<T>(
        n, 5,
        [](Random& random, std::size_t) { return static_cast<T>(std::ldexp(2 - 1e-3, wide) * fraction<T>(random)); },
        [](Random&, std::size_t) { return static_cast<T>(std::ldexp(1.0, wide + 22)); }));
    const auto with = [&](std::int64_t at, T value) {
        if (at >= 0 && at < n) {
            pairs.back().a[static_cast<std::size_t>(at)] = value;
            pairs.back().b[static_cast<std::size_t>(at)] = T{1};
        }
    };
    constexpr T infinity = std::numeric_limits<T>::infinity();
    pairs.push_back(pairs.front());
    with(n / 2, -infinity);
    pairs.push_back(pairs.front());
    with(n / 3, infinity);
    with(n - 1, -infinity);
    pairs.push_back(pairs.front());
    with(n / 5, std::numeric_limits<T>::quiet_NaN());
    return pairs;
}

template <class T>
double expected_sum(const std::vector<T>& a, const std::vector<T>& b)
{
    std::vector<std::int64_t> sum(exact::words);
    for (std::size_t i = 0; i < a.size(); ++i) {
        exact::add(sum.data(), static_cast<double>(a[i]) * static_cast<double>(b[i]));
    }
    return exact::value(sum.data());
}

void expect_same(const std::vector<double>& found, const std::vector<double>& expected)
{
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t d = 0; d < found.size(); ++d) {
        if (std::isnan(expected[d])) {
            EXPECT_TRUE(std::isnan(found[d])) << "inner product " << d << " is " << found[d];
        } else {
            EXPECT_EQ(found[d], expected[d]) << "inner product " << d;
        }
    }
}

/// Several devices that are one, whose passes are queued one after the other.
template <class T>
class Devices {
public:
    Devices(TestDevice& device, int count, PassSums sums) : device_(device)
    {
        const auto devices = static_cast<std::size_t>(count);
        left_ = upload(device, std::vector<double>(devices * most_pass_dots, 1));
        exact_ = upload(device, std::vector<std::int64_t>(devices * pass_words));
        given_up_ = upload(device, std::vector<std::uint64_t>{0});
        for (std::size_t rank = 0; rank < devices; ++rank) {
            banks_.push_back(upload(device, std::vector<double>(first_free_scalar + most_pass_dots)));
            workspaces_.push_back(upload(device, std::vector<double>(pass_workspace_bytes / 8)));
            lines_.push_back(
                upload(device, std::vector<double>(static_cast<std::size_t>(pass_line_bytes(count, true) / 8))));
        }
        for (std::size_t rank = 0; rank < devices; ++rank) {
            PassPlace place;
            place.bank = banks_[rank].data();
            place.workspace = workspaces_[rank].data();
            place.sums = sums;
            place.device = static_cast<int>(rank);
            place.devices = count;
            place.numbers = first_free_scalar + most_pass_dots;
            place.left = left_.data();
            place.exact = exact_.data();
            place.lines_in = lines_[rank].data();
            for (std::size_t other = 0; other < devices; ++other) {
                place.lines_out[other] = lines_[other].data();
            }
            place.given_up = given_up_.data();
            places_.push_back(place);
        }
    }

    /// Numbers of all banks, from `first` on.
    void write(std::int16_t first, const std::vector<double>& numbers)
    {
        for (const PassPlace& place : places_) {
            device_.copy_in(place.bank + first, numbers.data(), numbers.size() * sizeof(double));
        }
    }

    /// A pass on all of them; what its inner products gave, which is the same on each. `cut(rank)`: that device's.
    template <class Cut>
    std::vector<double> run(const Cut& cut)
    {
        std::vector<Pass<T>> passes;
        for (PassPlace& place : places_) {
            ++place.epoch;
            passes.push_back(cut(place.device));
            run_pass(passes.back(), place, device_.context());
        }
        std::vector<double> first;
        for (const PassPlace& place : places_) {
            const Pass<T>& pass = passes[static_cast<std::size_t>(place.device)];
            if (place.sums != PassSums::alone) {
                finish_pass(pass, place, device_.context());
            }
            const auto sums = download(device_, place.bank + first_free_scalar, static_cast<std::size_t>(pass.dots));
            if (place.device == 0) {
                first = sums;
            } else {
                expect_same(sums, first);
            }
        }
        return first;
    }

private:
    TestDevice& device_;
    DeviceArray<double> left_;
    DeviceArray<std::int64_t> exact_;
    DeviceArray<std::uint64_t> given_up_;
    std::vector<DeviceArray<double>> banks_;
    std::vector<DeviceArray<double>> workspaces_;
    std::vector<DeviceArray<double>> lines_;
    std::vector<PassPlace> places_;
};

/// Where device `rank` of `count` begins: of several, the first one has nothing, and the others not the same.
std::int64_t offset(std::int64_t n, int rank, int count)
{
    const std::int64_t parts = std::int64_t{count} * count - 1;
    return count == 1 ? n * rank : n * std::max(rank * rank - 1, 0) / parts;
}

template <class T>
void check_sums(TestDevice& device, const std::vector<std::int64_t>& sizes)
{
    for (const std::int64_t n : sizes) {
        SCOPED_TRACE(n);
        const auto pairs = hard_pairs<T>(n);
        ASSERT_EQ(pairs.size(), static_cast<std::size_t>(most_pass_dots));
        std::vector<DeviceArray<T>> a;
        std::vector<DeviceArray<T>> b;
        std::vector<double> expected;
        for (const DotPair<T>& pair : pairs) {
            a.push_back(upload(device, pair.a));
            b.push_back(upload(device, pair.b));
            expected.push_back(expected_sum(pair.a, pair.b));
        }
        struct Case {
            int devices;
            PassSums sums;
        };
        for (const Case& c : {Case{1, PassSums::alone}, Case{3, PassSums::left}, Case{4, PassSums::sent}}) {
            if (c.sums == PassSums::sent && device_kind() == DeviceKind::host) {
                continue;
            }
            SCOPED_TRACE(std::to_string(c.devices) + " devices");
            Devices<T> devices(device, c.devices, c.sums);
            // Of some inner products, then of others with the same workspace.
            for (const int dots : {8, 1, 2, 3, 8}) {
                const int first = dots == 2 ? 3 : 0;
                const auto sums = devices.run([&](int rank) {
                    const std::int64_t begin = offset(n, rank, c.devices);
                    Pass<T> pass;
                    pass.n = offset(n, rank + 1, c.devices) - begin;
                    for (int d = first; d < first + dots; ++d) {
                        pass.dot[pass.dots] = {a[static_cast<std::size_t>(d)].data() + begin,
                                               b[static_cast<std::size_t>(d)].data() + begin};
                        pass.dot[pass.dots].into = static_cast<std::int16_t>(first_free_scalar + pass.dots);
                        ++pass.dots;
                    }
                    return pass;
                });
                expect_same(sums, {expected.begin() + first, expected.begin() + first + dots});
            }
        }
    }
}

TEST_F(ExactPass, SumsDoNotDependOnDevices)
{
    const std::vector<std::int64_t> sizes{0, 1, 31, 1023, 1025, 5000, 200'003};
    check_sums<double>(*device_, sizes);
    check_sums<float>(*device_, sizes);
}

/// Of what the pass computes: x += 2 y, x . x, x . y and y . y.
template <class T>
void check_updates(TestDevice& device)
{
    constexpr std::int64_t n = 12'345;
    const DotPair<T> pair = hard_pairs<T>(n).front();
    std::vector<T> x = pair.a;
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::fma(T{2}, pair.b[i], pair.a[i]);
    }
    const std::vector<double> expected{expected_sum(x, x), expected_sum(x, pair.b), expected_sum(pair.b, pair.b)};
    for (const int count : {1, 3}) {
        SCOPED_TRACE(count);
        const auto out = upload(device, pair.a);
        const auto y = upload(device, pair.b);
        Devices<T> devices(device, count, count == 1 ? PassSums::alone : PassSums::left);
        constexpr std::int16_t one = first_free_scalar + 6;
        constexpr std::int16_t two = first_free_scalar + 7;
        devices.write(one, {1.0, 2.0});
        const auto sums = devices.run([&](int rank) {
            const std::int64_t begin = offset(n, rank, count);
            T* const mine = out.data() + begin;
            Pass<T> pass;
            pass.n = offset(n, rank + 1, count) - begin;
            pass.term[0] = {mine, nullptr, one};
            pass.term[1] = {y.data() + begin, nullptr, two};
            pass.update[0] = {mine, 0, 2};
            pass.updates = 1;
            pass.dot[0] = {mine, mine, 0, 0, first_free_scalar};
            pass.dot[1] = {mine, y.data() + begin, 0, -1, first_free_scalar + 1};
            pass.dot[2] = {y.data() + begin, y.data() + begin, -1, -1, first_free_scalar + 2};
            pass.dots = 3;
            return pass;
        });
        EXPECT_EQ(download(device, out.data(), x.size()), x);
        expect_same(sums, expected);
    }
}

TEST_F(ExactPass, SumsOfWhatItComputes)
{
    check_updates<double>(*device_);
    check_updates<float>(*device_);
}

}  // namespace
}  // namespace rmsp::kernels::test
