#pragma once

#include <rmsp/matrix.hpp>

#include "runtime/matrix/matrix_state.hpp"

namespace rmsp::distributed {

/// The entries of a resident matrix in host memory, in the order in which they were distributed: of A, or of A^T where
/// they are by column.
template <class T>
struct StoredEntries {
    CsrMatrix<T> rows;
    HostVector<std::int32_t> row_idx;  ///< coordinates: in place of rows.row_ptr
    bool coordinates = false;

    CooView<T> as_coordinates() const
    {
        return {rows.rows, rows.cols, rows.nnz(), row_idx.data(), rows.col_idx.view(), rows.values.data()};
    }
};

/// Of devices that were lost none may have a part in it.
/// \throws Error(device) if one has, Error(out_of_memory) as download_matrix()
template <class T>
StoredEntries<T> download_entries(const MatrixState<T>& matrix);

/// A as the devices hold it, in host memory: for what is computed of a matrix once, as preconditioners are. Rows have
/// their entries in the order of the arrays that were distributed (by column, where A was given by columns; by row and
/// then in that order, where it was given in none). Of a streamed matrix, from the caller's arrays. Blocks.
/// \throws Error(out_of_memory) if a device has no room for columns that are numbered anew
template <class T>
CsrMatrix<T> download_matrix(const MatrixState<T>& matrix);

}  // namespace rmsp::distributed
