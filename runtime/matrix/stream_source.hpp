#pragma once

#include <memory>

#include <rmsp/matrix.hpp>

#include "runtime/engine/device.hpp"
#include "runtime/engine/locked_array.hpp"

namespace rmsp::distributed {

/// The caller's arrays, where the pieces come from. One for all devices of a matrix.
template <class T>
struct StreamSource {
    StreamSource(engine::LockedArrays& arrays, engine::Device& device, const CsrView<T>& matrix, bool lock);
    bool refused() const noexcept { return row_ptr->refused() || col_idx->refused() || values->refused(); }
    bool staged() const noexcept { return row_ptr->staged() || col_idx->staged() || values->staged(); }

    CsrView<T> a;
    std::shared_ptr<engine::LockedArray> row_ptr;
    std::shared_ptr<engine::LockedArray> col_idx;  ///< locked if 32-bit: wider ones are narrowed on the way
    std::shared_ptr<engine::LockedArray> values;
};

}  // namespace rmsp::distributed
