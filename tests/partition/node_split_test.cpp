// Topology and partition together: which thread, which node, and how many nonzeros go where on the machines that the
// library is meant for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/partition.hpp>
#include <rmsp/topology.hpp>

#include "tests/numa/topologies.hpp"

namespace rmsp {
namespace {

using test::first_threads;
using test::machine;
using test::nodes_of;
using ::testing::ElementsAre;

// 1000 rows; row i has i nonzeros, 499500 together.
std::vector<std::int64_t> triangle()
{
    std::vector<std::int64_t> row_ptr(1001, 0);
    for (std::size_t i = 0; i < 1000; ++i) {
        row_ptr[i + 1] = row_ptr[i] + static_cast<std::int64_t>(i);
    }
    return row_ptr;
}

std::vector<std::int64_t> nonzeros(const Partition& partition)
{
    std::vector<std::int64_t> result;
    for (const PartialCsr& part : partition.parts) {
        result.push_back(part.nnz());
    }
    return result;
}

Partition split_for(const std::vector<Placement>& placements, RowAlignment alignment)
{
    const std::vector<std::int64_t> row_ptr = triangle();
    Partition p = partition_csr(1000, 1000, row_ptr.data(), static_cast<int>(placements.size()),
                                {PartitionStrategy::nonzeros, alignment, {}, nodes_of(placements)});
    p.check();
    return p;
}

TEST(NodeSplit, OnSummit)
{
    const Topology t = machine("summit");
    const std::vector<Placement> placements = place_gpus(t, t.gpus, BindPolicy::automatic);
    EXPECT_THAT(first_threads(placements), ElementsAre(0, 28, 56, 88, 116, 144));
    const Partition p = split_for(placements, RowAlignment::exact);
    EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 3, 0, 249750}, NodeShare{1, 3, 6, 249750, 499500}));
    EXPECT_THAT(nonzeros(p), ElementsAre(83250, 83250, 83250, 83250, 83250, 83250));
    // 707 * 706 / 2 = 249571 < 249750: the second socket starts inside row 707 and adds its carry to it.
    EXPECT_EQ(p.parts[3].start_row, 707);
    EXPECT_TRUE(p.parts[3].start_flag);
    EXPECT_EQ(p.parts[3].first_owned_row(), 708);
}

TEST(NodeSplit, OnSummitAtRowBoundaries)
{
    const Topology t = machine("summit");
    const Partition p = split_for(place_gpus(t, t.gpus, BindPolicy::automatic), RowAlignment::row);
    EXPECT_EQ(p.nodes[0].end_idx, 249571) << "the row boundary nearest to 249750";
    EXPECT_EQ(p.parts[3].start_row, 707);
    EXPECT_FALSE(p.parts[3].start_flag);
    EXPECT_LT(p.imbalance(), 999.0 / 83250.0);
}

TEST(NodeSplit, OnDgx1AndDgxH200)
{
    for (const char* file : {"dgx-1", "dgx-h200"}) {
        SCOPED_TRACE(file);
        const Topology t = machine(file);
        const std::vector<Placement> placements = place_gpus(t, t.gpus, BindPolicy::strict);
        EXPECT_THAT(nodes_of(placements), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
        const Partition p = split_for(placements, RowAlignment::exact);
        EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 4, 0, 249750}, NodeShare{1, 4, 8, 249750, 499500}));
        EXPECT_THAT(nonzeros(p), ElementsAre(62437, 62438, 62437, 62438, 62437, 62438, 62437, 62438));
    }
    const Topology h200 = machine("dgx-h200");
    EXPECT_THAT(first_threads(place_gpus(h200, h200.gpus, BindPolicy::strict)),
                ElementsAre(0, 14, 28, 42, 56, 70, 84, 98));
}

TEST(NodeSplit, OnPower8AndOnAVirtualMachine)
{
    const Topology power8 = machine("power8");
    const Partition p = split_for(place_gpus(power8, power8.gpus, BindPolicy::automatic), RowAlignment::exact);
    EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 2, 0, 249750}, NodeShare{1, 2, 4, 249750, 499500}));
    EXPECT_THAT(nonzeros(p), ElementsAre(124875, 124875, 124875, 124875));

    const Topology vm = machine("vm-4gpu.toml");
    const Partition q = split_for(place_gpus(vm, vm.gpus, BindPolicy::automatic), RowAlignment::exact);
    EXPECT_THAT(q.nodes, ElementsAre(NodeShare{0, 0, 4, 0, 499500}));
    EXPECT_EQ(q.parts, p.parts) << "exact cuts do not depend on the number of nodes here";
}

TEST(NodeSplit, OnUnevenNodes)
{
    // Five GPUs over two nodes: three fifths of the nonzeros go to the first node.
    const Topology t = machine("no-affinity-2node.toml");
    const Partition p = split_for(place_gpus(t, t.gpus, BindPolicy::automatic), RowAlignment::exact);
    EXPECT_THAT(p.nodes, ElementsAre(NodeShare{0, 0, 3, 0, 299700}, NodeShare{1, 3, 5, 299700, 499500}));
    EXPECT_THAT(nonzeros(p), ElementsAre(99900, 99900, 99900, 99900, 99900));
}

}  // namespace
}  // namespace rmsp
