#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/spgemm.hpp>

#include "matrices.hpp"
#include "spgemm_fixtures.hpp"

namespace rmsp::test {
namespace {

template <class T>
std::vector<T> as_vector(const HostVector<T>& v)
{
    return {v.begin(), v.end()};
}

class Spgemm : public RuntimeTest {};

TEST_P(Spgemm, HardMatrices)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        // Columns as many as A has rows would not fit: any B with the right rows will do.
        const auto b = with_row_lengths<double>(waves(a.cols, 5), 700, 3);
        expect_product(name, multiply<double>(*runtime_, a.view(), b.view()), a, b, 1.0);
    }
    for (const auto& [name, a] : hard_matrices<float>()) {
        const auto b = with_row_lengths<float>(waves(a.cols, 3), 90, 3);
        expect_product(name, multiply<float>(*runtime_, a.view(), b.view(), {}, -2.0F), a, b, -2.0F);
    }
}

TEST_P(Spgemm, SquaresShareTheirArrays)
{
    for (const auto& a : {stencil27<double>(9, 8, 7), banded<double>(500, 7), rmat<double>(9, 6),
                          with_row_lengths<double>(waves(400, 12), 400)}) {
        expect_product("square", multiply<double>(*runtime_, a.view(), a.view()), a, a, 1.0);
    }
}

TEST_P(Spgemm, EveryKernelOfTheseDevices)
{
    const auto kind = runtime_->devices().front().kind;
    const auto a = stencil27<double>(7, 6, 5);
    int used = 0;
    for (const auto& kernel : list_kernels()) {
        if (kernel.family == "spgemm" && kernel.device == kind && kernel.compiled) {
            SpgemmOptions options;
            options.kernel = kernel.name;
            expect_product(kernel.name.c_str(), multiply<double>(*runtime_, a.view(), a.view(), options), a, a, 1.0);
            ++used;
        }
    }
    EXPECT_GE(used, 2);
}

TEST_P(Spgemm, NewValuesInTheSameStructure)
{
    auto a = with_row_lengths<double>(waves(300, 9), 250, 1);
    auto b = with_row_lengths<double>(waves(250, 8), 400, 2);
    SparseProduct<double> product(*runtime_, a.view(), b.view());
    EXPECT_THROW(product.download(), Error);
    product.compute();
    const auto first = product.download();
    expect_product("first", first, a, b, 1.0);
    for (unsigned round = 0; round < 3; ++round) {
        const auto values = random_vector<double>(a.nnz(), 10 + round);
        a.values.assign(values.begin(), values.end());
        if (round > 0) {
            const auto others = random_vector<double>(b.nnz(), 20 + round);
            b.values.assign(others.begin(), others.end());
        }
        product.update_values(a.values.data(), round > 0 ? b.values.data() : nullptr);
        product.compute(0.5);
        const auto c = product.download();
        expect_product("renewed", c, a, b, 0.5);
        EXPECT_EQ(as_vector(c.row_ptr), as_vector(first.row_ptr));
        EXPECT_EQ(columns_of(c), columns_of(first));
    }
}

TEST_P(Spgemm, SquaresBecomeTwoMatricesWithNewValues)
{
    const auto a = stencil27<double>(6, 6, 6);
    auto left = a;
    auto right = a;
    SparseProduct<double> product(*runtime_, a.view(), a.view());
    const auto check = [&](const char* name) {
        product.compute();
        expect_product(name, product.download(), left, right, 1.0);
    };
    check("one matrix");
    const auto both = random_vector<double>(a.nnz(), 1);
    left.values.assign(both.begin(), both.end());
    right.values = left.values;
    product.update_values(both.data(), both.data());
    check("one matrix, renewed");
    const auto of_b = random_vector<double>(a.nnz(), 2);
    right.values.assign(of_b.begin(), of_b.end());
    product.update_values(nullptr, of_b.data());
    check("another B");
    const auto of_a = random_vector<double>(a.nnz(), 3);
    left.values.assign(of_a.begin(), of_a.end());
    product.update_values(of_a.data(), nullptr);
    check("another A");
}

