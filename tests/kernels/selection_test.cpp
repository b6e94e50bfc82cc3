#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kernels/spgemm/spgemm.hpp>
#include <kernels/spmv/csr_row_vector/policy.hpp>
#include <kernels/spmv/ehyb/graph_parts.hpp>
#include <kernels/spmv/spmv.hpp>
#include <kernels/vendor/cusparse_version.hpp>
#include <rmsp/error.hpp>

#include "usage_message.hpp"

namespace rmsp::kernels::test {
namespace {

RowStatistics regular(std::int64_t rows, std::int64_t length)
{
    return {rows, rows * length, 0, length, static_cast<double>(length), 0};
}

TEST(Registry, NamesAreUniqueForEachKindAndTheSameInBothPrecisions)
{
    const auto doubles = spmv_kernels<double>();
    const auto floats = spmv_kernels<float>();
    ASSERT_EQ(doubles.size(), floats.size());
    std::set<std::pair<DeviceKind, std::string>> seen;
    for (std::size_t i = 0; i < doubles.size(); ++i) {
        EXPECT_EQ(doubles[i].info.name, floats[i].info.name);
        EXPECT_TRUE(seen.emplace(doubles[i].info.device, doubles[i].info.name).second) << doubles[i].info.name;
        EXPECT_NE(doubles[i].info.name, "auto");
        EXPECT_FALSE(doubles[i].info.summary.empty());
    }
    const auto listed = list_kernels();
    EXPECT_EQ(std::count_if(listed.begin(), listed.end(),
                            [](const KernelInfo& k) { return k.family == "spmv" && k.format == Format::csr; }),
              static_cast<std::ptrdiff_t>(doubles.size()));
    EXPECT_EQ(list_kernels().front().family, "spmv");
}

/// Whether what it needs beyond CUDA is there.
bool has_needs(const std::string& name)
{
    return (name != "ehyb-metis" || has_metis()) && (!name.starts_with("cusparse-spmvop") || cusparse::has_spmvop());
}

TEST(Registry, ListsCudaKernelsInEveryBuild)
{
    for (const auto& kernel : spmv_kernels<float>()) {
#ifdef RMSP_HAVE_CUDA
        EXPECT_EQ(kernel.info.compiled, has_needs(kernel.info.name));
#else
        EXPECT_EQ(kernel.info.compiled, kernel.info.device == DeviceKind::host && has_needs(kernel.info.name));
        if (!kernel.info.compiled) {
            const Context context;
            EXPECT_THROW(kernel.prepare(CsrShard<float>{}, RowStatistics{}, context), NotCompiled);
        }
#endif
    }
}

TEST(Registry, NamesOfEnumerators)
{
    EXPECT_STREQ(to_string(DeviceKind::host), "host");
    EXPECT_STREQ(to_string(DeviceKind::cuda), "cuda");
    EXPECT_STREQ(to_string(Determinism::none), "none");
    EXPECT_STREQ(to_string(Determinism::run), "run");
    EXPECT_STREQ(to_string(Determinism::device_count), "device_count");
}

TEST(Choice, AutomaticOnHosts)
{
    EXPECT_EQ(choose_spmv<double>(DeviceKind::host, "auto", Determinism::device_count, regular(5, 3), 5).info.name,
              "csr-openmp");
    EXPECT_EQ(choose_spmv<float>(DeviceKind::host, "auto", Determinism::none, {}, 0).info.name, "csr-openmp");
}

TEST(Choice, AutomaticOnGpus)
{
    const auto chosen = [](const RowStatistics& rows, Determinism level) {
        return choose_spmv<double>(DeviceKind::cuda, "auto", level, rows, rows.rows).info.name;
    };
    EXPECT_EQ(chosen(regular(1000, 27), Determinism::none),
              prefers_row_vector(regular(1000, 27)) ? "csr-row-vector" : "csr-nnz-split");
    EXPECT_EQ(chosen({1000, 16000, 400, 9000, 16, 280}, Determinism::run), "csr-nnz-split");
    EXPECT_EQ(chosen({}, Determinism::none), "csr-nnz-split");
    EXPECT_EQ(chosen(regular(1000, 27), Determinism::device_count), "csr-row-warp");
    EXPECT_EQ(chosen(regular(1 << 20, 27), Determinism::device_count), "sell");
}

TEST(Choice, RegularRowsByTheirLimits)
{
    const RegularRows limits{4, 0.25, 12, 10};
    EXPECT_TRUE(prefers_row_vector(regular(10, 27), limits));
    EXPECT_FALSE(prefers_row_vector(regular(9, 27), limits)) << "too few rows";
    EXPECT_TRUE(prefers_row_vector({10, 400, 0, 160, 40, 10}, limits));
    EXPECT_FALSE(prefers_row_vector({10, 400, 0, 161, 40, 10}, limits)) << "one row is too long";
    EXPECT_FALSE(prefers_row_vector({10, 400, 0, 160, 40, 10.1}, limits)) << "lengths differ too much";
    EXPECT_FALSE(prefers_row_vector(regular(10, 11), limits)) << "rows are too short";
    EXPECT_FALSE(prefers_row_vector({}, limits));
}

TEST(Choice, StagedRowsByTheirLimits)
{
    const StagedRows limits{100, 20, 2};
    EXPECT_TRUE(stages_rows(regular(10, 10), limits));
    EXPECT_FALSE(stages_rows(regular(9, 11), limits)) << "too few nonzeros";
    EXPECT_TRUE(stages_rows({10, 100, 0, 20, 10, 5}, limits));
    EXPECT_FALSE(stages_rows({11, 100, 0, 20, 100.0 / 11, 5}, limits)) << "one row is too long for the others";
    EXPECT_FALSE(stages_rows(regular(10, 21), limits)) << "rows are too long";
    EXPECT_FALSE(stages_rows({}, limits));
}

TEST(Choice, ReadsAheadByItsLimits)
{
    const SmallProducts limits{100, 50};
    EXPECT_TRUE(reads_ahead(50, 300, 3, limits));
    EXPECT_FALSE(reads_ahead(51, 300, 3, limits)) << "too many nonzeros";
    EXPECT_FALSE(reads_ahead(50, 301, 3, limits)) << "too many threads";
}

RowVectorShape shape(double mean, double deviation, int width)
{
    RowStatistics rows;
    rows.mean = mean;
    rows.deviation = deviation;
    return row_vector_shape(rows, width);
}

TEST(Choice, LanesTakeAMeanRowInOneStep)
{
    const auto lanes = [](double mean, double deviation, int width) { return shape(mean, deviation, width).lanes; };
    EXPECT_EQ(lanes(0, 0, 1), 2);
    EXPECT_EQ(lanes(8, 0, 1), 2);
    EXPECT_EQ(lanes(8.7, 0, 1), 2);
    EXPECT_EQ(lanes(8.9, 0, 1), 4);
    EXPECT_EQ(lanes(27, 2, 1), 8);
    EXPECT_EQ(lanes(33, 15, 1), 8);
    EXPECT_EQ(lanes(39, 10, 1), 16);
    EXPECT_EQ(lanes(71, 39, 1), 32);
    EXPECT_EQ(lanes(1e9, 0, 1), 32);
    EXPECT_EQ(lanes(12, 0, 2), 2);
    EXPECT_EQ(lanes(14, 3, 2), 4);
    EXPECT_EQ(lanes(39, 10, 2), 8);
    EXPECT_EQ(lanes(60, 5, 2), 16);
}

TEST(Choice, LanesLoadTwiceAsMuchWhereManyRowsAreLonger)
{
    EXPECT_EQ(shape(32, 0, 1), (RowVectorShape{8, 1, row_vector_unroll}));
    EXPECT_EQ(shape(33, 15, 1), (RowVectorShape{8, 1, 2 * row_vector_unroll}));
    EXPECT_EQ(shape(39, 10, 1), (RowVectorShape{16, 1, row_vector_unroll}));
    EXPECT_EQ(shape(100, 200, 1), (RowVectorShape{32, 1, row_vector_unroll})) << "as csr-row-warp";
    EXPECT_EQ(shape(14, 3, 2), (RowVectorShape{4, 2, row_vector_unroll}));
}

TEST(Choice, SaysWhatThereIs)
{
    EXPECT_THAT(
        usage_message([] { choose_spmv<double>(DeviceKind::host, "csr-openpm", Determinism::none, regular(2, 2), 2); }),
        testing::AllOf(testing::HasSubstr("csr-openpm"), testing::HasSubstr("auto, csr-openmp, csr-reference")));
    EXPECT_THAT(usage_message([] {
                    choose_spmv<double>(DeviceKind::host, "csr-nnz-split", Determinism::none, regular(2, 2), 2);
                }),
                testing::AllOf(testing::HasSubstr("cuda"), testing::HasSubstr("csr-openmp")));
}

TEST(Choice, RefusesWeakerDeterminism)
{
    EXPECT_THAT(usage_message([] {
                    choose_spmv<double>(DeviceKind::cuda, "csr-nnz-split", Determinism::device_count, regular(2, 2), 2);
                }),
                testing::AllOf(testing::HasSubstr("csr-nnz-split"), testing::HasSubstr("\"run\""),
                               testing::HasSubstr("\"device_count\"")));
    EXPECT_NO_THROW(choose_spmv<double>(DeviceKind::cuda, "csr-nnz-split", Determinism::run, regular(2, 2), 2));
}

TEST(Choice, RefusesWhatTheKernelCannotMultiply)
{
    const RowStatistics large{1000, std::int64_t{1} << 31, 0, std::int64_t{1} << 22, 0x1p31 / 1000, 0};
    EXPECT_THAT(usage_message([&] {
                    choose_spmv<double>(DeviceKind::cuda, "cusparse-csr-alg2", Determinism::none, large, 1 << 22);
                }),
                testing::AllOf(testing::HasSubstr("2147483648 nonzeros"), testing::HasSubstr("1000 x 4194304")));
    EXPECT_NO_THROW(choose_spmv<double>(DeviceKind::cuda, "csr-nnz-split", Determinism::none, large, 1 << 22));
}

/// The reference against results written down by hand.
template <class T>
class ReferenceByHand : public testing::Test {
protected:
    static std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard)
    {
        return choose_spmv<T>(DeviceKind::host, "csr-reference", Determinism::none, {}, shard.cols)
            .prepare(shard, {}, Context{});
    }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(ReferenceByHand, Precisions);

TYPED_TEST(ReferenceByHand, FourByThree)
{
    // [ 1  0  2 ]         [ 0 -4  1 ] with column 2 given as 0.25 + 0.75, out of order
    // [ 0  0  0 ]   and row 3:
    // [ 0  5  0 ]
    const std::vector<std::int32_t> row_ptr{0, 2, 2, 3, 6};
    const std::vector<std::int32_t> columns{0, 2, 1, 2, 1, 2};
    const std::vector<TypeParam> values{1, 2, 5, TypeParam{0.25}, -4, TypeParam{0.75}};
    const CsrShard<TypeParam> shard{4, 3, 6, IndexView(row_ptr.data()), columns.data(), values.data()};
    const std::vector<TypeParam> x{1, 10, 100};
    std::vector<TypeParam> y{1, 2, 3, 4};
    const auto op = this->prepare(shard);
    op->apply(TypeParam{2}, x.data(), TypeParam{-1}, y.data(), Context{});
    EXPECT_EQ(y, (std::vector<TypeParam>{401, -2, 97, 116}));
    op->apply(TypeParam{1}, x.data(), TypeParam{0}, y.data(), Context{});
    EXPECT_EQ(y, (std::vector<TypeParam>{201, 0, 50, 60}));
}

TYPED_TEST(ReferenceByHand, OneByOneAndNothing)
{
    const std::vector<std::int64_t> row_ptr{0, 1};
    const std::int32_t column = 0;
    const TypeParam value = -3;
    const TypeParam x = 7;
    TypeParam y = 5;
    this->prepare({1, 1, 1, IndexView(row_ptr.data()), &column, &value})
        ->apply(TypeParam{1}, &x, TypeParam{2}, &y, Context{});
    EXPECT_EQ(y, TypeParam{-11});
    this->prepare({0, 0, 0, IndexView(row_ptr.data()), nullptr, nullptr})
        ->apply(TypeParam{1}, nullptr, TypeParam{2}, nullptr, Context{});
}

}  // namespace
}  // namespace rmsp::kernels::test
