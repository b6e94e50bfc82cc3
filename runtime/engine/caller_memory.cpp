#include "runtime/engine/caller_memory.hpp"

#include <algorithm>
#include <utility>

namespace rmsp::engine {

std::shared_ptr<CallerOrder> CallerOrders::take(int gpu, void* stream, int devices)
{
    std::shared_ptr<CallerOrder> order;
    {
        const std::lock_guard lock(mutex_);
        const auto at = std::find_if(spare_.begin(), spare_.end(), [&](const Spare& one) { return one.gpu == gpu; });
        if (at != spare_.end()) {
            order = std::move(at->order);
            spare_.erase(at);
        }
    }
    if (!order) {
        return order_by(gpu, stream, devices);
    }
    order->renew(stream);
    return order;
}

void CallerOrders::give_back(int gpu, std::shared_ptr<CallerOrder> order) noexcept
{
    const std::lock_guard lock(mutex_);
    if (spare_.size() < most) {
        spare_.push_back({gpu, std::move(order)});
    }
}

}  // namespace rmsp::engine
