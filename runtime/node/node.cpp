#include "runtime/node/node.hpp"

#include <rmsp/error.hpp>

#include "core/process.hpp"
#include "runtime/transport/table.hpp"
#include "runtime/transport/test.hpp"

namespace rmsp::detail {
RuntimeState::~RuntimeState() { (void)stop(); }

bool RuntimeState::in_own_process() const noexcept { return process == core::own_process(); }

std::vector<double> RuntimeState::limits(Mode mode) const
{
    std::lock_guard lock(mutex);
    const bool link = mode == Mode::streamed && !shared_memory() && !(options.limit_gbs > 0);
    std::vector<double> known(infos.size(), 0.0);
    for (std::size_t i = 0; i < infos.size(); ++i) {
        known[i] = !link ? infos[i].limit_gbs : link_gbs.empty() ? 0.0 : link_gbs[i];
    }
    return known;
}

void RuntimeState::require_live() const
{
    if (!in_own_process()) {
        core::require_own_process();
    }
    if (workers.empty()) {
        throw Error(ErrorCode::usage,
                    "this runtime describes another machine (" + topology.source + "): it plans, but runs nothing");
    }
}

transport::Transport& RuntimeState::transport(const std::string& name)
{
    if (connection.transport && connection.transport->is_called(name)) {
        return *connection.transport;
    }
    std::lock_guard lock(connecting);
    for (const auto& other : others) {
        if (other->is_called(name)) {
            return *other;
        }
    }
    auto made = std::make_unique<transport::Link>(transport::make_transport(name, workers),
                                                  transport::names_behind(transport::transport_names(), name), workers);
    transport::Transport& transport = *made;
    {
        std::lock_guard list(mutex);
        others.push_back(std::move(made));
    }
    try {
        transport::test_with_data(transport, workers, transport::communication_limit, jobs.get());
    } catch (...) {
        std::lock_guard list(mutex);
        others.pop_back();
        throw;
    }
    return transport;
}

bool RuntimeState::peers_reach_pools() const
{
    const transport::TransportRow* const row =
        connection.transport ? transport::find_transport(transport_name()) : nullptr;
    return row != nullptr && row->peer_memory;
}

void RuntimeState::give_up(std::uint64_t job) noexcept
{
    const auto tell = [&](transport::Link& link) {
        link.give_up(job);
        if (link.wants_replacement()) {
            link_failed.store(true, std::memory_order_relaxed);
        }
    };
    if (connection.transport) {
        tell(*connection.transport);
    }
    std::lock_guard list(mutex);
    for (const auto& other : others) {
        tell(*other);
    }
}

std::string RuntimeState::stalled(const void* carrier)
{
    const auto failed = [&](transport::Link& link) {
        link_failed.store(true, std::memory_order_relaxed);
        return link.stall(workers);
    };
    if (connection.transport && connection.transport.get() == carrier) {
        return failed(*connection.transport);
    }
    std::lock_guard list(mutex);
    for (const auto& other : others) {
        if (other.get() == carrier) {
            return failed(*other);
        }
    }
    return {};
}

std::string RuntimeState::transport_name() const
{
    return connection.transport ? connection.transport->name() : connection.name;
}

std::string RuntimeState::transport_reason() const
{
    const std::string history = connection.transport ? connection.transport->history() : std::string();
    return history.empty() ? connection.reason : connection.reason + "; " + history;
}

void RuntimeState::replace_failed_links()
{
    // Which takes jobs, and these are refused while workers stand still.
    if (jobs->stands_still() || !link_failed.exchange(false, std::memory_order_relaxed)) {
        return;
    }
    std::lock_guard lock(connecting);
    const auto replace = [&](transport::Link& link) {
        if (link.wants_replacement()) {
            link.replace(workers, *jobs);
            // Not for good, if it was for lack of memory.
            if (link.wants_replacement()) {
                link_failed.store(true, std::memory_order_relaxed);
            }
        }
    };
    if (connection.transport) {
        replace(*connection.transport);
    }
    for (const auto& other : others) {
        replace(*other);
    }
}

std::future<void> RuntimeState::submit(engine::Job::Body body, std::function<void()> finish, bool host_data)
{
    engine::JobTerms terms;
    terms.host_data = host_data;
    return submit(std::move(body), std::move(finish), terms);
}

std::future<void> RuntimeState::submit(engine::Job::Body body, std::function<void()> finish,
                                       const engine::JobTerms& terms)
{
    require_live();
    if (link_failed.load(std::memory_order_relaxed)) {
        replace_failed_links();
    }
    if (const engine::Placing* const placing = engine::Placing::current()) {
        engine::JobTerms drawing = terms;
        drawing.reservation = placing->reservation();
        return jobs->submit(std::move(body), std::move(finish), drawing);
    }
    return jobs->submit(std::move(body), std::move(finish), terms);
}

std::shared_ptr<engine::Reservation> RuntimeState::admit(const std::string& what, std::span<const std::int64_t> bytes)
{
    require_live();
    const engine::Placing* const outer = engine::Placing::current();
    if (outer != nullptr && outer->reservation()) {
        memory->extend(*outer->reservation(), what, bytes);
        return nullptr;
    }
    return memory->admit(what, bytes, outer == nullptr, JobScope::current());
}

void RuntimeState::post_or_run(int rank, engine::Tasks& room) noexcept
{
    if (!in_own_process()) {
        room.pop_front();
        return;
    }
    if (jobs && jobs->post(rank, room)) {
        return;
    }
    engine::Worker& worker = *workers[static_cast<std::size_t>(rank)];
    try {
        worker.device().make_current();
    } catch (const std::exception&) {
        // The driver is shutting down and takes the memory with it; what is to be run still has host memory to free.
    }
    room.front().run(worker);
    room.pop_front();
}

void RuntimeState::catch_up()
{
    const auto on_each = [&](const auto& f) {
        // Shared: if memory ends on the way, the workers that have been asked come by here later.
        const auto reached = std::make_shared<std::vector<std::promise<void>>>(workers.size());
        for (std::size_t i = 0; i < workers.size(); ++i) {
            const bool posted = workers[i]->post([reached, i, f](engine::Worker& worker) {
                f(worker);
                (*reached)[i].set_value();
            });
            if (!posted) {
                (*reached)[i].set_value();
            }
        }
        for (auto& one : *reached) {
            one.get_future().wait();
        }
    };
    on_each([](engine::Worker& worker) {
        try {
            worker.stream().synchronize();
        } catch (...) {
            // Those whose work it was are told.
        }
    });
    // Only when every device has come that far: one may have been writing to what another keeps.
    on_each([this](engine::Worker& worker) {
        if (connection.transport) {
            connection.transport->give_back_spares(worker.rank());
        }
        std::lock_guard list(mutex);
        for (const auto& other : others) {
            other->give_back_spares(worker.rank());
        }
    });
}

bool RuntimeState::stop() noexcept
{
    // The jobs that were under way when fork() made this process never end in it.
    if (!in_own_process()) {
        return true;
    }
    if (memory) {
        memory->close();
    }
    if (jobs) {
        jobs->drain();
    }
    const bool ended = !jobs || jobs->idle();
    if (ended) {
        for (const auto& worker : workers) {
            worker->stop();
        }
    }
    std::shared_ptr<RuntimeState> next;
    {
        std::lock_guard lock(mutex);
        next = successor;
    }
    return (!next || next->stop()) && ended;
}

std::shared_ptr<RuntimeState> current(const std::shared_ptr<RuntimeState>& state)
{
    std::shared_ptr<RuntimeState> newest = checked(state);
    while (true) {
        std::shared_ptr<RuntimeState> next;
        {
            std::lock_guard lock(newest->mutex);
            next = newest->successor;
        }
        if (!next) {
            return newest;
        }
        newest = std::move(next);
    }
}

const std::shared_ptr<RuntimeState>& checked(const std::shared_ptr<RuntimeState>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this Runtime is empty: what it had was moved to another one");
    }
    return state;
}

}  // namespace rmsp::detail
