#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/sequence.hpp>
#include <rmsp/vector_operations.hpp>

#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

class Sequences : public MachineTest {};

template <class T>
std::vector<T> downloaded(const Vec<T>& v)
{
    std::vector<T> out(static_cast<std::size_t>(v.vector().size()));
    v.vector().download(out.data());
    return out;
}

template <class T>
Vec<T> uploaded(const DistributedMatrix<T>& matrix, const std::vector<T>& entries)
{
    auto vector = matrix.make_y();
    vector.upload(entries.data());
    return Vec<T>(vector);
}

TEST_P(Sequences, ConjugateGradients)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(9);
    auto matrix = runtime.distribute(a.view());
    const auto b = random_vector<double>(a.rows, 5);

    Scalars scalars(runtime);
    const Scalar rho = scalars.make(1.0), old = scalars.make(), pq = scalars.make(), alpha = scalars.make(),
                 beta = scalars.make();
    const auto x = uploaded(matrix, std::vector<double>(b.size(), 0.0));
    const auto r = uploaded(matrix, b);
    const auto p = uploaded(matrix, b);
    const auto q = uploaded(matrix, b);
    Sequence start(scalars);
    start.pass_always(rho = dot(r, r));
    start.run();
    double square = 0;
    for (const double entry : b) {
        square += entry * entry;
    }
    EXPECT_NEAR(scalars.get(rho), square, 1e-12 * square);

    Sequence step(scalars);
    step.multiply(matrix, p, q);
    step.pass(pq = dot(p, q), alpha = rho / pq);
    step.pass(x += alpha * p, r -= alpha * q);
    step.pass(old = rho);
    step.pass(rho = dot(r, r), beta = rho / old, record(sqrt(rho)), stop_if(sqrt(rho) < 1e-10, 7));
    step.pass(p = r + beta * p);
    step.run(3);
    EXPECT_EQ(scalars.outcome(), 0);
    EXPECT_EQ(scalars.iterations(), 3);
    step.run(500);
    EXPECT_EQ(scalars.outcome(), 7);
    const auto iterations = scalars.iterations();
    EXPECT_LT(iterations, 60);
    EXPECT_LT(scalars.residual(iterations), 1e-10);
    EXPECT_GE(scalars.residual(iterations - 1), 1e-10);

    const auto solution = downloaded(x);
    std::vector<double> product(b.size());
    matrix.apply(1.0, solution.data(), 0.0, product.data());
    for (std::size_t i = 0; i < b.size(); ++i) {
        ASSERT_NEAR(product[i], b[i], 1e-9);
    }
    const auto before = downloaded(x);
    step.run(5);
    EXPECT_EQ(downloaded(x), before) << "passes after a stop do nothing";
    EXPECT_EQ(scalars.iterations(), iterations);
    scalars.restart();
    step.run();
    EXPECT_EQ(scalars.iterations(), 1);
}

/// Steps of the power method from ones, `at_once` in a job: others for the values in the middle, and more of them
/// behind.
std::vector<double> powers(Runtime& runtime, CsrMatrix<double> a, std::int64_t at_once)
{
    DistributeOptions options;
    options.determinism = Determinism::run;
    auto matrix = runtime.distribute(a.view(), options);
    Scalars scalars(runtime);
    const Scalar square = scalars.make(), scale = scalars.make(), count = scalars.make();
    const auto p = uploaded(matrix, std::vector<double>(static_cast<std::size_t>(a.rows), 1.0));
    const auto q = uploaded(matrix, std::vector<double>(static_cast<std::size_t>(a.rows), 0.0));
    Sequence step(scalars);
    step.multiply(matrix, p, q);
    step.pass(square = dot(q, q), scale = 1.0 / sqrt(square), count = count + 1.0);
    step.pass(p = scale * q);
    const auto run = [&] {
        for (int i = 0; i < 40; i += static_cast<int>(at_once)) {
            step.run(at_once);
        }
    };
    run();
    for (double& value : a.values) {
        value *= value;
    }
    matrix.update_values(a.values.data());
    run();
    step.pass(p = 0.5 * p + q);
    run();
    EXPECT_EQ(scalars.get(count), 120);
    return downloaded(p);
}

TEST_P(Sequences, StepsThatRepeatGiveTheSameBitsAtOnce)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(11);
    const auto one_by_one = powers(runtime, a, 1);
    EXPECT_EQ(powers(runtime, a, 40), one_by_one);
    EXPECT_EQ(powers(runtime, a, 8), one_by_one);
}

