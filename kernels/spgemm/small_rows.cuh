#pragma once

#include <memory>

#include <kernels/spgemm/spgemm.hpp>

/// Products of small matrices, which take as long as their launches: one launch counts the entries of C and finds its
/// row pointers, another one makes C. The products of a row are sorted by a few lanes, those of a long one by a block.
namespace rmsp::kernels::spgemm {

/// Null if the matrices are not small (threads_of_small()), if a row of C turns out to have more than most_small
/// products, if an accumulator is asked for, if more bytes are needed than the limit, or if the device has no room.
/// Waits.
template <class T>
std::unique_ptr<SpgemmOperator<T>> try_small_rows(const CsrShard<T>& a, const CsrShard<T>& b,
                                                  const SpgemmOptions& options, const Context& context);

}  // namespace rmsp::kernels::spgemm
