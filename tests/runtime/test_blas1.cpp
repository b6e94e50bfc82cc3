#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

class Blas1 : public MachineTest {};

template <class T>
std::vector<T> downloaded(const DistributedVector<T>& v)
{
    std::vector<T> out(static_cast<std::size_t>(v.size()));
    v.download(out.data());
    return out;
}

/// n x n with a diagonal: only its vectors matter here.
template <class T>
CsrMatrix<T> diagonal(std::int64_t n)
{
    return with_row_lengths<T>(std::vector<std::int64_t>(static_cast<std::size_t>(n), 1), n);
}

template <class T>
void check_operations(const Machine& machine)
{
    Runtime runtime(options_for(machine));
    for (const std::int64_t n : {0, 1, 2, 255, 1024, 1025, 100003}) {
        const auto a = diagonal<T>(n);
        const auto matrix = runtime.distribute(a.view());
        const auto x_host = random_vector<T>(n, 1);
        const auto y_host = random_vector<T>(n, 2);
        for (const auto layout : {Layout::rows, Layout::replicated}) {
            SCOPED_TRACE(testing::Message() << n << (layout == Layout::rows ? " by rows" : " replicated"));
            auto x = matrix.make_x(layout);
            auto y = matrix.make_x(layout);
            x.upload(x_host.data());
            y.upload(y_host.data());

            double product = 0;
            double magnitude = 0;
            double square = 0;
            for (std::size_t i = 0; i < x_host.size(); ++i) {
                product += double{x_host[i]} * double{y_host[i]};
                magnitude += std::abs(double{x_host[i]} * double{y_host[i]});
                square += double{x_host[i]} * double{x_host[i]};
            }
            auto once = dot_async(x, y);
            auto again = dot_async(x, y);
            auto norm = norm2_async(x);
            const T value = once.get();
            EXPECT_NEAR(value, product,
                        static_cast<double>(n) * std::numeric_limits<double>::epsilon() * magnitude +
                            std::numeric_limits<T>::epsilon() * std::abs(product));
            EXPECT_EQ(again.get(), value);
            EXPECT_NEAR(
                norm.get(), std::sqrt(square),
                (static_cast<double>(n) * std::numeric_limits<double>::epsilon() + std::numeric_limits<T>::epsilon()) *
                    std::sqrt(square));

            axpy(T{-2}, x, y);
            scal(T{0.5}, x);
            auto expected_x = x_host;
            auto expected_y = y_host;
            for (std::size_t i = 0; i < x_host.size(); ++i) {
                expected_x[i] = T{0.5} * x_host[i];
                expected_y[i] = y_host[i] - T{2} * x_host[i];  // exact product: fused or not gives the same
            }
            EXPECT_EQ(downloaded(x), expected_x);
            EXPECT_EQ(downloaded(y), expected_y);
            copy(x, y);
            EXPECT_EQ(downloaded(y), expected_x);
            axpy(T{1}, x, x);
            EXPECT_EQ(downloaded(x), x_host);
        }
    }
}

TEST_P(Blas1, DoubleAgreesWithTheHost) { check_operations<double>(GetParam()); }
TEST_P(Blas1, FloatAgreesWithTheHost) { check_operations<float>(GetParam()); }

TEST_P(Blas1, ZeroDoesNotMultiplyWhatIsNotFinite)
{
    Runtime runtime(options_for(GetParam()));
    const auto matrix = runtime.distribute(diagonal<double>(1000).view());
    auto x = matrix.make_x(Layout::rows);
    auto y = matrix.make_x(Layout::rows);
    x.fill(std::numeric_limits<double>::quiet_NaN());
    y.fill(1);
    axpy(0.0, x, y);
    EXPECT_EQ(dot(y, y), 1000);
    scal(0.0, x);
    EXPECT_EQ(norm2(x), 0);
}

