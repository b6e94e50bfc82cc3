#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <runtime/engine/cuda/cuda_backend.hpp>
#include <runtime/engine/job_queue.hpp>
#include <runtime/transport/connect.hpp>
#include <runtime/transport/table.hpp>
#include <runtime/transport/transport.hpp>

#include "matrices.hpp"
#include "workers.hpp"

namespace rmsp::transport {

using namespace engine;
using engine::test::host_workers;
using rmsp::test::usage_message;

namespace {

TEST(Transports, HostDevicesNeedNone)
{
    auto workers = host_workers(2);
    EXPECT_EQ(connect(workers, {}).name, "shared");
    auto one = host_workers(1);
    EXPECT_EQ(connect(one, {}).name, "none");
}

TEST(Transports, UnknownNamesAreErrorsThatNameTheNearest)
{
    auto workers = host_workers(2);
    const std::string expected = "transport \"pear\" is not one of peer, nccl, host; the nearest is \"peer\"";
    EXPECT_EQ(usage_message([&] { connect(workers, {"host", "pear"}); }), expected);
    EXPECT_EQ(usage_message([&] { make_transport("pear", workers); }), expected);
    EXPECT_EQ(usage_message([&] { transport_named("hots", "merge", {"auto"}); }),
              "merge \"hots\" is not one of auto, peer, nccl, host; the nearest is \"host\"");
    EXPECT_EQ(find_transport("unknown"), nullptr);
}

TEST(Transports, RowsSayWhatMovesCostAndWhatIsSkipped)
{
    const TransportRow& host = transport_through_host();
    for (const TransportRow& row : transports()) {
        EXPECT_EQ(&transport_named(row.name), &row);
        EXPECT_GT(row.seconds(0), 0.0) << row.name;
        EXPECT_GT(row.seconds(1 << 20), row.seconds(0)) << row.name;
        EXPECT_EQ(row.why_skipped({.devices = 1}), "one device needs none");
        EXPECT_EQ(row.why_skipped({.devices = 2, .share_memory = true}), "host devices share memory and need none");
        const std::string apart = row.why_skipped({.devices = 2, .share_gpus = true});
        EXPECT_EQ(apart.empty(), &row == &host) << row.name << ": " << apart;
        EXPECT_EQ(row.why_skipped({.devices = 2, .all_reachable = true}).empty(), row.connect != nullptr) << row.name;
    }
    EXPECT_GT(host.seconds(1 << 30), transports().front().seconds(1 << 30));
}

TEST(Transports, HostStagedGatherMovesWhatIsNeeded)
{
    auto workers = host_workers(3);
    JobQueue jobs(workers, false);
    const auto transport = make_transport("host", {});
    const std::vector<std::int64_t> offsets{0, 5, 5, 12};
    const auto channel = transport->make_channel(3, 12 * 8);
    std::vector<std::vector<double>> data(3, std::vector<double>(12, -1));
    std::vector<void*> buffers;
    for (auto& d : data) {
        buffers.push_back(d.data());
    }
    jobs.submit([&](Worker& worker, Rendezvous&) { transport->open(*channel, worker); }).get();
    const std::vector<std::vector<Range>> needs{
        {{0, 12}, {0, 12}, {0, 12}}, {{0, 7}, {4, 4}, {3, 12}}, {{0, 0}, {0, 12}, {11, 12}}};
    for (int round = 0; round < 30; ++round) {
        const auto& needed = needs[static_cast<std::size_t>(round) % needs.size()];
        jobs.submit([&](Worker& worker, Rendezvous& meeting) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                channel->gather(worker, worker.stream(), meeting, {buffers, offsets, needed, sizeof(double)}, [&] {
                    for (auto i = offsets[rank]; i < offsets[rank + 1]; ++i) {
                        data[rank][static_cast<std::size_t>(i)] = static_cast<double>(100 * round + i);
                    }
                });
                // Host devices have no streams that would order the next round's writes behind these reads.
                meeting.arrive_and_wait();
            })
            .get();
        for (std::size_t device = 0; device < 3; ++device) {
            for (auto i = needed[device].first; i < needed[device].end; ++i) {
                EXPECT_EQ(data[device][static_cast<std::size_t>(i)], static_cast<double>(100 * round + i));
            }
        }
    }
    jobs.submit([&](Worker& worker, Rendezvous&) { channel->close(worker.rank()); }).get();
}

TEST(Transports, GathersMoreThanItsMemoryTakesAndFromOtherArrays)
{
    const auto workers = host_workers(3);
    JobQueue jobs(workers, true);
    const auto transport = make_transport("host", {});
    const auto channel = transport->make_channel(3, 100);
    jobs.submit([&](Worker& worker, Rendezvous&) { transport->open(*channel, worker); }).get();
    // Slices of unequal sizes, which each device has in an array of its own; the last device needs nothing.
    const std::vector<std::int64_t> slices{0, 700, 710, 1500};
    const std::vector<Range> needed{{0, 1500}, {650, 1200}, {}};
    std::vector<std::vector<std::int32_t>> held(3);
    std::vector<std::vector<std::int32_t>> data(3, std::vector<std::int32_t>(1500, -1));
    std::vector<void*> slice_zero;
    std::vector<void*> buffers;
    for (std::size_t device = 0; device < 3; ++device) {
        for (std::int64_t i = slices[device]; i < slices[device + 1]; ++i) {
            held[device].push_back(static_cast<std::int32_t>(7 * i));
        }
        slice_zero.push_back(held[device].data() - slices[device]);
        buffers.push_back(data[device].data());
    }
    jobs.submit([&](Worker& worker, Rendezvous& meeting) {
            Gather gather{buffers, slices, needed, sizeof(std::int32_t)};
            gather.held = slice_zero;
            gather.large = true;
            channel->gather(worker, worker.stream(), meeting, gather, [] {});
            channel->settle(worker, worker.stream(), meeting);
        })
        .get();
    for (std::size_t device = 0; device < 3; ++device) {
        for (std::int64_t i = 0; i < 1500; ++i) {
            const bool own = slices[device] <= i && i < slices[device + 1];
            const bool wanted = needed[device].first <= i && i < needed[device].end;
            EXPECT_EQ(data[device][static_cast<std::size_t>(i)], wanted && !own ? 7 * i : -1) << device << ' ' << i;
        }
    }
    jobs.submit([&](Worker& worker, Rendezvous&) { channel->close(worker.rank()); }).get();
}

/// So many devices, dealt out to so many GPUs.
std::vector<std::unique_ptr<Worker>> gpu_workers(int devices, int gpus)
{
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < devices; ++i) {
        DeviceInfo info;
        info.kind = DeviceKind::cuda;
        info.index = i % gpus;
        workers.push_back(std::make_unique<Worker>(i, Placement{}, [info, sharers = (devices + gpus - 1) / gpus] {
            return make_cuda_device(info, info.index, sharers);
        }));
    }
    for (auto& worker : workers) {
        worker->wait_until_open();
    }
    return workers;
}

