#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"

namespace rmsp::python {

bool Watch::operator()(const SolverProgress& progress)
{
    const nb::gil_scoped_acquire acquired;
    try {
        if (PyErr_CheckSignals() != 0) {
            nb::raise_python_error();
        }
        if (callback_.is_none()) {
            return true;
        }
        const nb::object answer = callback_(progress.iteration, progress.residual, progress.target, progress.seconds);
        return answer.ptr() != Py_False;
    } catch (nb::python_error& e) {
        error_ = nb::borrow(e.value());
        return false;
    }
}

void Watch::rethrow()
{
    if (error_.is_valid()) {
        PyErr_SetObject(error_.type().ptr(), error_.ptr());
        nb::raise_python_error();
    }
}

namespace {

/// Who watches the solve of this thread, on which the library calls back.
thread_local Watch* watching = nullptr;

/// Runs a solve without the interpreter's lock, watched; raises what the callback raised.
template <class Solve>
auto watched(const nb::object& callback, Solve&& solve)
{
    Watch watch(callback);
    struct Turn {
        explicit Turn(Watch* now) : before(std::exchange(watching, now)) {}
        ~Turn() { watching = before; }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        Watch* before;
    };
    auto result = [&] {
        const Turn turn(&watch);
        const nb::gil_scoped_release released;
        return solve();
    }();
    watch.rethrow();
    return result;
}

bool ask(const SolverProgress& progress) { return watching == nullptr || (*watching)(progress); }

/// A preconditioner as Python holds it.
template <class T>
struct PreconditionerHandle {
    nb::object matrix;
    std::shared_ptr<Preconditioner<T>> preconditioner;  ///< null: "none"
};

template <class T>
struct SolverHandle {
    nb::object matrix;
    nb::object preconditioner;
    Solver<T> solver;
};

template <class T>
std::shared_ptr<Preconditioner<T>> given(const nb::object& preconditioner)
{
    return preconditioner.is_none() ? nullptr : nb::cast<PreconditionerHandle<T>&>(preconditioner).preconditioner;
}

template <class T>
PreconditionerHandle<T> make_preconditioner_of(const nb::object& matrix, const std::string& name,
                                               const std::vector<std::string>& overrides)
{
    const PreconditionerOptions options = solver_options(config_of(overrides)).preconditioner_options;
    Handle<T>& handle = nb::cast<Handle<T>&>(matrix);
    const nb::gil_scoped_release released;
    auto made = make_preconditioner(handle.matrix, name, options);
    const nb::gil_scoped_acquire acquired;
    return {matrix, std::move(made)};
}

template <class T>
nb::dict report_of(const PreconditionerHandle<T>& self)
{
    const PreconditionerReport report =
        self.preconditioner ? self.preconditioner->report() : PreconditionerReport{.name = "none"};
    nb::dict facts;
    facts["name"] = report.name;
    facts["seconds"] = report.seconds;
    facts["device_bytes"] = report.device_bytes;
    facts["host_bytes"] = report.host_bytes;
    facts["notes"] = report.notes;
    return facts;
}

template <class T>
SolverHandle<T> make_solver(const nb::object& matrix, const nb::object& preconditioner,
                            const std::vector<std::string>& overrides)
{
    SolverOptions options = solver_options(config_of(overrides));
    options.callback = ask;
    Handle<T>& handle = nb::cast<Handle<T>&>(matrix);
    auto chosen = given<T>(preconditioner);
    const nb::gil_scoped_release released;
    Solver<T> solver(handle.matrix, options, std::move(chosen));
    const nb::gil_scoped_acquire acquired;
    return {matrix, preconditioner, std::move(solver)};
}

nb::dict described(SolveResult&& result)
{
    nb::dict facts;
    facts["method"] = result.method;
    facts["outcome"] = to_string(result.outcome);
    facts["code"] = static_cast<int>(result.outcome);
    facts["iterations"] = result.iterations;
    facts["rhs_norm"] = result.rhs_norm;
    facts["target"] = result.target;
    facts["residual"] = result.residual;
    facts["true_residual"] = result.true_residual;
    facts["normal_residual"] = result.normal_residual;
    facts["restarts"] = result.restarts;
    facts["seconds"] = result.seconds;
    facts["reason"] = result.reason;
    facts["history"] = to_numpy<double>(std::move(result.history));
    return facts;
}

nb::dict described(const MethodChoice& choice)
{
    nb::list candidates;
    for (const MethodCandidate& candidate : choice.candidates) {
        nb::dict facts;
        facts["method"] = candidate.method;
        facts["seconds"] = candidate.seconds;
        facts["product_seconds"] = candidate.product_seconds;
        facts["vector_seconds"] = candidate.vector_seconds;
        facts["launch_seconds"] = candidate.launch_seconds;
        facts["sum_seconds"] = candidate.sum_seconds;
        candidates.append(facts);
    }
    nb::dict facts;
    facts["method"] = choice.method;
    facts["reason"] = choice.reason;
    facts["candidates"] = candidates;
    return facts;
}

template <class T>
nb::dict solve(SolverHandle<T>& self, const nb::ndarray<const T, nb::ndim<1>, nb::c_contig>& b,
               const nb::ndarray<T, nb::ndim<1>, nb::c_contig>& x, const nb::object& callback)
{
    const Handle<T>& handle = nb::cast<Handle<T>&>(self.matrix);
    check_size("b", b.size(), handle.matrix.rows());
    check_size("x0", x.size(), handle.matrix.cols());
    T none{};  // the library takes no null arrays
    const T* const from = b.size() == 0 ? &none : b.data();
    T* const to = x.size() == 0 ? &none : x.data();
    return described(watched(callback, [&] { return self.solver.solve(from, to); }));
}

template <class T>
nb::dict eigenpairs(const nb::object& matrix, const std::string& method, bool largest, int count, double tolerance,
                    std::int64_t max_iterations, int basis, const nb::object& preconditioner,
                    const nb::object& callback)
{
    EigenOptions options;
    options.method = method;
    options.which = largest ? Spectrum::largest : Spectrum::smallest;
    options.count = count;
    options.tolerance = tolerance;
    options.max_iterations = max_iterations;
    options.basis = basis;
    options.callback = ask;
    Handle<T>& handle = nb::cast<Handle<T>&>(matrix);
    const auto chosen = given<T>(preconditioner);
    HostVector<T> vectors;
    EigenResult<T> result = watched(callback, [&] {
        EigenSolver<T> solver(handle.matrix, options, chosen);
        EigenResult<T> found = solver.solve();
        const auto rows = static_cast<std::size_t>(handle.matrix.rows());
        vectors.resize(rows * found.vectors.size());
        for (std::size_t i = 0; i < found.vectors.size(); ++i) {
            found.vectors[i].download(vectors.data() + i * rows);
        }
        return found;
    });
    nb::dict facts;
    facts["outcome"] = to_string(result.outcome);
    facts["iterations"] = result.iterations;
    facts["values"] = to_numpy<double>(std::move(result.values));
    facts["vectors"] = to_numpy<T>(std::move(vectors));  // one behind the other
    facts["residuals"] = to_numpy<double>(std::move(result.residuals));
    facts["target"] = result.target;
    facts["seconds"] = result.seconds;
    facts["reason"] = result.reason;
    return facts;
}

template <class T>
void bind_solvers_of(nb::module_& module, const std::string& type)
{
    nb::class_<PreconditionerHandle<T>>(module, ("Preconditioner" + type).c_str(), "z = M r with M about A^-1.")
        .def_prop_ro("name",
                     [](const PreconditionerHandle<T>& self) {
                         return self.preconditioner ? self.preconditioner->name() : std::string("none");
                     })
        .def(
            "renew",
            [](PreconditionerHandle<T>& self) {
                if (self.preconditioner) {
                    self.preconditioner->renew();
                }
            },
            nb::call_guard<nb::gil_scoped_release>())
        .def("report", report_of<T>);
    nb::class_<SolverHandle<T>>(module, ("Solver" + type).c_str(), "A method made ready for a matrix.")
        .def("solve", solve<T>, nb::arg("b").noconvert(), nb::arg("x").noconvert(), nb::arg("callback").none())
        .def(
            "renew", [](SolverHandle<T>& self) { self.solver.renew(); }, nb::call_guard<nb::gil_scoped_release>())
        .def("choice", [](const SolverHandle<T>& self) { return described(self.solver.choice()); });
    module.def(("preconditioner_" + type).c_str(), make_preconditioner_of<T>, nb::arg("matrix"), nb::arg("name"),
               nb::arg("overrides"));
    module.def(("solver_" + type).c_str(), make_solver<T>, nb::arg("matrix"), nb::arg("preconditioner").none(),
               nb::arg("overrides"));
    module.def(("eigenpairs_" + type).c_str(), eigenpairs<T>, nb::arg("matrix"), nb::arg("method"), nb::arg("largest"),
               nb::arg("count"), nb::arg("tolerance"), nb::arg("max_iterations"), nb::arg("basis"),
               nb::arg("preconditioner").none(), nb::arg("callback").none());
}

}  // namespace

void bind_solvers(nb::module_& module)
{
    bind_solvers_of<float>(module, "float32");
    bind_solvers_of<double>(module, "float64");
    module.def(
        "solvers",
        [] {
            nb::list all;
            for (const SolverInfo& info : list_solvers()) {
                nb::dict facts;
                facts["name"] = info.name;
                facts["description"] = info.description;
                facts["symmetric"] = info.symmetric;
                facts["definite"] = info.definite;
                facts["transposed"] = info.transposed;
                facts["rectangular"] = info.rectangular;
                all.append(facts);
            }
            return all;
        },
        "Every method of solvers, as dictionaries.");
    module.def(
        "preconditioners",
        [] {
            nb::list all;
            for (const PreconditionerInfo& info : list_preconditioners()) {
                nb::dict facts;
                facts["name"] = info.name;
                facts["description"] = info.description;
                facts["symmetric"] = info.symmetric;
                facts["definite"] = info.definite;
                all.append(facts);
            }
            return all;
        },
        "Every preconditioner, as dictionaries.");
}

}  // namespace rmsp::python
