#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

template <class T>
class Generators : public ::testing::Test {
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Generators, Reals);

/// Row pointers and columns by the definition: all pairs of points.
void expect_stencil(const CsrMatrix<double>& a, int nx, int ny, int nz, bool box)
{
    expect_canonical(a);
    ASSERT_EQ(a.rows, nx * ny * nz);
    std::int64_t k = 0;
    for (int i = 0; i < a.rows; ++i) {
        const std::int64_t first = k;
        EXPECT_EQ(a.row_ptr[static_cast<std::size_t>(i)], k);
        for (int j = 0; j < a.rows; ++j) {
            const int dx = std::abs(i % nx - j % nx);
            const int dy = std::abs(i / nx % ny - j / nx % ny);
            const int dz = std::abs(i / nx / ny - j / nx / ny);
            if (box ? std::max({dx, dy, dz}) <= 1 : dx + dy + dz <= 1) {
                ASSERT_LT(k, a.nnz());
                ASSERT_EQ(a.col_idx[k++], j) << "row " << i;
            }
        }
        for (std::int64_t e = first; e < k; ++e) {
            EXPECT_EQ(a.values[static_cast<std::size_t>(e)],
                      a.col_idx[e] == i ? static_cast<double>(k - first - 1) : -1.0);
        }
    }
    EXPECT_EQ(a.nnz(), k);
}

TEST(Stencils, MatchTheirDefinition)
{
    GenerateOptions options;
    options.values = ValueKind::laplace;
    for (const auto& [nx, ny, nz] :
         {std::tuple{1, 1, 1}, {3, 4, 5}, {1, 5, 2}, {7, 1, 1}, {2, 2, 2}, {1, 1, 6}, {5, 3, 1}}) {
        expect_stencil(stencil27<double>(nx, ny, nz, options), nx, ny, nz, true);
        expect_stencil(stencil7<double>(nx, ny, nz, options), nx, ny, nz, false);
    }
    EXPECT_EQ(stencil27<double>(0, 5, 5).rows, 0);
    EXPECT_EQ(stencil7<double>(5, 5, 0).nnz(), 0);
    EXPECT_EQ(stencil27<float>(40, 41, 42).nnz(), (3 * 40 - 2) * (3 * 41 - 2) * (3 * 42 - 2));
}

TEST(Stencils, PoissonByHand)
{
    const GenerateOptions poisson{.values = ValueKind::poisson};
    EXPECT_EQ(dense(stencil7<double>(1, 1, 1, poisson)), (std::vector<double>{6}));
    EXPECT_EQ(dense(stencil27<float>(1, 1, 1, poisson)), (std::vector<float>{26}));
    EXPECT_EQ(dense(stencil7<double>(3, 1, 1, poisson)), (std::vector<double>{6, -1, 0, -1, 6, -1, 0, -1, 6}));
    EXPECT_EQ(dense(stencil27<double>(2, 2, 1, poisson)),
              (std::vector<double>{26, -1, -1, -1, -1, 26, -1, -1, -1, -1, 26, -1, -1, -1, -1, 26}));
    EXPECT_EQ(stencil7<double>(0, 5, 5, poisson).rows, 0);
}

TEST(Stencils, PoissonRowsSumToWhatLiesOutsideTheGrid)
{
    const GenerateOptions poisson{.values = ValueKind::poisson};
    for (const auto& [a, points] :
         {std::pair{stencil7<double>(5, 4, 3, poisson), 7}, std::pair{stencil27<double>(5, 4, 3, poisson), 27}}) {
        bool inside = false;
        for (std::size_t r = 0; r < static_cast<std::size_t>(a.rows); ++r) {
            const double sum =
                std::accumulate(a.values.begin() + a.row_ptr[r], a.values.begin() + a.row_ptr[r + 1], 0.);
            const std::int64_t missing = points - (a.row_ptr[r + 1] - a.row_ptr[r]);
            EXPECT_EQ(sum, static_cast<double>(missing)) << "row " << r;
            inside = inside || missing == 0;
        }
        EXPECT_TRUE(inside);
    }
}

