#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include <rmsp/convert.hpp>
#include <rmsp/io.hpp>

#include "capi/handles.hpp"

namespace rmsp::capi {
namespace {

rmsp_host_matrix* made(AnyHostMatrix matrix) { return new rmsp_host_matrix{std::move(matrix)}; }

/// The entries of a view of `from` in a format.
template <class View, class T>
HostMatrix<T> converted(const View& view, rmsp_format format, const HostMatrix<T>& from)
{
    switch (format) {
        case RMSP_CSR:
            if constexpr (std::is_same_v<View, CsrView<T>>) {
                return owned(to_csr(to_csc(view).view()), from.name);
            } else {
                return owned(to_csr(view), from.name);
            }
        case RMSP_CSC:
            if constexpr (std::is_same_v<View, CscView<T>>) {
                return owned(to_csc(to_csr(view).view()), from.name);
            } else {
                return owned(to_csc(view), from.name);
            }
        default:
            if constexpr (std::is_same_v<View, CooView<T>>) {
                return owned(sort_by_row(view), from.name);
            } else {
                return owned(to_coo(view), from.name);
            }
    }
}

rmsp_index_type type_of(IndexView indices) { return indices.type() == IndexType::i32 ? RMSP_INT32 : RMSP_INT64; }

/// Calls f with both index arrays.
template <class T, class F>
void with_indices(const CsrView<T>& a, const F& f)
{
    f(a.row_ptr, a.col_idx);
}
template <class T, class F>
void with_indices(const CscView<T>& a, const F& f)
{
    f(a.col_ptr, a.row_idx);
}
template <class T, class F>
void with_indices(const CooView<T>& a, const F& f)
{
    f(a.row_idx, a.col_idx);
}

template <class T>
void read_entries(const char* path, std::int64_t& size, void*& entries)
{
    const HostVector<T> read = read_vector<T>(path);
    // malloc(0) may give null, which would look as if there were no result.
    void* copy = std::malloc(read.empty() ? 1 : read.size() * sizeof(T));
    if (copy == nullptr) {
        throw std::bad_alloc();
    }
    if (!read.empty()) {
        std::memcpy(copy, read.data(), read.size() * sizeof(T));
    }
    size = static_cast<std::int64_t>(read.size());
    entries = copy;
}

}  // namespace

AnyHostMatrix read_host_matrix(const char* path, const rmsp_options* options)
{
    Config::Matrix config = config_of(options).matrix;
    config.file = &required(path, "path");
    config.generate.clear();
    if (config.file.empty()) {
        fail("path is empty");
    }
    return loaded(config);
}

AnyHostMatrix generated_host_matrix(const char* description, const rmsp_options* options)
{
    Config::Matrix config = config_of(options).matrix;
    config.file.clear();
    config.generate = &required(description, "description");
    return loaded(config);
}

}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_host_matrix_create_csr(int64_t rows, int64_t cols, int64_t nnz, const void* row_ptr,
                                        const void* col_idx, const void* values, rmsp_index_type row_ptr_type,
                                        rmsp_index_type col_idx_type, int index_base, rmsp_value_type value_type,
                                        rmsp_host_matrix** matrix)
{
    return call(__func__, [&] {
        put(matrix, "matrix", [&] {
            return made(host_matrix(
                rmsp::Format::csr,
                {rows, cols, nnz, row_ptr, col_idx, values, row_ptr_type, col_idx_type, index_base, value_type},
                Renumber::here));
        });
    });
}

rmsp_status rmsp_host_matrix_create_csc(int64_t rows, int64_t cols, int64_t nnz, const void* col_ptr,
                                        const void* row_idx, const void* values, rmsp_index_type col_ptr_type,
                                        rmsp_index_type row_idx_type, int index_base, rmsp_value_type value_type,
                                        rmsp_host_matrix** matrix)
{
    return call(__func__, [&] {
        put(matrix, "matrix", [&] {
            return made(host_matrix(
                rmsp::Format::csc,
                {rows, cols, nnz, col_ptr, row_idx, values, col_ptr_type, row_idx_type, index_base, value_type},
                Renumber::here));
        });
    });
}

