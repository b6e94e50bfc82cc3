#include <utility>

#include <rmsp/job.hpp>

namespace rmsp {
namespace {

thread_local const JobOptions* innermost = nullptr;

}  // namespace

JobScope::JobScope(JobOptions options) noexcept : options_(std::move(options)), outer_(innermost)
{
    innermost = &options_;
}

JobScope::~JobScope() { innermost = outer_; }

const JobOptions* JobScope::current() noexcept { return innermost; }

}  // namespace rmsp