TEST_P(Spgemm, RunsOfRowsWhereMemoryIsShort)
{
    const auto a = stencil27<double>(12, 11, 10);
    const auto whole = multiply<double>(*runtime_, a.view(), a.view());
    int chunked = 0;
    for (const double limit : {4e6, 2e6, 1e6, 6e5, 4e5}) {
        SpgemmOptions options;
        options.memory_limit = limit;
        SparseProduct<double> product;
        try {
            product = SparseProduct<double>(*runtime_, a.view(), a.view(), options);
            product.compute();
        } catch (const Error& e) {
            // A kernel may need more for itself.
            ASSERT_EQ(e.code(), ErrorCode::out_of_memory) << e.what();
            continue;
        }
        chunked += product.plan().chunked() ? 1 : 0;
        for (const auto& shard : product.plan().shards) {
            EXPECT_LE(shard.peak_bytes, static_cast<std::int64_t>(limit));
        }
        const auto c = product.download();
        expect_product("in runs", c, a, a, 1.0);
        EXPECT_TRUE(product.plan().exact);
        EXPECT_EQ(product.nnz(), whole.nnz());
        // And once more, with new values.
        auto other = a;
        const auto values = random_vector<double>(a.nnz(), 5);
        other.values.assign(values.begin(), values.end());
        product.update_values(other.values.data(), other.values.data());
        product.compute(2.0);
        expect_product("in runs, renewed", product.download(), other, other, 2.0);
    }
    EXPECT_GE(chunked, 1);
    // The runtime is as good as new.
    expect_product("after", multiply<double>(*runtime_, a.view(), a.view()), a, a, 1.0);
}

TEST_P(Spgemm, RowsThatDoNotFitAreAnErrorWithTheBytes)
{
    const auto a = stencil27<double>(9, 9, 9);
    SpgemmOptions options;
    options.memory_limit = 3000;
    try {
        multiply<double>(*runtime_, a.view(), a.view(), options);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
        EXPECT_THAT(e.what(), testing::HasSubstr("3000"));
    }
    expect_product("after", multiply<double>(*runtime_, a.view(), a.view()), a, a, 1.0);
}

TEST_P(Spgemm, TripleProductsAndSums)
{
    auto a = with_row_lengths<double>(waves(120, 9), 120, 1);
    const auto p = with_row_lengths<double>(waves(120, 3), 30, 2);
    const auto r = transposed<double>(p.view());
    TripleProduct<double> galerkin(*runtime_, r.view(), a.view(), p.view());
    for (unsigned round = 0; round < 3; ++round) {
        if (round > 0) {
            const auto values = random_vector<double>(a.nnz(), round);
            a.values.assign(values.begin(), values.end());
        }
        const auto c = galerkin.compute(round > 0 ? a.values.data() : nullptr);
        const auto ap = multiply<double>(*runtime_, a.view(), p.view());
        expect_product("R (A P)", c, r, ap, 1.0);
    }
    const auto d = with_row_lengths<double>(waves(30, 7), 30, 4);
    const auto sum = multiply_add<double>(*runtime_, 2.0, r.view(), p.view(), -1.0, d.view());
    const auto rp = multiply<double>(*runtime_, r.view(), p.view(), {}, 2.0);
    std::map<std::pair<std::int64_t, std::int64_t>, double> expected;
    for (const auto& [matrix, factor] : {std::pair(&rp, 1.0), std::pair(&d, -1.0)}) {
        for (std::int64_t row = 0; row < 30; ++row) {
            for (std::int64_t i = matrix->row_ptr[static_cast<std::size_t>(row)];
                 i < matrix->row_ptr[static_cast<std::size_t>(row) + 1]; ++i) {
                expected[{row, matrix->col_idx[i]}] += factor * matrix->values[static_cast<std::size_t>(i)];
            }
        }
    }
    ASSERT_EQ(sum.nnz(), static_cast<std::int64_t>(expected.size()));
    std::size_t at = 0;
    for (const auto& [place, value] : expected) {
        EXPECT_EQ(sum.col_idx[static_cast<std::int64_t>(at)], place.second);
        EXPECT_NEAR(sum.values[at], value, 1e-13);
        ++at;
    }
}

