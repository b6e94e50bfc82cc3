#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rmsp/kernel_info.hpp>
#include <rmsp/preconditioner.hpp>
#include <rmsp/solver.hpp>

#include "capi/handles.hpp"

namespace rmsp::capi {
namespace {

using Json = nlohmann::ordered_json;

/// A list as it is given out: a line and a JSON object for each of its rows.
struct List {
    std::string lines;
    Json objects = Json::array();

    std::string to_text() const { return lines; }
    std::string to_json() const { return objects.dump(2); }
};

List kernels()
{
    List list;
    for (const KernelInfo& kernel : list_kernels()) {
        list.lines += fmt::format("{:<7} {:<22} {:<4} {}{}\n", kernel.family, kernel.name, to_string(kernel.device),
                                  kernel.summary, kernel.compiled ? "" : " (not compiled)");
        list.objects.push_back({{"name", kernel.name},
                                {"summary", kernel.summary},
                                {"family", kernel.family},
                                {"device", to_string(kernel.device)},
                                {"format", to_string(kernel.format)},
                                {"determinism", to_string(kernel.determinism)},
                                {"compiled", kernel.compiled},
                                {"streams", kernel.streams},
                                {"keeps_floats", kernel.keeps_floats},
                                {"vendor", kernel.vendor}});
    }
    return list;
}

List solvers()
{
    List list;
    for (const SolverInfo& solver : list_solvers()) {
        list.lines += fmt::format("{:<12} {}\n", solver.name, solver.description);
        list.objects.push_back({{"name", solver.name},
                                {"summary", solver.description},
                                {"symmetric", solver.symmetric},
                                {"definite", solver.definite},
                                {"transposed", solver.transposed},
                                {"rectangular", solver.rectangular}});
    }
    return list;
}

List preconditioners()
{
    List list;
    for (const PreconditionerInfo& preconditioner : list_preconditioners()) {
        list.lines += fmt::format("{:<14} {}\n", preconditioner.name, preconditioner.description);
        list.objects.push_back({{"name", preconditioner.name},
                                {"summary", preconditioner.description},
                                {"symmetric", preconditioner.symmetric},
                                {"definite", preconditioner.definite}});
    }
    return list;
}

List keys()
{
    List list;
    for (const ConfigKey& key : config_keys()) {
        list.lines += fmt::format("{} ({}; default {}): {}\n", key.name, key.type, key.fallback, key.meaning);
        list.objects.push_back(
            {{"name", key.name}, {"summary", key.meaning}, {"type", key.type}, {"default", key.fallback}});
    }
    return list;
}

List devices(const Runtime& runtime)
{
    List list;
    for (const DeviceInfo& device : runtime.devices()) {
        list.lines += fmt::format("{} {} {}, {} bytes of memory, node {}\n", device.index, to_string(device.kind),
                                  device.name, device.memory_bytes, device.numa_node);
        list.objects.push_back({{"name", device.name},
                                {"index", device.index},
                                {"kind", to_string(device.kind)},
                                {"pci_bus_id", device.pci_bus_id},
                                {"memory_bytes", device.memory_bytes},
                                {"compute_units", device.compute_units},
                                {"limit_gbs", device.limit_gbs},
                                {"numa_node", device.numa_node},
                                {"hardware_threads", device.placement.cpus},
                                {"placement", device.placement.reason}});
    }
    return list;
}

}  // namespace
}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_list_kernels(rmsp_text_format format, char** text)
{
    return call(__func__, [&] { give(text, format, kernels()); });
}

rmsp_status rmsp_list_solvers(rmsp_text_format format, char** text)
{
    return call(__func__, [&] { give(text, format, solvers()); });
}

rmsp_status rmsp_list_preconditioners(rmsp_text_format format, char** text)
{
    return call(__func__, [&] { give(text, format, preconditioners()); });
}

rmsp_status rmsp_list_keys(rmsp_text_format format, char** text)
{
    return call(__func__, [&] { give(text, format, keys()); });
}

rmsp_status rmsp_runtime_devices(const rmsp_runtime* runtime, rmsp_text_format format, char** text)
{
    return call(__func__, [&] { give(text, format, devices(required(runtime, "runtime").runtime)); });
}
