#pragma once

#include <cstddef>
#include <memory>

#include "runtime/engine/worker.hpp"
#include "runtime/matrix/streamed.hpp"
#include "runtime/matrix/vector_state.hpp"

/// The vectors of an apply.
namespace rmsp::distributed {

/// x of an apply: on the devices, or in host memory if there is no vector.
template <class T>
struct Source {
    const T* host = nullptr;
    std::shared_ptr<VectorState<T>> vector;
};

/// y of an apply: on the devices, or in host memory if there is no vector.
template <class T>
struct Target {
    T* host = nullptr;
    std::shared_ptr<VectorState<T>> vector;
};

/// Copies entries of a host vector to the worker's device, where a part may be streamed (or null) over the same link.
template <class T>
void upload_vector(engine::Worker& worker, StreamedPart<T>* part, T* to, const T* from, std::size_t bytes)
{
    if (part != nullptr) {
        part->upload(worker, to, from, bytes);
    } else {
        worker.device().upload(worker.stream(), to, from, bytes);
    }
}

}  // namespace rmsp::distributed
