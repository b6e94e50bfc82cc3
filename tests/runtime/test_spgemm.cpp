#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/spgemm.hpp>

#include "matrices.hpp"
#include "runtime/spgemm/exchange.hpp"
#include "runtime/spgemm/rows.hpp"
#include "runtime/spgemm/work.hpp"

namespace rmsp::test {
namespace {

/// Row lengths that rise and fall, so that parts, chunks and columns differ.
std::vector<std::int64_t> waves(std::int64_t rows, std::int64_t most)
{
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < rows; ++i) {
        lengths.push_back((i * i) % (most + 1));
    }
    return lengths;
}

template <class T>
std::vector<T> as_vector(const HostVector<T>& v)
{
    return {v.begin(), v.end()};
}

template <class T>
std::vector<std::int64_t> columns_of(const CsrMatrix<T>& a)
{
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < a.nnz(); ++i) {
        out.push_back(a.col_idx[i]);
    }
    return out;
}

template <class T>
void expect_product(const char* name, const CsrMatrix<T>& c, const CsrMatrix<T>& a, const CsrMatrix<T>& b, T alpha)
{
    ASSERT_EQ(c.rows, a.rows);
    ASSERT_EQ(c.cols, b.cols);
    const Verification v = verify_spgemm<T>(a.view(), b.view(), alpha, c.view(), c.rows);
    EXPECT_TRUE(v.passed) << name << ": row " << v.worst_row << ", error " << v.error << ", bound " << v.bound;
}

