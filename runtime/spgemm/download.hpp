#pragma once

#include "runtime/spgemm/product.hpp"

namespace rmsp::spgemm {

/// All of C on the host, as it was computed. Blocks.
template <class T>
CsrMatrix<T> download(ProductState<T>& state);

}  // namespace rmsp::spgemm
