#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/spgemm.hpp>

#include "matrices.hpp"
#include "runtime/spgemm/exchange.hpp"
#include "runtime/spgemm/rows.hpp"
#include "runtime/spgemm/work.hpp"
#include "spgemm_fixtures.hpp"

#include "tests/paths.hpp"

namespace rmsp::test {
namespace {

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
    EXPECT_EQ(spgemm::count_work(single, b).before.back(), b_ptr[1] + spgemm::row_work);
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
    described.topology_file = machine_file("dgx-h200");
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
