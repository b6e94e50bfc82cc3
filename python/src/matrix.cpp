#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
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

/// Where the entries of an array are; somewhere for none, since the library takes no null arrays.
template <class T>
T* entries(const Any<T>& array)
{
    static std::remove_const_t<T> none{};
    return array.size() == 0 ? &none : array.data();
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
                     const Indices& first, const Indices& second, const Any<const T>& values,
                     const std::vector<std::string>& overrides, bool borrow, bool transposed)
{
    const DistributeOptions options = options_of(overrides, borrow, transposed);
    Runtime& runtime = nb::cast<Node&>(node).runtime;
    if (!on_host(first) || !on_host(second) || !on_host(values)) {
        nb::cast<Node&>(node).require_gpus("the matrix is");
    }
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

/// The same of `rows` x `cols` blocks of height x width values, by rows.
template <class T>
Handle<T> distribute_blocks(const nb::object& node, std::int64_t rows, std::int64_t cols, std::int64_t height,
                            std::int64_t width, const Indices& row_ptr, const Indices& col_idx,
                            const Any<const T>& values, const std::vector<std::string>& overrides, bool transposed)
{
    const DistributeOptions options = options_of(overrides, false, transposed);
    Runtime& runtime = nb::cast<Node&>(node).runtime;
    if (!on_host(row_ptr) || !on_host(col_idx) || !on_host(values)) {
        nb::cast<Node&>(node).require_gpus("the matrix is");
    }
    const auto blocks = static_cast<std::int64_t>(col_idx.size());
    check_size("the array of pointers", row_ptr.size(), rows + 1);
    check_size("the array of values", values.size(), blocks * height * width);
    Handle<T> handle{node, nb::none(), {}};
    const BsrView<T> view{rows, cols, blocks, index_view(row_ptr), index_view(col_idx), values.data(), height, width};
    const nb::gil_scoped_release released;
    handle.matrix = runtime.distribute(view, options);
    return handle;
}

/// What an array of a product has to have.
template <class T>
void check_operands(const Handle<T>& self, std::size_t x_size, const T* x, std::size_t y_size, const T* y,
                    bool transposed)
{
    check_size("x", x_size, transposed ? self.matrix.rows() : self.matrix.cols());
    check_size("out", y_size, transposed ? self.matrix.cols() : self.matrix.rows());
    const std::less<const T*> before;
    if (x_size > 0 && y_size > 0 && before(x, y + y_size) && before(y, x + x_size)) {
        throw Error(ErrorCode::usage, "x and out overlap");
    }
}

/// y = alpha A x + beta y, or with A^T, in host memory.
template <class T>
void apply(Handle<T>& self, double alpha, const Any<const T>& x, double beta, const Any<T>& y, bool transposed)
{
    const T* const from = entries(x);
    T* const to = entries(y);
    check_operands(self, x.size(), from, y.size(), static_cast<const T*>(to), transposed);
    const nb::gil_scoped_release released;
    if (transposed) {
        self.matrix.apply_transposed(static_cast<T>(alpha), from, static_cast<T>(beta), to);
    } else {
        self.matrix.apply(static_cast<T>(alpha), from, static_cast<T>(beta), to);
    }
}

/// The same of arrays in GPU memory, by their addresses, since DLPack would take as long as the product; in the order
/// of a stream, without waiting.
template <class T>
void apply_on_gpu(Handle<T>& self, double alpha, std::uintptr_t x, std::size_t x_size, double beta, std::uintptr_t y,
                  std::size_t y_size, bool transposed, std::uintptr_t stream)
{
    const T* const from = reinterpret_cast<const T*>(x);
    T* const to = reinterpret_cast<T*>(y);
    check_operands(self, x_size, from, y_size, static_cast<const T*>(to), transposed);
    nb::cast<Node&>(self.node).require_gpus("x and out are");
    if (x_size == 0 || y_size == 0) {
        return;
    }
    const nb::gil_scoped_release released;
    const StreamRef order{reinterpret_cast<void*>(stream)};
    const auto a = static_cast<T>(alpha);
    const auto b = static_cast<T>(beta);
    std::future<void> done = transposed ? self.matrix.apply_transposed_async(a, from, b, to, order)
                                        : self.matrix.apply_async(a, from, b, to, order);
    if (done.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
        done.get();
    }
}

/// Lets Control-C end a loop of products without the interpreter's lock, which it takes now and then.
class Interruptions {
public:
    void look()
    {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) {
            return;
        }
        last_ = now;
        const nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals() != 0) {
            nb::raise_python_error();
        }
    }

