#include "capi/host_matrix.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rmsp/convert.hpp>

namespace rmsp::capi {

IndexView view_of(const void* indices, rmsp_index_type type)
{
    return type == RMSP_INT32 ? IndexView(static_cast<const std::int32_t*>(indices))
                              : IndexView(static_cast<const std::int64_t*>(indices));
}

namespace {

/// Indices that count from 1, counted from 0. One that is too small, however small, becomes -1, which no matrix takes.
IndexArray from_zero(IndexView indices, std::int64_t count)
{
    IndexArray out(indices.type(), static_cast<std::size_t>(count));
    out.visit([&](auto& to) {
        for (std::int64_t i = 0; i < count; ++i) {
            using Index = typename std::decay_t<decltype(to)>::value_type;
            to[static_cast<std::size_t>(i)] = static_cast<Index>(std::max<std::int64_t>(indices[i], 0) - 1);
        }
    });
    return out;
}

/// What the arrays of a format are called, and how many entries the first has.
struct Shape {
    const char* first;
    const char* second;
    std::int64_t first_count;
};

Shape shape_of(Format format, const Arrays& a)
{
    switch (format) {
        case Format::csr:
            return {"row_ptr", "col_idx", a.rows + 1};
        case Format::csc:
            return {"col_ptr", "row_idx", a.cols + 1};
        default:
            return {"row_idx", "col_idx", a.nnz};
    }
}

template <class T>
HostMatrix<T> make(Format format, const Arrays& a, const Shape& shape, Renumber renumber)
{
    IndexView first = view_of(a.first, a.first_type);
    IndexView second = view_of(a.second, a.second_type);
    HostMatrix<T> matrix;
    const int base = renumber == Renumber::here ? 0 : a.index_base;
    if (a.index_base != base) {
        auto both = std::make_shared<std::pair<IndexArray, IndexArray>>(from_zero(first, shape.first_count),
                                                                        from_zero(second, a.nnz));
        first = both->first.view();
        second = both->second.view();
        matrix.arrays = std::move(both);
    }
    const T* values = static_cast<const T*>(a.values);
    switch (format) {
        case Format::csr:
            matrix.view = CsrView<T>{a.rows, a.cols, a.nnz, first, second, values, base};
            break;
        case Format::csc:
            matrix.view = CscView<T>{a.rows, a.cols, a.nnz, first, second, values, base};
            break;
        case Format::coo:
            matrix.view = CooView<T>{a.rows, a.cols, a.nnz, first, second, values, base};
            break;
    }
    return matrix;
}

template <class T>
HostMatrix<T> load(const Config::Matrix& config)
{
    CsrMatrix<T> csr = load_matrix<T>(config);
    std::string name = describe(config);
    if (config.format == "csc") {
        return owned(to_csc(csr.view()), std::move(name));
    }
    if (config.format == "coo") {
        CooMatrix<T> coo = to_coo(csr.view());
        return owned(config.order == "column" ? sort_by_column(coo.view()) : std::move(coo), std::move(name));
    }
    return owned(std::move(csr), std::move(name));
}

}  // namespace

AnyHostMatrix loaded(const Config::Matrix& config)
{
    if (config.format == "coo" && config.order == "none") {
        fail("matrix.order is \"none\", which only mspmv run shuffles entries for; it has to be row or column");
    }
    if (config.precision == "float") {
        return load<float>(config);
    }
    return load<double>(config);
}

AnyHostMatrix host_matrix(Format format, const Arrays& a, Renumber renumber)
{
    require_size("rows", a.rows);
    require_size("cols", a.cols);
    require_size("nnz", a.nnz);
    const Shape shape = shape_of(format, a);
    require_enumerator(fmt::format("{}_type", shape.first).c_str(), a.first_type, 2);
    require_enumerator(fmt::format("{}_type", shape.second).c_str(), a.second_type, 2);
    require_enumerator("index_base", a.index_base, 2);
    require_enumerator("value_type", a.value_type, 2);
    require_entries(shape.first, a.first, shape.first_count);
    require_entries(shape.second, a.second, a.nnz);
    require_entries("values", a.values, a.nnz);
    if (a.value_type == RMSP_FLOAT) {
        return make<float>(format, a, shape, renumber);
    }
    return make<double>(format, a, shape, renumber);
}

}  // namespace rmsp::capi