template <class T>
CsrMatrix<T> small(std::int64_t rows, std::int64_t cols, const std::vector<std::map<int, T>>& entries)
{
    CsrMatrix<T> a;
    a.rows = rows;
    a.cols = cols;
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (const auto& row : entries) {
        for (const auto& [column, value] : row) {
            columns.push_back(column);
            a.values.push_back(value);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = std::move(columns);
    return a;
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

TEST(SpgemmApi, WideIndicesUnsortedColumnsAndDuplicates)
{
    Runtime runtime({.devices = "host:3"});
    const auto a = with_row_lengths<double>(waves(90, 11), 70, 1);
    const auto b = with_row_lengths<double>(waves(70, 11), 50, 2);
    const std::vector<std::int64_t> a_cols = columns_of(a);
    const std::vector<std::int64_t> b_cols = columns_of(b);
    const std::vector<std::int32_t> a_ptr(a.row_ptr.begin(), a.row_ptr.end());
    auto wide_a = a.view();
    wide_a.col_idx = IndexView(a_cols.data());
    wide_a.row_ptr = IndexView(a_ptr.data());
    auto wide_b = b.view();
    wide_b.col_idx = IndexView(b_cols.data());
    expect_product("wide", multiply<double>(runtime, wide_a, wide_b), a, b, 1.0);
}

TEST(SpgemmApi, RefusesWhatDoesNotFit)
{
    Runtime runtime({.devices = "host:2"});
    const auto a = with_row_lengths<double>({1, 2}, 3);
    const auto b = with_row_lengths<double>({1, 2}, 3);
    const auto message = [&](const CsrView<double>& l, const CsrView<double>& r, const SpgemmOptions& options) {
        try {
            multiply<double>(runtime, l, r, options);
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage);
            return std::string(e.what());
        }
        return std::string("no error");
    };
    EXPECT_THAT(message(a.view(), b.view(), {}), testing::HasSubstr("A is 2 x 3 and B is 2 x 3"));
    const auto good = with_row_lengths<double>({1, 2, 0}, 3);
    EXPECT_THAT(message(a.view(), good.view(), {.kernel = "abacus"}), testing::HasSubstr("abacus"));
    EXPECT_THAT(message(a.view(), good.view(), {.accumulator = "abacus"}), testing::HasSubstr("abacus"));
    EXPECT_THAT(message(a.view(), good.view(), {.memory_limit = 0}), testing::HasSubstr("memory limit of 0"));
    EXPECT_THAT(message(a.view(), good.view(), {.memory_limit = -1}), testing::HasSubstr("memory limit of -1"));
    EXPECT_THAT(message(a.view(), good.view(), {.prune_below = -1}), testing::HasSubstr("threshold of -1"));
    EXPECT_THAT(message(a.view(), good.view(), {.prune_below = std::numeric_limits<double>::quiet_NaN()}),
                testing::HasSubstr("threshold of nan"));
    const auto beyond = small<double>(3, 3, {{{0, 1.0}}, {{2, 1.0}}, {}});
    auto bad = beyond.view();
    bad.cols = 1;
    EXPECT_THAT(message(a.view(), bad, {}), testing::HasSubstr("column"));
    auto wide = good.view();
    wide.cols = std::int64_t{1} << 31;
    EXPECT_THAT(message(a.view(), wide, {}), testing::HasSubstr("2147483648"));
    EXPECT_THROW(add<double>(1, a.view(), 1, good.view()), Error);
    EXPECT_THROW(multiply_add<double>(runtime, 1, a.view(), good.view(), 1, good.view()), Error);
    EXPECT_THROW(SparseProduct<double>().compute(), Error);
    SparseProduct<double> product(runtime, a.view(), good.view());
    EXPECT_THROW(product.measure(0, 0), Error);
}

TEST(SpgemmApi, ProductsOutliveTheirRuntime)
{
    const auto a = with_row_lengths<double>({1, 2, 0}, 3);
    SparseProduct<double> product;
    {
        Runtime runtime({.devices = "host:2"});
        product = SparseProduct<double>(runtime, a.view(), a.view());
    }
    EXPECT_THROW(product.compute(), Error);
}

TEST(SpgemmApi, ProductsThatOverflowAreAnError)
{
    // Row pointers of a matrix that no memory holds; nothing but them is read.
    const std::vector<std::int64_t> a_ptr{0, 3};
    const std::vector<std::int32_t> a_col{0, 0, 0};
    const std::vector<std::int64_t> b_ptr{0, std::int64_t{1} << 62};
    const CsrView<double> a{1, 1, 3, a_ptr.data(), a_col.data(), nullptr};
    const CsrView<double> b{1, 1, b_ptr[1], b_ptr.data(), a_col.data(), nullptr};
    try {
        spgemm::count_work(a, b);
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        EXPECT_THAT(e.what(),
                    testing::HasSubstr("A (1 x 1, 3 nonzeros) times B (1 x 1, 4611686018427387904 nonzeros)"));
    }
    const CsrView<double> once{1, 1, 1, b_ptr.data(), a_col.data(), nullptr};
    const std::vector<std::int64_t> one{0, 1};
    CsrView<double> single = once;
    single.row_ptr = one.data();
    EXPECT_EQ(spgemm::count_work(single, b).back(), b_ptr[1] + spgemm::row_work);
}

TEST(SpgemmApi, SelectsTheRowsOfBThatAreTouched)
{
    const auto a = small<double>(3, 9, {{{1, 1.0}, {7, 1.0}}, {}, {{2, 1.0}, {7, 1.0}}});
    const auto b = with_row_lengths<double>({1, 2, 3, 40, 50, 60, 1, 4, 1}, 99);
    const auto selected = spgemm::select_rows(a.view(), 0, 3, b.view(), 2);
    EXPECT_EQ(selected.rows, 3);
    EXPECT_EQ(selected.nnz, 9);
    EXPECT_EQ(selected.runs, (std::vector<spgemm::RowRun>{{1, 3, 0}, {7, 8, 5}}));
    EXPECT_TRUE(spgemm::select_rows(a.view(), 1, 2, b.view(), 2).runs.empty());
    // Where little lies between, all of it comes along.
    const auto even = with_row_lengths<double>({1, 20, 30, 0, 1, 1, 1, 40, 1}, 99);
    const auto range = spgemm::select_rows(a.view(), 0, 3, even.view(), 2);
    EXPECT_EQ(range.runs, (std::vector<spgemm::RowRun>{{1, 8, 0}}));
    EXPECT_EQ(range.nnz, 93);
}

TEST(SpgemmApi, SlicesOfBAreWhatTheirDevicesNeed)
{
    using Ranges = std::vector<transport::Range>;
    using Slices = std::vector<std::int64_t>;
    EXPECT_EQ(spgemm::entry_slices({{0, 100}, {0, 100}, {0, 100}, {0, 100}}), (Slices{0, 25, 50, 75, 100}));
    EXPECT_EQ(spgemm::entry_slices({{10, 70}, {30, 110}}), (Slices{10, 60, 110}));
    EXPECT_EQ(spgemm::entry_slices({{0, 40}, {20, 110}, {30, 110}}), (Slices{0, 36, 73, 110}));
    EXPECT_EQ(spgemm::entry_slices({{0, 30}, {5, 100}, {20, 100}}), (Slices{0, 30, 66, 100}));
    EXPECT_EQ(spgemm::entry_slices({{0, 60}, {40, 100}}), (Slices{0, 50, 100}));
    EXPECT_TRUE(spgemm::entry_slices({{50, 100}, {0, 100}, {0, 60}}).empty()) << "not in order";
    EXPECT_TRUE(spgemm::entry_slices({{0, 100}, {0, 0}, {0, 100}}).empty()) << "a device that needs nothing";
    EXPECT_TRUE(spgemm::entry_slices({}).empty());
    const auto pays = [](std::int64_t from_host, const Ranges& needed) {
        spgemm::RowSelection rows;
        rows.nnz = from_host;
        return spgemm::exchange_pays(std::vector<spgemm::RowSelection>(needed.size(), rows), needed);
    };
    EXPECT_TRUE(pays(100, {{0, 100}, {0, 100}}));
    EXPECT_TRUE(pays(90, {{0, 100}, {0, 100}}));
    EXPECT_FALSE(pays(60, {{0, 100}, {0, 100}})) << "most of what lies between is not needed";
    EXPECT_FALSE(pays(60, {{0, 60}, {40, 100}})) << "little in common";
    EXPECT_FALSE(pays(100, {{0, 100}}));
    const std::vector<std::int64_t> row_ptr{0, 5, 9, 20};
    std::vector<spgemm::RowSelection> selections(2);
    selections[1].runs = {{1, 3, 0}};
    EXPECT_EQ(spgemm::needed_entries(selections, row_ptr.data()), (Ranges{{0, 0}, {5, 20}}));
    selections[1].runs = {{0, 1, 0}, {2, 3, 5}};
    EXPECT_TRUE(spgemm::needed_entries(selections, row_ptr.data()).empty());
}

TEST(SpgemmApi, PlansForAMachineThatIsNotThere)
{
    RuntimeOptions described;
    described.topology_file = RMSP_TOPOLOGIES "/dgx-h200.toml";
    const Runtime runtime(described);
    const auto a = stencil27<double>(20, 20, 20);
    const SpgemmPlan plan = SparseProduct<double>::plan(runtime, a.view(), a.view());
    ASSERT_EQ(plan.shards.size(), 8U);
    std::int64_t products = 0;
    std::int64_t row = 0;
    for (const auto& shard : plan.shards) {
        EXPECT_EQ(shard.first_row, row);
        row = shard.end_row;
        products += shard.products;
        EXPECT_LE(shard.c_nnz, shard.c_nnz_most);
        EXPECT_LT(shard.b_rows, 8000 / 2);
    }
    EXPECT_EQ(row, a.rows);
    EXPECT_EQ(products, plan.products);
    EXPECT_LT(plan.product_imbalance, 0.02);
    EXPECT_FALSE(plan.exact);
    EXPECT_THAT(plan.to_text(), testing::HasSubstr("about"));
    EXPECT_THROW(SparseProduct<double>(const_cast<Runtime&>(runtime), a.view(), a.view()), Error);
    // The estimate comes from sampled rows.
    const double counted = static_cast<double>([&] {
        Runtime host({.devices = "host:1"});
        return multiply<double>(host, a.view(), a.view()).nnz();
    }());
    EXPECT_NEAR(static_cast<double>(plan.c_nnz), counted, 0.1 * counted);
}

TEST(SpgemmApi, VerificationFindsWhatIsWrong)
{
    Runtime runtime({.devices = "host:2"});
    const auto a = with_row_lengths<double>(waves(300, 9), 300, 1);
    const auto good = multiply<double>(runtime, a.view(), a.view());
    const auto passed = [&](const CsrMatrix<double>& c, std::int64_t sampled) {
        return verify_spgemm<double>(a.view(), a.view(), 1.0, c.view(), sampled).passed;
    };
    EXPECT_TRUE(passed(good, 10));
    auto value = good;
    value.values[777] += 1e-8;
    EXPECT_FALSE(passed(value, 0));
    auto nan = good;
    nan.values[5] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(passed(nan, 0));
    auto column = good;
    column.col_idx.visit([](auto& columns) { std::swap(columns[100], columns[101]); });
    EXPECT_FALSE(passed(column, 0));
    auto missing = pruned<double>(good.view(), 0.01);
    EXPECT_FALSE(passed(missing, 300));
}

}  // namespace
}  // namespace rmsp::test
