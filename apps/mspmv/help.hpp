#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "apps/mspmv/commands.hpp"

/// Texts that are made of the tables of commands and options.
namespace rmsp::mspmv {

/// `mspmv help [COMMAND] [--man]` and `mspmv completion SHELL`.
void add_help(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

/// What an error says after the parser's own words: "; did you mean --dry-run?", or "".
std::string suggestion(const CLI::App& app);

}  // namespace rmsp::mspmv