TEST_P(Spgemm, ProductsOfProducts)
{
    auto a = with_row_lengths<double>(waves(150, 9), 130, 1);
    const auto b = with_row_lengths<double>(waves(130, 6), 90, 2);
    const auto left = with_row_lengths<double>(waves(70, 8), 150, 3);
    SparseProduct<double> inner(*runtime_, a.view(), b.view());
    EXPECT_THROW(SparseProduct<double>(*runtime_, left.view(), inner), Error) << "no entries yet";
    inner.compute();
    SparseProduct<double> outer(*runtime_, left.view(), inner);
    EXPECT_THROW(inner.measure(0, 1), Error);
    for (unsigned round = 0; round < 3; ++round) {
        if (round > 0) {
            const auto values = random_vector<double>(a.nnz(), round);
            a.values.assign(values.begin(), values.end());
            inner.update_values(a.values.data(), nullptr);
            EXPECT_THROW(outer.compute(), Error) << "B has no values";
            inner.compute();
        }
        outer.compute(0.5);
        expect_product("A (B C)", outer.download(), left, inner.download(), 0.5);
    }
    // A product that needs a part of B's rows only, and one of an empty product.
    const auto few = small<double>(2, 150, {{{3, 1.0}, {4, 2.0}}, {{3, 1.0}}});
    SparseProduct<double> part(*runtime_, few.view(), inner);
    part.compute();
    expect_product("some rows", part.download(), few, inner.download(), 1.0);
    const auto none = with_row_lengths<double>(std::vector<std::int64_t>(150, 0), 130);
    SparseProduct<double> empty(*runtime_, none.view(), b.view());
    empty.compute();
    SparseProduct<double> of_empty(*runtime_, left.view(), empty);
    of_empty.compute();
    EXPECT_EQ(of_empty.download().nnz(), 0);
    EXPECT_EQ(inner.plan().shards.size(), runtime_->devices().size());
}

TEST_P(Spgemm, ProductsOfProductsWhereMemoryIsShort)
{
    auto a = stencil27<double>(9, 9, 8);
    int in_runs = 0;
    std::vector<std::pair<double, double>> limits;
    for (const double limit : {2e6, 1e6, 5e5, 2.5e5}) {
        limits.insert(limits.end(), {{0.9, limit}, {limit, 0.9}, {limit / 2, limit}});
    }
    for (const auto& [of_inner, of_outer] : limits) {
        SpgemmOptions options;
        try {
            options.memory_limit = of_inner;
            SparseProduct<double> inner(*runtime_, a.view(), a.view(), options);
            inner.compute();
            options.memory_limit = of_outer;
            SparseProduct<double> outer(*runtime_, a.view(), inner, options);
            for (unsigned round = 0; round < 2; ++round) {
                if (round > 0) {
                    const auto values = random_vector<double>(a.nnz(), 5);
                    a.values.assign(values.begin(), values.end());
                    inner.update_values(a.values.data(), a.values.data());
                    inner.compute();
                    outer.update_values(a.values.data(), nullptr);
                }
                outer.compute();
                expect_product("A (A A)", outer.download(), a, inner.download(), 1.0);
            }
            in_runs += inner.plan().chunked() || outer.plan().chunked() ? 1 : 0;
            for (const auto& shard : outer.plan().shards) {
                EXPECT_TRUE(of_outer < 1 || shard.peak_bytes <= static_cast<std::int64_t>(of_outer));
            }
        } catch (const Error& e) {
            ASSERT_EQ(e.code(), ErrorCode::out_of_memory) << e.what();
        }
    }
    EXPECT_GE(in_runs, 1);
}