TEST_P(Blas1, IsInOrderWithApplies)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = stencil7<double>(30, 20, 10);
    auto matrix = runtime.distribute(a.view());
    auto x = matrix.make_x(Layout::rows);
    auto y = matrix.make_y();
    x.fill(1);
    y.fill(0);
    for (int i = 0; i < 20; ++i) {
        static_cast<void>(matrix.apply_async(1.0, x, 0.0, y));
        scal(1.0 / 16, y);
        copy(y, x);
    }
    const double in_flight = norm2(x);
    std::vector<double> expected(static_cast<std::size_t>(a.cols), 1.0);
    std::vector<double> next(expected.size());
    for (int i = 0; i < 20; ++i) {
        matrix.apply(1.0, expected.data(), 0.0, next.data());
        for (std::size_t k = 0; k < next.size(); ++k) {
            expected[k] = next[k] / 16;
        }
    }
    double square = 0;
    for (const double e : expected) {
        square += e * e;
    }
    EXPECT_NEAR(in_flight, std::sqrt(square), 1e-12 * std::sqrt(square));
}

TEST_P(Blas1, ManyMayBeInFlight)
{
    Runtime runtime(options_for(GetParam()));
    const auto matrix = runtime.distribute(diagonal<float>(777).view());
    auto x = matrix.make_x(Layout::replicated);
    x.fill(1);
    std::vector<std::future<float>> all;
    for (int i = 0; i < 200; ++i) {
        all.push_back(dot_async(x, x));
    }
    all.erase(all.begin() + 50, all.begin() + 100);  // nobody asks for these
    for (auto& one : all) {
        EXPECT_EQ(one.get(), 777.0F);
    }
}

TEST_P(Blas1, RefusesOperandsThatDiffer)
{
    Runtime runtime(options_for(GetParam()));
    const auto matrix = runtime.distribute(diagonal<double>(100).view());
    const auto other = runtime.distribute(diagonal<double>(101).view());
    auto rows = matrix.make_x(Layout::rows);
    auto replicated = matrix.make_x(Layout::replicated);
    auto longer = other.make_x(Layout::rows);
    DistributedVector<double> empty;
    const auto message = [](const auto& f) -> std::string {
        try {
            f();
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage);
            return e.what();
        }
        return "nothing was thrown";
    };
    EXPECT_EQ(message([&] { axpy(1.0, rows, replicated); }),
              "axpy: x is by rows, y is replicated; both must be laid out alike");
    EXPECT_EQ(message([&] { copy(replicated, rows); }),
              "copy: x is replicated, y is by rows; both must be laid out alike");
    EXPECT_EQ(message([&] { static_cast<void>(dot(rows, longer)); }), "dot: x has 100 entries, y has 101");
    EXPECT_EQ(message([&] { static_cast<void>(norm2(empty)); }),
              "norm2: a vector is empty; make one with make_x() or make_y()");
    Runtime second(options_for(GetParam()));
    const auto elsewhere = second.distribute(diagonal<double>(100).view());
    auto foreign = elsewhere.make_x(Layout::rows);
    EXPECT_EQ(message([&] { axpy(1.0, rows, foreign); }), "axpy: the vectors belong to different runtimes");
    if (runtime.devices().size() > 1) {
        std::vector<std::int64_t> lengths(100, 1);
        lengths[0] = 50;
        const auto skewed = runtime.distribute(with_row_lengths<double>(lengths, 100).view());
        auto sliced = skewed.make_x(Layout::rows);
        EXPECT_NE(message([&] { static_cast<void>(dot_async(rows, sliced)); }).find("both must be sliced alike"),
                  std::string::npos);
    }
}

TEST(Blas1Lifetime, FutureMayOutliveEverything)
{
    std::future<double> late;
    std::future<double> never;
    {
        RuntimeOptions options;
        options.devices = "host:2";
        Runtime runtime(options);
        const auto matrix = runtime.distribute(diagonal<double>(100).view());
        auto x = matrix.make_x(Layout::rows);
        x.fill(2);
        late = dot_async(x, x);
        never = norm2_async(x);
    }
    EXPECT_EQ(late.get(), 400);
}

INSTANTIATE_TEST_SUITE_P(Machines, Blas1, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
