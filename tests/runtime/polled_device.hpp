#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <rmsp/error.hpp>
#include <runtime/engine/device.hpp>
#include <runtime/engine/worker.hpp>

namespace rmsp::engine::test {

/// What a stand-in for a GPU is asked for, by which threads.
struct Asked {
    std::atomic<int> visits{0};
    std::atomic<int> left{0};
    std::atomic<int> records{0};
    std::atomic<int> failing_record{0};  ///< the one, counted from 1, that throws; 0: none
    std::vector<int> launched;           ///< how many launches there were at once
    std::atomic<int> failing_launch{0};  ///< of these the one, counted from 1, that throws; 0: none
    std::atomic<int> dropped{0};         ///< launches that were kept and never happened
};

/// Counts what it is to keep.
class CountedLaunches final : public kernels::LaunchList {
public:
    explicit CountedLaunches(Asked& asked) : asked_(asked) {}
    void keep() { ++kept_; }
    void launch_all() override
    {
        if (kept_ > 0) {
            asked_.launched.push_back(std::exchange(kept_, 0));
            if (static_cast<int>(asked_.launched.size()) == asked_.failing_launch) {
                throw Error(ErrorCode::device, "nothing can be launched");
            }
        }
    }
    bool drop() noexcept override
    {
        const int dropped = std::exchange(kept_, 0);
        asked_.dropped += dropped;
        return dropped > 0;
    }

private:
    Asked& asked_;
    int kept_ = 0;
};

/// A stand-in for a GPU: its work is done when it has been asked for it a few times. Has no memory.
class PolledDevice final : public Device {
public:
    explicit PolledDevice(std::shared_ptr<Asked> asked) : Device(gpu()), asked_(std::move(asked)) {}

    void make_current() override {}
    int visit() noexcept override { return ++asked_->visits; }
    void leave(int) noexcept override { ++asked_->left; }
    std::unique_ptr<Stream> make_stream(StreamPriority) override { return std::make_unique<PolledStream>(*asked_); }
    std::unique_ptr<Event> make_event(bool) override { return std::make_unique<PolledEvent>(); }
    std::unique_ptr<kernels::Memory> make_uncounted_pool(Stream&) override { return nullptr; }
    std::int64_t free_bytes() override { return 0; }
    void* obtain(std::size_t) override { throw std::bad_alloc(); }
    void give_back(void*, std::size_t) noexcept override {}
    void* obtain_pinned(std::size_t) override { throw std::bad_alloc(); }
    void free_pinned(void*, std::size_t) noexcept override {}
    bool is_pinned(const void*, std::size_t) const override { return false; }
    bool pin(void*, std::size_t) override { return false; }
    void unpin(void*) noexcept override {}
    void upload(Stream&, void*, const void*, std::size_t, const Between&) override {}
    void upload(Stream&, void*, std::size_t, const Filler&, const Between&) override {}
    void download(Stream&, std::span<const Download>) override {}

private:
    struct PolledEvent final : Event {
        bool ready() const override { return --polls < 0; }
        void synchronize() const override {}
        double seconds_since(const Event&) const override { return 0; }
        mutable int polls = 0;
    };
    struct PolledStream final : Stream {
        explicit PolledStream(Asked& asked) : asked_(asked) {}
        void copy(void*, const void*, std::size_t) override {}
        void record(Event& event) override
        {
            if (++asked_.records == asked_.failing_record) {
                throw Error(ErrorCode::device, "nothing can be recorded");
            }
            dynamic_cast<PolledEvent&>(event).polls = 3;
        }
        void wait(const Event&) override {}
        void synchronize() override {}
        void* native() const override { return nullptr; }
        std::unique_ptr<kernels::LaunchList> make_launch_list() override
        {
            return std::make_unique<CountedLaunches>(asked_);
        }
        Asked& asked_;
    };
    static DeviceInfo gpu()
    {
        DeviceInfo info;
        info.kind = DeviceKind::cuda;
        return info;
    }

    std::shared_ptr<Asked> asked_;
};

/// A worker of such a device, which is open.
inline std::vector<std::unique_ptr<Worker>> polled_worker(const std::shared_ptr<Asked>& asked)
{
    std::vector<std::unique_ptr<Worker>> workers;
    workers.push_back(
        std::make_unique<Worker>(0, Placement{}, [asked] { return std::make_unique<PolledDevice>(asked); }));
    workers.front()->wait_until_open();
    return workers;
}

}  // namespace rmsp::engine::test
