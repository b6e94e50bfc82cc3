#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "runtime/engine/job_queue.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::transport {

/// Waits for the worker's stream; false if it is not done after `limit`.
bool wait_for_stream(engine::Worker& worker, std::chrono::steady_clock::duration limit);

/// Gathers a pattern and compares every byte on every device: a link that claims to work may still lose data.
/// `jobs`: the queue of the workers if others use it meanwhile.
/// \throws Error(device) naming the first devices between which it does, or if the data are not there after `limit`
void test_with_data(Transport& transport, std::span<const std::unique_ptr<engine::Worker>> workers,
                    std::chrono::steady_clock::duration limit, engine::JobQueue* jobs = nullptr);

}  // namespace rmsp::transport