TEST(Stencils, PoissonIsPositiveDefinite)
{
    const GenerateOptions poisson{.values = ValueKind::poisson};
    for (const CsrMatrix<double>& a : {stencil7<double>(4, 3, 3, poisson), stencil27<double>(3, 4, 3, poisson)}) {
        // Cholesky's factorisation, which exists of no other symmetric matrix.
        const auto n = static_cast<std::size_t>(a.rows);
        std::vector<double> l = dense(a);
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < j; ++k) {
                for (std::size_t i = j; i < n; ++i) {
                    l[i * n + j] -= l[i * n + k] * l[j * n + k];
                }
            }
            ASSERT_GT(l[j * n + j], 0);
            const double root = std::sqrt(l[j * n + j]);
            for (std::size_t i = j; i < n; ++i) {
                l[i * n + j] /= root;
            }
        }
    }
}

TYPED_TEST(Generators, Banded)
{
    GenerateOptions ones;
    ones.values = ValueKind::ones;
    for (const int rows : {0, 1, 2, 5, 9}) {
        for (const int half : {0, 1, 3, 8, 100}) {
            const auto a = banded<TypeParam>(rows, half, ones);
            expect_canonical(a);
            const auto full = dense(a);
            for (int i = 0; i < rows * rows; ++i) {
                ASSERT_EQ(full[static_cast<std::size_t>(i)], std::abs(i / rows - i % rows) <= half ? 1 : 0);
            }
        }
    }
}

TYPED_TEST(Generators, RandomHasDistinctColumns)
{
    for (const int cols : {0, 1, 7, 100}) {
        for (const int each : {0, 1, 3, 6, 99, 1000}) {
            const auto a = random_uniform<TypeParam>(50, cols, each);
            expect_canonical(a);
            EXPECT_EQ(a.nnz(), 50 * std::min(cols, each));
            for (const TypeParam v : a.values) {
                ASSERT_TRUE(v >= -1 && v < 1);
            }
        }
    }
    // Columns are uniform: each of 100 columns is hit about 1000 times.
    const auto a = random_uniform<TypeParam>(10000, 100, 10);
    std::vector<int> hits(100, 0);
    for (std::int64_t k = 0; k < a.nnz(); ++k) {
        ++hits[static_cast<std::size_t>(a.col_idx[k])];
    }
    for (const int h : hits) {
        EXPECT_NEAR(h, 1000, 6 * 30);
    }
}

TYPED_TEST(Generators, Rmat)
{
    const auto a = rmat<TypeParam>(10, 8);
    expect_canonical(a);
    EXPECT_EQ(a.rows, 1024);
    EXPECT_LT(a.nnz(), 8 * 1024);
    EXPECT_GT(a.nnz(), 3 * 1024);
    // The share of edges in the upper half of the rows is a + b = 0.76, less what duplicates take.
    EXPECT_GT(static_cast<double>(a.row_ptr[512]) / static_cast<double>(a.nnz()), 0.65);
    EXPECT_EQ(rmat<TypeParam>(0, 5).nnz(), 1);
    EXPECT_EQ(rmat<TypeParam>(4, 0).nnz(), 0);
}

TYPED_TEST(Generators, PowerLaw)
{
    constexpr std::int64_t rows = 200000;
    for (const double exponent : {1.0, 1.5, 2.0, 2.4, 3.09, 4.0}) {
        SCOPED_TRACE(exponent);
        const auto a = power_law<TypeParam>(rows, 20, exponent);
        expect_canonical(a);
        EXPECT_EQ(a.rows, rows);
        EXPECT_EQ(a.cols, rows);
        EXPECT_NEAR(static_cast<double>(a.nnz()), 20.0 * rows, 0.02 * 20.0 * rows);
        // The share of rows of at least k and of at least 2k entries differs by the factor 2^(exponent - 1), far from
        // the ends.
        std::int64_t above = 0;
        std::int64_t twice = 0;
        const std::int64_t k = exponent < 2 ? 20 : 60;
        std::int64_t longest = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const auto n = a.row_ptr[static_cast<std::size_t>(r) + 1] - a.row_ptr[static_cast<std::size_t>(r)];
            longest = std::max(longest, n);
            above += n >= k ? 1 : 0;
            twice += n >= 2 * k ? 1 : 0;
        }
        EXPECT_LE(longest, 2001);
        // What the longest length takes away from both.
        const auto end = static_cast<double>(longest);
        const auto share = [&](double length) {
            return exponent == 1.0 ? std::log(end / length)
                                   : std::pow(length, 1 - exponent) - std::pow(end, 1 - exponent);
        };
        EXPECT_NEAR(static_cast<double>(above) / static_cast<double>(twice),
                    share(static_cast<double>(k)) / share(2.0 * static_cast<double>(k)),
                    0.25 * std::pow(2, exponent - 1));
        // Long rows come first.
        EXPECT_GT(a.row_ptr[rows / 8], a.nnz() / 8);
    }
    EXPECT_EQ(power_law<TypeParam>(0, 5, 2).nnz(), 0);
    EXPECT_EQ(power_law<TypeParam>(5, 0, 2).nnz(), 0);
    expect_canonical(power_law<TypeParam>(3, 100, 2));
}