TEST_P(Spgemm, DevicesExchangeTheRowsOfBThatSeveralNeed)
{
    // Every part of A touches most rows of B, of which each link then carries a slice.
    const auto a = with_row_lengths<double>(waves(400, 30), 300, 1);
    auto b = with_row_lengths<double>(waves(300, 9), 500, 2);
    for (const char* transport : {"auto", "none", "host"}) {
        SpgemmOptions options;
        options.transport = transport;
        SparseProduct<double> product(*runtime_, a.view(), b.view(), options);
        // Unless it is asked for, nothing that comes from the host goes through it again.
        const std::string used = std::string(transport) != "auto"            ? transport
                                 : runtime_->transport().starts_with("host") ? "host"
                                                                             : "other";
        const bool exchanged =
            runtime_->devices().size() > 1 && used != "none" && (used != "host" || used == transport);
        EXPECT_EQ(product.plan().exchange != "none", exchanged) << transport;
        product.compute();
        expect_product(transport, product.download(), a, b, 1.0);
        const auto values = random_vector<double>(b.nnz(), 8);
        b.values.assign(values.begin(), values.end());
        product.update_values(nullptr, b.values.data());
        product.compute();
        expect_product(transport, product.download(), a, b, 1.0);
    }
    const auto wide = stencil27<float>(8, 8, 8);
    CsrMatrix<float> wide_indices = wide;
    HostVector<std::int64_t> columns(static_cast<std::size_t>(wide.nnz()));
    for (std::int64_t i = 0; i < wide.nnz(); ++i) {
        columns[static_cast<std::size_t>(i)] = wide.col_idx[i];
    }
    wide_indices.col_idx = std::move(columns);
    const auto every = with_row_lengths<float>(waves(100, 60), 512, 3);
    expect_product("64-bit columns", multiply<float>(*runtime_, every.view(), wide_indices.view()), every, wide, 1.0F);
    SpgemmOptions wrong;
    wrong.transport = "pigeon";
    EXPECT_THROW(SparseProduct<double>(*runtime_, a.view(), b.view(), wrong), Error);
}

TEST_P(Spgemm, NanAndInfinityReachTheirRowsOnly)
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    auto a = stencil7<double>(6, 5, 4);
    auto b = a;
    a.values[a.values.size() / 2] = nan;
    b.values[1] = infinity;
    b.values.back() = -infinity;
    SparseProduct<double> product(*runtime_, a.view(), b.view());
    for (int round = 0; round < 2; ++round) {
        product.compute();
        const auto c = product.download();
        expect_product("NaN and infinity", c, a, b, 1.0);
        const auto infinite = [](double v) { return !std::isfinite(v); };
        const auto found = std::count_if(c.values.begin(), c.values.end(), infinite);
        EXPECT_GT(found, 0);
        EXPECT_LT(found, c.nnz() / 4);
    }
    SpgemmOptions options;
    options.prune_below = 1e300;
    for (const double value : multiply<double>(*runtime_, a.view(), b.view(), options).values) {
        EXPECT_FALSE(std::isfinite(value)) << "pruning leaves NaN and infinity alone";
    }
}

TEST_P(Spgemm, PrunesBelowAThreshold)
{
    const auto a = with_row_lengths<double>(waves(200, 9), 200, 1);
    const auto whole = multiply<double>(*runtime_, a.view(), a.view());
    SpgemmOptions options;
    options.prune_below = 0.3;
    const auto few = multiply<double>(*runtime_, a.view(), a.view(), options);
    std::vector<double> expected;
    for (const double value : whole.values) {
        if (!(std::abs(value) < 0.3)) {
            expected.push_back(value);
        }
    }
    EXPECT_LT(few.nnz(), whole.nnz());
    EXPECT_EQ(as_vector(few.values), expected);
    validate(few.view());
}

TEST_P(Spgemm, MeasuresTheWholeProductAndTheValuesAlone)
{
    const auto a = stencil27<double>(8, 8, 8);
    SparseProduct<double> product(*runtime_, a.view(), a.view());
    const auto measured = product.measure(1, 3);
    ASSERT_EQ(measured.size(), 2U);
    EXPECT_EQ(measured[0].name, "spgemm/double/whole");
    EXPECT_EQ(measured[1].name, "spgemm/double/numeric");
    for (const auto& m : measured) {
        EXPECT_EQ(m.iterations, 3);
        EXPECT_GT(m.median_seconds, 0);
        EXPECT_EQ(m.flops, 2.0 * static_cast<double>(product.plan().products));
    }
    expect_product("measured", product.download(), a, a, 1.0);
}

INSTANTIATE_TEST_SUITE_P(All, Spgemm, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
