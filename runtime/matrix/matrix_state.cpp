#include "runtime/matrix/matrix_state.hpp"

#include <exception>

#include <rmsp/error.hpp>

#include "runtime/matrix/prepare_kernel.hpp"

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
