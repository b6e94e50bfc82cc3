#include <cerrno>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <numa/binding.hpp>
#include <numa/pages.hpp>

namespace rmsp::numa {
namespace {

/// A machine of several nodes: pages are where they were moved to, at first on node 0. One address cannot be moved.
class FakePages {
public:
    MovePages mover()
    {
        return [this](unsigned long count, void** pages, const int* nodes, int* status) -> long {
            ++calls;
            for (unsigned long i = 0; i < count; ++i) {
                if (nodes != nullptr && pages[i] != locked) {
                    node_of[pages[i]] = nodes[i];
                }
                status[i] = nodes != nullptr && pages[i] == locked ? -EBUSY : node_of[pages[i]];
            }
            return 0;
        };
    }
    std::map<void*, int> node_of;
    void* locked = nullptr;
    int calls = 0;
};

char* address(std::uintptr_t page, std::uintptr_t offset)
{
    return reinterpret_cast<char*>(page * static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)) + offset);
}

const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);

TEST(Pages, BelongToTheRangeInWhichTheyBegin)
{
    FakePages machine;
    const auto three_pages = static_cast<std::size_t>(3 * page_bytes);
    const Moved moved = move_to_node(address(100, 8), three_pages, 1, machine.mover());
    EXPECT_EQ(moved.there_bytes, 3 * page_bytes);
    EXPECT_EQ(moved.left_bytes, 0);
    EXPECT_EQ(moved.reason, "");
    const std::map<void*, int> expected{{address(101, 0), 1}, {address(102, 0), 1}, {address(103, 0), 1}};
    EXPECT_EQ(machine.node_of, expected);
    // The next range's pages are others, the last page of this one among them only once.
    move_to_node(address(103, 8), three_pages, 2, machine.mover());
    EXPECT_EQ(machine.node_of.at(address(103, 0)), 1);
    EXPECT_EQ(machine.node_of.at(address(104, 0)), 2);
    const auto found = nodes_of_pages(address(100, 8), 2 * three_pages, machine.mover());
    EXPECT_EQ(found, (std::map<int, std::int64_t>{{1, 3 * page_bytes}, {2, 3 * page_bytes}}));
}

TEST(Pages, ThatCannotBeMovedAreCountedAndTheReasonSaid)
{
    FakePages machine;
    machine.locked = address(7, 0);
    const Moved moved = move_to_node(address(5, 0), static_cast<std::size_t>(4 * page_bytes), 1, machine.mover());
    EXPECT_EQ(moved.there_bytes, 3 * page_bytes);
    EXPECT_EQ(moved.left_bytes, page_bytes);
    EXPECT_NE(moved.reason.find("busy"), std::string::npos) << moved.reason;
    const Moved refused = move_to_node(address(5, 0), static_cast<std::size_t>(page_bytes), 1,
                                       [](auto, auto, auto, auto) { return -long{EPERM}; });
    EXPECT_EQ(refused.left_bytes, page_bytes);
    EXPECT_NE(refused.reason.find("permitted"), std::string::npos) << refused.reason;
}

TEST(Pages, OfManyASampleStandsForAll)
{
    FakePages machine;
    const std::int64_t pages = 1'000'000;
    for (std::uintptr_t i = 0; i < 500'000; ++i) {
        machine.node_of[address(1000 + i, 0)] = 1;
    }
    const auto found = nodes_of_pages(address(1000, 0), static_cast<std::size_t>(pages * page_bytes), machine.mover());
    EXPECT_EQ(found.at(0) + found.at(1), pages * page_bytes);
    EXPECT_NEAR(static_cast<double>(found.at(1)) / static_cast<double>(pages * page_bytes), 0.5, 0.001);
    EXPECT_LE(machine.calls, 17);
}

TEST(Pages, NothingOfNothing)
{
    FakePages machine;
    EXPECT_TRUE(nodes_of_pages(nullptr, 0, machine.mover()).empty());
    EXPECT_EQ(move_to_node(address(5, 1), 100, 1, machine.mover()).there_bytes, 0);
    EXPECT_EQ(machine.calls, 0);
}

TEST(Pages, OfThisMachineLieSomewhere)
{
    const auto bytes = static_cast<std::size_t>(8 * page_bytes);
    auto* const p = static_cast<char*>(allocate_on_node(bytes, 0));
    prefer_node(p, bytes, 0);
    prefer_node(p, bytes, -1);
    for (std::size_t i = 0; i < bytes; ++i) {
        p[i] = 1;
    }
    std::int64_t all = 0;
    for (const auto& [node, of_node] : nodes_of_pages(p, bytes, system_move_pages)) {
        EXPECT_GE(node, -1);
        all += of_node;
    }
    EXPECT_EQ(all, 8 * page_bytes);
    free_on_node(p, bytes);
}

}  // namespace
}  // namespace rmsp::numa
