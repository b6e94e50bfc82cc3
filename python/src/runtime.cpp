#include <string>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"

namespace rmsp::python {

Config config_of(const std::vector<std::string>& overrides)
{
    // A configuration names a matrix; here it is in the caller's arrays.
    return parse_config("matrix.generate = \"arrays of the caller\"\n", "defaults", overrides);
}

namespace {

nb::dict describe(const DeviceInfo& device)
{
    nb::dict facts;
    facts["index"] = device.index;
    facts["kind"] = to_string(device.kind);
    facts["name"] = device.name;
    facts["pci_bus_id"] = device.pci_bus_id;
    facts["memory_bytes"] = device.memory_bytes;
    facts["compute_units"] = device.compute_units;
    facts["limit_gbs"] = device.limit_gbs;
    facts["numa_node"] = device.numa_node;
    return facts;
}

double peak_gflops(const Node& self, const std::string& precision)
{
    double sum = 0;
    for (const DeviceLimit& device : kept_device_limits(self.runtime).devices) {
        sum += device.peak_gflops(precision);
    }
    return sum;
}

nb::list kernels()
{
    nb::list all;
    for (const KernelInfo& kernel : list_kernels()) {
        nb::dict facts;
        facts["family"] = kernel.family;
        facts["name"] = kernel.name;
        facts["device"] = to_string(kernel.device);
        facts["format"] = to_string(kernel.format);
        facts["determinism"] = to_string(kernel.determinism);
        facts["compiled"] = kernel.compiled;
        facts["summary"] = kernel.summary;
        all.append(facts);
    }
    return all;
}

nb::list keys()
{
    nb::list all;
    for (const ConfigKey& key : config_keys()) {
        all.append(nb::make_tuple(key.name, key.type, key.fallback, key.meaning));
    }
    return all;
}

nb::tuple doctor(const std::vector<std::string>& overrides, bool refresh)
{
    DoctorOptions options;
    options.runtime = runtime_options(config_of(overrides));
    options.refresh = refresh;
    DoctorReport report;
    {
        const nb::gil_scoped_release released;
        report = diagnose(options);
    }
    return nb::make_tuple(report.to_text(), report.to_json(), report.failures());
}

}  // namespace

void bind_runtime(nb::module_& module)
{
    nb::class_<Node>(module, "Runtime", nb::is_weak_referenceable(), "The devices of a node.")
        .def(
            "__init__",
            [](Node* self, const std::vector<std::string>& overrides) {
                const nb::gil_scoped_release released;
                new (self) Node(overrides);
            },
            nb::arg("overrides"))
        .def(
            "devices",
            [](const Node& self) {
                nb::list all;
                for (const DeviceInfo& device : self.runtime.devices()) {
                    all.append(describe(device));
                }
                return all;
            },
            "Facts about each device, as dictionaries.")
        .def(
            "transport", [](const Node& self) { return self.runtime.transport(); },
            "What moves data between the devices, and why.")
        .def(
            "synchronize", [](Node& self) { self.runtime.synchronize(); }, nb::call_guard<nb::gil_scoped_release>(),
            "Waits until the devices have done what was asked of them before.")
        .def(
            "measure_limits", [](Node& self) { return self.runtime.measure_limits(); },
            nb::call_guard<nb::gil_scoped_release>(), "Measures the read bandwidth of each device, once: GB/s.")
        .def("peak_gflops", peak_gflops, nb::arg("precision"), nb::call_guard<nb::gil_scoped_release>(),
             "What the arithmetic of all devices reaches together, of values that are \"single\" or \"double\": "
             "GFLOP/s, as "
             "`mspmv doctor --limits` measured and kept it; 0: not known.");
    module.def("kernels", kernels, "Every kernel of this build, as dictionaries.");
    module.def("keys", keys, "Every key of configurations: (name, type, default, meaning).");
    module.def("doctor", doctor, nb::arg("overrides"), nb::arg("refresh"),
               "Tests the devices: (text, JSON, number of failures).");
}

}  // namespace rmsp::python
