#include "runtime/engine/device.hpp"

#include <fmt/format.h>

#include <rmsp/kernel_info.hpp>

#include "runtime/engine/memory_ledger.hpp"
#include "runtime/engine/refusals.hpp"

namespace rmsp::engine {
namespace {

/// As a device without that much memory, where a test wants it so.
void require_granted(Request kind, const DeviceInfo& info, std::size_t bytes)
{
    if (is_refused(kind)) {
        throw Error(ErrorCode::out_of_memory,
                    fmt::format("{} has no room for {} bytes{}: a test refuses them", label_of(info), bytes,
                                kind == Request::pinned ? " of pinned memory" : ""));
    }
}

}  // namespace

std::string label_of(const DeviceInfo& info)
{
    return fmt::format("{}:{} {}", to_string(info.kind), info.index, info.name);
}

class Device::CountedPool final : public kernels::Memory {
public:
    CountedPool(Device& device, std::unique_ptr<kernels::Memory> pool) : device_(device), pool_(std::move(pool)) {}
    void* allocate(std::size_t bytes) override
    {
        return device_.counted(bytes, [&] { return pool_->allocate(bytes); });
    }
    void deallocate(void* p, std::size_t bytes) noexcept override
    {
        pool_->deallocate(p, bytes);
        device_.count_as_free(bytes);
    }

private:
    Device& device_;
    std::unique_ptr<kernels::Memory> pool_;
};

LedgerDevice Device::for_ledger()
{
    return {label_of(info_), info_.memory_bytes, [this] { return free_bytes(); }};
}

void Device::count_in(MemoryLedger& ledger, int number) noexcept
{
    ledger_ = &ledger;
    number_ = number;
}

template <class Obtain>
void* Device::counted(std::size_t bytes, const Obtain& obtain)
{
    if (ledger_ == nullptr) {
        require_granted(Request::memory, info_, bytes);
        return obtain();
    }
    ledger_->take(number_, static_cast<std::int64_t>(bytes), draws_from_);
    try {
        require_granted(Request::memory, info_, bytes);
        void* const p = obtain();
        ledger_->obtained(number_, static_cast<std::int64_t>(bytes));
        return p;
    } catch (...) {
        ledger_->obtained(number_, static_cast<std::int64_t>(bytes));
        count_as_free(bytes);
        throw;
    }
}

void Device::count_as_free(std::size_t bytes) noexcept
{
    if (ledger_ != nullptr) {
        ledger_->give_back(number_, static_cast<std::int64_t>(bytes), draws_from_);
    }
}

void* Device::allocate(std::size_t bytes)
{
    return counted(bytes, [&] { return obtain(bytes); });
}

void Device::deallocate(void* p, std::size_t bytes) noexcept
{
    give_back(p, bytes);
    count_as_free(bytes);
}

void* Device::allocate_pinned(std::size_t bytes)
{
    require_granted(Request::pinned, info_, bytes);
    return obtain_pinned(bytes);
}

std::unique_ptr<kernels::Memory> Device::make_pool(Stream& stream)
{
    return std::make_unique<CountedPool>(*this, make_uncounted_pool(stream));
}

std::string Device::loss() const
{
    std::lock_guard lock(losing_);
    return loss_;
}

void Device::require() const
{
    if (lost()) {
        throw Error(ErrorCode::device, loss());
    }
}

void Device::lose(const std::string& why)
{
    remember_loss();
    std::string loss = fmt::format("{} is lost: {}", label_of(info_), why);
    std::lock_guard lock(losing_);
    if (loss_.empty()) {
        loss_ = std::move(loss);
        lost_.store(true, std::memory_order_release);
    }
}

std::exception_ptr Device::explain(std::exception_ptr error) noexcept
{
    try {
        if (!lost()) {
            if (const std::string why = fault(); !why.empty()) {
                lose(why);
            }
        }
        require();
    } catch (...) {
        return std::current_exception();
    }
    return error;
}

}  // namespace rmsp::engine