private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Row i of Y is A times row i of X, or A^T times it: the vectors of a block in host memory, in one call.
template <class T>
void apply_block(Handle<T>& self, const Vectors<const T>& x, const Vectors<T>& y, bool transposed)
{
    check_size("out", y.shape(0), static_cast<std::int64_t>(x.shape(0)));
    check_size("a vector of x", x.shape(1), transposed ? self.matrix.rows() : self.matrix.cols());
    check_size("a vector of out", y.shape(1), transposed ? self.matrix.cols() : self.matrix.rows());
    T none{};  // the library takes no null arrays
    const nb::gil_scoped_release released;
    Interruptions interruptions;
    for (std::size_t i = 0; i < x.shape(0); ++i) {
        const T* const from = x.shape(1) == 0 ? &none : x.data() + i * x.shape(1);
        T* const to = y.shape(1) == 0 ? &none : y.data() + i * y.shape(1);
        if (transposed) {
            self.matrix.apply_transposed(T{1}, from, T{0}, to);
        } else {
            self.matrix.apply(T{1}, from, T{0}, to);
        }
        interruptions.look();
    }
}

/// The same in GPU memory, by addresses as apply_on_gpu().
template <class T>
void apply_block_on_gpu(Handle<T>& self, std::size_t vectors, std::uintptr_t x, std::size_t x_size, std::uintptr_t y,
                        std::size_t y_size, bool transposed, std::uintptr_t stream)
{
    for (std::size_t i = 0; i < vectors; ++i) {
        apply_on_gpu(self, 1, x + i * x_size * sizeof(T), x_size, 0, y + i * y_size * sizeof(T), y_size, transposed,
                     stream);
    }
}

/// Row pointers, columns and values, as NumPy arrays.
template <class T>
nb::tuple arrays_of(CsrMatrix<T>&& a)
{
    nb::object columns = a.col_idx.visit([](auto& indices) {
        using Index = typename std::remove_cvref_t<decltype(indices)>::value_type;
        return to_numpy<Index>(std::move(indices));
    });
    return nb::make_tuple(to_numpy<std::int64_t>(std::move(a.row_ptr)), columns, to_numpy<T>(std::move(a.values)));
}

/// A product of sparse matrices as Python holds it, as long as it takes to fetch it.
template <class T>
struct ProductHandle {
    nb::object node;
    nb::object factors;  ///< what a product in runs goes on reading
    SparseProduct<T> product;
};

template <class T>
ProductHandle<T> multiplied(const nb::object& node, nb::object factors, const SpgemmOperand<T>& a,
                            const SpgemmOperand<T>& b, const std::vector<std::string>& overrides)
{
    const SpgemmOptions options = spgemm_options(config_of(overrides));
    Runtime& runtime = nb::cast<Node&>(node).runtime;
    ProductHandle<T> handle{node, std::move(factors), {}};
    const nb::gil_scoped_release released;
    handle.product = SparseProduct<T>(runtime, a, b, options);
    handle.product.compute();
    return handle;
}

template <class T>
ProductHandle<T> multiply_matrix(Handle<T>& self, const nb::object& other, const std::vector<std::string>& overrides)
{
    return multiplied<T>(self.node, other, self.matrix, nb::cast<Handle<T>&>(other).matrix, overrides);
}

template <class T>
ProductHandle<T> multiply_csr(Handle<T>& self, std::int64_t rows, std::int64_t cols, const Indices& row_ptr,
                              const Indices& col_idx, const Any<const T>& values,
                              const std::vector<std::string>& overrides)
{
    if (!on_host(row_ptr) || !on_host(col_idx) || !on_host(values)) {
        nb::cast<Node&>(self.node).require_gpus("B is");
    }
    check_size("the array of pointers", row_ptr.size(), rows + 1);
    check_size("the array of indices", col_idx.size(), static_cast<std::int64_t>(values.size()));
    const CsrView<T> view{
        rows, cols, static_cast<std::int64_t>(values.size()), index_view(row_ptr), index_view(col_idx), values.data()};
    return multiplied<T>(self.node, nb::make_tuple(row_ptr, col_idx, values), self.matrix, view, overrides);
}

template <class T>
nb::tuple product_arrays(const ProductHandle<T>& self)
{
    CsrMatrix<T> c;
    {
        const nb::gil_scoped_release released;
        c = self.product.download();
    }
    return arrays_of(std::move(c));
}

