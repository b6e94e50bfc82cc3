#include "runtime/transport/link.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/job.hpp>

#include "core/log.hpp"
#include "runtime/engine/refusals.hpp"
#include "runtime/transport/table.hpp"
#include "runtime/transport/test.hpp"

namespace rmsp::transport {

/// What a channel is in each carrier that it was brought to.
struct Link::Ends {
    Ends(int devices_, std::int64_t bytes_, std::vector<std::int64_t> received_)
        : devices(devices_),
          bytes(bytes_),
          received(std::move(received_)),
          opened(static_cast<std::size_t>(devices)),
          closed(static_cast<std::size_t>(devices), 0)
    {
    }
    Channel& in(int carrier) const noexcept { return *channels[static_cast<std::size_t>(carrier)]; }
    /// On the worker.
    void open(int carrier, Transport& transport, engine::Worker& worker)
    {
        const auto rank = static_cast<std::size_t>(worker.rank());
        bool& done = opened[rank][static_cast<std::size_t>(carrier)];
        if (!done && closed[rank] == 0) {
            transport.open(in(carrier), worker);
            done = true;
        }
    }

    const int devices;
    const std::int64_t bytes;
    const std::vector<std::int64_t> received;
    std::array<std::unique_ptr<Channel>, most_carriers> channels;  ///< each is made before its workers hear of it
    std::vector<std::array<bool, most_carriers>> opened;           ///< by each worker's thread, as is `closed`
    std::vector<char> closed;
};

class Link::LinkChannel final : public Channel {
public:
    LinkChannel(Link& link, std::shared_ptr<Ends> ends) : link_(link), ends_(std::move(ends)) {}
    Ends& ends() const noexcept { return *ends_; }

    void gather(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        // What the caller queues may fail by itself, which is no fault of the transport.
        bool of_caller = false;
        const auto watched = [&] {
            of_caller = true;
            write();
            of_caller = false;
        };
        link_.carry(*ends_, worker, of_caller, [&](Channel& channel) {
            if (engine::is_refused(engine::Request::transfer)) {
                throw Error(ErrorCode::device, "a test refuses the transfer");
            }
            meeting.note_carrier(&link_);
            channel.gather(worker, stream, meeting, gather, watched);
        });
    }
    void settle(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting) override
    {
        link_.carry(*ends_, worker, false, [&](Channel& channel) { channel.settle(worker, stream, meeting); });
    }
    void reduce_scatter(engine::Worker& worker, engine::Rendezvous& meeting, const Reduce& reduce) override
    {
        link_.carry(*ends_, worker, false, [&](Channel& channel) {
            if (engine::is_refused(engine::Request::transfer)) {
                throw Error(ErrorCode::device, "a test refuses the transfer");
            }
            meeting.note_carrier(&link_);
            channel.reduce_scatter(worker, meeting, reduce);
        });
    }
    void close(int rank) noexcept override
    {
        const auto device = static_cast<std::size_t>(rank);
        for (std::size_t carrier = 0; carrier < most_carriers; ++carrier) {
            if (std::exchange(ends_->opened[device][carrier], false)) {
                ends_->channels[carrier]->close(rank);
            }
        }
        ends_->closed[device] = 1;
    }

private:
    Link& link_;
    std::shared_ptr<Ends> ends_;
};

Link::Link(std::unique_ptr<Transport> first, std::vector<std::string> next,
           std::span<const std::unique_ptr<engine::Worker>> workers)
    : used_by_(workers.size(), 0), pools_opened_(workers.size(), 0), next_(std::move(next))
{
    for (const auto& worker : workers) {
        devices_.push_back(engine::label_of(worker->device().info()));
    }
    carriers_.front().name = first->name();
    carriers_.front().transport = std::move(first);
}

Link::~Link() = default;

std::string Link::name() const { return in_use().name; }

bool Link::is_called(const std::string& name) const { return name == in_use().name || name == carriers_.front().name; }

std::string Link::history() const
{
    std::lock_guard lock(telling_);
    return history_;
}

std::unique_ptr<Channel> Link::make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t> received)
{
    std::lock_guard lock(changing_);
    auto ends = std::make_shared<Ends>(devices, bytes, std::move(received));
    auto channel = std::make_unique<LinkChannel>(*this, ends);
    const auto carrier = static_cast<std::size_t>(chosen_.load(std::memory_order_relaxed));
    ends->channels[carrier] = carriers_[carrier].transport->make_channel(devices, bytes, ends->received);
    std::erase_if(channels_, [](const auto& other) { return other.expired(); });
    channels_.push_back(std::move(ends));
    return channel;
}

