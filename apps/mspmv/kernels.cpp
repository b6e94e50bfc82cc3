#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <rmsp/kernel_info.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/output.hpp"

namespace rmsp::mspmv {
namespace {

int list()
{
    const std::vector<KernelInfo> kernels = list_kernels();
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
    print(text);
    return 0;
}

}  // namespace

void add_kernels(CLI::App& app, Action& action)
{
    CLI::App* command = app.add_subcommand("kernels", "List the kernels in the order of the automatic choice");
    command->footer("Example:\n  mspmv kernels");
    command->callback([&action] { action = list; });
}

}  // namespace rmsp::mspmv
