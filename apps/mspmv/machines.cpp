#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <rmsp/topology.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/print.hpp"

namespace rmsp::mspmv {
namespace {

std::string list_of_machines()
{
    const std::vector<std::string> names = machine_names();
    std::size_t widest = 0;
    for (const std::string& name : names) {
        widest = std::max(widest, name.size());
    }
    std::string text;
    for (const std::string& name : names) {
        const Topology topology = Topology::load(machine_file(name));
        text += fmt::format("{:<{}}  {}{}\n", name, widest, topology_line(topology),
                            topology.gpus.empty() ? "" : ", " + topology.gpus.front().name);
    }
    return text;
}

}  // namespace

void add_machines(CLI::App& app, Action& action)
{
    CLI::App* command = app.add_subcommand("machines", "List the described machines that --machine knows");
    command->footer("Example:\n  mspmv machines");
    command->callback([&action] {
        action = [] {
            print_fitted(list_of_machines());
            return 0;
        };
    });
}

}  // namespace rmsp::mspmv
