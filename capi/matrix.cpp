#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "capi/host_matrix.hpp"

namespace rmsp::capi {
namespace {

rmsp_matrix* distribute(rmsp_runtime& runtime, const AnyHostMatrix& host, const DistributeOptions& options)
{
    return std::visit(
        [&](const auto& matrix) {
            return std::visit(
                [&](const auto& view) {
                    return new rmsp_matrix{runtime.runtime.distribute(view, options), matrix.arrays};
                },
                matrix.view);
        },
        host);
}

}  // namespace
}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_matrix_create_csr(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz, const void* row_ptr,
                                   const void* col_idx, const void* values, rmsp_index_type row_ptr_type,
                                   rmsp_index_type col_idx_type, int index_base, rmsp_value_type value_type,
                                   const rmsp_options* options, rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        rmsp_matrix*& result = required(matrix, "matrix");
        result = distribute(required(runtime, "runtime"),
                            host_matrix(rmsp::Format::csr, {rows, cols, nnz, row_ptr, col_idx, values, row_ptr_type,
                                                            col_idx_type, index_base, value_type}),
                            distribute_options_of(options));
    });
}

void rmsp_matrix_destroy(rmsp_matrix* matrix) { delete matrix; }

rmsp_status rmsp_matrix_apply(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y)
{
    return call(__func__, [&] {
        std::visit(
            [&]<class T>(rmsp::DistributedMatrix<T>& a) {
                a.apply(static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y));
            },
            required(matrix, "matrix").matrix);
    });
}
