#include "runtime/matrix/stream_source.hpp"

#include <cstddef>

#include "core/value_types.hpp"

namespace rmsp::distributed {

template <class T>
StreamSource<T>::StreamSource(engine::LockedArrays& arrays, engine::Device& device, const plan::Stored<T>& matrix,
                              bool lock)
    : a(matrix), coordinates(matrix.coordinates), order(matrix.order), row_idx(matrix.row_idx)
{
    const auto entries = static_cast<std::size_t>(matrix.nnz);
    // Wider indices are narrowed on the way.
    const auto indices = [&](IndexView index) {
        return arrays.find_or_lock(device, index.data(), entries * index.element_bytes(),
                                   lock && index.type() == IndexType::i32);
    };
    rows = coordinates
               ? indices(row_idx)
               : arrays.find_or_lock(device, a.row_ptr.data(),
                                     static_cast<std::size_t>(matrix.rows + 1) * a.row_ptr.element_bytes(), lock);
    col_idx = indices(a.col_idx);
    values = arrays.find_or_lock(device, a.values, entries * sizeof(T), lock);
}

#define RMSP_INSTANTIATE(T) template struct StreamSource<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
