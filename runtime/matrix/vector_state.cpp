#include "runtime/matrix/vector_state.hpp"

#include <utility>

#include <rmsp/error.hpp>

namespace rmsp::detail {
template <class T>
VectorState<T>::~VectorState()
{
    for (std::size_t rank = 0; runtime && rank < storage.size(); ++rank) {
        runtime->release(static_cast<int>(rank), room, [array = std::move(storage[rank])]() mutable { array.reset(); });
    }
}

template <class T>
const std::shared_ptr<VectorState<T>>& checked(const std::shared_ptr<VectorState<T>>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this DistributedVector is empty; make one with make_x() or make_y()");
    }
    return state;
}

#define RMSP_INSTANTIATE(T)         \
    template struct VectorState<T>; \
    template const std::shared_ptr<VectorState<T>>& checked(const std::shared_ptr<VectorState<T>>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::detail
