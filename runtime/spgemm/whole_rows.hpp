#pragma once

#include <memory>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/factors.hpp"

/// Matrices that one device works on alone.
namespace rmsp::spgemm {

/// All rows of a matrix, with its columns' own numbers, on their way to the memory of the first device.
template <class T>
class RowsOnFirstDevice {
public:
    /// Not on a worker. \param held  to be there as long as they are brought
    RowsOnFirstDevice(RuntimeState& runtime, ResidentFactor<T>& held, std::int64_t cols);

    /// Copies them; empty on other devices. Every worker of the job calls it. Waits for the first device.
    /// \param values  else the pattern alone
    DeviceRows<T> bring(engine::Worker& worker, engine::Rendezvous& meeting, bool values);

private:
    ResidentFactor<T>& held_;
    std::int64_t cols_;
    EntriesOnDevices<T> entries_;
};

/// Copies all rows of a distributed matrix to the first device. Every device of the runtime takes part; blocks.
/// \param out  to be freed on the first device's worker
/// \throws Error as matrix_factor(), and Error(out_of_memory)
template <class T>
void bring_to_first_device(const std::shared_ptr<detail::MatrixState<T>>& matrix, DeviceRows<T>& out);

}  // namespace rmsp::spgemm
