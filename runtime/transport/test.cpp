#include "runtime/transport/test.hpp"

#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/log.hpp"

namespace rmsp::transport {

bool wait_for_stream(engine::Worker& worker, std::chrono::steady_clock::duration limit)
{
    const auto deadline = std::chrono::steady_clock::now() + limit;
    const auto event = worker.device().make_event(false);
    worker.stream().record(*event);
    while (!event->ready()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

void test_with_data(Transport& transport, std::span<const std::unique_ptr<engine::Worker>> workers,
                    std::chrono::steady_clock::duration limit, engine::JobQueue* shared)
{
    const int devices = static_cast<int>(workers.size());
    constexpr std::int64_t slice_words = 1 << 15;
    std::vector<std::int64_t> offsets(devices + 1);
    for (int i = 0; i <= devices; ++i) {
        offsets[i] = i * slice_words;
    }
    const auto pattern = [](std::int64_t word) { return static_cast<std::uint64_t>(word + 1) * 0x9E3779B97F4A7C15u; };

    std::vector<void*> buffers(devices);
    const std::int64_t total_bytes = slice_words * devices * 8;
    const auto channel = transport.make_channel(devices, total_bytes);
    std::optional<engine::JobQueue> unshared;
    engine::JobQueue& jobs = shared != nullptr
                                 ? *shared
                                 : unshared.emplace(workers, false, [&](std::uint64_t job) { transport.give_up(job); });
    const auto clean_up = [&] {
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
                worker.stream().synchronize();
                channel->close(worker.rank());
                if (buffers[worker.rank()] != nullptr) {
                    worker.device().deallocate(buffers[worker.rank()], static_cast<std::size_t>(total_bytes));
                }
            })
            .get();
    };
    try {
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
                const int rank = worker.rank();
                transport.open(*channel, worker);
                buffers[rank] = worker.device().allocate(static_cast<std::size_t>(total_bytes));
                std::vector<std::uint64_t> zeros(slice_words * devices, 0);
                worker.device().upload(worker.stream(), buffers[rank], zeros.data(), zeros.size() * 8);
            })
            .get();
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const int rank = worker.rank();
                std::vector<std::uint64_t> own(slice_words);
                for (std::int64_t i = 0; i < slice_words; ++i) {
                    own[i] = pattern(rank * slice_words + i);
                }
                const std::vector<Range> needed(static_cast<std::size_t>(devices), Range{0, offsets.back()});
                channel->gather(worker, worker.stream(), meeting, Gather{buffers, offsets, needed, 8}, [&] {
                    worker.device().upload(worker.stream(), static_cast<std::uint64_t*>(buffers[rank]) + offsets[rank],
                                           own.data(), own.size() * 8);
                });
                channel->settle(worker, worker.stream(), meeting);
                if (!wait_for_stream(worker, limit)) {
                    transport.abort(rank);
                    throw Error(ErrorCode::device,
                                fmt::format("data for device {} did not arrive in {} s", rank,
                                            std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
                }
                std::vector<std::uint64_t> all(slice_words * devices);
                worker.device().download(worker.stream(), all.data(), buffers[rank], all.size() * 8);
                worker.stream().synchronize();
                for (std::int64_t i = 0; i < slice_words * devices; ++i) {
                    if (all[i] != pattern(i)) {
                        throw Error(ErrorCode::device,
                                    fmt::format("data from device {} arrived wrong on device {} (word {} of {})",
                                                i / slice_words, rank, i % slice_words, slice_words));
                    }
                }
            })
            .get();
    } catch (...) {
        try {
            clean_up();
        } catch (const std::exception& e) {
            core::log_debug(fmt::format("cleaning up after a failed transport test: {}", e.what()));
        }
        throw;
    }
    clean_up();
}

}  // namespace rmsp::transport
