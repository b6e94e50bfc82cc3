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

/// What a pass over the values of a shard finds, in the memory of the device: zeros before it.
template <class T>
struct FoundValues {
    unsigned any = 0;           ///< whether there are values,
    unsigned no_float = 0;      ///< that are no floats,
    unsigned not_as_first = 0;  ///< or that differ from the first
    T first = 0;
};

/// Queues that pass, which ends early where there is nothing in common: so that callers wait for it and for other
/// things at once.
template <class T>
void find_common_values(const CsrShard<T>& shard, FoundValues<T>* found, const Context& context);

template <class T>
CommonValues<T> common_values(const FoundValues<T>& found);

/// Of a shard on a GPU. Waits for the stream.
template <class T>
CommonValues<T> common_values(const CsrShard<T>& shard, const Context& context);

}  // namespace rmsp::kernels
