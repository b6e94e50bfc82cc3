#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"

namespace rmsp::python {

IndexView index_view(const Indices& array)
{
    if (array.dtype() == nb::dtype<std::int32_t>()) {
        return {static_cast<const std::int32_t*>(array.data())};
    }
    if (array.dtype() == nb::dtype<std::int64_t>()) {
        return {static_cast<const std::int64_t*>(array.data())};
    }
    throw Error(ErrorCode::usage, "indices are neither int32 nor int64");
}

void check_size(const char* what, std::size_t size, std::int64_t expected)
{
    if (static_cast<std::int64_t>(size) != expected) {
        throw Error(ErrorCode::usage, std::string(what) + " has " + std::to_string(size) + " entries where " +
                                          std::to_string(expected) + " are needed");
    }
}

namespace {

/// An array of any memory that the library can reach.
template <class T>
using Any = nb::ndarray<T, nb::ndim<1>, nb::c_contig>;

/// Where the entries of an array are; somewhere for none, since the library takes no null arrays.
template <class T>
T* entries(const Any<T>& array)
{
    static std::remove_const_t<T> none{};
    return array.size() == 0 ? &none : array.data();
}

template <class T>
bool on_host(const Any<T>& array)
{
    return array.device_type() == nb::device::cpu::value;
}

/// Options of distribute() from keys of configurations.
DistributeOptions options_of(const std::vector<std::string>& overrides, bool borrow, bool transposed)
{
    const Config config = config_of(overrides);
    DistributeOptions options = distribute_options(config);
    options.expected_applies = config.kernel.expected_applies;  // 0: often; there is no run whose length is known
    options.borrow = borrow;
    options.transposed = transposed;
    return options;
}

template <class T>
Handle<T> distribute(const nb::object& node, const std::string& format, std::int64_t rows, std::int64_t cols,
                     const Indices& first, const Indices& second, const In<T>& values,
                     const std::vector<std::string>& overrides, bool borrow, bool transposed)
{
    const DistributeOptions options = options_of(overrides, borrow, transposed);
    Runtime& runtime = nb::cast<Node&>(node).runtime;
    const auto nnz = static_cast<std::int64_t>(values.size());
    const IndexView first_view = index_view(first);
    const IndexView second_view = index_view(second);
    if (rows < 0 || cols < 0) {
        throw Error(ErrorCode::usage,
                    "a matrix of " + std::to_string(rows) + " x " + std::to_string(cols) + " entries does not exist");
    }
    check_size("the array of indices", second.size(), nnz);
    check_size(format == "coo" ? "the array of rows" : "the array of pointers", first.size(),
               format == "coo"   ? nnz
               : format == "csc" ? cols + 1
                                 : rows + 1);
    Handle<T> handle{node, nb::none(), {}};
    {
        const nb::gil_scoped_release released;
        if (format == "csc") {
            handle.matrix =
                runtime.distribute(CscView<T>{rows, cols, nnz, first_view, second_view, values.data()}, options);
        } else if (format == "coo") {
            handle.matrix =
                runtime.distribute(CooView<T>{rows, cols, nnz, first_view, second_view, values.data()}, options);
        } else {
            handle.matrix =
                runtime.distribute(CsrView<T>{rows, cols, nnz, first_view, second_view, values.data()}, options);
        }
    }
    if (borrow || options.mode == Mode::streamed) {
        handle.arrays = nb::make_tuple(first, second, values);
    }
    return handle;
}

/// y = alpha A x + beta y, or with A^T, in host memory or that of a GPU.
template <class T>
void apply(Handle<T>& self, double alpha, const Any<const T>& x, double beta, const Any<T>& y, bool transposed)
{
    DistributedMatrix<T>& matrix = self.matrix;
    check_size("x", x.size(), transposed ? matrix.rows() : matrix.cols());
    check_size("out", y.size(), transposed ? matrix.cols() : matrix.rows());
    const T* const from = entries(x);
    T* const to = entries(y);
    const std::less<const T*> before;
    if (x.size() > 0 && y.size() > 0 && before(from, to + y.size()) && before(to, from + x.size())) {
        throw Error(ErrorCode::usage, "x and out overlap");
    }
    const auto a = static_cast<T>(alpha);
    const auto b = static_cast<T>(beta);
    const bool host = on_host(x) && on_host(y);
    const nb::gil_scoped_release released;
    if (host) {
        if (transposed) {
            matrix.apply_transposed(a, from, b, to);
        } else {
            matrix.apply(a, from, b, to);
        }
        return;
    }
    DistributedVector<T> along_rows = matrix.make_y();
    DistributedVector<T> along_cols = matrix.make_x(Layout::rows);
    DistributedVector<T>& device_x = transposed ? along_rows : along_cols;
    DistributedVector<T>& device_y = transposed ? along_cols : along_rows;
    device_x.upload(from);
    if (b != T{0}) {
        device_y.upload(to);
    }
    if (transposed) {
        matrix.apply_transposed(a, device_x, b, device_y);
    } else {
        matrix.apply(a, device_x, b, device_y);
    }
    device_y.download(to);
}

/// Row pointers, columns and values of a product, as NumPy arrays.
template <class T>
nb::tuple multiplied(Node& node, const SpgemmOperand<T>& a, const SpgemmOperand<T>& b,
                     const std::vector<std::string>& overrides)
{
    const SpgemmOptions options = spgemm_options(config_of(overrides));
    CsrMatrix<T> c;
    {
        const nb::gil_scoped_release released;
        SparseProduct<T> product(node.runtime, a, b, options);
        product.compute();
        c = product.download();
    }
    nb::object columns = c.col_idx.visit([](auto& indices) {
        using Index = typename std::remove_cvref_t<decltype(indices)>::value_type;
        return to_numpy<Index>(std::move(indices));
    });
    return nb::make_tuple(to_numpy<std::int64_t>(std::move(c.row_ptr)), columns, to_numpy<T>(std::move(c.values)));
}

template <class T>
nb::tuple multiply_matrix(Handle<T>& self, Handle<T>& other, const std::vector<std::string>& overrides)
{
    return multiplied<T>(nb::cast<Node&>(self.node), self.matrix, other.matrix, overrides);
}

template <class T>
nb::tuple multiply_csr(Handle<T>& self, std::int64_t rows, std::int64_t cols, const Indices& row_ptr,
                       const Indices& col_idx, const In<T>& values, const std::vector<std::string>& overrides)
{
    check_size("the array of pointers", row_ptr.size(), rows + 1);
    check_size("the array of indices", col_idx.size(), static_cast<std::int64_t>(values.size()));
    const CsrView<T> view{
        rows, cols, static_cast<std::int64_t>(values.size()), index_view(row_ptr), index_view(col_idx), values.data()};
    return multiplied<T>(nb::cast<Node&>(self.node), self.matrix, view, overrides);
}

template <class T>
void update_values(Handle<T>& self, const In<T>& values)
{
    check_size("the array of values", values.size(), self.matrix.nnz());
    const nb::gil_scoped_release released;
    self.matrix.update_values(values.data());
}

template <class T>
nb::object diagonal(Handle<T>& self)
{
    HostVector<T> entries(static_cast<std::size_t>(self.matrix.rows()));
    {
        const nb::gil_scoped_release released;
        const DistributedVector<T> diagonal = self.matrix.diagonal();
        if (!entries.empty()) {
            diagonal.download(entries.data());
        }
    }
    return to_numpy<T>(std::move(entries));
}

template <class T>
void measure(Handle<T>& self, const In<T>& x, const std::string& vectors, std::int64_t warmup, std::int64_t iterations)
{
    using Vectors = typename DistributedMatrix<T>::Vectors;
    check_size("x", x.size(), self.matrix.cols());
    if (vectors != "host" && vectors != "replicated" && vectors != "rows") {
        throw Error(ErrorCode::usage, "vectors is \"" + vectors + "\"; it is one of host, replicated, rows");
    }
    const Vectors where = vectors == "host" ? Vectors::host : vectors == "rows" ? Vectors::rows : Vectors::replicated;
    const nb::gil_scoped_release released;
    self.matrix.measure(where, warmup, iterations, T{1}, x.data(), T{0}, nullptr, nullptr);
}

template <class T>
std::tuple<std::string, std::string> report(const Handle<T>& self)
{
    const Report report = self.matrix.report();
    return {report.to_text(), report.to_json()};
}

template <class T>
void bind_matrix_of(nb::module_& module, const char* name, const char* distribute_name)
{
    nb::class_<Handle<T>>(module, name, nb::is_weak_referenceable(), "A matrix on the devices of a runtime.")
        .def_prop_ro("rows", [](const Handle<T>& self) { return self.matrix.rows(); })
        .def_prop_ro("cols", [](const Handle<T>& self) { return self.matrix.cols(); })
        .def_prop_ro("nnz", [](const Handle<T>& self) { return self.matrix.nnz(); })
        .def("plan", [](const Handle<T>& self) { return self.matrix.plan(); })
        .def("apply", apply<T>, nb::arg("alpha"), nb::arg("x").noconvert(), nb::arg("beta"), nb::arg("y").noconvert(),
             nb::arg("transposed"))
        .def("multiply_matrix", multiply_matrix<T>, nb::arg("other"), nb::arg("overrides"))
        .def("multiply_csr", multiply_csr<T>, nb::arg("rows"), nb::arg("cols"), nb::arg("indptr").noconvert(),
             nb::arg("indices").noconvert(), nb::arg("data").noconvert(), nb::arg("overrides"))
        .def("update_values", update_values<T>, nb::arg("values").noconvert())
        .def("diagonal", diagonal<T>)
        .def("measure", measure<T>, nb::arg("x").noconvert(), nb::arg("vectors"), nb::arg("warmup"),
             nb::arg("iterations"))
        .def("report", [](const Handle<T>& self) {
            std::tuple<std::string, std::string> texts;
            {
                const nb::gil_scoped_release released;
                texts = report(self);
            }
            return nb::make_tuple(std::get<0>(texts), std::get<1>(texts));
        });
    module.def(distribute_name, distribute<T>, nb::arg("runtime"), nb::arg("format"), nb::arg("rows"), nb::arg("cols"),
               nb::arg("pointers").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
               nb::arg("overrides"), nb::arg("borrow"), nb::arg("transposed"));
}

}  // namespace

void bind_matrix(nb::module_& module)
{
    bind_matrix_of<float>(module, "MatrixFloat32", "distribute_float32");
    bind_matrix_of<double>(module, "MatrixFloat64", "distribute_float64");
}

}  // namespace rmsp::python
