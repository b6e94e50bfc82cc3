#pragma once

#include "runtime/spgemm/product.hpp"

namespace rmsp::spgemm {

/// Where C is to go, each in memory of the host or of a GPU; null: it is not wanted.
template <class T>
struct CArrays {
    std::int64_t* row_ptr = nullptr;  ///< rows + 1
    std::int32_t* col_idx = nullptr;  ///< as many as entries, as values
    T* values = nullptr;
};

/// Copies C, as it was computed. Blocks.
/// \throws Error(usage) for memory of a GPU where the devices are the host's
template <class T>
void download(ProductState<T>& state, const CArrays<T>& to);

/// All of C on the host, as it was computed. Blocks.
template <class T>
CsrMatrix<T> download(ProductState<T>& state);

}  // namespace rmsp::spgemm