rmsp_status rmsp_host_matrix_create_coo(int64_t rows, int64_t cols, int64_t nnz, const void* row_idx,
                                        const void* col_idx, const void* values, rmsp_index_type row_idx_type,
                                        rmsp_index_type col_idx_type, int index_base, rmsp_value_type value_type,
                                        rmsp_host_matrix** matrix)
{
    return call(__func__, [&] {
        put(matrix, "matrix", [&] {
            return made(host_matrix(
                rmsp::Format::coo,
                {rows, cols, nnz, row_idx, col_idx, values, row_idx_type, col_idx_type, index_base, value_type},
                Renumber::here));
        });
    });
}

rmsp_status rmsp_host_matrix_read(const char* path, const rmsp_options* options, rmsp_host_matrix** matrix)
{
    return call(__func__, [&] { put(matrix, "matrix", [&] { return made(read_host_matrix(path, options)); }); });
}

rmsp_status rmsp_host_matrix_generate(const char* description, const rmsp_options* options, rmsp_host_matrix** matrix)
{
    return call(__func__,
                [&] { put(matrix, "matrix", [&] { return made(generated_host_matrix(description, options)); }); });
}

void rmsp_host_matrix_destroy(rmsp_host_matrix* matrix) { delete matrix; }

rmsp_status rmsp_host_matrix_convert(const rmsp_host_matrix* matrix, rmsp_format format, rmsp_host_matrix** converted)
{
    return call(__func__, [&] {
        const rmsp_host_matrix& from = required(matrix, "matrix");
        rmsp_host_matrix*& result = required(converted, "converted");
        require_enumerator("format", format, 3);
        result = made(std::visit(
            [&](const auto& host) {
                return std::visit(
                    [&](const auto& view) { return AnyHostMatrix(rmsp::capi::converted(view, format, host)); },
                    host.view);
            },
            from.matrix));
    });
}

rmsp_status rmsp_host_matrix_write(const rmsp_host_matrix* matrix, const char* path)
{
    return call(__func__, [&] {
        std::visit([&](const auto& host) { rmsp::write_matrix(&required(path, "path"), csr_of(host, "matrix")); },
                   required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_host_matrix_size(const rmsp_host_matrix* matrix, int64_t* rows, int64_t* cols, int64_t* nnz)
{
    return call(__func__, [&] {
        with_view(required(matrix, "matrix").matrix, [&](const auto& view) {
            set(rows, view.rows);
            set(cols, view.cols);
            set(nnz, view.nnz);
        });
    });
}

rmsp_status rmsp_host_matrix_type(const rmsp_host_matrix* matrix, rmsp_format* format, rmsp_value_type* value_type)
{
    return call(__func__, [&] {
        const AnyHostMatrix& any = required(matrix, "matrix").matrix;
        set(value_type, any.index());
        std::visit([&](const auto& host) { set(format, host.view.index()); }, any);
    });
}

rmsp_status rmsp_host_matrix_arrays(const rmsp_host_matrix* matrix, const void** first, rmsp_index_type* first_type,
                                    const void** second, rmsp_index_type* second_type, const void** values)
{
    return call(__func__, [&] {
        with_view(required(matrix, "matrix").matrix, [&](const auto& view) {
            with_indices(view, [&](rmsp::IndexView a, rmsp::IndexView b) {
                set(first, a.data());
                set(first_type, type_of(a));
                set(second, b.data());
                set(second_type, type_of(b));
            });
            set(values, view.values);
        });
    });
}

rmsp_status rmsp_read_vector(const char* path, rmsp_value_type value_type, int64_t* size, void** entries)
{
    return call(__func__, [&] {
        require_enumerator("value_type", value_type, 2);
        const auto read = value_type == RMSP_FLOAT ? read_entries<float> : read_entries<double>;
        read(&required(path, "path"), required(size, "size"), required(entries, "entries"));
    });
}

rmsp_status rmsp_write_vector(const char* path, rmsp_value_type value_type, int64_t size, const void* entries)
{
    return call(__func__, [&] {
        required(path, "path");
        require_enumerator("value_type", value_type, 2);
        require_size("size", size);
        require_entries("entries", entries, size);
        const auto count = static_cast<std::size_t>(size);
        if (value_type == RMSP_FLOAT) {
            rmsp::write_vector(path, std::span(static_cast<const float*>(entries), count));
        } else {
            rmsp::write_vector(path, std::span(static_cast<const double*>(entries), count));
        }
    });
}
