#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <rmsp/topology.hpp>

#include "tests/numa/topologies.hpp"

namespace rmsp {
namespace {

using test::first_threads;
using test::machine;
using test::nodes_of;
using test::range;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Placement> place(const Topology& t, BindPolicy policy = BindPolicy::automatic)
{
    return place_gpus(t, t.gpus, policy);
}

TEST(PlaceGpus, OnPower8)
{
    const std::vector<Placement> p = place(machine("power8"));
    EXPECT_THAT(nodes_of(p), ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(first_threads(p), ElementsAre(0, 16, 80, 96));
    EXPECT_THAT(p[0].cpus, ElementsAre(0, 1, 8, 9));
    EXPECT_THAT(p[3].cpus, ElementsAre(96, 97, 104, 105));
    EXPECT_EQ(p[2].device, 2);
    EXPECT_EQ(p[2].reason, "near its GPU on node 1 (description); 2 of 4 cores");
}

TEST(PlaceGpus, OnSummitInWholeCores)
{
    const std::vector<Placement> p = place(machine("summit"), BindPolicy::strict);
    EXPECT_THAT(nodes_of(p), ElementsAre(0, 0, 0, 1, 1, 1));
    EXPECT_THAT(first_threads(p), ElementsAre(0, 28, 56, 88, 116, 144));
    EXPECT_EQ(p[0].cpus, range(0, 27)) << "7 of 22 cores of 4 threads";
    EXPECT_EQ(p[1].cpus, range(28, 55));
    EXPECT_EQ(p[2].cpus, range(56, 87)) << "8 of 22 cores";
    EXPECT_EQ(p[5].cpus, range(144, 175));
}

TEST(PlaceGpus, OnDgx1AndDgxH200)
{
    const std::vector<Placement> dgx1 = place(machine("dgx-1"));
    EXPECT_THAT(nodes_of(dgx1), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
    EXPECT_THAT(first_threads(dgx1), ElementsAre(0, 5, 10, 15, 20, 25, 30, 35));
    EXPECT_THAT(dgx1[1].cpus, ElementsAre(5, 45, 6, 46, 7, 47, 8, 48, 9, 49));

    const std::vector<Placement> h200 = place(machine("dgx-h200"));
    EXPECT_THAT(nodes_of(h200), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
    EXPECT_THAT(first_threads(h200), ElementsAre(0, 14, 28, 42, 56, 70, 84, 98));
    std::set<int> pus;
    for (const Placement& placement : h200) {
        EXPECT_THAT(placement.cpus, SizeIs(28));
        pus.insert(placement.cpus.begin(), placement.cpus.end());
    }
    EXPECT_THAT(pus, SizeIs(224)) << "workers share hardware threads";
}

TEST(PlaceGpus, SpreadsGpusWithoutANode)
{
    const std::vector<Placement> one = place(machine("vm-4gpu.toml"));
    EXPECT_THAT(nodes_of(one), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(first_threads(one), ElementsAre(0, 16, 32, 48));

    const std::vector<Placement> two = place(machine("no-affinity-2node.toml"));
    EXPECT_THAT(nodes_of(two), ElementsAre(0, 0, 0, 1, 1));
    for (const Placement& placement : two) {
        EXPECT_THAT(placement.reason, AllOf(HasSubstr("node unknown (the description names no node)"),
                                            HasSubstr("5 GPUs spread evenly over 2 nodes")));
    }
}

TEST(PlaceGpus, DividesANodeAmongTheGpusInUseOnly)
{
    const Topology t = machine("dgx-h200");
    const std::vector<Placement> p = place_gpus(t, {t.gpus[6], t.gpus[1]}, BindPolicy::automatic);
    EXPECT_THAT(nodes_of(p), ElementsAre(1, 0));
    EXPECT_THAT(first_threads(p), ElementsAre(56, 0));
    EXPECT_THAT(p[0].cpus, SizeIs(112));
}

TEST(PlaceGpus, SharesCoresThatAreFewerThanGpus)
{
    Topology t = machine("vm-4gpu.toml");
    t.nodes[0].cores = {0, 1, 2};
    t.nodes[0].pus = {0, 1, 2};
    const std::vector<Placement> p = place(t);
    EXPECT_THAT(first_threads(p), ElementsAre(0, 0, 1, 2));
    EXPECT_THAT(p[1].cpus, ElementsAre(0));
    EXPECT_THAT(p[1].reason, HasSubstr("4 GPUs share 3 cores"));
}

TEST(PlaceGpus, FallsBackWhenTheCpusetLeavesTheNodeNoCore)
{
    Topology t = machine("power8");
    t.nodes[1].cores.clear();
    t.nodes[1].pus.clear();
    const std::vector<Placement> p = place(t);
    EXPECT_THAT(nodes_of(p), ElementsAre(0, 0, 1, 1)) << "the GPU's memory node stays";
    EXPECT_EQ(p[2].cpus, t.nodes[0].pus);
    EXPECT_THAT(p[2].reason, HasSubstr("no core in the process's cpuset, so any of its 4 cores"));
    try {
        place(t, BindPolicy::strict);
        FAIL() << "no exception";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_THAT(error.what(), HasSubstr("NUMA node 1 of GPU 2"));
    }
}

TEST(PlaceGpus, SpreadsOnlyOverNodesWithCores)
{
    Topology t = machine("no-affinity-2node.toml");
    t.nodes[0].cores.clear();
    t.nodes[0].pus.clear();
    EXPECT_THAT(nodes_of(place(t, BindPolicy::strict)), ElementsAre(1, 1, 1, 1, 1));
    t.nodes.clear();
    const std::vector<Placement> p = place(t);
    EXPECT_THAT(nodes_of(p), ElementsAre(-1, -1, -1, -1, -1));
    EXPECT_THAT(p[0].cpus, IsEmpty());
    EXPECT_THAT(p[0].reason, HasSubstr("not bound"));
}

TEST(PlaceGpus, DoesNotBindWhenBindingIsOff)
{
    for (const Placement& placement : place(machine("summit"), BindPolicy::none)) {
        EXPECT_THAT(placement.cpus, IsEmpty());
        EXPECT_THAT(placement.threads, IsEmpty());
        EXPECT_EQ(placement.reason, "binding is off");
    }
}

TEST(PlaceGpus, RefusesANodeThatDoesNotExist)
{
    const Topology t = machine("vm-4gpu.toml");
    EXPECT_THROW(place_gpus(t, {{0, "", "", 1, "test"}}, BindPolicy::automatic), Error);
    EXPECT_THAT(place_gpus(t, {}, BindPolicy::automatic), IsEmpty());
}

TEST(PlaceHostDevices, DividesTheCoresEvenly)
{
    const Topology t = machine("dgx-1");
    const std::vector<Placement> two = place_host_devices(t, 2, 0, BindPolicy::automatic);
    EXPECT_THAT(nodes_of(two), ElementsAre(0, 1));
    EXPECT_EQ(two[0].threads, range(0, 19));
    EXPECT_EQ(two[1].threads, range(20, 39));
    EXPECT_EQ(two[1].cpus.size(), 40u) << "both hardware threads of each core";
    EXPECT_EQ(two[1].reason, "20 of 40 cores on node 1");

    const std::vector<Placement> one = place_host_devices(t, 1, 0, BindPolicy::automatic);
    EXPECT_EQ(one[0].threads, range(0, 39));
    EXPECT_EQ(one[0].reason, "40 of 40 cores on nodes 0-1");

    const std::vector<Placement> three = place_host_devices(t, 3, 0, BindPolicy::strict);
    EXPECT_EQ(three[0].threads.size() + three[1].threads.size() + three[2].threads.size(), 40u);
    EXPECT_EQ(three[0].threads.size(), 13u);
}

TEST(PlaceHostDevices, GivesTheThreadsAskedForSpreadOverTheNodes)
{
    const std::vector<Placement> p = place_host_devices(machine("summit"), 4, 2, BindPolicy::strict);
    EXPECT_THAT(nodes_of(p), ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(p[0].threads, ElementsAre(0, 4));
    EXPECT_EQ(p[0].cpus, range(0, 7));
    EXPECT_THAT(p[1].threads, ElementsAre(44, 48));
    EXPECT_THAT(p[2].threads, ElementsAre(88, 92));
}

TEST(PlaceHostDevices, UsesHardwareThreadsAndThenSharesThem)
{
    const Topology t = machine("power8");
    const std::vector<Placement> p = place_host_devices(t, 2, 6, BindPolicy::automatic);
    EXPECT_THAT(p[0].threads, ElementsAre(0, 8, 16, 24, 1, 9));
    EXPECT_THAT(p[0].reason, HasSubstr("6 threads on 8 hardware threads"));
    const std::vector<Placement> q = place_host_devices(t, 8, 3, BindPolicy::automatic);
    EXPECT_THAT(q[7].threads, ElementsAre(104, 105, 104));
    const std::vector<Placement> many = place_host_devices(t, 9, 0, BindPolicy::automatic);
    EXPECT_THAT(first_threads(many), ElementsAre(0, 0, 8, 16, 24, 80, 88, 96, 104));
    EXPECT_THAT(many[1].reason, HasSubstr("9 devices share them"));
}

TEST(PlaceHostDevices, IsStrictWhenAskedTo)
{
    const Topology t = machine("power8");
    EXPECT_NO_THROW(place_host_devices(t, 4, 2, BindPolicy::strict));
    try {
        place_host_devices(t, 3, 3, BindPolicy::strict);
        FAIL() << "no exception";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_THAT(error.what(),
                    HasSubstr("3 host devices of 3 threads need 9 cores, and the process's cpuset has 8"));
    }
    EXPECT_THROW(place_host_devices(t, 9, 0, BindPolicy::strict), Error);
    EXPECT_THROW(place_host_devices(t, 0, 0, BindPolicy::automatic), Error);
    EXPECT_THROW(place_host_devices(t, 1, -1, BindPolicy::automatic), Error);
}

TEST(PlaceHostDevices, DoesNotBindWhenBindingIsOff)
{
    for (const Placement& placement : place_host_devices(machine("dgx-1"), 3, 2, BindPolicy::none)) {
        EXPECT_EQ(placement.node, -1);
        EXPECT_THAT(placement.cpus, IsEmpty());
        EXPECT_THAT(placement.threads, IsEmpty());
        EXPECT_EQ(placement.reason, "binding is off");
    }
}

TEST(Describe, PrintsNodesGpusAndPlacements)
{
    Topology t = machine("two-node-pci.xml");
    t.source = "two-node-pci.xml";
    const std::string text = describe(t, place(t));
    EXPECT_EQ(text, R"(Machine: Test server (two-node-pci.xml)
Not this machine: nothing is bound to its processors.

NUMA nodes
  node  os  cores  threads  memory    gpus  hardware threads
  0     0   4      8        16.0 GiB  1     0-7
  1     1   4      7        16.0 GiB  0     8-14

GPUs
  gpu  pci           node  name         node known from
  0    0000:1b:00.0  1     -            hwloc
  1    0000:81:00.0  0     NVIDIA H200  hwloc
  2    0000:c1:00.0  ?     -            hwloc places its PCI device on no single NUMA node

Placement
  device  node  first  hardware threads  reason
  0       1     8      8-14              near its GPU on node 1 (hwloc); 4 of 4 cores
  1       0     0      0-3               near its GPU on node 0 (hwloc); 2 of 4 cores
  2       0     4      4-7               node unknown (hwloc places its PCI device on no single NUMA node), so )"
                    R"(1 GPU spread evenly over 2 nodes; 2 of 4 cores
)");
}

TEST(Describe, PrintsAnEmptyMachine)
{
    EXPECT_THAT(describe(Topology{}, {}), AllOf(HasSubstr("Machine: unnamed (memory)"), HasSubstr("No GPUs")));
    Placement unbound;
    unbound.reason = "binding is off";
    EXPECT_THAT(describe(Topology{}, {unbound}), HasSubstr("not bound"));
}

}  // namespace
}  // namespace rmsp
