#include "runtime/engine/memory_ledger.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::engine {
namespace {

constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();
// Left to the driver, which takes memory for kernels and streams when they are first used.
constexpr std::int64_t kept_free = std::int64_t{32} << 20;
// Other processes give a GPU's memory back without telling.
constexpr std::chrono::milliseconds look_again{50};
// The driver takes some microseconds to say what is free, and threads that ask it wait for each other.
constexpr std::chrono::milliseconds sure_for{10};

thread_local const Placing* innermost = nullptr;

}  // namespace

std::int64_t Reservation::Part::left() const noexcept { return std::clamp<std::int64_t>(bytes - taken, 0, bytes); }

void Reservation::release() noexcept
{
    {
        std::lock_guard lock(ledger_.mutex_);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            ledger_.accounts_[i].promised -= parts_[i].left();
            parts_[i] = {};
        }
    }
    ledger_.changed_.notify_all();
}

MemoryLedger::MemoryLedger(std::vector<LedgerDevice> devices, std::int64_t limit, std::function<void()> catch_up)
    : limit_(limit), catch_up_(std::move(catch_up)), accounts_(devices.size())
{
    for (std::size_t i = 0; i < devices.size(); ++i) {
        accounts_[i].device = std::move(devices[i]);
    }
}

std::int64_t MemoryLedger::available(const Account& account) const
{
    const std::int64_t free = account.device.free_bytes();
    std::int64_t left = free == 0 ? unknown : std::max<std::int64_t>(free - kept_free, 0);
    if (limit_ > 0) {
        left = std::min(left, limit_ - account.taken);
    }
    return left == unknown ? left : left - account.promised;
}

int MemoryLedger::lacking(std::span<const std::int64_t> bytes)
{
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        Account& account = accounts_[i];
        const auto now = Clock::now();
        // A device that has no part in it may be lost.
        if (bytes[i] <= 0 || (bytes[i] <= account.sure && now - account.looked_at <= sure_for)) {
            continue;
        }
        const std::int64_t left = available(account);
        account.sure = left == unknown ? 0 : (left - account.obtaining) / 2;
        account.looked_at = now;
        if (bytes[i] > left) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

std::string MemoryLedger::describe(const std::string& what, std::span<const std::int64_t> bytes, int device) const
{
    const Account& account = accounts_[static_cast<std::size_t>(device)];
    const std::int64_t left = available(account);
    return fmt::format("{} needs {} bytes of {}, where {} are free{}{}", what, bytes[static_cast<std::size_t>(device)],
                       account.device.label, std::max<std::int64_t>(left, 0),
                       account.promised > 0 ? fmt::format(" and {} promised to others", account.promised) : "",
                       limit_ > 0 ? fmt::format("; runtime.memory_limit is {}", limit_) : "");
}

std::shared_ptr<Reservation> MemoryLedger::admit(const std::string& what, std::span<const std::int64_t> bytes,
                                                 bool may_wait, const JobOptions* options)
{
    auto reservation = std::make_shared<Reservation>(*this, accounts_.size());
    promise(*reservation, what, bytes, may_wait, options);
    return reservation;
}

void MemoryLedger::extend(Reservation& reservation, const std::string& what, std::span<const std::int64_t> bytes)
{
    std::vector<std::int64_t> more(bytes.begin(), bytes.end());
    {
        std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < more.size(); ++i) {
            more[i] = std::max<std::int64_t>(0, more[i] - reservation.parts_[i].left());
        }
    }
    promise(reservation, what, more, false, nullptr);
}

void MemoryLedger::promise(Reservation& to, const std::string& what, std::span<const std::int64_t> bytes, bool may_wait,
                           const JobOptions* options)
{
    std::unique_lock lock(mutex_);
    if (closed_) {
        throw Error(ErrorCode::usage, "the rmsp::Runtime that this object belongs to has been destroyed, or drained");
    }
    int device = lacking(bytes);
    if (catch_up_ && device >= 0) {
        lock.unlock();
        catch_up_();
        lock.lock();
        device = lacking(bytes);
    }
    if (device >= 0) {
        const bool waits = may_wait && options != nullptr && options->when_no_memory == WhenFull::wait;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const std::int64_t whole = accounts_[i].device.memory_bytes;
            if ((limit_ > 0 && bytes[i] > limit_) || (whole > 0 && bytes[i] > whole)) {
                device = static_cast<int>(i);
                may_wait = false;
                break;
            }
        }
        if (!waits || !may_wait) {
            ++refused_;
            throw Error(ErrorCode::out_of_memory, describe(what, bytes, device));
        }
        wait(lock, what, bytes, *options);
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        Reservation::Part& part = to.parts_[i];
        accounts_[i].promised -= part.left();
        // What it took beyond its promise is no part of what it is promised now.
        part.taken = std::max<std::int64_t>(0, std::min(part.taken, part.bytes));
        part.bytes += bytes[i];
        accounts_[i].promised += part.left();
        accounts_[i].sure -= bytes[i];
    }
}

