#include <algorithm>
#include <array>
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
#include "apps/mspmv/print.hpp"

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

/// What a preconditioner keeps of what the matrix has.
std::string keeps(const PreconditionerInfo& preconditioner)
{
    return preconditioner.definite ? "symmetric positive definite" : preconditioner.symmetric ? "symmetric" : "";
}

/// The tables of docs/solvers.md.
std::string document()
{
    std::string text = "| method | matrix | what it does |\n|---|---|---|\n";
    for (const SolverInfo& solver : list_solvers()) {
        text += fmt::format("| `{}` | {} | {} |\n", solver.name, needs(solver), table_cell(solver.description));
    }
    text += "\n| preconditioner | M stays | what it does |\n|---|---|---|\n";
    for (const PreconditionerInfo& preconditioner : list_preconditioners()) {
        text += fmt::format("| `{}` | {} | {} |\n", preconditioner.name, keeps(preconditioner),
                            table_cell(preconditioner.description));
    }
    return text;
}

/// Rows of a name, what goes with it, and a summary.
std::string table(const std::vector<std::array<std::string, 3>>& rows)
{
    std::size_t widest = 0;
    for (const auto& row : rows) {
        widest = std::max(widest, row[0].size());
    }
    std::string text;
    for (const auto& row : rows) {
        text += fmt::format("{:<{}}  {:<38}  {}\n", row[0], widest, row[1], row[2]);
    }
    return text;
}

std::string list_of_solvers()
{
    std::vector<std::array<std::string, 3>> methods{{"method", "matrix", "summary"}};
    for (const SolverInfo& solver : list_solvers()) {
        methods.push_back({std::string(solver.name), needs(solver), std::string(solver.description)});
    }
    std::vector<std::array<std::string, 3>> preconditioners{{"preconditioner", "M stays", "summary"}};
    for (const PreconditionerInfo& preconditioner : list_preconditioners()) {
        preconditioners.push_back(
            {std::string(preconditioner.name), keeps(preconditioner), std::string(preconditioner.description)});
    }
    return table(methods) + '\n' + table(preconditioners);
}

}  // namespace

void add_solvers(CLI::App& app, Action& action)
{
    CLI::App* command = app.add_subcommand("solvers", "List the methods and preconditioners of mspmv solve");
    const auto markdown = std::make_shared<bool>(false);
    command->add_flag("--markdown", *markdown, "print the tables of docs/solvers.md");
    command->footer("Example:\n  mspmv solvers");
    command->callback([&action, markdown] {
        action = [markdown] {
            *markdown ? print(document()) : print_fitted(list_of_solvers());
            return 0;
        };
    });
}

}  // namespace rmsp::mspmv
