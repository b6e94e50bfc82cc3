#pragma once

#include <vector>

#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::distributed {

/// Rates of the links to the host in GB/s, measured anew, since they are not the same all the time.
template <class T>
std::vector<double> measure_links(MatrixState<T>& matrix);

}  // namespace rmsp::distributed