TEST(Generated, SameOnAnyNumberOfThreadsAndDifferentBySeed)
{
    GenerateOptions other;
    other.seed = 2;
    for (const char* what : {"stencil27 20 21 22", "stencil7 30 20 20", "banded 20000 3", "rmat 12 16",
                             "random 9000 500 7", "powerlaw 9000 9 2.1"}) {
        const auto a = generate<double>(what);
#ifdef _OPENMP
        const int before = omp_get_max_threads();
        for (const int threads : {1, 3}) {
            omp_set_num_threads(threads);
            expect_equal(generate<double>(what), a);
        }
        omp_set_num_threads(before);
#endif
        EXPECT_NE(generate<double>(what, other).values, a.values) << what;
    }
}

TEST(Generated, RandomValuesAreUniform)
{
    const auto a = banded<double>(100000, 0);
    double sum = 0;
    double squares = 0;
    for (const double v : a.values) {
        sum += v;
        squares += v * v;
    }
    EXPECT_NEAR(sum / 1e5, 0, 0.01);
    EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.01);
}

TEST(PlusIdentity, AddsToTheDiagonalOrStoresIt)
{
    CsrMatrix<double> a = parse_matrix_market<double>(
        "%%MatrixMarket matrix coordinate real general\n4 4 5\n1 2 5\n2 2 7\n3 1 1\n3 4 2\n4 1 3\n", "a");
    const CsrMatrix<double> sum = plus_identity(a.view());
    expect_canonical(sum);
    EXPECT_EQ(dense(sum), (std::vector<double>{1, 5, 0, 0, 0, 8, 0, 0, 1, 0, 1, 2, 3, 0, 0, 1}));
    EXPECT_EQ(plus_identity(sum.view()).nnz(), sum.nnz());
    EXPECT_EQ(plus_identity(generate<float>("random 7 7 0").view()).nnz(), 7);
    EXPECT_EQ(plus_identity(CsrMatrix<float>{0, 0, {0}, IndexArray(IndexType::i32, 0), {}}.view()).nnz(), 0);
    EXPECT_NE(message_of(ErrorCode::usage, [] { plus_identity(generate<float>("random 2 3 1").view()); }).find("2 x 3"),
              std::string::npos);
}

TEST(KroneckerOnes, RepeatsEachEntryInABlock)
{
    const CsrMatrix<double> a =
        parse_matrix_market<double>("%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 5\n1 3 6\n2 2 7\n", "a");
    const CsrMatrix<double> product = kronecker_ones(a.view(), 2);
    expect_canonical(product);
    EXPECT_EQ(product.rows, 4);
    EXPECT_EQ(product.cols, 6);
    EXPECT_EQ(dense(product), (std::vector<double>{5, 5, 0, 0, 6, 6,  //
                                                   5, 5, 0, 0, 6, 6,  //
                                                   0, 0, 7, 7, 0, 0,  //
                                                   0, 0, 7, 7, 0, 0}));
    expect_equal(kronecker_ones(a.view(), 1), a);
    // Several tasks.
    const CsrMatrix<float> grid = generate<float>("stencil7 30 20 10");
    EXPECT_EQ(kronecker_ones(grid.view(), 3).nnz(), 9 * grid.nnz());
    expect_canonical(kronecker_ones(grid.view(), 3));
    message_of(ErrorCode::usage, [&] { kronecker_ones(a.view(), 0); });
    message_of(ErrorCode::usage, [&] { kronecker_ones(a.view(), std::int64_t{1} << 62); });
    message_of(ErrorCode::out_of_memory, [&] { kronecker_ones(a.view(), 100'000'000); });
}