template <class T>
void check_statements(const Machine& machine)
{
    Runtime runtime(options_for(machine));
    for (const std::int64_t n : {1, 2, 255, 1024, 1025, 100003}) {
        SCOPED_TRACE(n);
        const auto a = with_row_lengths<T>(std::vector<std::int64_t>(static_cast<std::size_t>(n), 1), n);
        auto matrix = runtime.distribute(a.view());
        const auto u = random_vector<T>(n, 1);
        const auto v = random_vector<T>(n, 2);
        const auto w = random_vector<T>(n, 3);
        const auto x = uploaded(matrix, u);
        const auto y = uploaded(matrix, v);
        const auto z = uploaded(matrix, w);
        const auto nans = uploaded(matrix, std::vector<T>(u.size(), std::numeric_limits<T>::quiet_NaN()));

        Scalars scalars(runtime);
        const Scalar two = scalars.make(2.0), zero = scalars.make(), xy = scalars.make(), zz = scalars.make(),
                     xu = scalars.make(), result = scalars.make();
        Sequence sequence(scalars);
        // Updates see what those before them gave; a term whose scalar is 0 is not read.
        sequence.pass(x = two * x - y + zero * nans, y = x + 0.5 * z, z -= x * z, xy = dot(x, y), zz = dot(z, z),
                      xu = dot(x, x), result = (xy + 1.0) / max(abs(zz), 1e-3) - hypot(xu, 3.0));
        sequence.run();
        const auto gx = downloaded(x);
        const auto gy = downloaded(y);
        const auto gz = downloaded(z);
        double dots[3] = {};
        double magnitude = 0;
        for (std::size_t i = 0; i < u.size(); ++i) {
            const double ex = 2.0 * double{u[i]} - double{v[i]};
            const double ey = double{gx[i]} + 0.5 * double{w[i]};
            const double ez = double{w[i]} - double{gx[i]} * double{w[i]};
            const double tolerance = 8 * std::numeric_limits<T>::epsilon();
            ASSERT_NEAR(gx[i], ex, tolerance) << i;
            ASSERT_NEAR(gy[i], ey, tolerance) << i;
            ASSERT_NEAR(gz[i], ez, tolerance) << i;
            dots[0] += double{gx[i]} * double{gy[i]};
            dots[1] += double{gz[i]} * double{gz[i]};
            dots[2] += double{gx[i]} * double{gx[i]};
            magnitude += std::abs(double{gx[i]} * double{gy[i]});
        }
        const double bound =
            static_cast<double>(n) * std::numeric_limits<double>::epsilon() * (magnitude + dots[1] + 1);
        EXPECT_NEAR(scalars.get(xy), dots[0], bound);
        EXPECT_NEAR(scalars.get(zz), dots[1], bound);
        const double got_xy = scalars.get(xy);
        const double got_zz = scalars.get(zz);
        EXPECT_DOUBLE_EQ(scalars.get(result),
                         (got_xy + 1.0) / std::max(got_zz, 1e-3) - std::hypot(scalars.get(xu), 3.0));
        scalars.set(xy, 42.0);
        EXPECT_EQ(scalars.get(xy), 42.0);
    }
}

TEST_P(Sequences, StatementsInFloat) { check_statements<float>(GetParam()); }
TEST_P(Sequences, StatementsInDouble) { check_statements<double>(GetParam()); }

TEST_P(Sequences, ManyInnerProducts)
{
    Runtime runtime(options_for(GetParam()));
    const std::int64_t n = 5000;
    const auto a = with_row_lengths<double>(std::vector<std::int64_t>(static_cast<std::size_t>(n), 1), n);
    auto matrix = runtime.distribute(a.view());
    Scalars scalars(runtime);
    std::vector<Vec<double>> vectors;
    std::vector<Scalar> sums;
    for (int i = 0; i < 8; ++i) {
        vectors.push_back(uploaded(matrix, random_vector<double>(n, static_cast<std::uint64_t>(i))));
        sums.push_back(scalars.make());
    }
    Sequence sequence(scalars);
    for (int i = 0; i < 8; ++i) {
        const auto& sum = sums[static_cast<std::size_t>(i)];
        sequence.pass(sum = dot(vectors[0], vectors[static_cast<std::size_t>(i)]));
    }
    // Again and again: the two sets of places for sums are used in turn.
    sequence.run(100);
    for (int i = 0; i < 8; ++i) {
        const double expected = dot(vectors[0].vector(), vectors[static_cast<std::size_t>(i)].vector());
        EXPECT_NEAR(scalars.get(sums[static_cast<std::size_t>(i)]), expected, 1e-9);
    }
}