std::int64_t Link::channel_bytes(int devices, std::int64_t bytes, const std::int64_t* received) const
{
    return in_use().transport->channel_bytes(devices, bytes, received);
}

void Link::open(Channel& channel, engine::Worker& worker)
{
    const int carrier = used_by_[static_cast<std::size_t>(worker.rank())];
    dynamic_cast<LinkChannel&>(channel).ends().open(carrier, *carriers_[static_cast<std::size_t>(carrier)].transport,
                                                    worker);
}

void Link::open_pool(engine::Worker& worker)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    carriers_[static_cast<std::size_t>(used_by_[rank])].transport->open_pool(worker);
    pools_opened_[rank] = 1;
}

const volatile std::uint64_t* Link::given_up() const noexcept { return in_use().transport->given_up(); }

void Link::abort(int rank) noexcept { in_use().transport->abort(rank); }

void Link::give_back_spares(int rank) noexcept
{
    for (int i = 0; i < carrier_count_.load(std::memory_order_acquire); ++i) {
        carriers_[static_cast<std::size_t>(i)].transport->give_back_spares(rank);
    }
}

void Link::give_up(std::uint64_t job) noexcept
{
    // Also those that were replaced: kernels of jobs that were queued before may wait through them.
    for (int i = 0; i < carrier_count_.load(std::memory_order_acquire); ++i) {
        carriers_[static_cast<std::size_t>(i)].transport->give_up(job);
    }
}

template <class Use>
void Link::carry(const Ends& ends, engine::Worker& worker, const bool& of_caller, const Use& use)
{
    const int which = used_by_[static_cast<std::size_t>(worker.rank())];
    Carrier& carrier = carriers_[static_cast<std::size_t>(which)];
    if (carrier.failed.load(std::memory_order_acquire)) {
        throw Error(ErrorCode::device, describe(carrier));
    }
    try {
        use(ends.in(which));
    } catch (const engine::GaveWay&) {
        throw;
    } catch (const Error& e) {
        if (of_caller || e.code() != ErrorCode::device) {
            throw;
        }
        const std::exception_ptr error = worker.device().explain(std::current_exception());
        std::rethrow_exception(worker.device().lost() ? error : fail(carrier, worker.rank(), e.what()));
    }
}

std::exception_ptr Link::fail(Carrier& carrier, int rank, const std::string& why) noexcept
{
    try {
        {
            std::lock_guard lock(telling_);
            if (carrier.failure.empty()) {
                carrier.failure = fmt::format("{}: {}", devices_[static_cast<std::size_t>(rank)], why);
            }
        }
        carrier.failed.store(true, std::memory_order_release);
        throw Error(ErrorCode::device, describe(carrier));
    } catch (...) {
        carrier.failed.store(true, std::memory_order_release);
        return std::current_exception();
    }
}

std::string Link::describe(const Carrier& carrier) const
{
    std::lock_guard lock(telling_);
    return fmt::format("transport {} failed between {}: {}", carrier.name, fmt::join(devices_, ", "), carrier.failure);
}

