#pragma once

#include <memory>

#include <kernels/spgemm/spgemm.hpp>

/// Products of matrices all of whose rows of C have few products: diagonals, a few of them, blocks on a diagonal. A
/// thread has a row and sorts its products in registers: rows need no bounds, classes or lists, which would take longer
/// than the products themselves.
namespace rmsp::kernels::spgemm {

inline constexpr int most_short = 16;

/// Null if a row of C has more than most_short products, or more entries of A, if rows have more on average, which is
/// looked at first, if an accumulator is asked for, if more bytes are needed than the limit, or if the device has no
/// room. Waits.
template <class T>
std::unique_ptr<SpgemmOperator<T>> try_short_rows(const CsrShard<T>& a, const CsrShard<T>& b,
                                                  const SpgemmOptions& options, const Context& context);

}  // namespace rmsp::kernels::spgemm