/// Devices exchange again and again, other data each time, and none waits for another but inside the exchange.
template <class T>
void exchange_often(const std::vector<std::unique_ptr<Worker>>& workers, const std::vector<std::int64_t>& slices,
                    const std::vector<Range>& needed, const std::vector<std::vector<std::int32_t>>& ghosts)
{
    const auto peer = make_transport("peer", workers, {.waits_on_shared = true});
    Transport& transport = *peer;
    JobQueue jobs(workers, false, [&](std::uint64_t job) { transport.give_up(job); });
    const bool by_entries = !ghosts.empty();
    const auto size = static_cast<std::size_t>(slices.back());
    constexpr int rounds = 40;
    const auto channel =
        transport.make_channel(static_cast<int>(workers.size()), slices.back() * static_cast<std::int64_t>(sizeof(T)));
    const Halo halo = by_entries ? Halo(ghosts, slices, sizeof(T)) : Halo();
    std::vector<kernels::DeviceArray<T>> x(workers.size());
    std::vector<void*> entry_zero(workers.size());
    jobs.submit([&](Worker& worker, Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            transport.open(*channel, worker);
            x[rank] = kernels::DeviceArray<T>(worker.device(), 2 * size);
            entry_zero[rank] = x[rank].data();
        })
        .get();
    jobs.submit([&](Worker& worker, Rendezvous& meeting) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            Stream& stream = worker.stream();
            const std::int64_t own = slices[rank + 1] - slices[rank];
            std::vector<T> sources;
            for (int round = 0; round < rounds; ++round) {
                for (std::int64_t i = slices[rank]; i < slices[rank + 1]; ++i) {
                    sources.push_back(static_cast<T>(i + 7 * round));
                }
            }
            kernels::DeviceArray<T> source(worker.device(), sources.size());
            worker.device().upload(stream, source.data(), sources.data(), sources.size() * sizeof(T));
            kernels::DeviceArray<T> seen(worker.device(), rounds * 2 * size);
            kernels::DeviceArray<std::int32_t> list;
            Gather gather{entry_zero, slices, needed, sizeof(T)};
            T* const slice = x[rank].data() + slices[rank];
            if (by_entries) {
                const auto packed = halo.packed(worker.rank(), ghosts, slices);
                list = kernels::DeviceArray<std::int32_t>(worker.device(), packed.size());
                worker.device().upload(stream, list.data(), packed.data(), packed.size() * sizeof(std::int32_t));
                gather.halo = &halo;
                gather.packed = entry_zero;  // only its size is asked for
                gather.packed_list = list.data();
                gather.slice = slice;
            }
            stream.synchronize();
            for (int round = 0; round < rounds; ++round) {
                channel->gather(worker, stream, meeting, gather, [&] {
                    stream.copy(slice, source.data() + round * own, static_cast<std::size_t>(own) * sizeof(T));
                });
                channel->settle(worker, stream, meeting);
                stream.copy(seen.data() + static_cast<std::size_t>(round) * 2 * size, x[rank].data(),
                            2 * size * sizeof(T));
            }
            std::vector<T> all(rounds * 2 * size);
            worker.device().download(stream, all.data(), seen.data(), all.size() * sizeof(T));
            stream.synchronize();
            for (int round = 0; round < rounds; ++round) {
                const T* const found = all.data() + static_cast<std::size_t>(round) * 2 * size;
                const auto expect = [&](std::int64_t at, std::int64_t entry) {
                    if (found[at] != static_cast<T>(entry + 7 * round)) {
                        throw std::runtime_error("round " + std::to_string(round) + ", entry " + std::to_string(entry) +
                                                 ": " + std::to_string(found[at]));
                    }
                };
                for (std::int64_t i = needed[rank].first; !by_entries && i < needed[rank].end; ++i) {
                    expect(i, i);
                }
                for (std::size_t i = 0; by_entries && i < ghosts[rank].size(); ++i) {
                    expect(slices[rank + 1] + static_cast<std::int64_t>(i), ghosts[rank][i]);
                }
            }
        })
        .get();
    jobs.submit([&](Worker& worker, Rendezvous&) {
            channel->close(worker.rank());
            x[static_cast<std::size_t>(worker.rank())] = {};
        })
        .get();
}

