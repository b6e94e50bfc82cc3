#pragma once

#include <cstdint>
#include <memory>

#include <rmsp/convert.hpp>
#include <rmsp/matrix.hpp>

#include "runtime/engine/device.hpp"
#include "runtime/engine/locked_array.hpp"
#include "runtime/plan/stored.hpp"

namespace rmsp::distributed {

/// The caller's arrays, where the pieces come from. One for all devices of a matrix.
template <class T>
struct StreamSource {
    StreamSource(engine::LockedArrays& arrays, engine::Device& device, const plan::Stored<T>& matrix, bool lock);
    bool refused() const noexcept { return rows->refused() || col_idx->refused() || values->refused(); }
    bool staged() const noexcept { return rows->staged() || col_idx->staged() || values->staged(); }
    /// What an entry takes on the devices.
    std::int64_t entry_bytes() const noexcept
    {
        return static_cast<std::int64_t>(sizeof(T) + (coordinates ? 2 : 1) * sizeof(std::int32_t));
    }

    CsrView<T> a;
    bool coordinates = false;  ///< row_idx instead of a.row_ptr
    CooOrder order = CooOrder::by_row;
    IndexView row_idx;
    /// Row pointers; of coordinates row indices, locked if 32-bit.
    std::shared_ptr<engine::LockedArray> rows;
    std::shared_ptr<engine::LockedArray> col_idx;  ///< locked if 32-bit: wider ones are narrowed on the way
    std::shared_ptr<engine::LockedArray> values;
};

}  // namespace rmsp::distributed
