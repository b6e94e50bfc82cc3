#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <rmsp/matrix.hpp>

#include "runtime/node/node.hpp"

namespace rmsp::distributed {

using detail::RuntimeState;

/// The type of a view's values.
template <class View>
using ValueOf = std::remove_cvref_t<decltype(*std::declval<View>().values)>;

/// A caller's indices where the host reads them, counted from 0: in place, or copies of those that are in the memory of
/// a GPU or count from 1.
class HostIndices {
public:
    explicit HostIndices(RuntimeState& runtime) : runtime_(&runtime) {}

    /// The view with such indices; its values are where they were.
    /// \throws Error(usage) for a base other than 0 and 1, and, of a matrix that has to be brought to the host or
    ///         renumbered, for sizes or arrays that cannot be; Error(device)
    template <class View>
    View operator()(const View& a);

    /// Where the original of such an array is in the memory of a GPU, if the copy is the same numbers, of 32 bits; else
    /// nothing.
    IndexView in_gpu(IndexView copy) const;

    /// The copies, which the views need.
    std::vector<IndexArray> take() { return std::move(copies_); }

private:
    IndexView bring(IndexView given, std::int64_t count, int base);

    RuntimeState* runtime_;
    std::vector<IndexArray> copies_;
    std::vector<std::pair<const void*, IndexView>> alike_;  ///< copies and their originals
};

/// Whether an array of the caller's is in the memory of a GPU, which the runtime's devices can reach.
bool in_gpu_memory(const RuntimeState& runtime, const void* array);

/// Copies such an array to the host, each device some of it; blocks.
template <class Entry>
void bring_to_host(RuntimeState& runtime, Entry* to, const Entry* from, std::int64_t count);

/// Waits for a stream of the caller's on the GPU that has any array of the view, if one is there.
template <class View>
void wait_for_caller(const View& a, StreamRef after);
/// Waits for a stream of the caller's on the GPU that has the array, called `name`, of so many entries.
/// \throws Error(usage) if it is in host memory, and not empty
void wait_for_caller(const char* name, const void* array, std::int64_t entries, StreamRef after);

}  // namespace rmsp::distributed