/// The same with all devices on one GPU, and dealt out to two.
template <class T>
void exchange_often(const std::vector<std::int64_t>& slices, const std::vector<Range>& needed,
                    const std::vector<std::vector<std::int32_t>>& ghosts)
{
    const int gpus = static_cast<int>(cuda_gpus().size());
    const int devices = static_cast<int>(slices.size()) - 1;
    if (gpus == 0) {
        GTEST_SKIP() << "needs a GPU";
    }
    exchange_often<T>(gpu_workers(devices, 1), slices, needed, ghosts);
    if (gpus == 1) {
        GTEST_SKIP() << "needs 2 GPUs for devices that do not share one";
    }
    exchange_often<T>(gpu_workers(devices, 2), slices, needed, ghosts);
}

TEST(Transports, PeersExchangeRangesOften)
{
    exchange_often<double>({0, 1000, 2001}, {{0, 2001}, {0, 2001}}, {});
    exchange_often<float>({0, 1000, 2001}, {{0, 2001}, {999, 2001}}, {});
    exchange_often<double>({0, 700, 1500, 1500, 2201}, {{0, 1490}, {699, 2201}, {}, {3, 2201}}, {});
}

TEST(Transports, PeersExchangeInOneDirectionOften)
{
    exchange_often<double>({0, 1000, 2001}, {{0, 2001}, {1000, 2001}}, {});
    exchange_often<float>({0, 1000, 2001}, {{0, 1000}, {3, 2001}}, {});
}

