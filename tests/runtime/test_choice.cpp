#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>
#include <runtime/matrix/race.hpp>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

/// The automatic choice where a race is allowed: GPUs have more than one kernel for a stencil, host devices have not.
class Choice : public MachineTest {
protected:
    void SetUp() override
    {
        MachineTest::SetUp();
        folder_ = testing::TempDir() + "rmsp-choice-" + std::to_string(::getpid());
    }
    ~Choice() override
    {
        if (!folder_.empty()) {
            std::filesystem::remove_all(folder_);
        }
    }
    bool gpus() const { return GetParam().gpus > 0; }
    std::unique_ptr<Runtime> runtime()
    {
        RuntimeOptions options = options_for(GetParam());
        options.cache = folder_;
        return std::make_unique<Runtime>(options);
    }
    /// On GPUs large enough for rows that are multiplied while the others' x is on its way.
    CsrMatrix<double> stencil() const { return gpus() ? stencil27<double>(72, 72, 72) : stencil27<double>(12, 11, 10); }

    /// y = 2 A x with vectors of any order or layout.
    static void expect_product(const CsrMatrix<double>& a, DistributedMatrix<double>& matrix,
                               DistributedVector<double>& x, DistributedVector<double>& y)
    {
        const auto x_host = random_vector<double>(a.cols, 3);
        x.upload(x_host.data());
        matrix.apply(2.0, x, 0.0, y);
        std::vector<double> out(static_cast<std::size_t>(a.rows), 99);
        y.download(out.data());
        const auto v = verify_spmv<double>(a.view(), 2.0, x_host.data(), 0.0, nullptr, out.data());
        EXPECT_TRUE(v.passed) << "row " << v.worst_row << ", error " << v.error;
    }

    std::string folder_;
};

TEST_P(Choice, ARaceKeepsResultsRightAndIsRemembered)
{
    auto a = stencil();
    DistributeOptions options;
    options.expected_applies = 1000;
    const auto check = [&](DistributedMatrix<double>& matrix, Layout layout) {
        auto x = matrix.make_x(layout);
        auto y = matrix.make_y();
        expect_product(a, matrix, x, y);
    };
    std::vector<std::string> winners;
    {
        auto rt = runtime();
        auto matrix = rt->distribute(a.view(), options);
        for (int i = 0; i < distributed::Race<double>::most_applies + 2; ++i) {
            if (i == 4) {  // in the middle of it
                set_values(a, ValueKind::random, 77);
                matrix.update_values(a.values.data());
            }
            check(matrix, i % 3 == 2 ? Layout::rows : Layout::replicated);
        }
        for (const ShardPlan& shard : matrix.report().plan.shards) {
            EXPECT_EQ(shard.kernel_reason, "won the race");
            EXPECT_GT(shard.apply_bytes, 0);
            ASSERT_GE(shard.candidates.size(), 2u);
            EXPECT_EQ(shard.candidates[0].kernel, shard.kernel);
            EXPECT_GT(shard.candidates[0].measured_seconds, 0);
            // The favourite stays unless the challenger is faster by more than the margin.
            EXPECT_LE((1 - distributed::Race<double>::margin) * shard.candidates[0].measured_seconds,
                      shard.candidates[1].measured_seconds);
            winners.push_back(shard.kernel);
        }
    }
    auto rt = runtime();
    auto matrix = rt->distribute(a.view(), options);
    check(matrix, Layout::replicated);
    const Plan plan = matrix.report().plan;
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
        EXPECT_EQ(plan.shards[i].kernel, winners[i]);
        EXPECT_EQ(plan.shards[i].kernel_reason, "won a race before");
    }
}

TEST_P(Choice, ProductsOfAFewMicrosecondsAreNotRacedOnGpus)
{
    if (!gpus()) {
        GTEST_SKIP() << "host devices race";
    }
    const auto a = stencil7<double>(9, 8, 7);
    DistributeOptions options;
    options.expected_applies = 1000;
    const auto rt = runtime();
    auto matrix = rt->distribute(a.view(), options);
    auto x = matrix.make_x(Layout::replicated);
    auto y = matrix.make_y();
    for (int i = 0; i < distributed::Race<double>::most_applies + 2; ++i) {
        expect_product(a, matrix, x, y);
    }
    for (const ShardPlan& shard : matrix.report().plan.shards) {
        ASSERT_FALSE(shard.candidates.empty());
        EXPECT_EQ(shard.kernel, shard.candidates.front().kernel);
        EXPECT_NE(shard.kernel_reason, "won the race");
    }
}

