#include <rmsp/topology.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <rmsp/error.hpp>

#include "numa/binding.hpp"
#include "tests/numa/topologies.hpp"
#include "tests/paths.hpp"

namespace rmsp {
namespace {

using test::machine;
using test::range;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(XmlTopology, ReadsNodesCoresAndGpus)
{
    const Topology t = machine("two-node-pci.xml");
    EXPECT_EQ(t.name, "Test server");
    EXPECT_EQ(t.source, test::source_path("tests/topologies/two-node-pci.xml"));
    EXPECT_FALSE(t.live);
    ASSERT_EQ(t.nodes.size(), 2u);
    EXPECT_EQ(t.nodes[0].memory_bytes, std::int64_t{16} << 30);
    EXPECT_THAT(t.nodes[0].cores, ElementsAre(0, 2, 4, 6));
    EXPECT_EQ(t.nodes[0].pus, range(0, 7));
    EXPECT_EQ(t.nodes[1].os_index, 1);
    EXPECT_THAT(t.nodes[1].cores, ElementsAre(8, 10, 12, 14));
    EXPECT_EQ(t.nodes[1].pus, range(8, 14)) << "hardware thread 15 is not in the allowed cpuset";
}

TEST(XmlTopology, TakesNvidiaGpusInPciOrderAndLocatesThem)
{
    const Topology t = machine("two-node-pci.xml");
    ASSERT_EQ(t.gpus.size(), 3u) << "the network card and the audio function are no GPUs";
    EXPECT_EQ(t.gpus[0], (GpuDescription{0, "0000:1b:00.0", "", 1, "hwloc"}));
    EXPECT_EQ(t.gpus[1], (GpuDescription{1, "0000:81:00.0", "NVIDIA H200", 0, "hwloc"}));
    EXPECT_EQ(t.gpus[2].pci_bus_id, "0000:c1:00.0");
    EXPECT_EQ(t.gpus[2].numa_node, -1) << "it hangs on the whole machine";
    EXPECT_THAT(t.gpus[2].numa_source, HasSubstr("no single NUMA node"));
}

TEST(XmlTopology, NamesAFileThatIsNoTopology)
{
    const std::string path = test::build_path("tests/numa/rmsp_broken.xml");
    std::ofstream(path) << "  <topology version=\"2.0\"><object";
    try {
        Topology::load(path);
        FAIL() << "no exception";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_THAT(error.what(), HasSubstr("rmsp_broken.xml:1:"));
    }
}

TEST(XmlTopology, RefusesWhatHwlocDoesNotWrite)
{
    std::ifstream file(test::source_path("tests/topologies/two-node-pci.xml"));
    const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::string path = test::build_path("tests/numa/rmsp_unsound.xml");
    const std::pair<std::string, std::string> changes[] = {
        {" complete_cpuset=\"0x0000ffff\"", ""},          // hwloc 2.9 would follow a null pointer
        {" complete_nodeset=\"0x00000003\"", ""},         // the same
        {"cpuset=\"0x00000001\"", "cpuset=\"0xf...f\""},  // a loop over it would not end
        {"cpuset=\"0x00000001\"", "cpuset=\"Core\""},
        {"type=\"Machine\"", "type=\"Package\""},
        {" SYSTEM \"hwloc2.dtd\"", ""},
        {" SYSTEM \"hwloc2.dtd\"", " [<!ENTITY a \"b\">]"},
        {"\"UTF-8\"", "\"UTF-7\""},
        {"<topology", std::string("<topology\0", 10)},
    };
    for (const auto& [from, to] : changes) {
        std::string text = good;
        ASSERT_NE(text.find(from), std::string::npos) << from;
        std::ofstream(path) << text.replace(text.find(from), from.size(), to);
        try {
            Topology::load(path);
            FAIL() << "no exception for " << from << " as " << to;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::io);
            EXPECT_THAT(error.what(), HasSubstr("which hwloc's XML of a machine does not have")) << from;
        }
    }
}

TEST(LoadTopology, NamesAFileThatCannotBeRead)
{
    for (const std::string& path : {std::string("/nonexistent/machine.toml"), test::source_path("tests/topologies")}) {
        try {
            Topology::load(path);
            FAIL() << "no exception for " << path;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::io);
            EXPECT_THAT(error.what(), HasSubstr(path));
        }
    }
}

