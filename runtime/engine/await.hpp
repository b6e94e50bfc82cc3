#pragma once

#include <chrono>
#include <future>

#include "core/team.hpp"

namespace rmsp::engine {

/// Waits for a job that may take microseconds: awake at first, as to be woken takes longer. `on_host`: its work is done
/// by cores that the caller may be on, and others may have that meanwhile. \throws what the job threw
inline void await(std::future<void> end, bool on_host)
{
    const auto is_there = [&] { return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
    if (core::team_may_wait_awake()) {
        if (on_host) {
            core::wait_awake(core::awake, is_there);
        } else {
            const auto until = std::chrono::steady_clock::now() + core::awake;
            while (!is_there() && std::chrono::steady_clock::now() < until) {
            }
        }
    }
    end.get();
}

}  // namespace rmsp::engine
