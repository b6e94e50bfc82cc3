#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <rmsp/rmsp.hpp>

/// The extension rmsp._rmsp: a thin layer over include/rmsp, whose handles the modules in Python make comfortable.
/// Arrays come in the type, order and size that the library takes; the modules see to that. Whatever may take long is
/// done without the interpreter's lock.
namespace rmsp::python {

namespace nb = nanobind;

/// An array of the caller's, one-dimensional, in host memory.
template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
/// An array of the caller's of any memory that the library can reach.
template <class T>
using Any = nb::ndarray<T, nb::ndim<1>, nb::c_contig>;
/// Indices of 32 or 64 bits, in any such memory.
using Indices = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig>;

/// \throws Error(usage) for arrays of other types
IndexView index_view(const Indices& array);

/// Vectors one behind the other, in host memory.
template <class T>
using Vectors = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
bool on_host(const Array& array)
{
    return array.device_type() == nb::device::cpu::value;
}

/// \throws Error(usage) unless the array `what` has as many entries as expected
void check_size(const char* what, std::size_t size, std::int64_t expected);

/// Hands memory of C++ over to a NumPy array, without a copy.
template <class T, class Vector>
nb::object to_numpy(Vector&& vector)
{
    auto* owned = new std::remove_cvref_t<Vector>(std::forward<Vector>(vector));
    const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::remove_cvref_t<Vector>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

/// What "section.key=value" texts make of the defaults, after the environment. \throws Error(usage)
Config config_of(const std::vector<std::string>& overrides);

/// A runtime as Python holds it.
struct Node {
    explicit Node(const std::vector<std::string>& overrides) : runtime(runtime_options(config_of(overrides))) {}
    Runtime runtime;
    const bool of_host = runtime.devices().front().kind == DeviceKind::host;

    /// \throws Error(usage) if the devices do not reach the memory of GPUs, where `what` is
    void require_gpus(const char* what) const
    {
        if (of_host) {
            throw Error(ErrorCode::usage, std::string(what) +
                                              " in GPU memory, and the runtime's devices are the "
                                              "host's: copy the arrays there");
        }
    }
};

/// A distributed matrix as Python holds it, with what has to outlive it: destroyed last.
template <class T>
struct Handle {
    nb::object node;
    nb::object arrays;  ///< those of the caller that the matrix goes on using
    DistributedMatrix<T> matrix;
};

/// The callback of a solve: it is asked now and then whether to go on. Holds what went wrong in Python, Control-C for
/// example, until the solve has ended.
class Watch {
public:
    /// `callback`: called with (iteration, residual, target, seconds), or None; if it returns False the solve is
    /// cancelled.
    explicit Watch(nb::object callback) : callback_(std::move(callback)) {}
    /// Called without the interpreter's lock, which it takes. \return whether to go on
    bool operator()(const SolverProgress& progress);
    /// Raises what was held. Call it with the interpreter's lock.
    void rethrow();

private:
    nb::object callback_;
    nb::object error_;
};

void bind_runtime(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_matrix(nb::module_& module);
void bind_solvers(nb::module_& module);

}  // namespace rmsp::python
