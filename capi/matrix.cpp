#include <cmath>
#include <future>
#include <utility>
#include <vector>

#include <rmsp/report.hpp>
#include <rmsp/transfer.hpp>

#include "capi/handles.hpp"

struct rmsp_future {
    std::shared_future<void> done{};
    std::shared_ptr<const void> arrays{};

    /// What a streamed matrix reads must stay until it has been read.
    ~rmsp_future()
    {
        if (arrays && done.valid()) {
            done.wait();
        }
    }
};

namespace rmsp::capi {
namespace {

rmsp_matrix* distribute(rmsp_runtime* runtime, const AnyHostMatrix& host, const rmsp_options* options)
{
    rmsp::Runtime& devices = required(runtime, "runtime").runtime;
    const DistributeOptions how = distribute_options_of(options);
    return std::visit(
        [&](const auto& matrix) {
            return std::visit(
                [&](const auto& view) {
                    return new rmsp_matrix{devices.distribute(view, how),
                                           how.mode == Mode::streamed ? matrix.arrays : nullptr, matrix.name};
                },
                matrix.view);
        },
        host);
}

/// Calls f(A, alpha, x, beta, y) with what the C caller gave, in the type of the matrix's values.
template <class F>
auto with_arrays(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y, const F& f)
{
    return std::visit(
        [&]<class T>(DistributedMatrix<T>& a) {
            return f(a, static_cast<T>(alpha), static_cast<const T*>(x), static_cast<T>(beta), static_cast<T*>(y));
        },
        required(matrix, "matrix").matrix);
}

template <class F>
auto with_vectors(rmsp_matrix* matrix, double alpha, const rmsp_vector* x, double beta, rmsp_vector* y, const F& f)
{
    return std::visit(
        [&]<class T>(DistributedMatrix<T>& a) {
            return f(a, static_cast<T>(alpha), of_type<T>(required(x, "x").vector, "x"), static_cast<T>(beta),
                     of_type<T>(required(y, "y").vector, "y"));
        },
        required(matrix, "matrix").matrix);
}

constexpr auto apply = [](auto& a, auto alpha, const auto& x, auto beta, auto&& y) { a.apply(alpha, x, beta, y); };
constexpr auto apply_transposed = [](auto& a, auto alpha, const auto& x, auto beta, auto&& y) {
    a.apply_transposed(alpha, x, beta, y);
};
constexpr auto apply_async = [](auto& a, auto alpha, const auto& x, auto beta, auto&& y) {
    return a.apply_async(alpha, x, beta, y);
};

/// Makes a future of what `begin` starts.
template <class Begin>
void begin_async(rmsp_matrix* matrix, rmsp_future** future, const Begin& begin)
{
    rmsp_future*& result = required(future, "future");
    auto made = std::make_unique<rmsp_future>();
    made->arrays = required(matrix, "matrix").arrays;
    made->done = begin().share();
    result = made.release();
}

template <class T>
void measure(DistributedMatrix<T>& a, const Config::Run& run, const T* x, T* y)
{
    using Vectors = typename DistributedMatrix<T>::Vectors;
    using Caches = typename DistributedMatrix<T>::Caches;
    require_entries("x", x, a.cols());
    const T beta = static_cast<T>(run.beta);
    if (beta != T{0}) {
        require_entries("y", y, a.rows());
    }
    const Vectors vectors = run.vectors == "host"   ? Vectors::host
                            : run.vectors == "rows" ? Vectors::rows
                                                    : Vectors::replicated;
    const std::vector<T> from = beta != T{0} ? std::vector<T>(y, y + a.rows()) : std::vector<T>();
    a.measure(vectors, run.warmup, run.iterations, static_cast<T>(run.alpha), x, beta,
              from.empty() ? nullptr : from.data(), y, run.cache == "cold" ? Caches::cold : Caches::warm);
}

/// The plan alone, as text or in the shape of a report.
void give_plan(char** text, rmsp_text_format format, const Plan& plan, const std::string& name)
{
    Report report;
    report.matrix = name;
    report.plan = plan;
    require_enumerator("format", format, 2);
    put(text, "text", [&] { return copied(format == RMSP_TEXT ? plan.to_text() : report.to_json()); });
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
        put(matrix, "matrix", [&] {
            return distribute(runtime,
                              host_matrix(rmsp::Format::csr,
                                          {rows, cols, nnz, row_ptr, col_idx, values, row_ptr_type, col_idx_type,
                                           index_base, value_type},
                                          Renumber::later),
                              options);
        });
    });
}

rmsp_status rmsp_matrix_create_csc(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz, const void* col_ptr,
                                   const void* row_idx, const void* values, rmsp_index_type col_ptr_type,
                                   rmsp_index_type row_idx_type, int index_base, rmsp_value_type value_type,
                                   const rmsp_options* options, rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        put(matrix, "matrix", [&] {
            return distribute(runtime,
                              host_matrix(rmsp::Format::csc,
                                          {rows, cols, nnz, col_ptr, row_idx, values, col_ptr_type, row_idx_type,
                                           index_base, value_type},
                                          Renumber::later),
                              options);
        });
    });
}

