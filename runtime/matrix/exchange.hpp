#pragma once

#include <rmsp/runtime.hpp>

#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::detail {

/// Chooses ranges or entries for the exchange of an x by rows. For entries it numbers the columns of all uploaded shards anew and
/// makes what the devices need to send and to receive them.
template <class T>
void choose_exchange(MatrixState<T>& matrix, Exchange wanted);

}  // namespace rmsp::detail
