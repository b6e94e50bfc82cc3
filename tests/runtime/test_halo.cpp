#include <gtest/gtest.h>

#include <runtime/plan/device_count.hpp>
#include <runtime/transport/halo.hpp>

namespace rmsp::transport {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

TEST(Halo, EachPairHasItsPlaces)
{
    const Lists ghosts{{5, 9, 10, 11}, {0, 2, 10}, {4, 5}};
    const std::vector<std::int64_t> slices{0, 4, 10, 12};
    const Halo halo(ghosts, slices, sizeof(double));
    EXPECT_EQ(halo.count(1, 0), 2);
    EXPECT_EQ(halo.count(2, 0), 2);
    EXPECT_EQ(halo.count(0, 1), 2);
    EXPECT_EQ(halo.count(2, 1), 1);
    EXPECT_EQ(halo.count(0, 2), 0);
    EXPECT_EQ(halo.count(1, 2), 2);
    EXPECT_EQ(halo.count(1, 1), 0);
    // Behind the slice, in the order of the columns.
    EXPECT_EQ(halo.received_at(1, 0), 4);
    EXPECT_EQ(halo.received_at(2, 0), 6);
    EXPECT_EQ(halo.received_at(0, 1), 6);
    EXPECT_EQ(halo.received_at(2, 1), 8);
    EXPECT_EQ(halo.received_at(1, 2), 2);
}

TEST(Halo, PacksEntriesAlignedAsTheyArrive)
{
    const Lists ghosts{{5, 9, 10, 11}, {0, 2, 3, 10, 11}, {1, 4, 5, 9}};
    const std::vector<std::int64_t> slices{0, 4, 10, 13};
    for (const std::size_t bytes : {sizeof(float), sizeof(double)}) {
        const Halo halo(ghosts, slices, bytes);
        const auto aligned = static_cast<std::int64_t>(16 / bytes);
        for (int from = 0; from < 3; ++from) {
            const auto list = halo.packed(from, ghosts, slices);
            ASSERT_EQ(static_cast<std::int64_t>(list.size()), halo.buffer_entries(from));
            std::int64_t end = 0;
            for (int to = 0; to < 3; ++to) {
                if (halo.count(from, to) == 0) {
                    continue;
                }
                const auto to_slice = slices[static_cast<std::size_t>(to)];
                EXPECT_GE(halo.sent_at(from, to), end);
                EXPECT_EQ(halo.sent_at(from, to) % aligned, (to_slice + halo.received_at(from, to)) % aligned);
                end = halo.sent_at(from, to) + halo.count(from, to);
                // What arrives at position p behind the slice is ghost p of the receiver.
                const auto& receiver = ghosts[static_cast<std::size_t>(to)];
                const std::int64_t own = slices[static_cast<std::size_t>(to) + 1] - to_slice;
                for (std::int64_t i = 0; i < halo.count(from, to); ++i) {
                    EXPECT_EQ(list[static_cast<std::size_t>(halo.sent_at(from, to) + i)] +
                                  slices[static_cast<std::size_t>(from)],
                              receiver[static_cast<std::size_t>(halo.received_at(from, to) - own + i)]);
                }
            }
            EXPECT_EQ(end, halo.buffer_entries(from));
        }
    }
}

TEST(Halo, ArrivesBehindGhostsThatCameBefore)
{
    const Lists ghosts{{5, 9}, {2}, {}};
    const std::vector<std::int64_t> slices{0, 4, 10, 12};
    const std::vector<std::int64_t> before{3, 2, 7};
    const Halo halo(ghosts, slices, sizeof(double), before);
    EXPECT_EQ(halo.received_at(1, 0), 4 + 3);
    EXPECT_EQ(halo.received_at(0, 1), 6 + 2);
    EXPECT_EQ(halo.sent_at(1, 0) % 2, 1);  // aligned as it arrives
    EXPECT_EQ(halo.packed(0, ghosts, slices)[static_cast<std::size_t>(halo.sent_at(0, 1))], 2);
}

TEST(Halo, NothingToSend)
{
    const Halo halo(Lists{{}, {}}, std::vector<std::int64_t>{0, 0, 7}, sizeof(double));
    EXPECT_EQ(halo.count(1, 0), 0);
    EXPECT_EQ(halo.buffer_entries(0), 0);
    EXPECT_TRUE(halo.packed(1, Lists{{}, {}}, std::vector<std::int64_t>{0, 0, 7}).empty());
}

TEST(Halo, EntriesPayWhereTheyAreFew)
{
    const std::int64_t million = 1'000'000;
    EXPECT_TRUE(entries_pay(million, 4 * million, sizeof(double)));
    EXPECT_FALSE(entries_pay(2 * million, 4 * million, sizeof(double)));
    // A mesh of 156,000 nodes on two devices; a range that moves in no time.
    EXPECT_TRUE(entries_pay(10'600, 78'000, sizeof(double)));
    EXPECT_FALSE(entries_pay(0, 16'000, sizeof(double)));
}

TEST(Halo, OnlyManyEntriesAreHidden)
{
    EXPECT_FALSE(entries_worth_hiding(500'000, sizeof(double)));
    EXPECT_TRUE(entries_worth_hiding(1'000'000, sizeof(double)));
    EXPECT_FALSE(entries_worth_hiding(1'000'000, sizeof(float)));
}

TEST(DeviceCount, GrowsWithTheTraffic)
{
    const double gbs = 4000;
    const double exchange = plan::apply_costs.exchange_by_peers;
    // 25 MB in 6 us on one device: no exchange is worth it. 5 GB: all there are.
    EXPECT_EQ(plan::fastest_device_count(25e6, 4, gbs, exchange), 1);
    EXPECT_EQ(plan::fastest_device_count(5e9, 4, gbs, exchange), 4);
    EXPECT_EQ(plan::fastest_device_count(25e6, 4, gbs, 0), 4);
    EXPECT_EQ(plan::fastest_device_count(0, 4, gbs, 0), 1);
    EXPECT_EQ(plan::fastest_device_count(5e9, 1, gbs, exchange), 1);
    int before = 1;
    for (double bytes = 1e5; bytes < 1e10; bytes *= 1.3) {
        const int count = plan::fastest_device_count(bytes, 8, gbs, exchange);
        EXPECT_GE(count, before);
        EXPECT_LE(plan::apply_seconds(bytes, count, gbs, exchange), plan::apply_seconds(bytes, 1, gbs, exchange));
        before = count;
    }
    // Without a known bandwidth that of the model is taken.
    EXPECT_EQ(plan::apply_seconds(4e9, 1, 0, 0), 4e9 / (plan::apply_costs.assumed_gbs * 1e9));
}

}  // namespace
}  // namespace rmsp::transport
