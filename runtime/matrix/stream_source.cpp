#include "runtime/matrix/stream_source.hpp"

#include <cstddef>

#include "core/value_types.hpp"

namespace rmsp::distributed {

template <class T>
StreamSource<T>::StreamSource(engine::LockedArrays& arrays, engine::Device& device, const CsrView<T>& matrix, bool lock)
    : a(matrix),
      row_ptr(arrays.find_or_lock(device, matrix.row_ptr.data(),
                                  static_cast<std::size_t>(matrix.rows + 1) * matrix.row_ptr.element_bytes(), lock)),
      col_idx(arrays.find_or_lock(device, matrix.col_idx.data(),
                                  static_cast<std::size_t>(matrix.nnz) * matrix.col_idx.element_bytes(),
                                  lock && matrix.col_idx.type() == IndexType::i32)),
      values(arrays.find_or_lock(device, matrix.values, static_cast<std::size_t>(matrix.nnz) * sizeof(T), lock))
{
}

#define RMSP_INSTANTIATE(T) template struct StreamSource<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
