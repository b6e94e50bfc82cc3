#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <rmsp/kernel_info.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/output.hpp"

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
    command->add_flag("--markdown", *markdown, "print the table of docs/configuration.md");
    command->footer("Example:\n  mspmv kernels");
    command->callback([&action, markdown] {
        action = [markdown] {
            print(*markdown ? document(list_kernels()) : list(list_kernels()));
            return 0;
        };
    });
}

}  // namespace rmsp::mspmv
