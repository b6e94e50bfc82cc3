#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <rmsp/rmsp.h>
#include <rmsp/matrix.hpp>

namespace rmsp::capi {

/// A matrix in host memory: a view of arrays, and who owns those that are not the caller's.
template <class T>
struct HostMatrix {
    std::variant<CsrView<T>, CscView<T>, CooView<T>> view;
    std::shared_ptr<const void> arrays;
};
using AnyHostMatrix = std::variant<HostMatrix<float>, HostMatrix<double>>;

/// Arrays as a C caller describes them. The first index array: row_ptr, col_ptr, or the rows of coordinates.
struct Arrays {
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t nnz;
    const void* first;
    const void* second;
    const void* values;
    rmsp_index_type first_type;
    rmsp_index_type second_type;
    int index_base;
    rmsp_value_type value_type;
};

/// \throws Error(usage) for enumerators that do not exist, negative sizes and null arrays; what the arrays hold is
///         checked when the matrix is distributed
AnyHostMatrix host_matrix(Format format, const Arrays& arrays);

}  // namespace rmsp::capi