/// Into arrays of the caller's in any memory.
template <class T>
void product_download(const ProductHandle<T>& self, const Any<std::int64_t>& row_ptr, const Any<std::int32_t>& col_idx,
                      const Any<T>& values)
{
    check_size("the array of pointers", row_ptr.size(), self.product.rows() + 1);
    check_size("the array of indices", col_idx.size(), self.product.nnz());
    check_size("the array of values", values.size(), self.product.nnz());
    const nb::gil_scoped_release released;
    self.product.download(row_ptr.data(), col_idx.data(), values.data());
}

template <class T>
void update_values(Handle<T>& self, const Any<const T>& values)
{
    if (!on_host(values)) {
        nb::cast<Node&>(self.node).require_gpus("the values are");
    }
    check_size("the array of values", values.size(), self.matrix.nnz());
    const nb::gil_scoped_release released;
    self.matrix.update_values(values.data());
}

template <class T>
nb::tuple to_csr(const Handle<T>& self)
{
    CsrMatrix<T> rows;
    {
        const nb::gil_scoped_release released;
        rows = download(self.matrix);
    }
    return arrays_of(std::move(rows));
}

/// The same matrix on the devices of `node`.
template <class T>
Handle<T> transferred(const Handle<T>& self, const nb::object& node, const std::vector<std::string>& overrides,
                      bool transposed)
{
    const DistributeOptions options = options_of(overrides, false, transposed);
    Runtime& runtime = nb::cast<Node&>(node).runtime;
    Handle<T> handle{node, nb::none(), {}};
    const nb::gil_scoped_release released;
    handle.matrix = transfer(self.matrix, runtime, options);
    return handle;
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
void bind_matrix_of(nb::module_& module, const char* name, const char* product_name, const char* distribute_name,
                    const char* blocks_name)
{
    nb::class_<ProductHandle<T>>(module, product_name, "A product of sparse matrices, computed.")
        .def_prop_ro("nnz", [](const ProductHandle<T>& self) { return self.product.nnz(); })
        .def("arrays", product_arrays<T>)
        .def("download", product_download<T>, nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("data").noconvert());
    nb::class_<Handle<T>>(module, name, nb::is_weak_referenceable(), "A matrix on the devices of a runtime.")
        .def_prop_ro("rows", [](const Handle<T>& self) { return self.matrix.rows(); })
        .def_prop_ro("cols", [](const Handle<T>& self) { return self.matrix.cols(); })
        .def_prop_ro("nnz", [](const Handle<T>& self) { return self.matrix.nnz(); })
        .def("plan", [](const Handle<T>& self) { return self.matrix.plan(); })
        .def("apply", apply<T>, nb::arg("alpha"), nb::arg("x").noconvert(), nb::arg("beta"), nb::arg("y").noconvert(),
             nb::arg("transposed"))
        .def("apply_on_gpu", apply_on_gpu<T>, nb::arg("alpha"), nb::arg("x"), nb::arg("x_size"), nb::arg("beta"),
             nb::arg("y"), nb::arg("y_size"), nb::arg("transposed"), nb::arg("stream"))
        .def("apply_block", apply_block<T>, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("transposed"))
        .def("apply_block_on_gpu", apply_block_on_gpu<T>, nb::arg("vectors"), nb::arg("x"), nb::arg("x_size"),
             nb::arg("y"), nb::arg("y_size"), nb::arg("transposed"), nb::arg("stream"))
        .def("multiply_matrix", multiply_matrix<T>, nb::arg("other"), nb::arg("overrides"))
        .def("multiply_csr", multiply_csr<T>, nb::arg("rows"), nb::arg("cols"), nb::arg("indptr").noconvert(),
             nb::arg("indices").noconvert(), nb::arg("data").noconvert(), nb::arg("overrides"))
        .def("update_values", update_values<T>, nb::arg("values").noconvert())
        .def("to_csr", to_csr<T>)
        .def("transfer", transferred<T>, nb::arg("runtime"), nb::arg("overrides"), nb::arg("transposed"))
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
    module.def(blocks_name, distribute_blocks<T>, nb::arg("runtime"), nb::arg("rows"), nb::arg("cols"),
               nb::arg("height"), nb::arg("width"), nb::arg("pointers").noconvert(), nb::arg("indices").noconvert(),
               nb::arg("values").noconvert(), nb::arg("overrides"), nb::arg("transposed"));
}

}  // namespace

void bind_matrix(nb::module_& module)
{
    bind_matrix_of<float>(module, "MatrixFloat32", "ProductFloat32", "distribute_float32", "distribute_blocks_float32");
    bind_matrix_of<double>(module, "MatrixFloat64", "ProductFloat64", "distribute_float64",
                           "distribute_blocks_float64");
}

}  // namespace rmsp::python
