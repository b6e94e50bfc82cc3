#include <algorithm>

#include <kernels/steps/sparse_inverse/sparse_inverse.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

template <class T>
InverseClasses classify_inverse_rows(const InverseSource<T>& /*a*/, matrix::SparseInverse /*kind*/,
                                     const InverseRows& /*m*/, const Context& /*context*/)
{
    return {};
}

template <class T>
matrix::InverseStatus fill_inverse_rows(const InverseSource<T>& a, matrix::SparseInverse kind, const InverseRows& m,
                                        const InverseClasses& /*classes*/, T* values, const Context& context)
{
    const CsrView<T> named{0, 0, 0, a.row_ptr, a.col_idx, a.values};
    return matrix::fill_inverse_rows(named, a.first, kind, {m.first, m.rows, m.row_ptr, m.col_idx}, values,
                                     std::max(context.threads, 1));
}

}  // namespace
}  // namespace host

RMSP_VALUE_ROW(SparseInverses, host, .classify_inverse_rows = host::classify_inverse_rows<T>,
               .fill_inverse_rows = host::fill_inverse_rows<T>)

}  // namespace rmsp::kernels