rmsp_status rmsp_matrix_create_coo(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t nnz, const void* row_idx,
                                   const void* col_idx, const void* values, rmsp_index_type row_idx_type,
                                   rmsp_index_type col_idx_type, int index_base, rmsp_value_type value_type,
                                   const rmsp_options* options, rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        put(matrix, "matrix", [&] {
            return distribute(runtime,
                              host_matrix(rmsp::Format::coo,
                                          {rows, cols, nnz, row_idx, col_idx, values, row_idx_type, col_idx_type,
                                           index_base, value_type},
                                          Renumber::later),
                              options);
        });
    });
}

rmsp_status rmsp_matrix_create_bsr(rmsp_runtime* runtime, int64_t rows, int64_t cols, int64_t blocks, int64_t height,
                                   int64_t width, int by_column, const void* row_ptr, const void* col_idx,
                                   const void* values, rmsp_index_type row_ptr_type, rmsp_index_type col_idx_type,
                                   int index_base, rmsp_value_type value_type, const rmsp_options* options,
                                   rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        rmsp_matrix*& result = required(matrix, "matrix");
        rmsp::Runtime& devices = required(runtime, "runtime").runtime;
        require_enumerator("row_ptr_type", row_ptr_type, 2);
        require_enumerator("col_idx_type", col_idx_type, 2);
        require_enumerator("value_type", value_type, 2);
        const auto of = [&]<class T>(const T* typed) {
            const rmsp::BsrView<T> view{rows,
                                        cols,
                                        blocks,
                                        view_of(row_ptr, row_ptr_type),
                                        view_of(col_idx, col_idx_type),
                                        typed,
                                        height,
                                        width,
                                        by_column != 0 ? rmsp::BlockOrder::by_column : rmsp::BlockOrder::by_row,
                                        index_base};
            return new rmsp_matrix{devices.distribute(view, distribute_options_of(options)), nullptr,
                                   "the caller's blocks"};
        };
        result =
            value_type == RMSP_FLOAT ? of(static_cast<const float*>(values)) : of(static_cast<const double*>(values));
    });
}

rmsp_status rmsp_matrix_create(rmsp_runtime* runtime, const rmsp_host_matrix* host, const rmsp_options* options,
                               rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        put(matrix, "matrix", [&] { return distribute(runtime, required(host, "host").matrix, options); });
    });
}

rmsp_status rmsp_matrix_read(rmsp_runtime* runtime, const char* path, const rmsp_options* options, rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        rmsp_matrix*& result = required(matrix, "matrix");
        required(runtime, "runtime");
        result = distribute(runtime, read_host_matrix(path, options), options);
    });
}

rmsp_status rmsp_matrix_generate(rmsp_runtime* runtime, const char* description, const rmsp_options* options,
                                 rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        rmsp_matrix*& result = required(matrix, "matrix");
        required(runtime, "runtime");
        result = distribute(runtime, generated_host_matrix(description, options), options);
    });
}

void rmsp_matrix_destroy(rmsp_matrix* matrix) { delete matrix; }

