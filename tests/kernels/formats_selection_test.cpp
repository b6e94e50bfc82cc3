#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kernels/spmv/common/search.hpp>
#include <kernels/spmv/formats.hpp>
#include <rmsp/error.hpp>

#include "usage_message.hpp"

namespace rmsp::kernels::test {
namespace {

using testing::HasSubstr;

template <class Kernels, class Shard>
void check_table(const Kernels& kernels, const Shard& shard)
{
    std::set<std::string> names;
    for (const auto& kernel : kernels) {
        EXPECT_TRUE(names.insert(kernel.info.name).second) << kernel.info.name;
        EXPECT_FALSE(kernel.info.summary.empty());
        EXPECT_EQ(kernel.info.family, "spmv");
#ifdef RMSP_HAVE_CUDA
        EXPECT_TRUE(kernel.info.compiled);
        static_cast<void>(shard);
#else
        EXPECT_EQ(kernel.info.compiled, kernel.info.device == DeviceKind::host);
        if (!kernel.info.compiled) {
            EXPECT_THROW(kernel.prepare(shard, Context{}), NotCompiled);
        }
#endif
    }
}

TEST(FormatRegistry, ListsEveryKernelInEveryBuild)
{
    check_table(spmv_csc_kernels<double>(), CscShard<double>{});
    check_table(spmv_csc_kernels<float>(), CscShard<float>{});
    check_table(spmv_coo_kernels<double>(), CooShard<double>{});
    check_table(spmv_coo_kernels<float>(), CooShard<float>{});
}

TEST(FormatChoice, Automatic)
{
    const auto csc = [](DeviceKind kind, Determinism level) {
        return choose_spmv_csc<double>(kind, "auto", level).info.name;
    };
    EXPECT_EQ(csc(DeviceKind::host, Determinism::run), "csc-openmp");
    EXPECT_EQ(csc(DeviceKind::cuda, Determinism::none), "csc-atomic");
    EXPECT_EQ(csc(DeviceKind::cuda, Determinism::run), "csc-to-csr");
    const auto coo = [](DeviceKind kind, Determinism level, CooOrder order) {
        return choose_spmv_coo<float>(kind, "auto", level, order).info.name;
    };
    EXPECT_EQ(coo(DeviceKind::host, Determinism::none, CooOrder::by_row), "coo-openmp");
    EXPECT_EQ(coo(DeviceKind::host, Determinism::run, CooOrder::by_column), "coo-openmp-scatter");
    EXPECT_EQ(coo(DeviceKind::host, Determinism::run, CooOrder::unsorted), "coo-openmp-scatter");
    EXPECT_EQ(coo(DeviceKind::cuda, Determinism::none, CooOrder::by_row), "coo-to-csr");
    EXPECT_EQ(coo(DeviceKind::cuda, Determinism::none, CooOrder::unsorted), "coo-atomic");
    EXPECT_EQ(coo(DeviceKind::cuda, Determinism::run, CooOrder::unsorted), "coo-to-csr");
    EXPECT_EQ(choose_spmv_coo<double>(DeviceKind::cuda, "coo-atomic", Determinism::none, CooOrder::by_row).info.name,
              "coo-atomic");
}

TEST(FormatChoice, RefusesByName)
{
    EXPECT_THAT(
        usage_message([] { choose_spmv_csc<double>(DeviceKind::host, "csr-openmp", Determinism::none); }),
        HasSubstr("no CSC SpMV kernel \"csr-openmp\" for host devices; there are: auto, csc-openmp, csc-reference"));
    EXPECT_THAT(usage_message([] { choose_spmv_csc<double>(DeviceKind::host, "csc-atomic", Determinism::none); }),
                HasSubstr("CSC SpMV kernel \"csc-atomic\" runs on cuda devices"));
    EXPECT_THAT(usage_message([] { choose_spmv_csc<double>(DeviceKind::cuda, "csc-atomic", Determinism::run); }),
                HasSubstr("keeps determinism \"none\", but \"run\" was asked for"));
    EXPECT_THAT(
        usage_message([] { choose_spmv_csc<double>(DeviceKind::cuda, "auto", Determinism::device_count); }),
        HasSubstr("no CSC SpMV kernel for cuda devices keeps determinism \"device_count\"; there are: csc-atomic"));
    EXPECT_THAT(usage_message([] {
                    choose_spmv_coo<double>(DeviceKind::host, "coo-openmp", Determinism::none, CooOrder::unsorted);
                }),
                HasSubstr("COO SpMV kernel \"coo-openmp\" cannot multiply a shard whose order is \"unsorted\": its "
                          "entries must be sorted by row"));
}

TEST(Search, FindsTheColumnOfEveryNonzero)
{
    const std::vector<std::int32_t> col_ptr{0, 0, 0, 3, 3, 4, 4, 4, 4, 4, 4, 4, 20, 20, 21, 21};
    const auto cols = static_cast<std::int64_t>(col_ptr.size()) - 1;
    for (std::int64_t i = 0; i < col_ptr.back(); ++i) {
        std::int64_t expected = 0;
        while (col_ptr[static_cast<std::size_t>(expected) + 1] <= i) {
            ++expected;
        }
        for (std::int64_t low = 0; low <= expected; ++low) {
            if (col_ptr[static_cast<std::size_t>(low)] > i) {
                continue;
            }
            for (std::int64_t high = expected; high < cols; ++high) {
                ASSERT_EQ(find_column(col_ptr.data(), low, high, i), expected) << i << " in " << low << " to " << high;
            }
        }
    }
}

TEST(Search, FindsTheFirstNotBelow)
{
    const std::vector<std::int32_t> sorted{2, 2, 3, 7, 7, 7};
    const std::vector<std::int64_t> expected{0, 0, 0, 2, 3, 3, 3, 3, 6, 6};
    for (std::int64_t i = 0; i < 10; ++i) {
        EXPECT_EQ(first_not_below(sorted.data(), 6, i), expected[static_cast<std::size_t>(i)]) << i;
    }
    EXPECT_EQ(first_not_below(nullptr, 0, 5), 0);
}

}  // namespace
}  // namespace rmsp::kernels::test
