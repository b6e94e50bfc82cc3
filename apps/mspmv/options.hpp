#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <rmsp/config.hpp>

/// Options that several commands have.
namespace rmsp::mspmv {

/// A text whose last value counts. An empty one, an unset variable of a script for example, is refused: it would leave
/// the default.
void add_text(CLI::App& command, const char* name, std::string& target, const char* type, const char* meaning);

/// What generate and convert do to a matrix and its values; `values` are the kinds that the command knows, the default
/// is the target's.
void add_matrix_options(CLI::App& command, Config::Matrix& matrix, const std::vector<std::string>& values,
                        const char* meaning_of_values);

/// A name to write a matrix under, whose ending says how.
void add_output(CLI::App& command, const char* name, std::string& target);

}  // namespace rmsp::mspmv
