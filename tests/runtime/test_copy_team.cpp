#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/engine/copy_team.hpp"

namespace rmsp::engine {
namespace {

constexpr std::size_t block = CopyTeam::block_bytes;

class CopyTeamTest : public testing::TestWithParam<int> {};

TEST_P(CopyTeamTest, WorksOnceOnEveryByteOfOpenChunks)
{
    CopyTeam team(GetParam());
    const std::vector<std::size_t> sizes{0, 1, block - 1, block, block + 1, 0, 0, 5 * block + 7, 3, 0};
    for (int repetition = 0; repetition < 20; ++repetition) {
        std::vector<std::vector<unsigned char>> seen;
        for (const std::size_t size : sizes) {
            seen.emplace_back(size, 0);
        }
        std::size_t open = 0;
        team.run(
            sizes,
            [&](std::size_t chunk, std::size_t first, std::size_t bytes) {
                for (std::size_t i = first; i < first + bytes; ++i) {
                    ++seen[chunk][i];
                }
            },
            [&] {
                // One chunk after the other, as through a ring of one slot.
                if (open > 0 && !team.done(open - 1)) {
                    return false;
                }
                if (open < sizes.size()) {
                    if (sizes[open] > 0) {
                        EXPECT_FALSE(team.done(open)) << "chunk " << open << " is not open";
                    }
                    team.open(++open);
                    return false;
                }
                return true;
            });
        for (std::size_t c = 0; c < sizes.size(); ++c) {
            EXPECT_TRUE(std::all_of(seen[c].begin(), seen[c].end(), [](unsigned char n) { return n == 1; }))
                << "chunk " << c;
        }
    }
}

TEST_P(CopyTeamTest, NothingToDo)
{
    CopyTeam team(GetParam());
    int calls = 0;
    team.run(
        {}, [](std::size_t, std::size_t, std::size_t) { FAIL(); }, [&] { return ++calls == 3; });
    EXPECT_EQ(calls, 3);
}

TEST_P(CopyTeamTest, AnExceptionOfTheLeaderEndsIt)
{
    CopyTeam team(GetParam());
    const std::vector<std::size_t> sizes(8, 4 * block);
    const auto ignore = [](std::size_t, std::size_t, std::size_t) {};
    int calls = 0;
    EXPECT_THROW(team.run(sizes, ignore,
                          [&] {
                              team.open(2);
                              return ++calls > 3 ? throw std::runtime_error("the device is lost") : false;
                          }),
                 std::runtime_error);
    std::size_t worked = 0;
    team.run(sizes, ignore, [&] {
        team.open(sizes.size());
        worked = static_cast<std::size_t>(std::count_if(
            sizes.begin(), sizes.end(), [&](const std::size_t& s) { return team.done(&s - sizes.data()); }));
        return worked == sizes.size();
    });
    EXPECT_EQ(worked, sizes.size());
}

INSTANTIATE_TEST_SUITE_P(Helpers, CopyTeamTest, testing::Values(0, 1, 7), testing::PrintToStringParamName());

}  // namespace
}  // namespace rmsp::engine
