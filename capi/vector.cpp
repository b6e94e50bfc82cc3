#include <rmsp/transfer.hpp>
#include <rmsp/vector_operations.hpp>

#include "capi/handles.hpp"

namespace rmsp::capi {
namespace {

/// Calls f with both vectors, of values of one type.
template <class X, class Y, class F>
void with_both(X* x, Y* y, const F& f)
{
    auto& of_y = required(y, "y").vector;
    std::visit([&]<class T>(const DistributedVector<T>& of_x) { f(of_x, of_type<T>(of_y, "y")); },
               required(x, "x").vector);
}

}  // namespace
}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_vector_create_x(const rmsp_matrix* matrix, rmsp_layout layout, rmsp_order order, rmsp_vector** vector)
{
    return call(__func__, [&] {
        rmsp_vector*& result = required(vector, "vector");
        require_enumerator("layout", layout, 2);
        require_enumerator("order", order, 2);
        std::visit(
            [&](const auto& a) {
                result = new rmsp_vector{a.make_x(static_cast<rmsp::Layout>(layout), static_cast<rmsp::Order>(order))};
            },
            required(matrix, "matrix").matrix);
    });
}

rmsp_status rmsp_vector_create_y(const rmsp_matrix* matrix, rmsp_order order, rmsp_vector** vector)
{
    return call(__func__, [&] {
        rmsp_vector*& result = required(vector, "vector");
        require_enumerator("order", order, 2);
        std::visit([&](const auto& a) { result = new rmsp_vector{a.make_y(static_cast<rmsp::Order>(order))}; },
                   required(matrix, "matrix").matrix);
    });
}

void rmsp_vector_destroy(rmsp_vector* vector) { delete vector; }

rmsp_status rmsp_vector_size(const rmsp_vector* vector, int64_t* size)
{
    return call(__func__, [&] {
        std::visit([&](const auto& v) { required(size, "size") = v.size(); }, required(vector, "vector").vector);
    });
}

rmsp_status rmsp_vector_value_type(const rmsp_vector* vector, rmsp_value_type* value_type)
{
    return call(__func__, [&] {
        required(value_type, "value_type") = static_cast<rmsp_value_type>(required(vector, "vector").vector.index());
    });
}

rmsp_status rmsp_vector_upload(rmsp_vector* vector, const void* entries)
{
    return call(__func__, [&] {
        std::visit([&]<class T>(rmsp::DistributedVector<T>& v) { v.upload(static_cast<const T*>(entries)); },
                   required(vector, "vector").vector);
    });
}

rmsp_status rmsp_vector_download(const rmsp_vector* vector, void* entries)
{
    return call(__func__, [&] {
        std::visit([&]<class T>(const rmsp::DistributedVector<T>& v) { v.download(static_cast<T*>(entries)); },
                   required(vector, "vector").vector);
    });
}

rmsp_status rmsp_vector_local(rmsp_vector* vector, int device, void** entries, int64_t* first, int64_t* count)
{
    return call(__func__, [&] {
        std::visit(
            [&](auto& v) {
                const auto local = v.local(device);
                set(entries, local.data());
                set(first, v.layout() == rmsp::Layout::rows ? v.offsets()[static_cast<std::size_t>(device)] : 0);
                set(count, local.size());
            },
            required(vector, "vector").vector);
    });
}

rmsp_status rmsp_vector_fill(rmsp_vector* vector, double value)
{
    return call(__func__, [&] {
        std::visit([&]<class T>(rmsp::DistributedVector<T>& v) { v.fill(static_cast<T>(value)); },
                   required(vector, "vector").vector);
    });
}

rmsp_status rmsp_vector_transfer(const rmsp_vector* x, rmsp_vector* y)
{
    return call(__func__, [&] { with_both(x, y, [](const auto& from, auto& to) { rmsp::transfer(from, to); }); });
}

rmsp_status rmsp_vector_copy(const rmsp_vector* x, rmsp_vector* y)
{
    return call(__func__, [&] { with_both(x, y, [](const auto& from, auto& to) { rmsp::copy(from, to); }); });
}

rmsp_status rmsp_vector_scale(double alpha, rmsp_vector* x)
{
    return call(__func__, [&] {
        std::visit([&]<class T>(rmsp::DistributedVector<T>& v) { rmsp::scal(static_cast<T>(alpha), v); },
                   required(x, "x").vector);
    });
}

rmsp_status rmsp_vector_axpy(double alpha, const rmsp_vector* x, rmsp_vector* y)
{
    return call(__func__, [&] {
        with_both(x, y, [&]<class T>(const rmsp::DistributedVector<T>& from, rmsp::DistributedVector<T>& to) {
            rmsp::axpy(static_cast<T>(alpha), from, to);
        });
    });
}

rmsp_status rmsp_vector_dot(const rmsp_vector* x, const rmsp_vector* y, double* dot)
{
    return call(__func__, [&] {
        double& result = required(dot, "dot");
        with_both(x, y, [&](const auto& a, const auto& b) { result = static_cast<double>(rmsp::dot(a, b)); });
    });
}

rmsp_status rmsp_vector_norm2(const rmsp_vector* x, double* norm)
{
    return call(__func__, [&] {
        double& result = required(norm, "norm");
        std::visit([&](const auto& v) { result = static_cast<double>(rmsp::norm2(v)); }, required(x, "x").vector);
    });
}
