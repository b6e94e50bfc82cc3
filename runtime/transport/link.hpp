#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/job_queue.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::transport {

/// What connects the devices of a runtime for as long as it lives: a transport, and if that fails in use the next one
/// that moves test data. A job in which it fails ends with an error that names transport and devices, as do jobs that
/// were queued behind it; replace() then brings all channels to the next one, which later jobs use.
class Link final : public Transport {
public:
    /// Begins with `first`, which was tested. `next`: the names of those that may take its place, in that order; after
    /// these comes what failed, connected anew.
    Link(std::unique_ptr<Transport> first, std::vector<std::string> next,
         std::span<const std::unique_ptr<engine::Worker>> workers);
    ~Link() override;

    /// Of the transport in use. By any thread, as are the next three.
    std::string name() const override;
    /// Whether it is in use, or was what the link began with.
    bool is_called(const std::string& name) const;
    /// What was replaced by what, and why; empty: nothing was.
    std::string history() const;
    std::uint64_t replacements() const noexcept { return replacements_.load(std::memory_order_relaxed); }

    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes,
                                          std::vector<std::int64_t> received = {}) override;
    std::int64_t channel_bytes(int devices, std::int64_t bytes, const std::int64_t* received) const override;
    void open(Channel& channel, engine::Worker& worker) override;
    void open_pool(engine::Worker& worker) override;
    void give_back_spares(int rank) noexcept override;
    const volatile std::uint64_t* given_up() const noexcept override;
    void abort(int rank) noexcept override;
    void give_up(std::uint64_t job) noexcept override;

    /// A job stands still that used this: the transport in use counts as failed, and each worker gives up what it has
    /// under way in it, as soon as it comes to that. Returns what is told. By any thread. \throws std::bad_alloc
    std::string stall(std::span<const std::unique_ptr<engine::Worker>> workers);
    /// Whether the transport in use failed and may be replaced. By any thread.
    bool wants_replacement() const noexcept;
    /// Connects and tests the next transports until one works, which then takes over; if none does, the link stays as
    /// it is, and does not want a replacement any more, unless it was for lack of memory. `jobs` is the workers' queue.
    /// On a caller's thread; blocks.
    void replace(std::span<const std::unique_ptr<engine::Worker>> workers, engine::JobQueue& jobs) noexcept;

private:
    class LinkChannel;
    struct Ends;
    struct Carrier {
        std::unique_ptr<Transport> transport;
        std::string name;
        std::string failure;  ///< under `telling_`
        std::atomic<bool> failed{false};
    };
    static constexpr int most_carriers = 8;

    Carrier& in_use() noexcept { return carriers_[static_cast<std::size_t>(chosen_.load(std::memory_order_acquire))]; }
    const Carrier& in_use() const noexcept { return const_cast<Link*>(this)->in_use(); }
    /// Runs `use(channel)` with the channel of the transport that the worker uses. `of_caller`: whether what it throws
    /// is the caller's own. \throws what it threw; if that is a failure of the transport, Error(device) that says so
    template <class Use>
    void carry(const Ends& ends, engine::Worker& worker, const bool& of_caller, const Use& use);
    /// The first failure of a carrier is noted. Returns what is told of it.
    std::exception_ptr fail(Carrier& carrier, int rank, const std::string& why) noexcept;
    std::string describe(const Carrier& carrier) const;
    /// Connects and tests one more transport, opens all channels in it, and goes over to it.
    /// \throws Error if that cannot be done
    void go_over(const std::string& name, std::span<const std::unique_ptr<engine::Worker>> workers,
                 engine::JobQueue& jobs);

    std::vector<std::string> devices_;  ///< what they are called
    std::array<Carrier, most_carriers> carriers_;
    std::atomic<int> carrier_count_{1};
    std::atomic<int> chosen_{0};
    std::vector<int> used_by_;        ///< the carrier that each worker uses; its thread's
    std::vector<char> pools_opened_;  ///< by each worker's thread
    std::vector<std::string> next_;   ///< under `changing_`
    std::atomic<bool> exhausted_{false};
    std::atomic<std::uint64_t> replacements_{0};
    std::mutex changing_;                        ///< callers' threads only: workers do not wait for them
    std::vector<std::weak_ptr<Ends>> channels_;  ///< under `changing_`
    mutable std::mutex telling_;
    std::string history_;  ///< under `telling_`
};

}  // namespace rmsp::transport
