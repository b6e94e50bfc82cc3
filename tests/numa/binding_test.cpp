#include "numa/binding.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <rmsp/error.hpp>
#include <rmsp/topology.hpp>

namespace rmsp::numa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(Binding, BindsTheCallingThreadOnly)
{
    const std::vector<int> before = current_cpuset();
    ASSERT_FALSE(before.empty());
    EXPECT_TRUE(std::is_sorted(before.begin(), before.end()));
    BindResult result;
    std::vector<int> inside;
    int cpu = -1;
    std::thread([&] {
        result = bind_current_thread({before.back()});
        inside = current_cpuset();
        cpu = sched_getcpu();
    }).join();
    EXPECT_TRUE(result.bound) << result.reason;
    EXPECT_THAT(result.reason, IsEmpty());
    EXPECT_THAT(inside, ElementsAre(before.back()));
    EXPECT_EQ(cpu, before.back());
    EXPECT_EQ(current_cpuset(), before);
}

TEST(Binding, MayMoveWithinTheProcessesCpuset)
{
    const std::vector<int> all = process_cpuset();
    std::thread([&] {
        EXPECT_TRUE(bind_current_thread({all.front()}).bound);
        EXPECT_TRUE(bind_current_thread({all.back()}).bound) << "a team's thread starts with its creator's set";
        EXPECT_THAT(current_cpuset(), ElementsAre(all.back()));
        EXPECT_TRUE(bind_current_thread(all).bound);
        EXPECT_EQ(current_cpuset(), all);
    }).join();
}

TEST(Binding, NeverWidensTheProcessesCpuset)
{
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    const std::vector<int> all = process_cpuset();
    if (all.size() < 2) {
        GTEST_SKIP() << "one processor only";
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all[0]), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    BindResult wider;
    BindResult both;
    std::vector<int> inside;
    std::thread([&] {
        wider = bind_current_thread({all[1]});
        both = bind_current_thread({all[0], all[1]});
        inside = current_cpuset();
    }).join();
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_FALSE(wider.bound);
    EXPECT_THAT(wider.reason, HasSubstr("outside the process's cpuset"));
    EXPECT_FALSE(both.bound) << "a part of the request is not what was asked for";
    EXPECT_THAT(inside, ElementsAre(all[0]));
}

TEST(Binding, RefusesNonsense)
{
    EXPECT_FALSE(bind_current_thread({}).bound);
    EXPECT_FALSE(bind_current_thread({-1}).bound);
    const BindResult far = bind_current_thread({1 << 30});
    EXPECT_FALSE(far.bound);
    EXPECT_THAT(far.reason, HasSubstr("1073741824"));
}

TEST(NodeMemory, IsZeroWritableAndAligned)
{
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, 2 * mib - 1, 2 * mib, 5 * mib + 3}) {
        for (const int node : {-1, 0, 1000000}) {
            SCOPED_TRACE(bytes);
            auto* p = static_cast<unsigned char*>(allocate_on_node(bytes, node));
            ASSERT_NE(p, nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % (bytes >= 2 * mib ? 2 * mib : 4096), 0u);
            EXPECT_EQ(p[0], 0);
            EXPECT_EQ(p[bytes - 1], 0);
            std::memset(p, 0x5a, bytes);
            free_on_node(p, bytes);
        }
    }
    EXPECT_EQ(allocate_on_node(0, 0), nullptr);
    free_on_node(nullptr, 0);
}

TEST(NodeMemory, ComesFromTheNodeAskedFor)
{
    for (const NumaNode& node : Topology::detect().nodes) {
        auto* p = static_cast<unsigned char*>(allocate_on_node(4 * mib, node.os_index));
        EXPECT_EQ(node_of_page(p), -1) << "not touched yet";
        p[0] = 1;
        p[3 * mib] = 1;
        const int first = node_of_page(p + 5);
        const int last = node_of_page(p + 3 * mib);
        free_on_node(p, 4 * mib);
        if (first < 0) {
            GTEST_SKIP() << "the kernel does not tell the node of a page";
        }
        EXPECT_EQ(first, node.os_index);
        EXPECT_EQ(last, node.os_index);
    }
}

TEST(NodeMemory, SaysHowMuchItCouldNotHave)
{
    for (const std::size_t bytes : {std::size_t{1} << 60, ~std::size_t{0}}) {
        try {
            free_on_node(allocate_on_node(bytes, 0), bytes);
            FAIL() << "no exception";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
            EXPECT_THAT(error.what(), HasSubstr(std::to_string(bytes)));
        }
    }
}

}  // namespace
}  // namespace rmsp::numa
