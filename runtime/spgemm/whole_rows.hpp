#pragma once

#include <memory>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/spgemm/rows.hpp"

/// Matrices that one device works on alone.
namespace rmsp::spgemm {

/// Copies all rows of a distributed matrix, with its columns' own numbers, to the memory of the first device: from one
/// device to the other, but for row pointers, which pass through the host. Every device of the runtime takes part;
/// blocks.
/// \param out  to be freed on the first device's worker
/// \returns false, with nothing in `out`, where that device has no room for the entries
/// \throws Error as matrix_factor()
template <class T>
bool bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out);

}  // namespace rmsp::spgemm
