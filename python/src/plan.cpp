#include <string>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"

namespace rmsp::python {

void bind_plan(nb::module_& module)
{
    nb::class_<ShardPlan>(module, "Shard", "What one device is given to do.")
        .def_ro("device", &ShardPlan::device_name)
        .def_prop_ro("nnz", [](const ShardPlan& self) { return self.part.nnz(); })
        .def_ro("first_row", &ShardPlan::first_row)
        .def_ro("end_row", &ShardPlan::end_row)
        .def_ro("kernel", &ShardPlan::kernel)
        .def_ro("kernel_reason", &ShardPlan::kernel_reason)
        .def_ro("matrix_bytes", &ShardPlan::matrix_bytes)
        .def_ro("vector_bytes", &ShardPlan::vector_bytes)
        .def_ro("apply_bytes", &ShardPlan::apply_bytes)
        .def_ro("predicted_seconds", &ShardPlan::predicted_seconds);
    nb::class_<Plan>(module, "Plan",
                     "Which part of a matrix is where, and what multiplies it; str() is the whole plan.")
        .def_ro("rows", &Plan::rows)
        .def_ro("cols", &Plan::cols)
        .def_ro("nnz", &Plan::nnz)
        .def_prop_ro("format", [](const Plan& self) { return to_string(self.format); })
        .def_ro("precision", &Plan::precision)
        .def_ro("mode", &Plan::mode)
        .def_ro("transport", &Plan::transport)
        .def_ro("devices", &Plan::devices)
        .def_ro("exchange", &Plan::exchange)
        .def_ro("merge", &Plan::merge)
        .def_ro("shards", &Plan::shards)
        .def("__str__", &Plan::to_text)
        .def("__repr__", &Plan::to_text);
}

}  // namespace rmsp::python