TEST_P(Choice, VectorsInTheKernelsOrderEndTheRace)
{
    const auto a = gpus() ? shuffled(stencil7<double>(64, 64, 64), 3) : shuffled(stencil7<double>(9, 8, 7), 3);
    DistributeOptions options;
    options.expected_applies = 1000;
    const auto rt = runtime();
    auto matrix = rt->distribute(a.view(), options);
    auto old_x = matrix.make_x(Layout::rows);
    auto old_y = matrix.make_y();
    expect_product(a, matrix, old_x, old_y);
    auto x = matrix.make_x(Layout::rows, Order::kernel);
    auto y = matrix.make_y(Order::kernel);
    EXPECT_EQ(x.order(), y.order());
    const Plan plan = matrix.report().plan;
    for (const ShardPlan& shard : plan.shards) {
        if (x.order() == Order::kernel) {
            EXPECT_EQ(shard.kernel, "sell-reordered");
            EXPECT_TRUE(shard.kernel_reason.find("order") != std::string::npos || shard.kernel_reason == "predicted");
        }
        if (GetParam().gpu_devices() == 1) {
            ASSERT_GE(shard.candidates.size(), 2u);
            const bool undecided = shard.kernel_reason == "predicted" && x.order() == Order::matrix;
            EXPECT_FALSE(undecided && (shard.candidates[0].kernel == "sell-reordered" ||
                                       shard.candidates[1].kernel == "sell-reordered"));
        }
    }
    for (auto* const from : {&old_x, &x}) {
        for (auto* const to : {&old_y, &y}) {
            expect_product(a, matrix, *from, *to);
        }
    }
}

TEST_P(Choice, DeterminismAndFewAppliesNeedNoRace)
{
    const auto a = stencil27<double>(20, 20, 20);
    auto rt = runtime();
    for (const auto determinism : {Determinism::none, Determinism::run, Determinism::device_count}) {
        DistributeOptions options;
        options.determinism = determinism;
        options.expected_applies = determinism == Determinism::none ? 3 : 1000;
        auto matrix = rt->distribute(a.view(), options);
        auto x = matrix.make_x(Layout::replicated);
        auto y = matrix.make_y();
        x.fill(1);
        for (int i = 0; i < 10; ++i) {
            static_cast<void>(matrix.apply_async(1.0, x, 0.0, y));
        }
        rt->synchronize();
        for (const ShardPlan& shard : matrix.report().plan.shards) {
            EXPECT_NE(shard.kernel_reason, "won the race");
            if (gpus() && determinism == Determinism::none) {
                ASSERT_FALSE(shard.candidates.empty());
                EXPECT_FALSE(shard.candidates[0].own_format) << "three applies do not repay a format";
            }
        }
    }
    EXPECT_FALSE(std::filesystem::exists(folder_));
}

/// Rows of one length, a long one among the last: by themselves devices would take different kernels.
TEST_P(Choice, DeterminismOfAnyNumberOfDevicesHasOneKernel)
{
    std::vector<std::int64_t> lengths(7000, 30);
    lengths.back() = 30'000;
    const auto a = with_row_lengths<double>(lengths, 30'000);
    DistributeOptions options;
    options.determinism = Determinism::device_count;
    RuntimeOptions one;
    one.devices = gpus() ? "0" : "host:1";
    const Plan alone = Runtime(one).plan(a.view(), options);
    auto matrix = runtime()->distribute(a.view(), options);
    for (const Plan& plan : {runtime()->plan(a.view(), options), matrix.plan()}) {
        for (const ShardPlan& shard : plan.shards) {
            EXPECT_EQ(shard.kernel, alone.shards.front().kernel) << shard.kernel_reason;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, Choice, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
