#pragma once

#include <kernels/context.hpp>

namespace rmsp::kernels {

/// What all values of a shard have in common, for formats that keep all their entries alike.
template <class T>
struct CommonValues {
    bool floats = false;    ///< doubles that are all exactly floats
    bool constant = false;  ///< all are `first`, which is finite: 0 times it is 0
    T first = 0;
};

/// Of a shard on a GPU, by one pass over its values, which ends early where there is nothing in common. Waits for the stream.
template <class T>
CommonValues<T> common_values(const CsrShard<T>& shard, const Context& context);

}  // namespace rmsp::kernels
