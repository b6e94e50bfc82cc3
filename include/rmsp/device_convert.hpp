#pragma once

#include <rmsp/convert.hpp>
#include <rmsp/export.hpp>
#include <rmsp/runtime.hpp>

/// The conversions of convert.hpp on the first GPU of a runtime: the arrays go there in host memory of any kind, are
/// sorted by a stable radix sort, and the result comes back, the same as from those functions. They block, behind the
/// jobs submitted before. Where the runtime has host devices, and for more than 2^31 - 1 rows or columns, the host
/// converts.
namespace rmsp {

/// \throws Error(usage) as validate(), Error(out_of_memory) if the GPU has no room for the entries and what sorts them:
///         about 28 bytes each and the values; the runtime stays usable
template <class T>
RMSP_API CscMatrix<T> to_csc(Runtime& runtime, const CsrView<T>& a);
template <class T>
RMSP_API CscMatrix<T> to_csc(Runtime& runtime, const CooView<T>& a);
template <class T>
RMSP_API CsrMatrix<T> to_csr(Runtime& runtime, const CscView<T>& a);
template <class T>
RMSP_API CsrMatrix<T> to_csr(Runtime& runtime, const CooView<T>& a);
template <class T>
RMSP_API CooMatrix<T> to_coo(Runtime& runtime, const CsrView<T>& a);
template <class T>
RMSP_API CooMatrix<T> to_coo(Runtime& runtime, const CscView<T>& a);

}  // namespace rmsp