std::string Link::stall(std::span<const std::unique_ptr<engine::Worker>> workers)
{
    Carrier& carrier = in_use();
    {
        std::lock_guard lock(telling_);
        if (carrier.failure.empty()) {
            carrier.failure = "data did not arrive";
        }
    }
    carrier.failed.store(true, std::memory_order_release);
    for (const auto& worker : workers) {
        worker->post([&carrier](engine::Worker& self) { carrier.transport->abort(self.rank()); });
    }
    return describe(carrier);
}

bool Link::wants_replacement() const noexcept
{
    return in_use().failed.load(std::memory_order_acquire) && !exhausted_.load(std::memory_order_relaxed);
}

void Link::go_over(const std::string& name, std::span<const std::unique_ptr<engine::Worker>> workers,
                   engine::JobQueue& jobs)
{
    const int number = carrier_count_.load(std::memory_order_relaxed);
    Carrier& carrier = carriers_[static_cast<std::size_t>(number)];
    carrier.transport = make_transport(name, workers);
    carrier.name = name;
    carrier_count_.store(number + 1, std::memory_order_release);
    test_with_data(*carrier.transport, workers, communication_limit, &jobs);
    std::vector<std::shared_ptr<Ends>> all;
    for (const auto& channel : channels_) {
        if (auto ends = channel.lock()) {
            ends->channels[static_cast<std::size_t>(number)] =
                carrier.transport->make_channel(ends->devices, ends->bytes, ends->received);
            all.push_back(std::move(ends));
        }
    }
    // In a job of its own: only when all have opened theirs may any of them use it.
    jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
            for (const auto& ends : all) {
                ends->open(number, *carrier.transport, worker);
            }
            if (pools_opened_[static_cast<std::size_t>(worker.rank())] != 0) {
                carrier.transport->open_pool(worker);
            }
        })
        .get();
    jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) {
            used_by_[static_cast<std::size_t>(worker.rank())] = number;
        })
        .get();
    chosen_.store(number, std::memory_order_release);
}

void Link::replace(std::span<const std::unique_ptr<engine::Worker>> workers, engine::JobQueue& jobs) noexcept
{
    std::lock_guard lock(changing_);
    const auto is_lost = [](const auto& worker) { return worker->device().lost(); };
    if (!wants_replacement() || std::any_of(workers.begin(), workers.end(), is_lost)) {
        return;
    }
    try {
        // Not on the caller's terms: what was found serves all.
        std::optional<JobScope> own;
        if (JobScope::current() != nullptr) {
            own.emplace(JobOptions{});
        }
        Carrier& failed = in_use();
        std::string told = describe(failed);
        core::log_warning(told);
        jobs.submit([&](engine::Worker& worker, engine::Rendezvous&) { failed.transport->abort(worker.rank()); }).get();
        std::vector<std::string> candidates = next_;
        candidates.push_back(failed.name);
        for (const std::string& name : candidates) {
            if (carrier_count_.load(std::memory_order_relaxed) == most_carriers) {
                break;
            }
            try {
                go_over(name, workers, jobs);
                next_.erase(next_.begin(), std::find(next_.begin(), next_.end(), name));
                std::erase(next_, name);
                told += fmt::format("; {} took its place, it moved test data between all devices", name);
                core::log_warning(told);
                replacements_.fetch_add(1, std::memory_order_relaxed);
                std::lock_guard tell(telling_);
                history_ += (history_.empty() ? "" : "; ") + told;
                return;
            } catch (const std::bad_alloc&) {
                throw;
            } catch (const std::exception& e) {
                const auto* const error = dynamic_cast<const Error*>(&e);
                if (error != nullptr && error->code() == ErrorCode::out_of_memory) {
                    throw;
                }
                told += fmt::format("; {}: {}", name, e.what());
            }
        }
        core::log_warning(told + "; nothing takes its place");
        exhausted_.store(true, std::memory_order_relaxed);
        std::lock_guard tell(telling_);
        failed.failure += "; nothing takes its place";
    } catch (const std::exception& e) {
        // For lack of memory, or as the runtime is being closed: the next job tries again.
        core::log_debug(e.what());
    }
}

}  // namespace rmsp::transport
