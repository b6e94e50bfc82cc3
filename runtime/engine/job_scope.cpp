#include <utility>

#include <rmsp/job.hpp>

#include "core/enumerator.hpp"

namespace rmsp {
namespace {

thread_local const JobOptions* innermost = nullptr;

}  // namespace

JobScope::JobScope(JobOptions options) : options_(std::move(options)), outer_(innermost)
{
    core::require_enumerator("JobOptions::priority", options_.priority, Priority::high);
    core::require_enumerator("JobOptions::when_full", options_.when_full, WhenFull::refuse);
    core::require_enumerator("JobOptions::when_no_memory", options_.when_no_memory, WhenFull::refuse);
    innermost = &options_;
}

JobScope::~JobScope() { innermost = outer_; }

const JobOptions* JobScope::current() noexcept { return innermost; }

}  // namespace rmsp
