#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include <rmsp/config.hpp>

/// The commands of mspmv. Each function adds one; when its command line is chosen, it stores in `action` what is to be done.
namespace rmsp::mspmv {

/// Returns the exit code.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_spgemm(CLI::App& app, Action& action);
void add_topo(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_kernels(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);

/// What generate and convert have in common: options that change the structure of a matrix.
void add_structure_options(CLI::App& command, Config::Matrix& matrix);

}  // namespace rmsp::mspmv
