#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rmsp/kernel_info.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/print.hpp"

namespace rmsp::mspmv {
namespace {

/// Without what depends on the build: the table of docs/configuration.md.
std::string document(const std::vector<KernelInfo>& kernels)
{
    std::string text =
        "| kernel | device | format | determinism | streams | keeps floats | what it does "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const KernelInfo& kernel : kernels) {
        text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", kernel.name, to_string(kernel.device),
                            to_string(kernel.format), to_string(kernel.determinism), kernel.streams ? "yes" : "",
                            kernel.keeps_floats ? "yes" : "", kernel.summary);
    }
    return text;
}

std::string json_of(const std::vector<KernelInfo>& kernels)
{
    auto out = nlohmann::ordered_json::array();
    for (const KernelInfo& kernel : kernels) {
        out.push_back({{"family", kernel.family},
                       {"name", kernel.name},
                       {"device", to_string(kernel.device)},
                       {"format", to_string(kernel.format)},
                       {"determinism", to_string(kernel.determinism)},
                       {"compiled", kernel.compiled},
                       {"streams", kernel.streams},
                       {"keeps_floats", kernel.keeps_floats},
                       {"vendor", kernel.vendor},
                       {"summary", kernel.summary}});
    }
    return nlohmann::ordered_json{{"schema", "rmsp-kernels-1"}, {"kernels", out}}.dump(2) + '\n';
}

std::string list(const std::vector<KernelInfo>& kernels)
{
    std::size_t widest = 0;
    for (const KernelInfo& kernel : kernels) {
        widest = std::max(widest, kernel.name.size());
    }
    std::string text = fmt::format("{:<8}{:<{}}  {:<8}{:<14}{:<10}{}\n", "family", "name", widest, "device",
                                   "determinism", "compiled", "summary");
    for (const KernelInfo& kernel : kernels) {
        text += fmt::format("{:<8}{:<{}}  {:<8}{:<14}{:<10}{}\n", kernel.family, kernel.name, widest,
                            to_string(kernel.device), to_string(kernel.determinism), kernel.compiled ? "yes" : "no",
                            kernel.summary);
    }
    return text;
}

}  // namespace

void add_kernels(CLI::App& app, Action& action)
{
    CLI::App* command = app.add_subcommand("kernels", "List the kernels in the order of the automatic choice");
    const auto markdown = std::make_shared<bool>(false);
    const auto json = std::make_shared<bool>(false);
    command->add_flag("--markdown", *markdown, "print the table of docs/configuration.md");
    command->add_flag("--json", *json, "print the list as JSON");
    command->footer("Examples:\n  mspmv kernels\n  mspmv kernels --json");
    command->callback([&action, markdown, json] {
        action = [markdown, json] {
            if (*json || *markdown) {
                print(*json ? json_of(list_kernels()) : document(list_kernels()));
            } else {
                print_fitted(list(list_kernels()));
            }
            return 0;
        };
    });
}

}  // namespace rmsp::mspmv
