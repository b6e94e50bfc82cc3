#pragma once

#include <rmsp/export.hpp>
#include <rmsp/matrix.hpp>

/// Conversions between formats on the host, in parallel. All are stable: entries of one row or column of the result
/// stand in the order in which they came, so a result does not depend on the number of threads. Nothing is added
/// together or left out. Besides the result they need counters of at most the size of the input, and no copy of it.
namespace rmsp {

/// CSC of a CSR matrix; the rows of each column rise.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CscMatrix<T> to_csc(const CsrView<T>& a);
/// CSC of coordinates in any order.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CscMatrix<T> to_csc(const CooView<T>& a);

/// CSR of a CSC matrix; the columns of each row rise.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CsrMatrix<T> to_csr(const CscView<T>& a);
/// CSR of coordinates in any order.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CsrMatrix<T> to_csr(const CooView<T>& a);

/// CSR of blocks: every value of a block is an entry, zeros too.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CsrMatrix<T> to_csr(const BsrView<T>& a);

/// Coordinates sorted by row, from CSR.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CooMatrix<T> to_coo(const CsrView<T>& a);
/// Coordinates sorted by column, from CSC.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CooMatrix<T> to_coo(const CscView<T>& a);

/// The same entries sorted by row; those of a row keep their order.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CooMatrix<T> sort_by_row(const CooView<T>& a);
/// The same entries sorted by column; those of a column keep their order.
/// \throws Error(usage) as validate()
template <class T>
RMSP_API CooMatrix<T> sort_by_column(const CooView<T>& a);

/// A^T without a copy: the CSC arrays of A are the CSR arrays of A^T, and the other way round.
template <class T>
CsrView<T> transpose(const CscView<T>& a) noexcept
{
    return {a.cols, a.rows, a.nnz, a.col_ptr, a.row_idx, a.values, a.base};
}
template <class T>
CscView<T> transpose(const CsrView<T>& a) noexcept
{
    return {a.cols, a.rows, a.nnz, a.row_ptr, a.col_idx, a.values, a.base};
}
template <class T>
CooView<T> transpose(const CooView<T>& a) noexcept
{
    return {a.cols, a.rows, a.nnz, a.col_idx, a.row_idx, a.values, a.base};
}

}  // namespace rmsp
