#include <exception>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "binding.hpp"

namespace rmsp::python {
namespace {

/// The library's errors in Python's types, with the same words.
void translate(const std::exception_ptr& pointer, void* /*payload*/)
{
    try {
        std::rethrow_exception(pointer);
    } catch (const Error& e) {
        PyObject* type = PyExc_RuntimeError;
        switch (e.code()) {
            case ErrorCode::usage:
                type = PyExc_ValueError;
                break;
            case ErrorCode::io:
                type = PyExc_OSError;
                break;
            case ErrorCode::out_of_memory:
                type = PyExc_MemoryError;
                break;
            case ErrorCode::internal:
            case ErrorCode::device:
            case ErrorCode::not_converged:
            case ErrorCode::verification:
            case ErrorCode::cancelled:
            case ErrorCode::deadline:
            case ErrorCode::busy:
                break;
        }
        PyErr_SetString(type, e.what());
    }
}

/// Warnings of the library, a thread that could not be bound for example, belong on standard error.
void log_to_stderr()
{
    if (spdlog::get("rmsp") == nullptr) {
        auto logger = spdlog::stderr_color_mt("rmsp");
        logger->set_pattern("%n: %l: %v");
        logger->set_level(spdlog::level::warn);
        spdlog::set_default_logger(std::move(logger));
    }
}

}  // namespace
}  // namespace rmsp::python

NB_MODULE(_rmsp, module)
{
    using namespace rmsp::python;  // NOLINT(google-build-using-namespace)
    module.doc() = "Binds librmsp. Use the package rmsp, which stands on this module.";
    nb::set_leak_warnings(false);  // objects that a program keeps until it ends are no leaks
    nb::register_exception_translator(translate);
    log_to_stderr();
    module.attr("version") = rmsp::version();
    module.attr("commit") = rmsp::commit();
    module.attr("features") = rmsp::build_features();
    bind_runtime(module);
    bind_plan(module);
    bind_matrix(module);
    bind_solvers(module);
}
