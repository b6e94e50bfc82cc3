#include "runtime/matrix/matrix_state.hpp"

#include <exception>
#include <string>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/matrix/race.hpp"
#include "runtime/plan/rank_kernels.hpp"

namespace rmsp::distributed {
namespace {

/// Keeps the results of decided races for later processes, but of those for vectors in the kernel's order, which these
/// may not use.
template <class T>
void remember_races(const MatrixState<T>& matrix)
{
    const Plan plan = current_plan(matrix);
    for (const ShardPlan& shard : plan.shards) {
        if (shard.kernel_reason == won_race) {
            std::string text;
            for (const KernelCandidate& candidate : shard.candidates) {
                if (candidate.measured_seconds > 0) {
                    text += fmt::format("{} {}\n", candidate.kernel, candidate.measured_seconds);
                }
            }
            matrix.runtime->cache.write(plan::race_cache_name(shard), text);
        }
    }
}

}  // namespace

template <class T>
Plan current_plan(const MatrixState<T>& matrix)
{
    Plan plan = matrix.plan;
    // Only the product by rows has races, and it is there from the start.
    const bool of_transpose = plan::transposed(plan);
    const auto& product = matrix.products[of_transpose ? 1 : 0];
    if (plan::multiplies_by_rows(plan, of_transpose) && product) {
        product->note_races(plan);
    }
    return plan;
}

#define RMSP_INSTANTIATE(T) template Plan current_plan(const MatrixState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::distributed

namespace rmsp::detail {

template <class T>
MatrixState<T>::~MatrixState()
{
    if (runtime && runtime->in_own_process()) {
        try {
            distributed::remember_races(*this);
        } catch (const std::exception&) {
            // Out of memory, for example: they will be raced again.
        }
    }
    // Each device's part is freed on its own worker, behind the jobs that use it.
    for (int rank = 0; runtime && rank < runtime->devices(); ++rank) {
        distributed::Shard<T>* const shard = shards[static_cast<std::size_t>(rank)].release();
        runtime->release(rank, room, [shard, rank, made = products] {
            for (const auto& product : made) {
                if (product) {
                    product->close(rank);
                }
            }
            delete shard;
        });
    }
}

template <class T>
const std::shared_ptr<MatrixState<T>>& checked(const std::shared_ptr<MatrixState<T>>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this DistributedMatrix is empty; make one with Runtime::distribute()");
    }
    return state;
}

#define RMSP_INSTANTIATE(T)         \
    template struct MatrixState<T>; \
    template const std::shared_ptr<MatrixState<T>>& checked(const std::shared_ptr<MatrixState<T>>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::detail