TEST(Transports, PeersExchangeMoreThanFitsLines)
{
    exchange_often<double>({0, 140'000, 280'000}, {{0, 280'000}, {0, 280'000}}, {});
    exchange_often<double>({0, 140'000, 280'000, 420'000}, {{0, 280'000}, {0, 420'000}, {140'000, 420'000}}, {});
}

TEST(Transports, PeersExchangeEntriesOften)
{
    std::vector<std::vector<std::int32_t>> ghosts(2);
    for (std::int32_t i = 0; i < 1000; i += 3) {
        ghosts[1].push_back(i);
        ghosts[0].push_back(1000 + i);
    }
    exchange_often<double>({0, 1000, 2000}, {{}, {}}, ghosts);
    exchange_often<float>({0, 1000, 2000}, {{}, {}}, ghosts);
    ghosts[0].clear();
    exchange_often<double>({0, 1000, 2000}, {{}, {}}, ghosts);
    // Too many for lines.
    std::vector<std::vector<std::int32_t>> many(3);
    for (std::int32_t i = 0; i < 900'000; ++i) {
        many[static_cast<std::size_t>((i / 300'000 + 1) % 3)].push_back(i);
    }
    exchange_often<float>({0, 300'000, 600'000, 900'000}, {{}, {}, {}}, many);
}

TEST(Transports, ADeviceThatFailsLeavesNoPeerWaiting)
{
    const int gpus = static_cast<int>(cuda_gpus().size());
    if (gpus == 0) {
        GTEST_SKIP() << "needs a GPU";
    }
    const auto workers = gpu_workers(2, std::min(gpus, 2));
    const Connection connection = connect(workers, {"peer"});
    Transport& transport = *connection.transport;
    const std::vector<std::int64_t> offsets{0, 1000, 2000};
    const std::vector<Range> needed{{0, 2000}, {0, 2000}};
    const auto channel = transport.make_channel(2, 2000 * 8);
    std::vector<void*> buffers(2);
    JobQueue jobs(workers, false, [&](std::uint64_t job) { transport.give_up(job); });
    jobs.submit([&](Worker& worker, Rendezvous&) {
            transport.open(*channel, worker);
            buffers[static_cast<std::size_t>(worker.rank())] = worker.device().allocate(2000 * 8);
        })
        .get();
    const auto gather = [&](Worker& worker, Rendezvous& meeting, double value) {
        const auto rank = static_cast<std::size_t>(worker.rank());
        const std::vector<double> own(1000, value + static_cast<double>(rank));
        channel->gather(worker, worker.stream(), meeting, {buffers, offsets, needed, sizeof(double)}, [&] {
            worker.device().upload(worker.stream(), static_cast<double*>(buffers[rank]) + offsets[rank], own.data(),
                                   own.size() * sizeof(double));
        });
    };
    for (int round = 0; round < 5; ++round) {
        // After the meeting, so that the other device's kernel waits for one that is never queued; or before it.
        auto failed = jobs.submit([&](Worker& worker, Rendezvous& meeting) {
            if (worker.rank() == 1) {
                if (round % 2 == 0) {
                    meeting.arrive_and_wait();
                }
                throw std::runtime_error("no");
            }
            gather(worker, meeting, -1);
        });
        EXPECT_THROW(failed.get(), std::exception);
        jobs.submit([&](Worker& worker, Rendezvous& meeting) {
                gather(worker, meeting, 10.0 * round);
                std::vector<double> all(2000);
                worker.device().download(worker.stream(), all.data(), buffers[static_cast<std::size_t>(worker.rank())],
                                         all.size() * sizeof(double));
                worker.stream().synchronize();
                for (std::size_t i = 0; i < all.size(); ++i) {
                    if (all[i] != 10.0 * round + (i < 1000 ? 0 : 1)) {
                        throw std::runtime_error("wrong data");
                    }
                }
            })
            .get();
    }
    jobs.submit([&](Worker& worker, Rendezvous&) {
            worker.stream().synchronize();
            channel->close(worker.rank());
            worker.device().deallocate(buffers[static_cast<std::size_t>(worker.rank())], 2000 * 8);
        })
        .get();
}

}  // namespace
}  // namespace rmsp::transport
