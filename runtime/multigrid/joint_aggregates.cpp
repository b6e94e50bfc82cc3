#include "runtime/multigrid/joint_aggregates.hpp"

#include <algorithm>
#include <numeric>

namespace rmsp::multigrid {
namespace {

std::int64_t aggregates_of(const kernels::AggregateParts& parts, const kernels::Context& context)
{
    return kernels::symmetrise(parts, context) ? kernels::aggregates(parts, context) : -1;
}

}  // namespace

std::int64_t find_aggregates(kernels::AggregatePart all, const kernels::Context& context)
{
    const kernels::AggregateRoom room(*context.memory, all.rows, all.nnz);
    room.lend(all);
    kernels::AggregateParts parts;
    parts.part[0] = all;
    return aggregates_of(parts, context);
}

bool JointAggregates::pays(const RuntimeState& runtime, std::int64_t rows)
{
    const transport::Transport* const transport = runtime.connection.transport.get();
    return rows >= least_rows && runtime.devices() > 1 && runtime.devices() <= kernels::most_aggregate_parts &&
           runtime.peers_reach_pools() && transport != nullptr && transport->given_up() != nullptr;
}

JointAggregates::JointAggregates(RuntimeState& runtime)
    : runtime_(runtime),
      parts_(static_cast<std::size_t>(runtime.devices())),
      said_(static_cast<std::size_t>(runtime.devices()))
{
}

std::int64_t JointAggregates::find(engine::Worker& worker, engine::Rendezvous& meeting,
                                   const kernels::AggregatePart& own)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const kernels::Context context = worker.context();
    const kernels::AggregateRoom room(*context.memory, own.rows, own.nnz);
    parts_[rank] = own;
    room.lend(parts_[rank]);

    kernels::AggregateParts parts;
    parts.count = runtime_.devices();
    parts.own = worker.rank();
    parts.epoch = transport::epoch_of(meeting.job(), 1);
    parts.given_up = runtime_.connection.transport->given_up() + transport::given_up_word(parts.epoch);
    // All have queued their work before one waits for its device, whose kernel may wait for the others'.
    parts.meet = [&] {
        meeting.arrive_and_wait();
        worker.stream().synchronize();
        meeting.arrive_and_wait();
    };
    const auto sum_of = [&](std::int64_t says, std::size_t devices) {
        meeting.arrive_and_wait();
        worker.stream().synchronize();
        said_[rank] = says;
        meeting.arrive_and_wait();
        return std::accumulate(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(devices), std::int64_t{0});
    };
    parts.total = [&](std::int64_t says) { return sum_of(says, said_.size()); };
    parts.before = [&](std::int64_t says) { return sum_of(says, rank); };
    parts.meet();
    std::copy(parts_.begin(), parts_.end(), parts.part);
    return aggregates_of(parts, context);
}

}  // namespace rmsp::multigrid
