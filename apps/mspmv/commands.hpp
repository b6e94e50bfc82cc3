#pragma once

#include <functional>

#include <CLI/CLI.hpp>

/// The commands of mspmv. Each function adds one; when its command line is chosen, it stores in `action` what is to be
/// done.
namespace rmsp::mspmv {

/// Returns the exit code.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_spgemm(CLI::App& app, Action& action);
void add_solve(CLI::App& app, Action& action);
void add_eigen(CLI::App& app, Action& action);
void add_solvers(CLI::App& app, Action& action);
void add_characterize(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_plot(CLI::App& app, Action& action);
void add_machines(CLI::App& app, Action& action);
void add_topo(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_kernels(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);

}  // namespace rmsp::mspmv
