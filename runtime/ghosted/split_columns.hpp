#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/matrix.hpp>

namespace rmsp::ghosted {

/// Own columns and those of ghosts.
template <class T>
struct Split {
    CsrMatrix<T> own;   ///< all rows
    CsrMatrix<T> rest;  ///< `rest_rows`
    /// Rows that have entries in `rest`, rising; empty: `rest` has all rows, as most have some.
    std::vector<std::int64_t> rest_rows;
    std::vector<std::int64_t> in_rest;  ///< which nonzeros are there, rising
    // Where rows with ghosts are whole, in `rest`:
    CsrMatrix<T> interior;
    std::vector<std::int64_t> copied;  ///< own columns of rows with ghosts
    std::vector<std::int64_t> outside_own;
};

/// \param own_cols    columns from there on are ghosts
/// \param whole_rows  rows with ghosts are not split: own columns that they touch have numbers behind the ghosts
template <class T>
Split<T> split_columns(const CsrView<T>& a, std::int64_t own_cols, bool whole_rows);

}  // namespace rmsp::ghosted