TEST_P(Sequences, SumsBesideProducts)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(9);
    auto matrix = runtime.distribute(a.view());
    Scalars scalars(runtime);
    const Scalar sum = scalars.make();
    const Scalar factor = scalars.make();
    const auto x = uploaded(matrix, random_vector<double>(a.rows, 1));
    const Vec<double> y(matrix.make_y());
    const Vec<double> z(matrix.make_y());
    const Vec<double> w(matrix.make_y());
    // The update and the sum are one pass; y is what it was when the sum began.
    Sequence split(scalars);
    split.pass(y = 2.0 * x);
    split.begin_pass(sum = dot(y, x), factor = 1.0 / sum, record(sum), stop_if(scalars.make(3.0) < sum, 4));
    split.pass_always(z = x + y);  // since the stop may act before end_pass()
    split.multiply(matrix, x, y);
    split.end_pass();
    split.pass(w = factor * z);

    Sequence whole(scalars);
    whole.pass(y = 2.0 * x, sum = dot(y, x), factor = 1.0 / sum);
    whole.run();
    const double expected = scalars.get(sum);
    const double expected_factor = scalars.get(factor);
    EXPECT_NEAR(expected, 2 * dot(x.vector(), x.vector()), 1e-9);
    for (int times = 0; times < 3; ++times) {
        scalars.set(sum, 0);
        scalars.restart();
        w.vector().fill(0);
        split.run();
        EXPECT_EQ(scalars.get(sum), expected);
        EXPECT_EQ(scalars.get(factor), expected_factor);
        EXPECT_EQ(scalars.iterations(), 1);
        EXPECT_EQ(scalars.outcome(), 4);
        EXPECT_EQ(dot(w.vector(), w.vector()), 0);  // not done after the stop
        EXPECT_NEAR(dot(z.vector(), z.vector()), 4.5 * expected, 1e-9);
    }
    // Nothing is summed once it has stopped.
    scalars.set(sum, 7);
    split.run();
    EXPECT_EQ(scalars.get(sum), 7);
}

TEST_P(Sequences, LongRunsAreSeveralJobs)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = with_row_lengths<double>(std::vector<std::int64_t>(40, 1), 40);
    auto matrix = runtime.distribute(a.view());
    const auto x = uploaded(matrix, std::vector<double>(40, 1.0));
    Scalars scalars(runtime);
    const Scalar sum = scalars.make();
    Sequence step(scalars);
    step.pass(sum = dot(x, x), record(sum));
    // More waits than one job counts.
    constexpr std::int64_t times = 70000;
    step.run(times);
    step.run();
    EXPECT_EQ(scalars.iterations(), times + 1);
    EXPECT_EQ(scalars.get(sum), 40.0);
}

TEST_P(Sequences, WrongUseIsNamed)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = poisson<double>(3);
    auto matrix = runtime.distribute(a.view());
    Scalars scalars(runtime, 16);
    const Vec<double> x(matrix.make_y());
    const Vec<double> replicated(matrix.make_x(Layout::replicated));
    Sequence sequence(scalars);
    EXPECT_THROW(sequence.pass(replicated = x), Error);
    EXPECT_THROW(sequence.multiply(matrix, x, x), Error);
    const Scalar scalar = scalars.make();
    EXPECT_THROW(static_cast<void>(scalar * (scalar * x)), Error);
    EXPECT_THROW(static_cast<void>(scalar * (2.0 * x)), Error);
    EXPECT_THROW(static_cast<void>(2.0 * (scalar * x)), Error);
    EXPECT_EQ(std::get<double>((2.0 * (3.0 * x)).terms.front().scalar), 6.0);
    EXPECT_THROW(
        {
            for (int i = 0; i < 20; ++i) {
                static_cast<void>(scalars.make());
            }
        },
        Error);
    EXPECT_THROW(Scalars(runtime, 1), Error);
    Scalars others(runtime);
    const Scalar sum = others.make();
    Sequence split(others);
    EXPECT_THROW(split.end_pass(), Error);
    split.begin_pass(sum = dot(x, x));
    EXPECT_THROW(split.begin_pass(sum = dot(x, x)), Error);
    EXPECT_THROW(split.pass(sum = dot(x, x)), Error);
    EXPECT_THROW(split.run(), Error);
    split.end_pass();
    EXPECT_NO_THROW(split.run());
    EXPECT_THROW(Vec<double>(DistributedVector<double>()), Error);
}

INSTANTIATE_TEST_SUITE_P(All, Sequences, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
