#include "runtime/engine/refusals.hpp"

namespace rmsp::engine {
namespace {

// Without a lock: workers ask while they hold others.
struct Wanted {
    std::atomic<Request> kind{Request::memory};
    std::atomic<std::int64_t> first{0};
    std::atomic<bool> all{false};
    std::atomic<std::int64_t> asked{0};
    std::atomic<std::int64_t> refused{0};
};
Wanted wanted;

}  // namespace

std::atomic<bool> Refusals::any_{false};

Refusals::Refusals(Request kind, std::int64_t first, bool all) noexcept
{
    wanted.kind = kind;
    wanted.first = first;
    wanted.all = all;
    wanted.asked = 0;
    wanted.refused = 0;
    any_ = true;
}

Refusals::~Refusals() { any_ = false; }

std::int64_t Refusals::asked() const noexcept { return wanted.asked; }

std::int64_t Refusals::refused() const noexcept { return wanted.refused; }

bool Refusals::refuse(Request kind) noexcept
{
    if (wanted.kind != kind) {
        return false;
    }
    const std::int64_t number = ++wanted.asked;
    const std::int64_t first = wanted.first;
    const bool refuses = first != 0 && (wanted.all ? number >= first : number == first);
    wanted.refused += refuses ? 1 : 0;
    return refuses;
}

}  // namespace rmsp::engine
