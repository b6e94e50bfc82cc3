#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/solver.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/output.hpp"

namespace rmsp::mspmv {
namespace {

/// What a method asks of the matrix.
std::string needs(const SolverInfo& solver)
{
    std::vector<std::string_view> words;
    if (solver.definite) {
        words.emplace_back("symmetric positive definite");
    } else if (solver.symmetric) {
        words.emplace_back("symmetric");
    } else {
        words.emplace_back(solver.rectangular ? "any" : "square");
    }
    if (solver.transposed) {
        words.emplace_back("A^T x too");
    }
    return fmt::format("{}", fmt::join(words, "; "));
}

/// The tables of docs/solvers.md.
std::string document()
{
    std::string text = "| method | matrix | what it does |\n|---|---|---|\n";
    for (const SolverInfo& solver : list_solvers()) {
        text += fmt::format("| `{}` | {} | {} |\n", solver.name, needs(solver), solver.description);
    }
    return text;
}

std::string list()
{
    std::size_t widest = std::string_view("method").size();
    for (const SolverInfo& solver : list_solvers()) {
        widest = std::max(widest, solver.name.size());
    }
    std::string text = fmt::format("{:<{}}  {:<28}{}\n", "method", widest, "matrix", "summary");
    for (const SolverInfo& solver : list_solvers()) {
        text += fmt::format("{:<{}}  {:<28}{}\n", solver.name, widest, needs(solver), solver.description);
    }
    return text;
}

}  // namespace

void add_solvers(CLI::App& app, Action& action)
{
    CLI::App* command = app.add_subcommand("solvers", "List the methods of mspmv solve");
    const auto markdown = std::make_shared<bool>(false);
    command->add_flag("--markdown", *markdown, "print the tables of docs/solvers.md");
    command->footer("Example:\n  mspmv solvers");
    command->callback([&action, markdown] {
        action = [markdown] {
            print(*markdown ? document() : list());
            return 0;
        };
    });
}

}  // namespace rmsp::mspmv