TEST(DescribedMachines, HaveTheShapeOfTheRealOnes)
{
    struct Shape {
        const char* file;
        std::size_t nodes, cores, threads, gpus;
    };
    for (const Shape& shape : {Shape{"power8", 2, 4, 2, 4}, Shape{"summit", 2, 22, 4, 6}, Shape{"dgx-1", 2, 20, 2, 8},
                               Shape{"dgx-2", 2, 24, 2, 16}, Shape{"dgx-a100", 8, 16, 2, 8},
                               Shape{"dgx-h100", 2, 56, 2, 8}, Shape{"dgx-h200", 2, 56, 2, 8},
                               Shape{"vm-4gpu.toml", 1, 64, 1, 4}, Shape{"no-affinity-2node.toml", 2, 8, 2, 5}}) {
        SCOPED_TRACE(shape.file);
        const Topology t = machine(shape.file);
        EXPECT_FALSE(t.name.empty());
        ASSERT_EQ(t.nodes.size(), shape.nodes);
        EXPECT_EQ(t.gpus.size(), shape.gpus);
        std::set<int> pus;
        for (const NumaNode& node : t.nodes) {
            EXPECT_EQ(node.cores.size(), shape.cores);
            EXPECT_EQ(node.pus.size(), shape.cores * shape.threads);
            EXPECT_GT(node.memory_bytes, std::int64_t{32} << 30);
            pus.insert(node.pus.begin(), node.pus.end());
        }
        EXPECT_EQ(pus.size(), shape.nodes * shape.cores * shape.threads) << "a hardware thread is on two nodes";
    }
    EXPECT_EQ(machine("summit").nodes[1].os_index, 8);
}

TEST(DescribedMachines, AreFoundByName)
{
    const std::vector<std::string> names = machine_names();
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_THAT(names,
                testing::IsSupersetOf({"dgx-1", "dgx-2", "dgx-a100", "dgx-h100", "dgx-h200", "power8", "summit"}));
    for (const std::string& name : names) {
        const Topology t = machine(name);
        EXPECT_FALSE(t.name.empty()) << name;
        ASSERT_FALSE(t.gpus.empty()) << name;
        for (const GpuDescription& gpu : t.gpus) {
            EXPECT_GT(gpu.memory_gbs, 0) << name;
        }
    }
    try {
        machine_file("dgxh200");
        FAIL() << "no exception";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_THAT(error.what(), HasSubstr("machine \"dgxh200\" is not one of dgx-1, "));
        EXPECT_THAT(error.what(), HasSubstr("the nearest is \"dgx-h200\""));
    }
}

TEST(LiveTopology, IsThisMachine)
{
    const Topology t = Topology::detect();
    EXPECT_EQ(t.source, "live");
    EXPECT_TRUE(t.live);
    ASSERT_FALSE(t.nodes.empty());
    std::vector<int> pus;
    for (const NumaNode& node : t.nodes) {
        EXPECT_LE(node.cores.size(), node.pus.size());
        pus.insert(pus.end(), node.pus.begin(), node.pus.end());
    }
    std::sort(pus.begin(), pus.end());
    EXPECT_EQ(pus, numa::process_cpuset());
    for (const GpuDescription& gpu : t.gpus) {
        EXPECT_FALSE(gpu.numa_source.empty());
        EXPECT_LT(gpu.numa_node, static_cast<int>(t.nodes.size()));
    }
}

TEST(LiveTopology, StaysWithinTheCpusetOfTheProcess)
{
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    const std::vector<int> all = numa::process_cpuset();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.back()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const Topology t = Topology::detect();
    const std::vector<Placement> placements = place_host_devices(t, 2, 0, BindPolicy::automatic);
    EXPECT_THROW(place_host_devices(t, 2, 0, BindPolicy::strict), Error);
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);

    std::vector<int> pus;
    for (const NumaNode& node : t.nodes) {
        pus.insert(pus.end(), node.pus.begin(), node.pus.end());
        EXPECT_EQ(node.cores, node.pus);
    }
    EXPECT_THAT(pus, ElementsAre(all.back()));
    for (const Placement& placement : placements) {
        EXPECT_THAT(placement.cpus, ElementsAre(all.back()));
        EXPECT_THAT(placement.reason, HasSubstr("2 devices share"));
    }
}

}  // namespace
}  // namespace rmsp
