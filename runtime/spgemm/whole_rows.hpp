#pragma once

#include <memory>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/spgemm/rows.hpp"

/// Matrices that one device works on alone.
namespace rmsp::spgemm {

/// Copies all rows of a distributed matrix, with its columns' own numbers, from the devices to the memory of the first
/// one. Every device of the runtime takes part; blocks.
/// \param out  to be freed on the first device's worker
/// \throws Error as matrix_factor(), and Error(out_of_memory)
template <class T>
void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out);

}  // namespace rmsp::spgemm