void MemoryLedger::wait(std::unique_lock<std::mutex>& lock, const std::string& what,
                        std::span<const std::int64_t> bytes, const JobOptions& options)
{
    const auto behind =
        std::find_if(waiting_.begin(), waiting_.end(), [&](Priority other) { return other < options.priority; });
    const auto self = waiting_.insert(behind, options.priority);
    // Whoever is behind may have its turn now.
    const auto leave = [&] {
        waiting_.erase(self);
        changed_.notify_all();
    };
    try {
        const auto has_room = [&] { return self == waiting_.begin() && lacking(bytes) < 0; };
        while (!closed_ && !options.stop.stop_requested() && Clock::now() < options.deadline) {
            if (has_room()) {
                leave();
                return;
            }
            changed_.wait_until(lock, options.stop, std::min(Clock::now() + look_again, options.deadline),
                                [&] { return closed_ || has_room(); });
        }
    } catch (...) {
        leave();
        throw;
    }
    ++refused_;
    const int device = std::max(lacking(bytes), 0);
    const std::string why = describe(what, bytes, device);
    leave();
    if (closed_) {
        throw Error(ErrorCode::usage, "the rmsp::Runtime was destroyed, or drained, while " + why);
    }
    throw options.stop.stop_requested() ? Error(ErrorCode::cancelled, "cancelled while " + why)
                                        : Error(ErrorCode::deadline, "the deadline passed while " + why);
}

void MemoryLedger::close() noexcept
{
    {
        std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_all();
}

void MemoryLedger::set_taken(Account& account, Reservation::Part* part, std::int64_t more) noexcept
{
    account.taken += more;
    account.peak = std::max(account.peak, account.taken);
    if (part != nullptr) {
        account.promised -= part->left();
        part->taken += more;
        account.promised += part->left();
    }
}

void MemoryLedger::take(int device, std::int64_t bytes, Reservation* from)
{
    const auto i = static_cast<std::size_t>(device);
    std::lock_guard lock(mutex_);
    Account& account = accounts_[i];
    Reservation::Part* const part = from != nullptr ? &from->parts_[i] : nullptr;
    if (limit_ > 0) {
        const std::int64_t left = limit_ - account.taken - account.promised + (part != nullptr ? part->left() : 0);
        if (bytes > left) {
            throw Error(ErrorCode::out_of_memory,
                        fmt::format("{} has no room for {} bytes: {} are free; runtime.memory_limit is {}",
                                    account.device.label, bytes, std::max<std::int64_t>(left, 0), limit_));
        }
    }
    set_taken(account, part, bytes);
    account.obtaining += bytes;
    account.sure -= bytes;
}

void MemoryLedger::obtained(int device, std::int64_t bytes) noexcept
{
    std::lock_guard lock(mutex_);
    accounts_[static_cast<std::size_t>(device)].obtaining -= bytes;
}

void MemoryLedger::give_back(int device, std::int64_t bytes, Reservation* to) noexcept
{
    const auto i = static_cast<std::size_t>(device);
    bool awaited = false;
    {
        std::lock_guard lock(mutex_);
        set_taken(accounts_[i], to != nullptr ? &to->parts_[i] : nullptr, -bytes);
        awaited = !waiting_.empty();
    }
    if (awaited) {
        changed_.notify_all();
    }
}

std::int64_t MemoryLedger::room(int device) const
{
    std::lock_guard lock(mutex_);
    const std::int64_t left = available(accounts_[static_cast<std::size_t>(device)]);
    return left == unknown ? 0 : std::max<std::int64_t>(left, 1);
}

void MemoryLedger::add_to(Metrics& metrics) const
{
    std::lock_guard lock(mutex_);
    metrics.memory_refused = refused_;
    metrics.memory_waiting = static_cast<std::int64_t>(waiting_.size());
    for (std::size_t i = 0; i < metrics.devices.size(); ++i) {
        metrics.devices[i].resident_bytes = accounts_[i].taken;
        metrics.devices[i].peak_bytes = accounts_[i].peak;
        metrics.devices[i].reserved_bytes = accounts_[i].promised;
    }
}

Placing::Placing(std::shared_ptr<Reservation> from) noexcept
    : outer_(innermost),
      own_(from != nullptr),
      from_(own_ || outer_ == nullptr ? std::move(from) : outer_->reservation())
{
    innermost = this;
}

Placing::~Placing()
{
    innermost = outer_;
    if (own_) {
        from_->release();
    }
}

const Placing* Placing::current() noexcept { return innermost; }

}  // namespace rmsp::engine
