#pragma once

#include <algorithm>
#include <mutex>
#include <utility>

#include <rmsp/runtime.hpp>

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/shard.hpp"
#include "runtime/plan/stored.hpp"

/// The parts of a matrix on their way to the devices.
namespace rmsp::distributed {

/// Adds up what the devices upload and reports it as one share.
class UploadProgress {
public:
    UploadProgress(Progress report, double total) : report_(std::move(report)), total_(total) {}
    void add(double bytes)
    {
        if (report_) {
            std::lock_guard lock(mutex_);
            done_ += bytes;
            report_("upload", total_ > 0 ? std::min(1.0, done_ / total_) : 1.0);
        }
    }

private:
    Progress report_;
    double total_;
    double done_ = 0;
    std::mutex mutex_;
};

/// Queues the copies of a resident shard's values from the caller's, where the caller has them all.
template <class T>
void upload_values(Shard<T>& shard, engine::Worker& worker, const T* values);

/// Makes the worker's shard: copies the part to the device, or notes where it is, and that it is streamed.
template <class T>
void build_shard(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, const plan::Stored<T>& a,
                 UploadProgress& progress);

}  // namespace rmsp::distributed
