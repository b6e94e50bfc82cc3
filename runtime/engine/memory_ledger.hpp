#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <rmsp/job.hpp>
#include <rmsp/metrics.hpp>

namespace rmsp::engine {

class MemoryLedger;

/// What the ledger knows of a device.
struct LedgerDevice {
    std::string label;                         ///< for messages: "cuda:0 NVIDIA H200"
    std::int64_t memory_bytes = 0;             ///< all that it has; 0: not known
    std::function<std::int64_t()> free_bytes;  ///< what is left of it, whoever uses it; 0: not known. Any thread calls
};

/// Memory of each device that was promised to something and that it has not taken yet. What is allocated on its behalf
/// is taken from there (Device::draw_from()).
class Reservation {
public:
    Reservation(MemoryLedger& ledger, std::size_t devices) : ledger_(ledger), parts_(devices) {}
    ~Reservation() { release(); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    /// Gives back what was not taken. Idempotent.
    void release() noexcept;

private:
    friend class MemoryLedger;
    struct Part {
        std::int64_t bytes = 0;
        std::int64_t taken = 0;  ///< on its behalf, and not freed
        std::int64_t left() const noexcept;
    };
    MemoryLedger& ledger_;
    std::vector<Part> parts_;  ///< under the ledger's lock
};

/// What of each device's memory is taken, and what is promised to those that are admitted: two who ask at the same time
/// are never promised the same bytes. Safe for threads.
class MemoryLedger {
public:
    /// `limit`: bytes of each device that may be taken; 0: as many as it has, as far as that is known. What
    /// `devices` call outlives this. `catch_up`, if not empty, returns once what was let go before has been given back:
    /// it is called before anything is refused.
    MemoryLedger(std::vector<LedgerDevice> devices, std::int64_t limit, std::function<void()> catch_up = {});

    /// Promises `bytes` of each device. `what` is for messages: "the matrix". Where they are not free, those who may
    /// wait do as JobOptions::when_no_memory says, until the options' deadline or stop; they are served by priority,
    /// then in the order in which they came. `options` may be null.
    /// \throws Error(out_of_memory) with the bytes and the device, at once where they will never be free; Error(usage)
    ///         once close() was called; Error(cancelled), Error(deadline). Nothing is then promised
    std::shared_ptr<Reservation> admit(const std::string& what, std::span<const std::int64_t> bytes, bool may_wait,
                                       const JobOptions* options);
    /// For a part of what was admitted: promises as much more as it has not left of `bytes`. Waits for nothing.
    /// \throws as admit()
    void extend(Reservation& reservation, const std::string& what, std::span<const std::int64_t> bytes);
    /// Nobody is admitted any more, and nobody waits.
    void close() noexcept;
    /// Sets what Metrics says of memory.
    void add_to(Metrics& metrics) const;

    /// Before a device's memory is taken: of what `from` was promised, if it is not null, then of what is free.
    /// \throws Error(out_of_memory) if that is over the limit, or promised to others
    void take(int device, std::int64_t bytes, Reservation* from);
    /// What was taken is there, or was refused: what the driver says is free is so without it.
    void obtained(int device, std::int64_t bytes) noexcept;
    /// It was not taken after all, or is free again.
    void give_back(int device, std::int64_t bytes, Reservation* to) noexcept;
    /// Bytes that one may take who was promised none; 0: not known.
    std::int64_t room(int device) const;

private:
    friend class Reservation;
    using Clock = std::chrono::steady_clock;
    struct Account {
        LedgerDevice device;
        std::int64_t taken = 0;
        std::int64_t peak = 0;       ///< the most that `taken` was
        std::int64_t promised = 0;   ///< and not taken yet
        std::int64_t obtaining = 0;  ///< taken, but the driver may not have been asked for it yet
        std::int64_t sure = 0;       ///< half of what was left, less all that was promised or taken since
        Clock::time_point looked_at{};
    };
    /// room() of an account, under the lock; the most there can be where nothing is known.
    std::int64_t available(const Account& account) const;
    /// The first device that has too little; -1: none. Under the lock. Does not ask the driver where what it said a
    /// moment ago will do: others that use the device may take some at any time.
    int lacking(std::span<const std::int64_t> bytes);
    /// What is told of that device; under the lock.
    std::string describe(const std::string& what, std::span<const std::int64_t> bytes, int device) const;
    void promise(Reservation& to, const std::string& what, std::span<const std::int64_t> bytes, bool may_wait,
                 const JobOptions* options);
    void wait(std::unique_lock<std::mutex>& lock, const std::string& what, std::span<const std::int64_t> bytes,
              const JobOptions& options);
    static void set_taken(Account& account, Reservation::Part* part, std::int64_t more) noexcept;

    const std::int64_t limit_;
    const std::function<void()> catch_up_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<Account> accounts_;
    std::list<Priority> waiting_;  ///< in the order in which they are served
    std::uint64_t refused_ = 0;
    bool closed_ = false;
};

/// While it lives, what the calling thread's jobs allocate is taken from a reservation, which ends with it. Inside,
/// nothing waits for memory: what waits while it holds some may wait for one that waits for that.
class Placing {
public:
    /// Null: what is placed belongs to what the thread's outer one places; without that, to a whole whose parts are
    /// admitted one by one.
    explicit Placing(std::shared_ptr<Reservation> from) noexcept;
    ~Placing();
    Placing(const Placing&) = delete;
    Placing& operator=(const Placing&) = delete;

    /// The calling thread's innermost one; null: none.
    static const Placing* current() noexcept;
    const std::shared_ptr<Reservation>& reservation() const noexcept { return from_; }

private:
    const Placing* outer_;
    bool own_;
    std::shared_ptr<Reservation> from_;
};

}  // namespace rmsp::engine
