#include "numa/description.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>

#include "tests/numa/topologies.hpp"
#include "tests/paths.hpp"

namespace rmsp {
namespace {

using ::testing::HasSubstr;

void expect_equal(const Topology& a, const Topology& b)
{
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.nodes, b.nodes);
    EXPECT_EQ(a.gpus, b.gpus);
    EXPECT_EQ(a.network, b.network);
    EXPECT_EQ(a.links, b.links);
}

TEST(Description, FillsInWhatIsLeftOut)
{
    const Topology t = numa::parse_description(
        "node = [{cores = 2, threads_per_core = 2}, {cores = 1}]\n"
        "gpu = [{pci = '1B:00.0', node = 1}, {}]\n",
        "m.toml");
    ASSERT_EQ(t.nodes.size(), 2u);
    EXPECT_EQ(t.nodes[0], (NumaNode{0, 0, {0, 2}, {0, 1, 2, 3}}));
    EXPECT_EQ(t.nodes[1], (NumaNode{1, 0, {4}, {4}}));
    ASSERT_EQ(t.gpus.size(), 2u);
    EXPECT_EQ(t.gpus[0], (GpuDescription{0, "0000:1b:00.0", "", 1, "description"}));
    EXPECT_EQ(t.gpus[1], (GpuDescription{1, "", "", -1, "the description names no node"}));
    EXPECT_FALSE(t.live);
}

TEST(Description, HasTheLinksOfAMachine)
{
    const Topology t = numa::parse_description(
        "node = [{cores = 1}, {cores = 1}]\ngpu = [{node = 0}, {node = 1}]\n"
        "[[link]]\nkind = 'NVLink 2 x2'\ngpus = [0, 1]\ngbs = 50\nswitched = true\n[[link]]\nnodes = [1]\ngpus = [1]\n",
        "m.toml");
    EXPECT_EQ(t.links, (std::vector<MachineLink>{{"NVLink 2 x2", {0, 1}, {}, 50, true, "description"},
                                                 {"link", {1}, {1}, 0, false, "description"}}));
    EXPECT_EQ(numa::parse_description(t.to_toml(), "again.toml").links, t.links);
    for (const std::string& name : machine_names()) {
        EXPECT_FALSE(test::machine(name).links.empty()) << name;
    }
}

TEST(Description, HasTheNetworkBetweenMachines)
{
    const Topology t =
        numa::parse_description("network = {bandwidth_gbs = 12.5, latency_us = 2}\nnode = [{cores = 1}]\n", "m.toml");
    EXPECT_EQ(t.network, (Network{12.5, 1, 2}));
    EXPECT_EQ(numa::parse_description("node = [{cores = 1}]\n", "m.toml").network, Network{});
    EXPECT_EQ(test::machine("dgx-h200").network, (Network{50, 8, 1.5}));
}

TEST(Description, TakesASyntheticMachineOfHwloc)
{
    const Topology t =
        numa::parse_description("hwloc = 'numa:2(memory=8GiB) core:3 pu:2(indexes=2*6:1*2)'\n", "m.toml");
    ASSERT_EQ(t.nodes.size(), 2u);
    EXPECT_EQ(t.nodes[0], (NumaNode{0, std::int64_t{8} << 30, {0, 1, 2}, {0, 6, 1, 7, 2, 8}}));
    EXPECT_EQ(t.nodes[1], (NumaNode{1, std::int64_t{8} << 30, {3, 4, 5}, {3, 9, 4, 10, 5, 11}}));
    EXPECT_TRUE(t.gpus.empty());
}

TEST(Description, RoundTrips)
{
    for (const char* file :
         {"power8", "summit", "dgx-1", "dgx-h200", "vm-4gpu.toml", "no-affinity-2node.toml", "two-node-pci.xml"}) {
        SCOPED_TRACE(file);
        const Topology t = test::machine(file);
        expect_equal(numa::parse_description(t.to_toml(), "dump"), t);
    }
    const Topology live = Topology::detect();
    const std::string path = test::build_path("tests/numa/rmsp_live.toml");
    std::ofstream(path) << live.to_toml();
    const Topology loaded = Topology::load(path);
    expect_equal(loaded, live);
    EXPECT_EQ(loaded.source, path);
    EXPECT_FALSE(loaded.live);
}

TEST(Description, RoundTripsOddValues)
{
    Topology t;
    t.name = "a \"quoted\\name\"\twith\nlines";
    t.nodes = {{3, 1234567891, {7}, {7, 70, 71}}, {0, 0, {}, {}}};
    t.gpus = {{5, "", "", -1, ""}, {1, "00010000:ff:1f.7", "G", 1, "sysfs"}};
    expect_equal(numa::parse_description(t.to_toml(), "dump"), t);
}

struct BadDescription {
    const char* text;
    const char* message;
};

class BadDescriptions : public ::testing::TestWithParam<BadDescription> {};

TEST_P(BadDescriptions, AreNamedByFileAndLine)
{
    try {
        numa::parse_description(GetParam().text, "m.toml");
        FAIL() << "no exception for " << GetParam().text;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadDescriptions,
    ::testing::Values(
        BadDescription{"", "either `hwloc` or [[node]]"}, BadDescription{"name = 'x'\n", "m.toml:"},
        BadDescription{"hwloc = 'numa:1 pu:1'\n[[node]]\ncores = 1\n", "either `hwloc` or [[node]]"},
        BadDescription{"name = 'x'\nhwloc = 'numa:2 banana:3'\n", "m.toml:2: hwloc does not understand"},
        BadDescription{"[[node]]\ncores = \n", "m.toml:2:9: "},
        BadDescription{"[[node]]\ncore = 4\n", "m.toml:2: unknown key `core` in [[node]]; did you mean `cores`?"},
        BadDescription{"[[nodes]]\ncores = 4\n", "unknown key `nodes` in the top level; did you mean `node`?"},
        BadDescription{"[[node]]\ncores = 4\n[[gpu]]\npic = '0000:1b:00.0'\n",
                       "m.toml:4: unknown key `pic` in [[gpu]]; did you mean `pci`?"},
        BadDescription{"[[node]]\ncores = 4\n[[gpu]]\npci = 'slot 3'\n", "m.toml:4: `pci` must be an address"},
        BadDescription{"[[node]]\ncores = 4\n[[gpu]]\npci = '0000:1b:00:0'\n", "m.toml:4: `pci` must be an address"},
        BadDescription{"[[node]]\ncores = 4\n[[gpu]]\nnode = 1\n", "m.toml:4: `node` must be an integer from 0 to 0"},
        BadDescription{"[[node]]\ncores = 0\n", "m.toml:2: `cores` must be an integer from 1"},
        BadDescription{"[[node]]\ncores = 9223372036854775807\n", "m.toml:2: `cores` must be"},
        BadDescription{"[[node]]\ncores = 2.5\n", "m.toml:2: `cores` must be an integer"},
        BadDescription{"[[node]]\ncores = '2'\n", "m.toml:2: `cores` must be an integer"},
        BadDescription{"[[node]]\nmemory_gib = 1\n", "m.toml:1: a [[node]] needs either `cores` or `core_pus`"},
        BadDescription{"[[node]]\ncores = 1\ncore_pus = [[0]]\n", "either `cores` or `core_pus`"},
        BadDescription{"[[node]]\nthreads_per_core = 2\ncore_pus = [[0]]\n", "m.toml:2: `threads_per_core` goes with"},
        BadDescription{"[[node]]\ncore_pus = [0, 1]\n", "m.toml:2: each core of `core_pus`"},
        BadDescription{"[[node]]\ncore_pus = [[0, 1],\n[1, 2]]\n", "m.toml:3: hardware thread 1 is listed twice"},
        BadDescription{"[[node]]\ncore_pus = [[-1]]\n", "m.toml:2: `core_pus` must be an integer from 0"},
        BadDescription{"[[node]]\ncores = 1\nmemory_gib = nan\n", "m.toml:3: `memory_gib`"},
        BadDescription{"[[node]]\ncores = 1\nmemory_gib = -1\n", "m.toml:3: `memory_gib`"},
        BadDescription{"[[node]]\ncores = 1\n[[node]]\nos_index = 0\ncores = 1\n",
                       "m.toml:3: two [[node]] tables have os_index 0"},
        BadDescription{"[[node]]\ncores = 1\n[network]\nbandwith_gbs = 1\n",
                       "m.toml:4: unknown key `bandwith_gbs` in [network]; did you mean `bandwidth_gbs`?"},
        BadDescription{"[[node]]\ncores = 1\n[network]\nbandwidth_gbs = 1\n", "m.toml:3: [network] needs `latency_us`"},
        BadDescription{"[[node]]\ncores = 1\n[network]\nbandwidth_gbs = 0\nlatency_us = 1\n",
                       "m.toml:4: [network] needs `bandwidth_gbs`, above 0"},
        BadDescription{"[[node]]\ncores = 1\n[network]\nbandwidth_gbs = 1\nadapters = 0\n",
                       "m.toml:5: `adapters` must be an integer from 1"},
        BadDescription{"[[node]]\ncores = 1\n[[link]]\nnodes = [0]\n", "m.toml:3: a [[link]] joins two or more"},
        BadDescription{"[[node]]\ncores = 1\n[[link]]\nnodes = [0, 0]\n", "m.toml:4: `nodes` has 0 twice"},
        BadDescription{"[[node]]\ncores = 1\n[[link]]\nnodes = [0, 1]\n", "m.toml:4: `nodes` must be an integer"},
        BadDescription{"[[node]]\ncores = 1\n[[link]]\ngpus = [0, 1]\n", "m.toml:4: `gpus` must be a list of pos"},
        BadDescription{"[[node]]\ncores = 1\n[[link]]\nnodes = [0]\nswitched = 1\n", "m.toml:5: `switched` must be"},
        BadDescription{"[[node]]\ncores = 1\n[[network]]\nadapters = 1\n", "`network` must be a table"},
        BadDescription{"node = 3\n", "m.toml:1: `node` must be one or more [[node]] tables"},
        BadDescription{"name = 3\n[[node]]\ncores = 1\n", "m.toml:1: `name` must be a string"}));

}  // namespace
}  // namespace rmsp