TEST(SetValues, MakesWhatTheGeneratorsMake)
{
    for (const ValueKind kind : {ValueKind::random, ValueKind::ones, ValueKind::laplace, ValueKind::poisson}) {
        GenerateOptions options;
        options.seed = 9;
        options.values = kind;
        const CsrMatrix<double> expected = generate<double>("stencil7 20 30 10", options);
        CsrMatrix<double> a = generate<double>("stencil7 20 30 10");
        set_values(a, kind, 9);
        expect_equal(a, expected);
    }
    CsrMatrix<double> wide = generate<double>("random 2 3 1");
    message_of(ErrorCode::usage, [&] { set_values(wide, ValueKind::laplace); });
    message_of(ErrorCode::usage, [&] { set_values(wide, ValueKind::poisson); });
}

TEST(SetValues, PoissonIsRefusedWhereEveryRowWouldSumToZero)
{
    CsrMatrix<double> cycle;
    cycle.rows = cycle.cols = 3;
    cycle.row_ptr = {0, 3, 6, 9};
    cycle.col_idx = HostVector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2};
    cycle.values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    EXPECT_EQ(message_of(ErrorCode::usage, [&] { set_values(cycle, ValueKind::poisson); }),
              "values \"poisson\": each of the 3 rows has 2 entries beside the diagonal, so all would sum to zero and "
              "the matrix would be singular");
    CsrMatrix<double> path = stencil7<double>(3, 1, 1);
    set_values(path, ValueKind::poisson);
    EXPECT_EQ(dense(path), (std::vector<double>{2, -1, 0, -1, 2, -1, 0, -1, 2}));
}

TEST(Generated, DescriptionsAreChecked)
{
    const auto message = [](const std::string& what) {
        return message_of(ErrorCode::usage, [&] { generate<float>(what); });
    };
    EXPECT_EQ(
        message("stencil9 4 4")
            .find("generated matrix \"stencil9 4 4\": unknown generator \"stencil9\"; known are: stencil27 nx ny nz, "
                  "stencil7 nx ny nz, banded rows half_band, rmat scale edge_factor, random rows cols per_row, "
                  "powerlaw rows per_row exponent, stencil19 nx ny nz, "),
        0U);
    EXPECT_EQ(message("stencil27 4 4"),
              "generated matrix \"stencil27 4 4\": nz is missing (usage: stencil27 nx ny nz)");
    EXPECT_EQ(message("rmat 4 4 4"),
              "generated matrix \"rmat 4 4 4\": unexpected \"4\" (usage: rmat scale edge_factor)");
    EXPECT_EQ(message("banded ten 1"),
              "generated matrix \"banded ten 1\": rows \"ten\" is not an integer (usage: banded rows half_band)");
    EXPECT_EQ(message("banded 10 -1"), "generated matrix \"banded 10 -1\": half_band \"-1\" is negative");
    EXPECT_EQ(
        message("random 1 99999999999999999999 1"),
        "generated matrix \"random 1 99999999999999999999 1\": cols \"99999999999999999999\" does not fit 64 bits");
    EXPECT_EQ(message("powerlaw 10 2 steep"),
              "generated matrix \"powerlaw 10 2 steep\": exponent \"steep\" is not a number");
    EXPECT_EQ(message("powerlaw 10 2 0.5"), "powerlaw: exponent is 0.5, it must be from 1 to 4");
    EXPECT_EQ(message("powerlaw 10 2 nan"), "powerlaw: exponent is nan, it must be from 1 to 4");
    EXPECT_NE(message("  ").find("it is empty"), std::string::npos);
    EXPECT_EQ(message("rmat 32 1"), "rmat: scale is 32, it must be at most 31 (an edge is one 64-bit number)");
    message("rmat 4 9999999999");
    message("stencil27 9000000000000000000 9000000000000000000 9000000000000000000");
    message("banded 9000000000000000000 9000000000000000000");
    message_of(ErrorCode::out_of_memory, [] { generate<double>("stencil27 1000000 1000000 10000"); });
    message_of(ErrorCode::out_of_memory, [] { generate<double>("random 1000000000000000 5 0"); });
    message_of(ErrorCode::out_of_memory, [] { generate<double>("rmat 31 10000"); });
    message_of(ErrorCode::out_of_memory, [] { generate<double>("powerlaw 1000000000000000 5 2"); });
    for (const ValueKind kind : {ValueKind::laplace, ValueKind::poisson}) {
        for (const char* what : {"banded 3 1", "rmat 3 3", "random 3 3 3", "powerlaw 3 3 2"}) {
            message_of(ErrorCode::usage, [&] { generate<double>(what, {.values = kind}); });
        }
    }
    EXPECT_EQ(generate<double>("  banded\t10   1 ").nnz(), 28);
}

}  // namespace
