#pragma once

#include <chrono>
#include <future>

#include "core/team.hpp"

namespace rmsp::engine {

/// Waits for a job that may take microseconds: awake at first, as to be woken takes longer. `on_host`: its work is done
/// by cores that the caller may be on. \throws what the job threw
inline void await(std::future<void> end, bool on_host)
{
    if (core::team_may_wait_awake()) {
        core::wait_awake(on_host, [&] { return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    }
    end.get();
}

}  // namespace rmsp::engine
