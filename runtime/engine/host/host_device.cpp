#include "runtime/engine/host/host_device.hpp"

#include <chrono>
#include <cstring>

#include <fmt/format.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <numa/binding.hpp>

#include "core/log.hpp"
#include "core/team.hpp"
#include "runtime/engine/host/host_pool.hpp"
#include "runtime/engine/parallel_copy.hpp"

namespace rmsp::engine {
namespace {

class HostEvent final : public Event {
public:
    bool ready() const override { return true; }
    void synchronize() const override {}
    double seconds_since(const Event& earlier) const override
    {
        return std::chrono::duration<double>(time_ - dynamic_cast<const HostEvent&>(earlier).time_).count();
    }
    void record() { time_ = std::chrono::steady_clock::now(); }

private:
    std::chrono::steady_clock::time_point time_;
};

class HostStream final : public Stream {
public:
    explicit HostStream(int threads) : threads_(threads) {}

    void copy(void* dst, const void* src, std::size_t bytes) override
    {
        auto* to = static_cast<std::byte*>(dst);
        const auto* from = static_cast<const std::byte*>(src);
        parallel_ranges(threads_, bytes,
                        [&](std::size_t first, std::size_t n) { std::memcpy(to + first, from + first, n); });
    }
    void record(Event& event) override { dynamic_cast<HostEvent&>(event).record(); }
    void wait(const Event&) override {}  // the event's work was done before it was recorded
    void synchronize() override {}
    void* native() const override { return nullptr; }

private:
    int threads_;
};

/// \throws Error(out_of_memory) naming bytes and device
void* allocate_for(const DeviceInfo& info, std::size_t bytes)
{
    try {
        return numa::allocate_on_node(bytes, info.numa_node);
    } catch (const Error& e) {
        throw Error(e.code(), fmt::format("{}: {}", label_of(info), e.what()));
    }
}

/// The device's own memory, with errors that name the device.
class NamedPool final : public kernels::Memory {
public:
    explicit NamedPool(const DeviceInfo& info) : info_(info), pool_(info.numa_node) {}
    void* allocate(std::size_t bytes) override
    {
        try {
            return pool_.allocate(bytes);
        } catch (const Error& e) {
            throw Error(e.code(), fmt::format("{}: {}", label_of(info_), e.what()));
        }
    }
    void deallocate(void* p, std::size_t bytes) noexcept override { pool_.deallocate(p, bytes); }

private:
    const DeviceInfo& info_;
    HostPool pool_;
};

class HostDevice final : public Device {
public:
    explicit HostDevice(DeviceInfo device_info) : Device(std::move(device_info))
    {
        bind_team();
        core::own_team = &team_;
    }
    ~HostDevice() override
    {
        if (core::own_team == &team_) {  // where the thread that opened it lives on
            core::own_team = nullptr;
        }
    }
    HostDevice(const HostDevice&) = delete;
    HostDevice& operator=(const HostDevice&) = delete;

    void make_current() override {}
    std::unique_ptr<Stream> make_stream(StreamPriority) override
    {
        return std::make_unique<HostStream>(info().compute_units);
    }
    std::unique_ptr<Event> make_event(bool) override { return std::make_unique<HostEvent>(); }

    std::int64_t free_bytes() override { return 0; }
    void free_pinned(void* p, std::size_t bytes) noexcept override { give_back(p, bytes); }
    bool is_pinned(const void*, std::size_t) const override { return true; }
    bool pin(void*, std::size_t) override { return true; }
    void unpin(void*) noexcept override {}

    void upload(Stream& stream, void* dst, const void* src, std::size_t bytes, const Between&) override
    {
        stream.copy(dst, src, bytes);
    }
    void upload(Stream&, void* dst, std::size_t bytes, const Filler& fill, const Between&) override
    {
        auto* to = static_cast<std::byte*>(dst);
        parallel_ranges(info().compute_units, bytes,
                        [&](std::size_t first, std::size_t n) { fill(to + first, first, n); });
    }
    void download(Stream& stream, std::span<const Download> parts) override
    {
        for (const Download& part : parts) {
            stream.copy(part.to, part.from, part.bytes);
        }
    }

protected:
    void* obtain(std::size_t bytes) override { return allocate_for(info(), bytes); }
    void* obtain_pinned(std::size_t bytes) override { return allocate_for(info(), bytes); }
    void give_back(void* p, std::size_t bytes) noexcept override { numa::free_on_node(p, bytes); }
    std::unique_ptr<kernels::Memory> make_uncounted_pool(Stream&) override
    {
        return std::make_unique<NamedPool>(info());
    }

private:
    // The OpenMP runtime keeps this team for the thread's life, so each member is bound once. Those of the other team
    // are bound alike.
    void bind_team()
    {
#ifdef _OPENMP
        const auto& threads = info().placement.threads;
        if (threads.size() != static_cast<std::size_t>(info().compute_units)) {
            return;
        }
        omp_set_num_threads(info().compute_units);
        team_.begin_with([threads](int k) {
            try {
                if (k < static_cast<int>(threads.size())) {
                    static_cast<void>(numa::bind_current_thread({threads[static_cast<std::size_t>(k)]}));
                }
            } catch (const std::exception&) {  // for lack of memory: it runs where it may
            }
        });
        int unbound = 0;
        std::string reason;
#pragma omp parallel num_threads(info().compute_units) reduction(+ : unbound)
        {
            try {
                const int pu = threads[static_cast<std::size_t>(omp_get_thread_num())];
                const numa::BindResult result = numa::bind_current_thread({pu});
                if (!result.bound) {
                    ++unbound;
#pragma omp critical(rmsp_bind_team)
                    reason = result.reason;
                }
            } catch (const std::exception&) {
                ++unbound;  // for lack of memory
            }
        }
        if (unbound > 0 && info().placement.strict) {
            throw Error(ErrorCode::usage, fmt::format("strict binding: {}: {} of {} threads are not bound: {}",
                                                      info().name, unbound, info().compute_units, reason));
        }
        if (unbound > 0) {
            core::log_warning(
                fmt::format("{}: {} of {} threads are not bound", info().name, unbound, info().compute_units));
        }
#endif
    }

    core::Team team_;  ///< of the worker, whose thread is the one that opens the device
};

}  // namespace

std::unique_ptr<Device> make_host_device(DeviceInfo info)
{
    if (info.compute_units < 1) {
        throw Error(ErrorCode::usage, fmt::format("host device {} has no threads", info.index));
    }
    return std::make_unique<HostDevice>(std::move(info));
}

}  // namespace rmsp::engine
