#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include <runtime/engine/device.hpp>
#include <runtime/engine/worker.hpp>

/// A device whose work ends when a test says so, as that of a GPU does at some time, and whose jobs callers may run.
namespace rmsp::engine::test {

/// What the test has in its hands.
struct LateWork {
    std::atomic<std::int64_t> queued{0};
    std::atomic<std::int64_t> done{0};  ///< of these, the first
    std::atomic<bool> record_fails{false};
    std::atomic<bool> enter_fails{false};
    std::atomic<int> inside{0};  ///< threads between enter() and leave()
    std::atomic<int> visits{0};
    std::atomic<int> records{0};

    void finish() { done = std::int64_t{1} << 60; }
};

class LateEvent final : public Event {
public:
    explicit LateEvent(LateWork& work) : work_(work) {}
    bool ready() const override { return work_.done.load() >= behind; }
    void synchronize() const override
    {
        while (!ready()) {
            std::this_thread::yield();
        }
    }
    double seconds_since(const Event&) const override { return 0; }

    std::int64_t behind = 0;

private:
    LateWork& work_;
};

class LateStream final : public Stream {
public:
    explicit LateStream(LateWork& work) : work_(work) {}
    void copy(void* dst, const void* src, std::size_t bytes) override { std::memcpy(dst, src, bytes); }
    void record(Event& event) override
    {
        ++work_.records;
        if (work_.record_fails) {
            throw std::runtime_error("no event");
        }
        dynamic_cast<LateEvent&>(event).behind = work_.queued.load();
    }
    void wait(const Event&) override {}
    void synchronize() override
    {
        while (work_.done.load() < work_.queued.load()) {
            std::this_thread::yield();
        }
    }
    void* native() const override { return nullptr; }

private:
    LateWork& work_;
};

class LateDevice final : public Device {
public:
    explicit LateDevice(LateWork& work) : Device(described()), work_(work) {}

    void make_current() override {}
    bool open_to_callers() override { return true; }
    Visit enter() override
    {
        if (work_.enter_fails) {
            throw std::runtime_error("no way in");
        }
        ++work_.inside;
        ++work_.visits;
        return {};
    }
    void leave(const Visit&) noexcept override { --work_.inside; }
    std::unique_ptr<Stream> make_stream(StreamPriority) override { return std::make_unique<LateStream>(work_); }
    std::unique_ptr<Event> make_event(bool) override { return std::make_unique<LateEvent>(work_); }
    std::int64_t free_bytes() override { return 0; }
    void free_pinned(void* p, std::size_t) noexcept override { std::free(p); }
    bool is_pinned(const void*, std::size_t) const override { return true; }
    bool pin(void*, std::size_t) override { return true; }
    void unpin(void*) noexcept override {}
    void upload(Stream& stream, void* dst, const void* src, std::size_t bytes, const Between&) override
    {
        stream.copy(dst, src, bytes);
    }
    void upload(Stream&, void* dst, std::size_t bytes, const Filler& fill, const Between&) override
    {
        fill(static_cast<std::byte*>(dst), 0, bytes);
    }
    void download(Stream& stream, std::span<const Download> parts) override
    {
        for (const Download& part : parts) {
            stream.copy(part.to, part.from, part.bytes);
        }
    }

protected:
    void* obtain(std::size_t bytes) override { return std::malloc(bytes); }
    void give_back(void* p, std::size_t) noexcept override { std::free(p); }
    void* obtain_pinned(std::size_t bytes) override { return std::malloc(bytes); }
    std::unique_ptr<kernels::Memory> make_uncounted_pool(Stream&) override
    {
        class Pool final : public kernels::Memory {
        public:
            void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
            void deallocate(void* p, std::size_t) noexcept override { std::free(p); }
        };
        return std::make_unique<Pool>();
    }

private:
    static DeviceInfo described()
    {
        DeviceInfo info;
        info.kind = DeviceKind::cuda;  // it does not share the host's memory
        info.name = "late";
        return info;
    }
    LateWork& work_;
};

/// Workers of so many such devices, which are open.
inline std::vector<std::unique_ptr<Worker>> late_workers(LateWork& work, int count = 1)
{
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < count; ++i) {
        workers.push_back(
            std::make_unique<Worker>(i, Placement{}, [&work] { return std::make_unique<LateDevice>(work); }));
        workers.back()->wait_until_open();
    }
    return workers;
}

}  // namespace rmsp::engine::test