rmsp_status rmsp_matrix_size(const rmsp_matrix* matrix, int64_t* rows, int64_t* cols, int64_t* nnz)
{
    return call(__func__, [&] {
        std::visit(
            [&](const auto& a) {
                set(rows, a.rows());
                set(cols, a.cols());
                set(nnz, a.nnz());
            },
            required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_matrix_value_type(const rmsp_matrix* matrix, rmsp_value_type* value_type)
{
    return call(__func__, [&] {
        required(value_type, "value_type") = static_cast<rmsp_value_type>(required(matrix, "matrix").matrix.index());
    });
}

rmsp_status rmsp_matrix_apply(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y)
{
    return call(__func__, [&] { with_arrays(matrix, alpha, x, beta, y, apply); });
}

rmsp_status rmsp_matrix_apply_transposed(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y)
{
    return call(__func__, [&] { with_arrays(matrix, alpha, x, beta, y, apply_transposed); });
}

rmsp_status rmsp_matrix_apply_on_stream(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y,
                                        void* stream)
{
    return call(__func__, [&] {
        with_arrays(matrix, alpha, x, beta, y, [&](auto& a, auto with_alpha, auto* from, auto with_beta, auto* to) {
            // Nobody waits for it: what goes wrong while it is queued is thrown here.
            static_cast<void>(a.apply_async(with_alpha, from, with_beta, to, rmsp::StreamRef{stream}));
        });
    });
}

rmsp_status rmsp_matrix_apply_transposed_on_stream(rmsp_matrix* matrix, double alpha, const void* x, double beta,
                                                   void* y, void* stream)
{
    return call(__func__, [&] {
        with_arrays(matrix, alpha, x, beta, y, [&](auto& a, auto with_alpha, auto* from, auto with_beta, auto* to) {
            static_cast<void>(a.apply_transposed_async(with_alpha, from, with_beta, to, rmsp::StreamRef{stream}));
        });
    });
}

rmsp_status rmsp_matrix_apply_vectors(rmsp_matrix* matrix, double alpha, const rmsp_vector* x, double beta,
                                      rmsp_vector* y)
{
    return call(__func__, [&] { with_vectors(matrix, alpha, x, beta, y, apply); });
}

rmsp_status rmsp_matrix_apply_transposed_vectors(rmsp_matrix* matrix, double alpha, const rmsp_vector* x, double beta,
                                                 rmsp_vector* y)
{
    return call(__func__, [&] { with_vectors(matrix, alpha, x, beta, y, apply_transposed); });
}

rmsp_status rmsp_matrix_apply_async(rmsp_matrix* matrix, double alpha, const void* x, double beta, void* y,
                                    rmsp_future** future)
{
    return call(__func__, [&] {
        begin_async(matrix, future, [&] { return with_arrays(matrix, alpha, x, beta, y, apply_async); });
    });
}

rmsp_status rmsp_matrix_apply_vectors_async(rmsp_matrix* matrix, double alpha, const rmsp_vector* x, double beta,
                                            rmsp_vector* y, rmsp_future** future)
{
    return call(__func__, [&] {
        begin_async(matrix, future, [&] { return with_vectors(matrix, alpha, x, beta, y, apply_async); });
    });
}

rmsp_status rmsp_future_wait(const rmsp_future* future)
{
    return call(__func__, [&] { required(future, "future").done.get(); });
}

void rmsp_future_destroy(rmsp_future* future) { delete future; }

rmsp_status rmsp_matrix_update_values(rmsp_matrix* matrix, const void* values)
{
    return call(__func__, [&] {
        std::visit(
            [&]<class T>(rmsp::DistributedMatrix<T>& a) {
                require_entries("values", values, a.nnz());
                a.update_values(static_cast<const T*>(values));
            },
            required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_matrix_update_values_on_stream(rmsp_matrix* matrix, const void* values, void* stream)
{
    return call(__func__, [&] {
        std::visit(
            [&]<class T>(rmsp::DistributedMatrix<T>& a) {
                require_entries("values", values, a.nnz());
                a.update_values(static_cast<const T*>(values), rmsp::StreamRef{stream});
            },
            required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_matrix_download(const rmsp_matrix* matrix, rmsp_host_matrix** host)
{
    return call(__func__, [&] {
        const rmsp_matrix& from = required(matrix, "matrix");
        rmsp_host_matrix*& result = required(host, "host");
        std::visit([&](const auto& a) { result = new rmsp_host_matrix{owned(rmsp::download(a), from.name)}; },
                   from.matrix);
    });
}

rmsp_status rmsp_matrix_transfer(const rmsp_matrix* matrix, rmsp_runtime* runtime, const rmsp_options* options,
                                 rmsp_matrix** transferred)
{
    return call(__func__, [&] {
        const rmsp_matrix& from = required(matrix, "matrix");
        rmsp::Runtime& to = required(runtime, "runtime").runtime;
        rmsp_matrix*& result = required(transferred, "transferred");
        std::visit(
            [&](const auto& a) {
                result = new rmsp_matrix{rmsp::transfer(a, to, distribute_options_of(options)), nullptr, from.name};
            },
            from.matrix);
    });
}

rmsp_status rmsp_matrix_diagonal(const rmsp_matrix* matrix, rmsp_vector** diagonal)
{
    return call(__func__, [&] {
        rmsp_vector*& result = required(diagonal, "diagonal");
        std::visit([&](const auto& a) { result = new rmsp_vector{a.diagonal()}; }, required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_matrix_measure(rmsp_matrix* matrix, const rmsp_options* options, const void* x, void* y)
{
    return call(__func__, [&] {
        std::visit(
            [&]<class T>(rmsp::DistributedMatrix<T>& a) {
                measure(a, config_of(options).run, static_cast<const T*>(x), static_cast<T*>(y));
            },
            required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_matrix_plan(const rmsp_matrix* matrix, rmsp_text_format format, char** text)
{
    return call(__func__, [&] {
        const rmsp_matrix& of = required(matrix, "matrix");
        std::visit([&](const auto& a) { give_plan(text, format, a.report().plan, of.name); }, of.matrix);
    });
}

rmsp_status rmsp_matrix_report(const rmsp_matrix* matrix, rmsp_text_format format, char** text)
{
    return call(__func__, [&] {
        const rmsp_matrix& of = required(matrix, "matrix");
        rmsp::Report report = std::visit([](const auto& a) { return a.report(); }, of.matrix);
        report.matrix = of.name;
        give(text, format, report);
    });
}

rmsp_status rmsp_runtime_plan(const rmsp_runtime* runtime, const rmsp_host_matrix* host, const rmsp_options* options,
                              rmsp_text_format format, char** text)
{
    return call(__func__, [&] {
        const rmsp::Runtime& devices = required(runtime, "runtime").runtime;
        std::visit(
            [&](const auto& matrix) {
                std::visit(
                    [&](const auto& view) {
                        give_plan(text, format, devices.plan(view, distribute_options_of(options)), matrix.name);
                    },
                    matrix.view);
            },
            required(host, "host").matrix);
    });
}
