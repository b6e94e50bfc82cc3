#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <rmsp/rmsp.h>
#include <rmsp/config.hpp>
#include <rmsp/matrix.hpp>

#include "capi/call.hpp"

namespace rmsp::capi {

/// A matrix in host memory: a view of arrays, and who owns those that are not the caller's.
template <class T>
struct HostMatrix {
    std::variant<CsrView<T>, CscView<T>, CooView<T>> view;  ///< its index is the rmsp_format
    std::shared_ptr<const void> arrays{};
    std::string name = "the caller's arrays";  ///< for reports
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

IndexView view_of(const void* indices, rmsp_index_type type);

/// Who makes indices count from 0: host_matrix(), of arrays in host memory, or who takes the view, from its base.
enum class Renumber : std::uint8_t { here, later };

/// \throws Error(usage) for enumerators that do not exist, negative sizes and null arrays; what the arrays hold is
///         checked when the matrix is distributed
AnyHostMatrix host_matrix(Format format, const Arrays& arrays, Renumber renumber);

/// A matrix that owns its arrays.
template <template <class> class Matrix, class T>
HostMatrix<T> owned(Matrix<T>&& matrix, std::string name)
{
    auto kept = std::make_shared<const Matrix<T>>(std::move(matrix));
    return {kept->view(), kept, std::move(name)};
}

/// Calls f with the view.
template <class F>
decltype(auto) with_view(const AnyHostMatrix& any, const F& f)
{
    return std::visit([&](const auto& matrix) { return std::visit(f, matrix.view); }, any);
}

/// What a configuration names, in its format and order. \throws Error(usage) if that is no order
AnyHostMatrix loaded(const Config::Matrix& config);

/// What rmsp_host_matrix_read() and rmsp_host_matrix_generate() make.
AnyHostMatrix read_host_matrix(const char* path, const rmsp_options* options);
AnyHostMatrix generated_host_matrix(const char* description, const rmsp_options* options);

/// \throws Error(usage) for a matrix, called `name`, that is not CSR
template <class T>
const CsrView<T>& csr_of(const HostMatrix<T>& matrix, const char* name)
{
    const auto* csr = std::get_if<CsrView<T>>(&matrix.view);
    if (csr == nullptr) {
        fail(std::string(name) + " is not CSR; rmsp_host_matrix_convert() makes it so");
    }
    return *csr;
}

}  // namespace rmsp::capi
