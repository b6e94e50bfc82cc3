#include <gtest/gtest.h>

#include <set>

#include "matrices.hpp"

#include "tests/paths.hpp"

namespace rmsp::test {
namespace {

Runtime described(const char* name)
{
    RuntimeOptions options;
    options.topology_file = machine_file(name);
    return Runtime(options);
}

void expect_plan(const char* machine, int devices, int devices_on_first_node)
{
    SCOPED_TRACE(machine);
    const Runtime runtime = described(machine);
    const auto a = stencil27<double>(30, 20, 10);
    DistributeOptions options;
    options.alignment = RowAlignment::exact;
    options.devices = devices;
    const Plan plan = runtime.plan(a.view(), options);
    ASSERT_EQ(static_cast<int>(plan.shards.size()), devices);
    std::set<int> threads;
    for (int i = 0; i < devices; ++i) {
        const auto& shard = plan.shards[static_cast<std::size_t>(i)];
        EXPECT_EQ(shard.placement.node, i < devices_on_first_node ? 0 : 1);
        EXPECT_FALSE(shard.placement.cpus.empty());
        for (const int cpu : shard.placement.cpus) {
            EXPECT_TRUE(threads.insert(cpu).second) << "thread " << cpu << " belongs to two workers";
        }
        EXPECT_NEAR(static_cast<double>(shard.part.nnz()), static_cast<double>(a.nnz()) / devices, 1.0);
        EXPECT_FALSE(shard.kernel.empty());
    }
    ASSERT_EQ(plan.partition.nodes.size(), 2u);
    const auto& first = plan.partition.nodes[0];
    EXPECT_NEAR(static_cast<double>(first.end_idx - first.start_idx),
                static_cast<double>(a.nnz()) * devices_on_first_node / devices, 1.0);
    EXPECT_FALSE(plan.to_text().empty());
}

TEST(Plan, SummitHasThreeGpusOnEachNode) { expect_plan("summit", 6, 3); }
TEST(Plan, Dgx1HasFourGpusOnEachNode) { expect_plan("dgx-1", 8, 4); }
TEST(Plan, DgxH200HasFourGpusOnEachNode) { expect_plan("dgx-h200", 8, 4); }
TEST(Plan, Power8HasTwoGpusOnEachNode) { expect_plan("power8", 4, 2); }

TEST(Plan, HasTheLinksOfTheDevicesInUse)
{
    RuntimeOptions options;
    options.topology_file = machine_file("summit");
    options.devices = "4,0,5";
    const auto a = stencil27<double>(30, 20, 10);
    // By NUMA node: GPUs 0, 4 and 5.
    EXPECT_EQ(Runtime(options).plan(a.view()).links,
              (std::vector<MachineLink>{{"NVLink 2 x2", {1, 2}, {}, 50, false, "description"},
                                        {"NVLink 2 x2", {0}, {0}, 50, false, "description"},
                                        {"NVLink 2 x2", {1, 2}, {1}, 50, false, "description"},
                                        {"X bus", {}, {0, 1}, 64, false, "description"}}));
    options.devices = "host:2";
    EXPECT_TRUE(Runtime(options).plan(a.view()).links.empty());
}

TEST(Plan, GpusMayStandForSeveralDevices)
{
    RuntimeOptions options;
    options.topology_file = source_path("machines/dgx-1.toml");
    options.devices = "shared:4,0,4,4";
    const Runtime runtime(options);
    const auto devices = runtime.devices();
    ASSERT_EQ(devices.size(), 4u);
    // By NUMA node.
    EXPECT_EQ(devices[0].name, "Tesla V100-SXM2-32GB");
    std::set<int> threads;
    for (std::size_t i = 1; i < 4; ++i) {
        EXPECT_EQ(devices[i].index, 4);
        EXPECT_EQ(devices[i].name, "Tesla V100-SXM2-32GB (shared by 3)");
        for (const int cpu : devices[i].placement.cpus) {
            EXPECT_TRUE(threads.insert(cpu).second) << "thread " << cpu << " belongs to two workers";
        }
    }
    EXPECT_EQ(runtime.plan(stencil7<double>(9, 8, 7).view()).shards.size(), 4u);
    options.devices = "0,1,0";
    try {
        const Runtime refused(options);
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(
                      "GPU 0 is named twice; write \"auto\", GPU numbers such as \"0,1\", \"shared:0,0\""),
                  std::string::npos)
            << e.what();
    }
}

TEST(Plan, DescribedMachinesRunNothing)
{
    Runtime runtime = described("summit");
    const auto a = stencil7<double>(3, 3, 3);
    EXPECT_THROW(static_cast<void>(runtime.distribute(a.view())), Error);
    EXPECT_THROW(runtime.synchronize(), Error);
    EXPECT_THROW(runtime.measure_limits(), Error);
}

TEST(Plan, WeightsShiftNonzeros)
{
    RuntimeOptions options;
    options.devices = "host:2x1";
    options.weights = {3, 1};
    const Runtime runtime(options);
    const auto a = with_row_lengths<float>(std::vector<std::int64_t>(1000, 4), 100);
    const Plan plan = runtime.plan(a.view());
    EXPECT_EQ(plan.shards[0].part.nnz(), 3000);
    EXPECT_EQ(plan.shards[1].part.nnz(), 1000);
    EXPECT_NEAR(plan.nonzero_imbalance, 0, 1e-9);
}

TEST(Plan, SmallMatricesGetFewDevices)
{
    const Runtime runtime = described("dgx-h200");
    const auto small = stencil27<double>(40, 40, 40);
    Plan plan = runtime.plan(small.view());
    EXPECT_EQ(plan.devices, 1);
    EXPECT_FALSE(plan.devices_reason.empty());
    EXPECT_EQ(plan.exchange, "none");
    ASSERT_EQ(plan.shards.size(), 8u);
    EXPECT_EQ(plan.shards[0].part.nnz(), small.nnz());
    EXPECT_EQ(plan.shards[7].part.owned_rows(), 0);
    EXPECT_NEAR(plan.nonzero_imbalance, 0, 1e-9);
    EXPECT_NO_THROW(plan.partition.check());
    DistributeOptions options;
    options.x_layout = Layout::replicated;
    EXPECT_GT(runtime.plan(small.view(), options).devices, 1);
    for (const int devices : {2, 5, 8}) {
        options.devices = devices;
        plan = runtime.plan(small.view(), options);
        EXPECT_EQ(plan.devices, devices);
        EXPECT_EQ(plan.exchange, "ranges");
        EXPECT_NO_THROW(plan.partition.check());
    }
    for (const int devices : {-1, 9}) {
        options.devices = devices;
        EXPECT_THROW(runtime.plan(small.view(), options), Error) << devices;
    }
}

TEST(Plan, SaysWhatDistributeFindsOfTheExchange)
{
    const Runtime runtime = described("dgx-h200");
    // One entry a row, anywhere: most columns of a range are not touched.
    const auto a = with_row_lengths<double>(std::vector<std::int64_t>(400000, 1), 400000);
    DistributeOptions options;
    options.devices = 4;
    Plan plan = runtime.plan(a.view(), options);
    EXPECT_EQ(plan.exchange, "entries");
    for (int i = 0; i < 4; ++i) {
        const ShardPlan& shard = plan.shards[static_cast<std::size_t>(i)];
        std::set<std::int64_t> outside;
        for (std::int64_t k = shard.part.start_idx; k < shard.part.end_idx; ++k) {
            const std::int64_t column = a.col_idx[k];
            if (column < shard.part.first_owned_row() || column >= shard.part.end_row) {
                outside.insert(column);
            }
        }
        EXPECT_EQ(shard.halo_entries, static_cast<std::int64_t>(outside.size()));
    }
    EXPECT_EQ(plan.shards[7].halo_entries, 0);
    options.exchange = Exchange::ranges;
    EXPECT_EQ(runtime.plan(a.view(), options).exchange, "ranges");
    options.exchange = Exchange::automatic;
    options.x_layout = Layout::replicated;
    EXPECT_EQ(runtime.plan(a.view(), options).exchange, "ranges");
    options.exchange = Exchange::entries;
    EXPECT_EQ(runtime.plan(a.view(), options).exchange, "entries");
    options.transposed = true;
    EXPECT_EQ(runtime.plan(a.view(), options).exchange, "ranges");
}

TEST(Plan, PredictsByTheKernelAndItsExchange)
{
    RuntimeOptions machine;
    machine.topology_file = source_path("tests/topologies/vm-4gpu.toml");
    const auto a = stencil27<double>(60, 60, 60);
    DistributeOptions options;
    options.devices = 4;
    for (const ShardPlan& shard : Runtime(machine).plan(a.view(), options).shards) {
        EXPECT_EQ(shard.predicted_seconds, 0) << "the limit is not known";
    }
    machine.topology_file = machine_file("dgx-h200");
    for (const ShardPlan& shard : Runtime(machine).plan(a.view(), options).shards) {
        EXPECT_NEAR(shard.limit_gbs, 4553, 10) << "of the data sheet's bandwidth, what reading gets";
        EXPECT_EQ(shard.predicted_seconds > 0, shard.part.nnz() > 0);
    }
    machine.limit_gbs = 4400;
    const Runtime runtime(machine);
    for (const char* kernel : {"auto", "sell", "packed-tiles"}) {
        options.kernel = kernel;
        for (const Layout layout : {Layout::replicated, Layout::rows}) {
            options.x_layout = layout;
            const Plan plan = runtime.plan(a.view(), options);
            for (int i = 0; i < 4; ++i) {
                const ShardPlan& shard = plan.shards[static_cast<std::size_t>(i)];
                const double alone = shard.candidates.empty() ? static_cast<double>(shard.apply_bytes) / 4.4e12
                                                              : shard.candidates.front().predicted_seconds;
                if (layout == Layout::replicated) {
                    EXPECT_EQ(shard.exchange_seconds, 0);
                    EXPECT_EQ(shard.predicted_seconds, alone);
                } else {
                    EXPECT_GT(shard.exchange_seconds, 0);
                    EXPECT_GT(shard.predicted_seconds, alone);
                    // One plane of the grid from each neighbour takes a microsecond at most, and few of these.
                    EXPECT_LT(shard.predicted_seconds, alone + 10e-6);
                }
            }
            EXPECT_EQ(plan.shards[4].predicted_seconds, 0) << "it has no part";
        }
    }
}

TEST(Plan, ColumnsAreSortedWhereThatPays)
{
    const Runtime runtime = described("dgx-h200");
    const auto a = stencil7<double>(9, 8, 7);
    const CscMatrix<double> csc = to_csc(a.view());
    const CooMatrix<double> coo = to_coo(csc.view());
    const auto kernels = [&](const DistributeOptions& options) {
        return runtime.plan(csc.view(), options).shards[0].kernel + " " +
               runtime.plan(coo.view(), options).shards[0].kernel;
    };
    DistributeOptions options;
    EXPECT_EQ(kernels(options), "csc-to-csr coo-to-csr");
    options.expected_applies = 49;
    EXPECT_EQ(kernels(options), "csc-atomic coo-atomic");
    options.determinism = Determinism::run;
    EXPECT_EQ(kernels(options), "csc-to-csr coo-to-csr");
    options.determinism = Determinism::none;
    options.expected_applies = 50;
    EXPECT_EQ(kernels(options), "csc-to-csr coo-to-csr");
    options.mode = Mode::streamed;
    EXPECT_EQ(runtime.plan(csc.view(), options).shards[0].kernel, "csc-atomic");
    options.mode = Mode::resident;
    options.kernel = "csc-atomic";
    EXPECT_EQ(runtime.plan(csc.view(), options).shards[0].kernel, "csc-atomic");
}

TEST(Plan, DevicesThatMakeNoSenseAreNamed)
{
    for (const char* devices : {"", "host:", "host:0", "host:2x0", "host:ax2", "gpu", "0,0", "shared:", "shared:0,,0",
                                "0,,1", "-1", "host:2000"}) {
        RuntimeOptions options;
        options.devices = devices;
        EXPECT_THROW(Runtime{options}, Error) << devices;
    }
    RuntimeOptions weights;
    weights.devices = "host:2x1";
    weights.weights = {1, 2, 3};
    EXPECT_THROW(Runtime{weights}, Error);
}

TEST(Plan, StreamedPartsAreEqualInBytesOverTheLinks)
{
    const Runtime runtime = described("dgx-1");
    // Long rows, then short ones, whose row pointers weigh much.
    std::vector<std::int64_t> lengths(20000, 40);
    lengths.insert(lengths.end(), 400000, 2);
    const auto a = with_row_lengths<double>(lengths, 1000);
    DistributeOptions options;
    options.mode = Mode::streamed;
    const Plan plan = runtime.plan(a.view(), options);
    std::int64_t all = 0;
    for (const auto& shard : plan.shards) {
        all += shard.apply_bytes;
    }
    for (const auto& shard : plan.shards) {
        EXPECT_NEAR(static_cast<double>(shard.apply_bytes), static_cast<double>(all) / 8,
                    0.005 * static_cast<double>(all) / 8);
    }
}

TEST(Plan, BytesAreCounted)
{
    RuntimeOptions options;
    options.devices = "host:1x1";
    const Runtime runtime(options);
    const auto a = with_row_lengths<double>({2, 1}, 3);
    const Plan plan = runtime.plan(a.view());
    // 3 nonzeros of 8 + 4 bytes, 3 pointers of 4
    EXPECT_EQ(plan.shards[0].matrix_bytes, 3 * 12 + 3 * 4);
    EXPECT_EQ(plan.shards[0].vector_bytes, (3 + 2) * 8);
}

}  // namespace
}  // namespace rmsp::test
